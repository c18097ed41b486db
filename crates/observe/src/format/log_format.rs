//! What each format does, and why it cannot read a line.

use std::fmt;

use crate::event::{LineNumber, LogEvent};
use crate::local_clock::LocalClock;

pub(crate) trait LogFormat: fmt::Debug + Send + Sync {
    /// Parses a line without its line break and syslog header. Returns `Ok(None)` for a line that counts nothing.
    ///
    /// # Errors
    /// When the line is not of this format.
    fn parse<'a>(&mut self, line: &'a str, clock: &mut LocalClock) -> Result<Option<LogEvent<'a>>, BadLine>;

    /// The number of a line that cannot be read, if the format has a counter.
    fn number<'a>(&self, _line: &'a str) -> Option<LineNumber<'a>> {
        None
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLine {
    /// Its JSON is not ours, or cut.
    #[error("{0}")]
    Json(String),
    /// A field is not what it must be.
    #[error("its {0} cannot be read")]
    Field(&'static str),
    /// A field has a value that it cannot have.
    #[error("its {0} is not plausible")]
    Implausible(&'static str),
    /// It is of no format that is known.
    #[error("it is of no known format")]
    Unknown,
}
