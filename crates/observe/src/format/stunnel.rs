//! The log of stunnel at level `info`: several lines for each connection, with the connection's number.

use std::borrow::Cow;

use foldhash::HashMap;
use telemetry::{ClientId, ConnectionOutcome, LogFigure};

use super::{AbsentFigure, BadLine, LogFormat, failure, fields};
use crate::event::{LogEvent, LoggedConnection, LoggedFailure, LoggedHandshake};
use crate::local_clock::LocalClock;

/// The most connections that may be open at once; a line of a further one is a bad line.
const OPEN_MAX: usize = 100_000;
/// The longest message of a failure that is kept, in bytes.
const DETAIL_BYTES_MAX: usize = 200;

/// What its log cannot give.
pub(super) const ABSENT: &[AbsentFigure] = &[
    AbsentFigure { figure: LogFigure::Open, reason: "a connection counts when it ends" },
    AbsentFigure { figure: LogFigure::HandshakeTime, reason: "stunnel's times are whole seconds" },
    AbsentFigure { figure: LogFigure::HandshakeCpu, reason: "no log has it" },
    AbsentFigure { figure: LogFigure::FullReasons, reason: "no log says why a client did not resume" },
    AbsentFigure { figure: LogFigure::Names, reason: "stunnel does not log them at level info" },
    AbsentFigure { figure: LogFigure::Alpn, reason: "stunnel does not log them" },
    AbsentFigure { figure: LogFigure::Connect, reason: "stunnel's times are whole seconds" },
    AbsentFigure { figure: LogFigure::Lifetime, reason: "stunnel's times are whole seconds" },
    AbsentFigure { figure: LogFigure::Exchange, reason: "no log has it" },
];

/// Puts the lines of each connection together.
#[derive(Debug, Default)]
pub(super) struct Stunnel {
    open: HashMap<u64, OpenConnection>,
}

/// What the lines of a connection said so far.
#[derive(Debug)]
struct OpenConnection {
    client: ClientId,
    is_accepted: bool,
    is_resumed: bool,
    version: Cow<'static, str>,
    cipher: Box<str>,
    group: Box<str>,
    error: Box<str>,
}

impl LogFormat for Stunnel {
    fn parse<'a>(&mut self, line: &'a str, clock: &mut LocalClock) -> Result<Option<LogEvent<'a>>, BadLine> {
        // 2026.11.23 22:02:43 LOG5[0]: message; journald and syslog have their own time.
        let (time, rest) = line.split_once("LOG").ok_or(BadLine::Unknown)?;
        let (head, message) = rest.split_once("]: ").ok_or(BadLine::Unknown)?;
        let (level, number) = head.split_once('[').ok_or(BadLine::Unknown)?;
        if level.len() != 1 || !level.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(BadLine::Unknown);
        }
        // Threads that serve no connection have names.
        let Ok(number) = number.parse::<u64>() else { return Ok(None) };
        if let Some((_, source)) = message.split_once(" accepted connection from ") {
            return self.accept(number, source).map(|()| None);
        }
        let Some(connection) = self.open.get_mut(&number) else { return Ok(None) };
        match closed_bytes(message) {
            None => {
                connection.learn(level, message);
                Ok(None)
            }
            Some(bytes) => {
                let time = time.trim_end();
                let time_us = Some(time).filter(|time| !time.is_empty());
                let time_us = time_us.map(|time| clock.parse("%Y.%m.%d %H:%M:%S", time)).transpose()?;
                let connection = self.open.remove(&number);
                connection.map(|connection| connection.event(bytes?, time_us)).transpose()
            }
        }
    }
}

impl Stunnel {
    fn accept(&mut self, number: u64, source: &str) -> Result<(), BadLine> {
        if self.open.len() >= OPEN_MAX {
            return Err(BadLine::Field("connection: too many are open"));
        }
        let address = source.rsplit_once(':').map_or(source, |(address, _)| address);
        let address = address.trim_start_matches('[').trim_end_matches(']');
        let connection = OpenConnection {
            client: fields::client(address)?,
            is_accepted: false,
            is_resumed: false,
            version: Cow::Borrowed(""),
            cipher: Box::default(),
            group: Box::default(),
            error: Box::default(),
        };
        // stunnel was restarted if there is one of this number.
        self.open.insert(number, connection);
        Ok(())
    }
}

/// The bytes to the client and to the upstream, of a line that ends a connection; `None` of another line.
fn closed_bytes(message: &str) -> Option<Result<[u64; 2], BadLine>> {
    // Connection closed: 43 byte(s) sent to TLS, 35 byte(s) sent to socket
    let rest = message.strip_prefix("Connection ").filter(|rest| rest.contains(" byte(s) sent to "))?;
    let (_, sums) = rest.split_once(": ")?;
    let mut numbers = sums.split(", ").map(|sum| sum.split(' ').next().unwrap_or_default());
    let mut next = || {
        let number = fields::bytes(numbers.next().unwrap_or_default(), "bytes")?;
        number.ok_or(BadLine::Field("bytes"))
    };
    Some(next().and_then(|to_client| Ok([to_client, next()?])))
}

impl OpenConnection {
    /// Takes what a line in the middle of a connection says.
    fn learn(&mut self, level: &str, message: &str) {
        if let Some(how) = message.strip_prefix("TLS accepted: ") {
            self.is_accepted = true;
            self.is_resumed = how == "previous session reused";
        } else if let Some((version, rest)) = message.split_once(" ciphersuite: ") {
            self.version = match version {
                "TLSv1.3" => Cow::Borrowed("TLSv1.3"),
                "TLSv1.2" => Cow::Borrowed("TLSv1.2"),
                other => Cow::Owned(other.chars().take(DETAIL_BYTES_MAX / 4).collect()),
            };
            self.cipher = rest.split(' ').next().unwrap_or_default().into();
        } else if let Some(group) = message.strip_prefix("Peer temporary key: ") {
            self.group = group.split(',').next().unwrap_or_default().into();
        } else if level <= "3" && self.error.is_empty() {
            let end =
                (0..=DETAIL_BYTES_MAX.min(message.len())).rev().find(|&at| message.is_char_boundary(at));
            self.error = message[..end.unwrap_or(0)].into();
        } else if message.starts_with("transfer: s_poll_wait: TIMEOUT") {
            self.error = message.into();
        }
    }

    fn event<'a>(self, [out, r#in]: [u64; 2], time_us: Option<u64>) -> Result<LogEvent<'a>, BadLine> {
        if self.is_accepted && self.version.is_empty() {
            return Err(BadLine::Field("version, which needs debug = info"));
        }
        let failure = self.failure();
        let handshake = self.is_accepted.then(|| LoggedHandshake {
            version: self.version,
            cipher: Cow::Owned(self.cipher.into()),
            group: Cow::Owned(self.group.into()),
            is_resumed: self.is_resumed,
            ..LoggedHandshake::default()
        });
        // stunnel connects once the handshake is complete.
        let outcome = failure.as_ref().map(|failure| failure.outcome);
        let has_upstream = handshake.is_some() && outcome != Some(ConnectionOutcome::UpstreamConnect);
        let connection = LoggedConnection { handshake, failure, has_upstream, ..LoggedConnection::default() };
        Ok(LogEvent {
            time_us,
            connection: Some(connection),
            bytes_in: r#in,
            bytes_out: out,
            ..LogEvent::of(self.client)
        })
    }

    fn failure<'a>(&self) -> Option<LoggedFailure<'a>> {
        let error = &*self.error;
        let outcome = match error {
            _ if !self.is_accepted => failure::outcome_of(error),
            "" => return None,
            _ if error.contains("TIMEOUT") => ConnectionOutcome::IdleTimeout,
            _ if error.starts_with("s_connect") || error.starts_with("No more addresses") => {
                ConnectionOutcome::UpstreamConnect
            }
            _ if error.starts_with("SSL_") || error.starts_with("TLS") => ConnectionOutcome::ClientBroken,
            _ => ConnectionOutcome::UpstreamBroken,
        };
        Some(LoggedFailure { outcome, detail: Cow::Owned(error.to_owned()) })
    }
}
