//! HAProxy's own HTTP, HTTPS and TCP log formats (its manual, 8.2.2 to 8.2.4). None says which request is the first of its
//! connection, so that the TLS fields of `option httpslog` count no handshakes.

use std::borrow::Cow;

use records::values::LogFigure;

use super::{BadLine, fields, haproxy};
use crate::event::{AbsentFigure, LogEvent, LoggedConnection, LoggedFailure, LoggedRequest};
use crate::local_clock::LocalClock;

const LACKS: &[AbsentFigure] = &[
    AbsentFigure {
        figure: LogFigure::Handshakes,
        reason: "HAProxy's own formats do not say which there were; `tlsdash observe setup haproxy` prints one that does",
    },
    AbsentFigure { figure: LogFigure::Bytes, reason: "HAProxy's own formats have those to clients alone" },
];

/// Reads `127.0.0.1:33317 [06/Feb/2026:12:14:14.655] in back/server …`, or a failed handshake's line.
pub(super) fn parse<'a>(line: &'a str, clock: &mut LocalClock) -> Result<LogEvent<'a>, BadLine> {
    let (source, rest) = line.split_once(" [").ok_or(BadLine::Unknown)?;
    let (time, rest) = rest.split_once("] ").ok_or(BadLine::Unknown)?;
    let address = source.rsplit_once(':').map_or(source, |(address, _)| address);
    // Local time without a zone.
    let time_us = clock.parse("%d/%b/%Y:%H:%M:%S%.f", time).ok_or(BadLine::Field("time"))?;
    let base = LogEvent { time_us: Some(time_us), lacks: LACKS, ..LogEvent::of(fields::client(address)?) };
    // in/1: SSL handshake failure
    if let Some((_, error)) = rest.split_once(": ").filter(|(place, _)| !place.contains(' ')) {
        let outcome = super::failure::outcome_of(error);
        let failure = Some(LoggedFailure { outcome, detail: Cow::Borrowed(error) });
        let connection = LoggedConnection { failure, ..LoggedConnection::default() };
        return Ok(LogEvent { connection: Some(connection), ..base });
    }
    let words: Vec<&str> = rest.splitn(6, ' ').collect();
    let [_, upstream, times, status, bytes, rest] = words[..] else { return Err(BadLine::Unknown) };
    match rest.split_once('"') {
        Some((middle, request)) => http(base, upstream, times, status, bytes, (middle, request)),
        None => tcp(base, times, [status, bytes]),
    }
}

fn http<'a>(
    base: LogEvent<'a>,
    upstream: &'a str,
    times: &str,
    status: &str,
    bytes: &str,
    (middle, request): (&str, &'a str),
) -> Result<LogEvent<'a>, BadLine> {
    // TR/Tw/Tc/Tr/Ta, then cookies and the termination state.
    let times: Vec<&str> = times.split('/').collect();
    let [.., response, took] = times[..] else { return Err(BadLine::Field("times")) };
    let state = middle.split(' ').nth(2).unwrap_or_default();
    // HAProxy encodes quotes within; of a line that is cut the last is missing.
    let request = request.split('"').next().unwrap_or_default();
    let [method, path, query, protocol] = fields::request_line(request).map(Cow::Borrowed);
    let request = LoggedRequest {
        method,
        path,
        query: Some(query),
        protocol,
        upstream: Cow::Borrowed(upstream),
        status: fields::status(status)?,
        failure: haproxy::request_failure(state),
        upstream_time: fields::millis(response, "times")?,
        took: fields::millis(took, "times")?,
        ..LoggedRequest::default()
    };
    let bytes_out = fields::bytes(bytes.trim_start_matches('+'), "bytes")?.unwrap_or(0);
    let time_us = haproxy::ended_us(base.time_us, request.took);
    Ok(LogEvent { time_us, request: Some(request), bytes_out, ..base })
}

fn tcp<'a>(base: LogEvent<'a>, times: &str, [bytes, state]: [&'a str; 2]) -> Result<LogEvent<'a>, BadLine> {
    // Tw/Tc/Tt.
    let times: Vec<&str> = times.split('/').collect();
    let [_, connect, took] = times[..] else { return Err(BadLine::Field("times")) };
    let failure = haproxy::connection_failure(state)
        .map(|outcome| LoggedFailure { outcome, detail: Cow::Borrowed(state) });
    let connection = LoggedConnection {
        failure,
        connect: fields::millis(connect, "times")?,
        lifetime: fields::millis(took, "times")?,
        ..LoggedConnection::default()
    };
    let bytes_out = fields::bytes(bytes.trim_start_matches('+'), "bytes")?.unwrap_or(0);
    let time_us = haproxy::ended_us(base.time_us, connection.lifetime);
    Ok(LogEvent { time_us, connection: Some(connection), bytes_out, ..base })
}
