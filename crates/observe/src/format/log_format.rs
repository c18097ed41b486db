//! What each format does.

use std::fmt;

use super::bad_line::BadLine;
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
