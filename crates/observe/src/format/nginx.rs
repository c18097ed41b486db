//! The access log of nginx's `http`: a line when a request ends. The first request of a connection counts the connection.

use std::borrow::Cow;

use records::metrics::RequestFailure;
use records::values::LogFigure;
use serde::Deserialize;

use super::{BadLine, LogFormat, combined, fields, nginx_error};
use crate::event::{AbsentFigure, LogEvent, LoggedConnection, LoggedHandshake, LoggedRequest};
use crate::local_clock::LocalClock;

/// What nginx sends as the status of a request whose client went away before one was sent.
const CLIENT_CLOSED_REQUEST: u16 = 499;

/// Reads our JSON, nginx's `combined` format, and lines of its error log.
#[derive(Debug)]
pub(super) struct NginxFormat;

/// What its log cannot give.
pub(super) const ABSENT: &[AbsentFigure] = &[
    AbsentFigure { figure: LogFigure::Open, reason: "nginx logs no beginning or end of connections" },
    AbsentFigure { figure: LogFigure::HandshakeTime, reason: "nginx does not log how long a handshake took" },
    AbsentFigure { figure: LogFigure::HandshakeCpu, reason: "no log has it" },
    AbsentFigure { figure: LogFigure::HandshakeParts, reason: "no log has them" },
    AbsentFigure {
        figure: LogFigure::IdleConnections,
        reason: "nginx logs a handshake with the first request of its connection",
    },
    AbsentFigure {
        figure: LogFigure::Failures,
        reason: "the access log has none; add: error_log syslog:server=unix:PATH,nohostname info;",
    },
    AbsentFigure { figure: LogFigure::Exchange, reason: "requests are timed instead" },
    AbsentFigure { figure: LogFigure::FullReasons, reason: "no log says why a client did not resume" },
    AbsentFigure {
        figure: LogFigure::FirstByte,
        reason: "not logged; the upstream's time and the request's are",
    },
    AbsentFigure { figure: LogFigure::Queue, reason: "not logged" },
    AbsentFigure { figure: LogFigure::RequestBodies, reason: "the log has bytes with the headers" },
    AbsentFigure { figure: LogFigure::Connect, reason: "the log has it only with the whole request" },
    AbsentFigure { figure: LogFigure::Lifetime, reason: "the log has requests, not ends of connections" },
];

/// A line in the format that `observe setup nginx` prints.
#[derive(Debug, Deserialize)]
struct NginxLine<'a> {
    #[serde(borrow)]
    time: Cow<'a, str>,
    #[serde(borrow)]
    client: Cow<'a, str>,
    #[serde(borrow)]
    connection: Cow<'a, str>,
    #[serde(borrow)]
    number: Cow<'a, str>,
    #[serde(borrow, default)]
    version: Cow<'a, str>,
    #[serde(borrow, default)]
    cipher: Cow<'a, str>,
    #[serde(borrow, default)]
    group: Cow<'a, str>,
    #[serde(borrow, default)]
    reused: Cow<'a, str>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    alpn: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    path: Cow<'a, str>,
    #[serde(borrow, default)]
    protocol: Cow<'a, str>,
    #[serde(borrow)]
    status: Cow<'a, str>,
    #[serde(borrow, rename = "in")]
    bytes_in: Cow<'a, str>,
    #[serde(borrow, rename = "out")]
    bytes_out: Cow<'a, str>,
    #[serde(borrow, default)]
    body: Cow<'a, str>,
    #[serde(borrow, default)]
    took: Cow<'a, str>,
    #[serde(borrow, default)]
    upstream: Cow<'a, str>,
    #[serde(borrow, default)]
    connect: Cow<'a, str>,
    #[serde(borrow, default)]
    header: Cow<'a, str>,
}

/// The status that the client got.
pub(super) fn answered(status: Option<u16>) -> Option<u16> {
    status.filter(|status| *status != CLIENT_CLOSED_REQUEST)
}

/// Why a request failed, as far as its status and its method tell.
pub(super) fn failure_of(status: u16, method: &str) -> Option<RequestFailure> {
    match status {
        CLIENT_CLOSED_REQUEST => Some(RequestFailure::ClientGone),
        400 if method.is_empty() => Some(RequestFailure::Malformed),
        408 if method.is_empty() => Some(RequestFailure::HeadTimeout),
        _ => None,
    }
}

impl LogFormat for NginxFormat {
    fn parse<'a>(&mut self, line: &'a str, clock: &mut LocalClock) -> Result<Option<LogEvent<'a>>, BadLine> {
        if line.starts_with('{') {
            return fields::json::<NginxLine<'a>>(line)?.event().map(Some);
        }
        nginx_error::parse(line, clock).unwrap_or_else(|| combined::parse(line).map(Some))
    }
}

impl<'a> NginxLine<'a> {
    fn event(self) -> Result<LogEvent<'a>, BadLine> {
        let is_first = fields::number(&self.number, "number")? == Some(1);
        let sent = fields::status(&self.status)?;
        let request = LoggedRequest {
            connection: fields::number(&self.connection, "connection")?.unwrap_or(0),
            status: answered(sent),
            failure: self.failure(sent),
            upstream_time: fields::seconds_sum(&self.header, "header")?,
            took: fields::seconds(&self.took, "took")?,
            body_out: fields::bytes(&self.body, "body")?,
            method: fields::or_empty(self.method),
            path: fields::or_empty(self.path),
            query: None,
            protocol: fields::or_empty(self.protocol),
            upstream: fields::or_empty(self.upstream),
        };
        let handshake = fields::present(self.version).map(|version| LoggedHandshake {
            version,
            cipher: fields::or_empty(self.cipher),
            group: fields::or_empty(self.group),
            name: self.name.map(fields::or_empty),
            alpn: self.alpn.map(fields::or_empty),
            is_resumed: self.reused == "r",
            took: None,
        });
        let connection = LoggedConnection { handshake, ..LoggedConnection::default() };
        Ok(LogEvent {
            time_us: fields::seconds_us(&self.time, "time")?,
            connection: is_first.then_some(connection),
            request: Some(request),
            bytes_in: fields::bytes(&self.bytes_in, "in")?.unwrap_or(0),
            bytes_out: fields::bytes(&self.bytes_out, "out")?.unwrap_or(0),
            ..LogEvent::of(fields::client(&self.client)?)
        })
    }

    /// Why the request failed, if the line shows it: nginx writes dashes for steps that an upstream did not reach.
    fn failure(&self, status: Option<u16>) -> Option<RequestFailure> {
        let is_absent = |text: &str| text.is_empty() || text.ends_with('-');
        let status = status?;
        failure_of(status, &self.method).or_else(|| match status {
            408 if is_absent(&self.upstream) => Some(RequestFailure::HeadTimeout),
            502 if !is_absent(&self.upstream) && is_absent(&self.connect) => Some(RequestFailure::Connect),
            502 if !is_absent(&self.upstream) && is_absent(&self.header) => {
                Some(RequestFailure::UpstreamClosed)
            }
            504 if !is_absent(&self.upstream) && is_absent(&self.connect) => {
                Some(RequestFailure::ConnectTimeout)
            }
            504 if !is_absent(&self.upstream) && is_absent(&self.header) => {
                Some(RequestFailure::UpstreamTimeout)
            }
            _ => None,
        })
    }
}
