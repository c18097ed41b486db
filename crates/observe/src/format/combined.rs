//! The `combined` and `common` formats: requests alone, without a word about TLS or connections.

use std::borrow::Cow;

use records::values::LogFigure;

use super::{BadLine, fields, nginx};
use crate::event::{AbsentFigure, LogEvent, LoggedRequest};

const LACKS: &[AbsentFigure] = &[
    AbsentFigure {
        figure: LogFigure::Handshakes,
        reason: "the combined format has no fields of TLS; `tlsdash observe setup nginx` prints one that has",
    },
    AbsentFigure {
        figure: LogFigure::Bytes,
        reason: "the combined format has the size of response bodies alone",
    },
];

/// Reads `127.0.0.1 - - [10/Oct/2026:13:55:36 -0700] "GET / HTTP/1.1" 200 2326 "referrer" "agent"`.
pub(super) fn parse(line: &str) -> Result<LogEvent<'_>, BadLine> {
    let (who, rest) = line.split_once(" [").ok_or(BadLine::Unknown)?;
    let (time, rest) = rest.split_once("] \"").ok_or(BadLine::Unknown)?;
    let (request, rest) = rest.split_once("\" ").ok_or(BadLine::Unknown)?;
    let mut words = rest.split(' ');
    let sent = fields::status(words.next().ok_or(BadLine::Unknown)?)?;
    let body_out = fields::bytes(words.next().ok_or(BadLine::Unknown)?, "size")?;
    let [method, path, query, protocol] = fields::request_line(request).map(Cow::Borrowed);
    let status = nginx::answered(sent);
    let failure = sent.and_then(|sent| nginx::failure_of(sent, &method));
    let request = LoggedRequest {
        method,
        path,
        query: Some(query),
        protocol,
        status,
        failure,
        body_out,
        ..LoggedRequest::default()
    };
    let client = fields::client(who.split(' ').next().unwrap_or_default())?;
    let (time_us, bytes_out) = (Some(time_us(time)?), body_out.unwrap_or(0));
    Ok(LogEvent { time_us, request: Some(request), bytes_out, lacks: LACKS, ..LogEvent::of(client) })
}

fn time_us(text: &str) -> Result<u64, BadLine> {
    let time = jiff::fmt::strtime::parse("%d/%b/%Y:%H:%M:%S %z", text).and_then(|time| time.to_timestamp());
    let time = time.map_err(|_| BadLine::Field("time"))?;
    u64::try_from(time.as_microsecond()).map_err(|_| BadLine::Field("time"))
}
