//! The formats of logs, one a file: a line in, an event out.

mod combined;
mod failure;
mod fields;
mod haproxy;
mod haproxy_text;
mod log_format;
mod nginx;
mod nginx_error;
mod nginx_stream;
mod stunnel;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

pub use self::log_format::BadLine;
pub(crate) use self::log_format::LogFormat;
use crate::event::{AbsentFigure, LineNumber, LogEvent};
use crate::local_clock::LocalClock;
use crate::syslog::SyslogLine;

#[derive(Debug)]
pub struct LogParser {
    format: Box<dyn LogFormat>,
    clock: LocalClock,
}

impl LogParser {
    /// Parses a line and passes its event to `then`, or `None` if the line counts nothing. Invalid UTF-8 is replaced.
    ///
    /// # Errors
    /// When the line is not of this format.
    pub fn parse<T>(
        &mut self,
        line: &[u8],
        then: impl FnOnce(Option<LogEvent<'_>>) -> T,
    ) -> Result<T, BadLine> {
        let text = match std::str::from_utf8(line) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(line),
        };
        let line = SyslogLine::parse(&text);
        if line.message.is_empty() {
            return Ok(then(None));
        }
        let event = self.format.parse(line.message, &mut self.clock)?;
        Ok(then(event.map(|event| LogEvent {
            time_us: event.time_us.or_else(|| line.time_us(&mut self.clock)),
            is_relayed: line.has_header(),
            ..event
        })))
    }

    /// Passes on the number of a line that cannot be read, if there is one.
    pub(crate) fn number<T>(&self, line: &[u8], then: impl FnOnce(&LineNumber<'_>) -> T) {
        self.format.number(&String::from_utf8_lossy(line)).map(|number| then(&number));
    }
}

/// A terminator whose logs can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogKind {
    /// HAProxy, HTTP or TCP mode.
    Haproxy,
    /// nginx, `http`.
    Nginx,
    /// nginx, `stream`.
    NginxStream,
    /// stunnel, as a server.
    Stunnel,
}

impl LogKind {
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Haproxy, "haproxy"),
        (Self::Nginx, "nginx"),
        (Self::NginxStream, "nginx-stream"),
        (Self::Stunnel, "stunnel"),
    ];

    pub fn parser(self) -> LogParser {
        let format: Box<dyn LogFormat> = match self {
            Self::Haproxy => Box::new(haproxy::Haproxy),
            Self::Nginx => Box::new(nginx::NginxFormat),
            Self::NginxStream => Box::new(nginx_stream::NginxStream),
            Self::Stunnel => Box::<stunnel::Stunnel>::default(),
        };
        LogParser { format, clock: LocalClock::system() }
    }

    /// The figures that its log cannot give, each with the reason.
    pub fn absent(self) -> &'static [AbsentFigure] {
        match self {
            Self::Haproxy => haproxy::ABSENT,
            Self::Nginx => nginx::ABSENT,
            Self::NginxStream => nginx_stream::ABSENT,
            Self::Stunnel => stunnel::ABSENT,
        }
    }
}

impl fmt::Display for LogKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(Self::ALL[*self as usize].1)
    }
}

/// The word names no log that can be counted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownLogKind {
    /// hitch's log lacks what would have to be counted.
    #[error(
        "hitch does not log versions, resumption or bytes, so that nothing could be counted exactly; `tlsdash observe` reads haproxy, nginx, nginx-stream and stunnel"
    )]
    Hitch,
    /// tlsdash has records of its own.
    #[error("tlsdash writes records itself: `tlsdash watch` shows a headless one")]
    Tlsdash,
    #[error("no log of {0:?} can be read; there are haproxy, nginx, nginx-stream and stunnel")]
    Other(String),
}

impl FromStr for LogKind {
    type Err = UnknownLogKind;

    fn from_str(text: &str) -> Result<Self, UnknownLogKind> {
        let known = Self::ALL.iter().find(|(_, word)| *word == text);
        known.map(|(kind, _)| *kind).ok_or_else(|| match text {
            "hitch" => UnknownLogKind::Hitch,
            "tlsdash" => UnknownLogKind::Tlsdash,
            _ => UnknownLogKind::Other(text.to_owned()),
        })
    }
}

#[cfg(test)]
mod tests;
