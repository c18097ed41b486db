//! One line of a log, or of a list of requests, as a request to send.

use std::fmt::Write as _;
use std::net::IpAddr;

use observe::{LogKind, LogParser};
use records::ids::ClientId;

/// A request that a line describes.
#[derive(Debug)]
pub(super) struct ReplayRequest {
    /// In microseconds since 1970, or since the begin of a list.
    pub(super) begun_us: u64,
    pub(super) client: ClientId,
    pub(super) connection: ReplayConnection,
    /// Whether its connection resumed a session, if this line says so.
    pub(super) resumes: Option<bool>,
    pub(super) method: String,
    pub(super) target: String,
    pub(super) status: Option<u16>,
    pub(super) size: ReplaySize,
    /// Whether the line would have the query of its target.
    pub(super) has_query: bool,
    pub(super) is_http2: bool,
}

/// What a line says of the size of its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplaySize {
    Unknown,
    /// Head and body.
    Whole(u64),
    Body(u64),
}

/// What a line says of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReplayConnection {
    /// This is its first request, and its number if there is one.
    First(Option<u64>),
    /// It has this number.
    Numbered(u64),
    /// It is one that the client has already, as far as the log tells.
    Former,
    Unknown,
}

/// Why nothing is sent for a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unsent {
    Unreadable,
    /// A failed handshake, or a request that never became whole.
    NoRequest,
    NoTime,
    /// Its method or path cannot be sent.
    Unsendable,
}

impl Unsent {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Unreadable => "unreadable",
            Self::NoRequest => "without a request",
            Self::NoTime => "without a time",
            Self::Unsendable => "with a method or path that cannot be sent",
        }
    }
}

/// The form of all lines.
#[derive(Debug)]
pub(super) enum LineFormat {
    Log(LogKind, LogParser),
    /// `SECONDS METHOD TARGET [BODY-BYTES [CLIENT]]`
    List,
}

impl LineFormat {
    /// The format that reads most of these lines; `None` if none reads any.
    pub(super) fn of(sample: &[Vec<u8>]) -> Option<Self> {
        let logs = [LogKind::Nginx, LogKind::Haproxy].map(|kind| Self::Log(kind, kind.parser()));
        let mut formats: Vec<_> = logs.into_iter().chain([Self::List]).collect();
        let read = |format: &mut Self| sample.iter().filter(|line| format.parse(line).is_ok()).count();
        let counts: Vec<usize> = formats.iter_mut().map(read).collect();
        let (best, count) = counts.iter().enumerate().rev().max_by_key(|(_, count)| **count)?;
        (*count > 0).then(|| formats.swap_remove(best))
    }

    pub(super) fn name(&self) -> String {
        match self {
            Self::Log(kind, _) => format!("a log of {kind}"),
            Self::List => "a list".to_owned(),
        }
    }

    /// Whether lines with this begin say nothing.
    pub(super) fn is_blank(line: &[u8]) -> bool {
        line.trim_ascii().is_empty() || line.starts_with(b"#")
    }

    pub(super) fn parse(&mut self, line: &[u8]) -> Result<ReplayRequest, Unsent> {
        match self {
            Self::Log(_, parser) => logged(parser, line),
            Self::List => str::from_utf8(line).ok().and_then(listed).ok_or(Unsent::Unreadable),
        }
    }
}

fn logged(parser: &mut LogParser, line: &[u8]) -> Result<ReplayRequest, Unsent> {
    let read = parser.parse(line, |event| {
        let event = event.ok_or(Unsent::NoRequest)?;
        let request = event.request.filter(|request| !request.method.is_empty()).ok_or(Unsent::NoRequest)?;
        let took_us = request.took.map_or(0, |took| took.as_micros() as u64);
        let has_connections =
            !event.lacks.iter().any(|lacks| lacks.figure == records::values::LogFigure::Handshakes);
        let number = Some(request.connection).filter(|number| *number > 0);
        let query = request.query.as_ref().filter(|query| !query.is_empty());
        let query = query.map_or_else(String::new, |query| format!("?{query}"));
        Ok(ReplayRequest {
            begun_us: event.time_us.ok_or(Unsent::NoTime)?.saturating_sub(took_us),
            client: event.client,
            connection: match (&event.connection, number) {
                (Some(_), number) => ReplayConnection::First(number),
                (None, Some(number)) => ReplayConnection::Numbered(number),
                (None, None) if has_connections => ReplayConnection::Former,
                (None, None) => ReplayConnection::Unknown,
            },
            resumes: event.connection.and_then(|connection| Some(connection.handshake?.is_resumed)),
            method: request.method.into_owned(),
            target: sendable(&request.path) + &query,
            status: request.status,
            size: if event.bytes_in > 0 { ReplaySize::Whole(event.bytes_in) } else { ReplaySize::Unknown },
            has_query: request.query.is_some(),
            is_http2: request.protocol.starts_with("HTTP/2"),
        })
    });
    read.unwrap_or(Err(Unsent::Unreadable))
}

/// A path as it goes over a connection: some logs have it decoded.
fn sendable(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_graphic() {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

fn listed(line: &str) -> Option<ReplayRequest> {
    let mut words = line.split_ascii_whitespace();
    let seconds: f64 = words.next()?.parse().ok().filter(|seconds| (0.0..1e9).contains(seconds))?;
    let method = words.next()?.to_owned();
    let target = words.next()?.to_owned();
    let body = words.next().map(|word| word.parse().ok().map(ReplaySize::Body));
    let client = words.next().map(|word| word.parse::<IpAddr>().ok().map(ClientId::from));
    if words.next().is_some() || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    Some(ReplayRequest {
        begun_us: (seconds * 1e6).round() as u64,
        client: client.unwrap_or(Some(ClientId::Other))?,
        connection: ReplayConnection::Unknown,
        resumes: None,
        method,
        target,
        status: None,
        size: body.unwrap_or(Some(ReplaySize::Body(0)))?,
        has_query: true,
        is_http2: false,
    })
}
