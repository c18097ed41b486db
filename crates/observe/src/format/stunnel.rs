//! The log of stunnel at level `info`: several lines for each connection, with the connection's number.

use std::borrow::Cow;

use foldhash::{HashMap, HashSet};
use records::ids::ClientId;
use records::kinds::ConnectionOutcome;
use records::values::LogFigure;

use super::{BadLine, LogFormat, failure, fields};
use crate::event::{AbsentFigure, LogEvent, LoggedConnection, LoggedFailure, LoggedHandshake};
use crate::local_clock::LocalClock;

/// The most connections that may be open at once; a line of a further one is a bad line.
const OPEN_MAX: usize = 100_000;
/// The most services that are known to be servers.
const SERVERS_MAX: usize = 1_000;
/// The longest text of a line that is kept, in bytes.
const KEPT_BYTES_MAX: usize = 200;
/// The number of the first connection of a process.
const FIRST_ID: &str = "0";
/// The number of the thread that says at its start what runs: `stunnel 5.68 on x86_64-pc-linux-gnu platform`.
const MAIN_ID: &str = "ui";

/// What its log cannot give.
pub(super) const ABSENT: &[AbsentFigure] = &[
    AbsentFigure { figure: LogFigure::Open, reason: "a connection counts when it ends" },
    AbsentFigure { figure: LogFigure::HandshakeTime, reason: "stunnel's times are whole seconds" },
    AbsentFigure { figure: LogFigure::HandshakeCpu, reason: "no log has it" },
    AbsentFigure { figure: LogFigure::HandshakeParts, reason: "no log has them" },
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
    open: HashMap<Box<str>, OpenConnection>,
    /// Services that have accepted TLS. Those with `client = yes` speak it to the upstream.
    servers: HashSet<Box<str>>,
    /// A process has begun, whose first connection may be logged behind later ones.
    has_begun: bool,
}

/// What stunnel is in the TLS of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TlsRole {
    /// No line has shown it yet.
    Unknown,
    /// The server, whose handshake is complete.
    Server { is_resumed: bool },
    /// The client, of its upstream.
    Client,
}

/// What the lines of a connection said so far.
#[derive(Debug)]
struct OpenConnection {
    /// A process has begun since.
    is_former: bool,
    client: ClientId,
    service: Box<str>,
    role: TlsRole,
    /// stunnel connected to the upstream before any TLS: a client does, and a server of some protocols.
    connects_first: bool,
    /// There was a line of level `info`.
    has_info: bool,
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
        let (level, id) = head.split_once('[').ok_or(BadLine::Unknown)?;
        if level.len() != 1 || !level.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(BadLine::Unknown);
        }
        // Threads that serve no connection accept none.
        if let Some((service, source)) = message.split_once(" accepted connection from ") {
            return self.accept(id, service, source).map(|()| None);
        }
        if id == MAIN_ID && message.starts_with("stunnel ") {
            self.has_begun = true;
            self.open.values_mut().for_each(|connection| connection.is_former = true);
        }
        let Some(connection) = self.open.get_mut(id) else { return Ok(None) };
        let Some(bytes) = closed_bytes(message) else {
            connection.learn(level, message);
            return Ok(None);
        };
        let connection = self.open.remove(id);
        let Some(connection) = connection.filter(|connection| self.is_served(connection)) else {
            return Ok(None);
        };
        let time = Some(time.trim_end()).filter(|time| !time.is_empty());
        let time_us = time.map(|time| clock.parse("%Y.%m.%d %H:%M:%S", time).ok_or(BadLine::Field("time")));
        connection.event(bytes?, time_us.transpose()?).map(Some)
    }
}

impl Stunnel {
    fn accept(&mut self, id: &str, service: &str, source: &str) -> Result<(), BadLine> {
        if id == FIRST_ID {
            // stunnel was restarted, and what was open is cut.
            let has_begun = std::mem::take(&mut self.has_begun);
            self.open.retain(|_, connection| has_begun && !connection.is_former);
        }
        if self.open.remove(id).is_some_and(|connection| !connection.is_former) {
            return Err(BadLine::Field(
                "connection, of which one is open (logId = unique tells them apart),",
            ));
        }
        if self.open.len() >= OPEN_MAX {
            return Err(BadLine::Field("connection: too many are open"));
        }
        let address = source.rsplit_once(':').map_or(source, |(address, _)| address);
        let address = address.trim_start_matches('[').trim_end_matches(']');
        let connection = OpenConnection {
            is_former: false,
            client: fields::client(address)?,
            service: short(service),
            role: TlsRole::Unknown,
            connects_first: false,
            has_info: false,
            version: Cow::Borrowed(""),
            cipher: Box::default(),
            group: Box::default(),
            error: Box::default(),
        };
        self.open.insert(short(id), connection);
        Ok(())
    }

    /// Whether stunnel was the server of a connection's TLS, or would have been.
    fn is_served(&mut self, connection: &OpenConnection) -> bool {
        let OpenConnection { service, role, connects_first, has_info, error, .. } = connection;
        match role {
            TlsRole::Client => false,
            TlsRole::Server { .. } => {
                if self.servers.len() < SERVERS_MAX {
                    self.servers.insert(service.clone());
                }
                true
            }
            // The upstream of either may be out of reach before there is any TLS. At level `notice` there are no lines of it.
            TlsRole::Unknown => {
                let has_level = *has_info || !error.is_empty();
                let may_be_client = *connects_first && has_level && !error.starts_with("SSL_accept");
                !may_be_client || self.servers.contains(service)
            }
        }
    }
}

/// The beginning of a text: what is kept of a line is bounded.
fn short(text: &str) -> Box<str> {
    let end = (0..=KEPT_BYTES_MAX.min(text.len())).rev().find(|&at| text.is_char_boundary(at));
    text[..end.unwrap_or(0)].into()
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
    /// Applies a line in the middle of a connection. Versions before 5.39 write SSL for TLS, and versions before 5.45
    /// write another line for the suite.
    fn learn(&mut self, level: &str, message: &str) {
        self.has_info |= level >= "6";
        let protocol_message = message.strip_prefix("TLS ").or_else(|| message.strip_prefix("SSL "));
        if let Some(how) = protocol_message.and_then(|message| message.strip_prefix("accepted: ")) {
            self.role = TlsRole::Server { is_resumed: how == "previous session reused" };
        } else if protocol_message.is_some_and(|message| message.starts_with("connected: "))
            || message.starts_with("SSL_connect")
            || message.starts_with("SNI: sending ")
        {
            self.role = TlsRole::Client;
        } else if let Some((version, rest)) = message.split_once(" ciphersuite") {
            self.version = match version.trim_start_matches("Negotiated ") {
                "TLSv1.3" => Cow::Borrowed("TLSv1.3"),
                "TLSv1.2" => Cow::Borrowed("TLSv1.2"),
                other => Cow::Owned(short(other).into()),
            };
            self.cipher = short(rest.trim_start_matches([':', ' ']).split(' ').next().unwrap_or_default());
        } else if let Some(group) = message.strip_prefix("Peer temporary key: ") {
            self.group = short(group.split(',').next().unwrap_or_default());
        } else if message.starts_with("s_connect: connected ") {
            // One of several upstreams answers.
            self.error = Box::default();
        } else if (level <= "3" && self.error.is_empty()) || message.contains(" s_poll_wait: TIMEOUT") {
            self.error = short(message);
        }
        self.connects_first |= self.role == TlsRole::Unknown && message.starts_with("s_connect: ");
    }

    fn event<'a>(self, [out, r#in]: [u64; 2], time_us: Option<u64>) -> Result<LogEvent<'a>, BadLine> {
        let is_silent = match self.role {
            TlsRole::Unknown => !self.has_info && self.error.is_empty(),
            TlsRole::Server { .. } | TlsRole::Client => self.version.is_empty(),
        };
        if is_silent {
            return Err(BadLine::Field("version, which needs debug = info"));
        }
        let failure = self.failure();
        let handshake = match self.role {
            TlsRole::Server { is_resumed } => Some(LoggedHandshake {
                version: self.version,
                cipher: Cow::Owned(self.cipher.into()),
                group: Cow::Owned(self.group.into()),
                is_resumed,
                ..LoggedHandshake::default()
            }),
            TlsRole::Unknown | TlsRole::Client => None,
        };
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
            _ if error.starts_with("s_connect") || error.starts_with("No more addresses") => {
                ConnectionOutcome::UpstreamConnect
            }
            _ if self.role == TlsRole::Unknown => failure::outcome_of(error),
            "" => return None,
            _ if error.contains("TIMEOUT") => ConnectionOutcome::IdleTimeout,
            _ if error.starts_with("SSL_") || error.starts_with("TLS") => ConnectionOutcome::ClientBroken,
            _ => ConnectionOutcome::UpstreamBroken,
        };
        Some(LoggedFailure { outcome, detail: Cow::Owned(error.to_owned()) })
    }
}
