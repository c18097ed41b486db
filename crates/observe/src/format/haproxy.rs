//! The log of HAProxy, HTTP and TCP mode: a line when a request or a connection ends, and one for each failed handshake.

use std::borrow::Cow;
use std::time::Duration;

use records::kinds::ConnectionOutcome;
use records::metrics::RequestFailure;
use records::values::LogFigure;
use serde::Deserialize;

use super::{BadLine, LogFormat, failure, fields, haproxy_text};
use crate::event::{
    AbsentFigure, LineNumber, LogEvent, LoggedConnection, LoggedFailure, LoggedHandshake, LoggedRequest,
};
use crate::local_clock::LocalClock;

/// Reads our JSON, and HAProxy's own HTTP and TCP formats.
#[derive(Debug)]
pub(super) struct Haproxy;

/// How messages of HAProxy about itself begin; they come in the log of a proxy too.
const OWN_MESSAGES: [&str; 5] = ["Proxy ", "Server ", "Health check ", "backend ", "Stopping "];

/// What its log cannot give.
pub(super) const ABSENT: &[AbsentFigure] = &[
    AbsentFigure { figure: LogFigure::Open, reason: "HAProxy logs a connection or request when it ends" },
    AbsentFigure { figure: LogFigure::HandshakeCpu, reason: "no log has it" },
    AbsentFigure { figure: LogFigure::HandshakeParts, reason: "no log has them" },
    AbsentFigure {
        figure: LogFigure::IdleConnections,
        reason: "in HTTP mode HAProxy logs a handshake with the first request of its connection",
    },
    AbsentFigure { figure: LogFigure::ResponseBodies, reason: "HAProxy logs bytes with the headers" },
    AbsentFigure {
        figure: LogFigure::ExactBytes,
        reason: "in HTTP mode HAProxy counts headers in a form of its own: some bytes off with each request",
    },
    AbsentFigure { figure: LogFigure::Exchange, reason: "no log has it" },
    AbsentFigure { figure: LogFigure::FullReasons, reason: "no log says why a client did not resume" },
    AbsentFigure {
        figure: LogFigure::FirstByte,
        reason: "not logged; the upstream's time and the request's are",
    },
    AbsentFigure { figure: LogFigure::Queue, reason: "not in this format" },
    AbsentFigure { figure: LogFigure::RequestBodies, reason: "HAProxy logs bytes with the headers" },
];

/// What requests cannot say if the variables of their numbers are not set.
const WITHOUT_NUMBER: &[AbsentFigure] = &[AbsentFigure {
    figure: LogFigure::Handshakes,
    reason: "the lines have no number of the request, by which connections and handshakes are counted; add the lines `http-request set-var…` that `tlsdash observe setup haproxy` prints",
}];

/// A line in the formats that `observe setup haproxy` prints.
#[derive(Debug, Deserialize)]
struct HaproxyLine<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    time: Cow<'a, str>,
    #[serde(borrow)]
    log: Cow<'a, str>,
    #[serde(borrow, rename = "line")]
    sequence: Cow<'a, str>,
    #[serde(borrow)]
    client: Cow<'a, str>,
    /// The request's number on its connection. Of a request that never became whole: that of the one before, if any.
    #[serde(borrow, default)]
    number: Cow<'a, str>,
    #[serde(borrow, default)]
    version: Cow<'a, str>,
    #[serde(borrow, default)]
    cipher: Cow<'a, str>,
    #[serde(borrow, default)]
    group: Cow<'a, str>,
    #[serde(borrow, default)]
    resumed: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    alpn: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    handshake: Cow<'a, str>,
    #[serde(borrow, default)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    path: Cow<'a, str>,
    #[serde(borrow, default)]
    protocol: Cow<'a, str>,
    #[serde(borrow, default)]
    upstream: Cow<'a, str>,
    #[serde(borrow, default)]
    status: Cow<'a, str>,
    #[serde(borrow, default)]
    state: Cow<'a, str>,
    #[serde(borrow, default, rename = "in")]
    bytes_in: Cow<'a, str>,
    #[serde(borrow, default, rename = "out")]
    bytes_out: Cow<'a, str>,
    /// From the handshake, or from the end of the request before, to the request. HAProxy's time of a request is that of
    /// its accepted connection, or of that end.
    #[serde(borrow, default)]
    idle: Cow<'a, str>,
    #[serde(borrow, default)]
    took: Cow<'a, str>,
    #[serde(borrow, default)]
    connect: Cow<'a, str>,
    #[serde(borrow, default)]
    response: Cow<'a, str>,
    /// HAProxy's number for why a connection ended before its first request; 0 if nothing failed.
    #[serde(borrow, default)]
    code: Cow<'a, str>,
    /// That reason in the words of HAProxy and OpenSSL.
    #[serde(borrow, default)]
    error: Cow<'a, str>,
}

/// When a request or connection ended: HAProxy logs when it began.
pub(super) fn ended_us(began_us: Option<u64>, took: Option<Duration>) -> Option<u64> {
    let took_us = took.map_or(0, |took| took.as_micros() as u64);
    began_us.map(|began_us| began_us.saturating_add(took_us))
}

impl LogFormat for Haproxy {
    fn parse<'a>(&mut self, line: &'a str, clock: &mut LocalClock) -> Result<Option<LogEvent<'a>>, BadLine> {
        if OWN_MESSAGES.iter().any(|begin| line.starts_with(begin)) {
            return Ok(None);
        }
        if !line.starts_with('{') {
            return haproxy_text::parse(line, clock).map(Some);
        }
        let line = fields::json::<HaproxyLine<'a>>(line)?;
        match &*line.kind {
            "http" => line.http(),
            "tcp" => line.tcp(),
            "error" => line.error(),
            _ => Err(BadLine::Field("kind")),
        }
        .map(Some)
    }

    fn number<'a>(&self, line: &'a str) -> Option<LineNumber<'a>> {
        let value = |name| Some(line.split_once(name)?.1.split_once('"')?.0);
        let number = value(r#""line":""#)?.parse().ok()?;
        Some(LineNumber { log: Cow::Borrowed(value(r#""log":""#)?), number })
    }
}

impl<'a> HaproxyLine<'a> {
    fn base(&self) -> Result<LogEvent<'a>, BadLine> {
        let number = fields::number(&self.sequence, "line")?;
        Ok(LogEvent {
            time_us: fields::seconds_us(&self.time, "time")?,
            sequence: number.map(|number| LineNumber { log: self.log.clone(), number }),
            bytes_in: fields::bytes(&self.bytes_in, "in")?.unwrap_or(0),
            bytes_out: fields::bytes(&self.bytes_out, "out")?.unwrap_or(0),
            ..LogEvent::of(fields::client(&self.client)?)
        })
    }

    /// When its request ended.
    fn request_ended_us(
        &self,
        accepted_us: Option<u64>,
        took: Option<Duration>,
    ) -> Result<Option<u64>, BadLine> {
        let handshake = fields::millis(&self.handshake, "handshake")?;
        let idle = fields::millis(&self.idle, "idle")?;
        Ok([handshake, idle, took].into_iter().fold(accepted_us, ended_us))
    }

    fn took(&self) -> Result<Option<Duration>, BadLine> {
        fields::millis(&self.took, "took")
    }

    fn handshake(&self) -> Result<Option<LoggedHandshake<'a>>, BadLine> {
        let Some(version) = fields::present(self.version.clone()) else { return Ok(None) };
        Ok(Some(LoggedHandshake {
            version,
            cipher: fields::or_empty(self.cipher.clone()),
            group: fields::or_empty(self.group.clone()),
            name: self.name.clone().map(fields::or_empty),
            alpn: self.alpn.clone().map(fields::or_empty),
            is_resumed: self.resumed == "1",
            took: fields::millis(&self.handshake, "handshake")?,
        }))
    }

    fn http(self) -> Result<LogEvent<'a>, BadLine> {
        let number = fields::number(&self.number, "number")?;
        let is_first = number == Some(1);
        let base = self.base()?;
        // HAProxy answers some requests itself, which may be before its rules number them.
        let is_forwarded = !self.state.starts_with(['L', 'P']);
        let lacks = if number.is_none() && is_forwarded { WITHOUT_NUMBER } else { &[] };
        let took = self.took()?;
        let time_us = self.request_ended_us(base.time_us, took)?;
        let connection = if is_first {
            Some(LoggedConnection { handshake: self.handshake()?, ..LoggedConnection::default() })
        } else {
            None
        };
        let request = LoggedRequest {
            connection: 0,
            status: fields::status(&self.status)?,
            failure: request_failure(&self.state),
            upstream_time: fields::millis(&self.response, "response")?,
            took,
            body_out: None,
            method: fields::or_empty(self.method),
            path: match fields::or_empty(self.path) {
                Cow::Borrowed(target) => Cow::Borrowed(fields::path_and_query(target).0),
                Cow::Owned(target) => Cow::Owned(fields::path_and_query(&target).0.to_owned()),
            },
            query: None,
            protocol: fields::or_empty(self.protocol),
            upstream: fields::or_empty(self.upstream),
        };
        Ok(LogEvent { time_us, connection, request: Some(request), lacks, ..base })
    }

    fn tcp(self) -> Result<LogEvent<'a>, BadLine> {
        let base = self.base()?;
        let lifetime = self.took()?;
        let failure = connection_failure(&self.state)
            .map(|outcome| LoggedFailure { outcome, detail: self.state.clone() });
        let connect = fields::millis(&self.connect, "connect")?;
        let connection = LoggedConnection {
            handshake: self.handshake()?,
            failure,
            connect,
            lifetime,
            ..LoggedConnection::default()
        };
        let time_us = ended_us(base.time_us, lifetime);
        Ok(LogEvent { time_us, connection: Some(connection), ..base })
    }

    fn error(self) -> Result<LogEvent<'a>, BadLine> {
        let base = self.base()?;
        if self.code != "0" {
            let failure = LoggedFailure { outcome: failure::outcome_of(&self.error), detail: self.error };
            let connection = LoggedConnection { failure: Some(failure), ..LoggedConnection::default() };
            return Ok(LogEvent { connection: Some(connection), ..base });
        }
        // After the handshake, the client sent no whole request. Earlier requests have counted their connection.
        let has_requests = fields::number(&self.number, "number")?.is_some();
        let connection = if has_requests {
            None
        } else {
            Some(LoggedConnection { handshake: self.handshake()?, ..LoggedConnection::default() })
        };
        let took = self.took()?;
        // A client that leaves without a byte has the state of a malformed request too, but gets no status.
        let status = fields::status(&self.status)?;
        let failure = request_failure(&self.state)
            .filter(|failure| matches!(failure, RequestFailure::Malformed | RequestFailure::HeadTimeout));
        let request =
            status.and(failure).map(|_| LoggedRequest { status, failure, took, ..LoggedRequest::default() });
        Ok(LogEvent { time_us: self.request_ended_us(base.time_us, took)?, connection, request, ..base })
    }
}

/// Why a request failed, from the first two characters of its termination state (HAProxy's manual, 8.5).
pub(super) fn request_failure(state: &str) -> Option<RequestFailure> {
    let mut characters = state.chars();
    let (cause, phase) = (characters.next()?, characters.next()?);
    Some(match (cause, phase) {
        ('C', _) => RequestFailure::ClientGone,
        ('c', 'R') => RequestFailure::HeadTimeout,
        ('c', _) => RequestFailure::BodyTimeout,
        ('S', 'C') => RequestFailure::Connect,
        ('S', 'H') => RequestFailure::UpstreamClosed,
        ('S', _) => RequestFailure::UpstreamCut,
        ('s', 'C') => RequestFailure::ConnectTimeout,
        ('s', 'Q') => RequestFailure::QueueTimeout,
        ('s', _) => RequestFailure::UpstreamTimeout,
        ('P', 'R') => RequestFailure::Malformed,
        ('P', 'H') => RequestFailure::UpstreamInvalid,
        _ => return None,
    })
}

/// Why a connection in TCP mode failed, in the same way.
pub(super) fn connection_failure(state: &str) -> Option<ConnectionOutcome> {
    let mut characters = state.chars();
    let (cause, phase) = (characters.next()?, characters.next()?);
    Some(match (cause, phase) {
        ('C', _) => ConnectionOutcome::ClientBroken,
        ('c' | 's', 'D') => ConnectionOutcome::IdleTimeout,
        ('S' | 's', 'C' | 'Q') => ConnectionOutcome::UpstreamConnect,
        ('S', _) => ConnectionOutcome::UpstreamBroken,
        _ => return None,
    })
}
