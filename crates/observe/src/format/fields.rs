//! Fields that several formats share.

use std::borrow::Cow;
use std::net::IpAddr;
use std::time::Duration;

use records::ids::ClientId;
use serde::Deserialize;

use super::BadLine;

/// Reads a line of JSON.
pub(super) fn json<'a, T: Deserialize<'a>>(line: &'a str) -> Result<T, BadLine> {
    serde_json::from_str(line).map_err(|error| BadLine::Json(error.to_string()))
}

/// A value that the terminator may leave empty, or write as a dash.
pub(super) fn present(text: Cow<'_, str>) -> Option<Cow<'_, str>> {
    (!text.is_empty() && text != "-").then_some(text)
}

/// Such a value, empty if it is absent.
pub(super) fn or_empty(text: Cow<'_, str>) -> Cow<'_, str> {
    present(text).unwrap_or_default()
}

/// The client of a line: an address, or `unix` for clients of a Unix socket, with more after a colon.
pub(super) fn client(text: &str) -> Result<ClientId, BadLine> {
    if matches!(text.split(':').next(), Some("unix" | "-")) || text.is_empty() {
        return Ok(ClientId::Other);
    }
    text.parse::<IpAddr>().map(ClientId::from).map_err(|_| BadLine::Field("client"))
}

/// A number that may be absent.
pub(super) fn number(text: &str, field: &'static str) -> Result<Option<u64>, BadLine> {
    match text {
        "" | "-" => Ok(None),
        text => text.parse().map(Some).map_err(|_| BadLine::Field(field)),
    }
}

/// More bytes than any connection carries: what claims more is no count.
const BYTES_MAX: u64 = 1 << 48;

/// A number of bytes; none if absent.
pub(super) fn bytes(text: &str, field: &'static str) -> Result<Option<u64>, BadLine> {
    let bytes = number(text, field)?;
    if bytes > Some(BYTES_MAX) { Err(BadLine::Field(field)) } else { Ok(bytes) }
}

/// Seconds with milliseconds, such as `0.012`, in microseconds; `None` if absent. Exact: no floating point.
pub(super) fn seconds_us(text: &str, field: &'static str) -> Result<Option<u64>, BadLine> {
    if text.is_empty() || text == "-" {
        return Ok(None);
    }
    let bad = || BadLine::Field(field);
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let whole: u64 = whole.parse().map_err(|_| bad())?;
    if part.len() > 6 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(bad());
    }
    let part_us = part.bytes().fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    let part_us = part_us * 10_u64.pow(6 - part.len() as u32);
    whole.checked_mul(1_000_000).and_then(|us| us.checked_add(part_us)).map(Some).ok_or_else(bad)
}

/// Longer than any connection lasts. A longer time is invalid.
const TOOK_MAX: Duration = Duration::from_secs(366 * 24 * 3_600);

fn plausible(took: Option<Duration>, field: &'static str) -> Result<Option<Duration>, BadLine> {
    if took > Some(TOOK_MAX) { Err(BadLine::Implausible(field)) } else { Ok(took) }
}

/// Parses a number of seconds that may be absent.
pub(super) fn seconds(text: &str, field: &'static str) -> Result<Option<Duration>, BadLine> {
    plausible(seconds_us(text, field)?.map(Duration::from_micros), field)
}

/// The sum of several times, as nginx writes them if it tried several upstreams: `0.001, 0.002 : 0.003`. `None` if one of
/// them is absent.
pub(super) fn seconds_sum(text: &str, field: &'static str) -> Result<Option<Duration>, BadLine> {
    let mut sum = Some(Duration::ZERO);
    for part in text.split([',', ':']) {
        sum = sum.zip(seconds(part.trim(), field)?).map(|(sum, part)| sum.saturating_add(part));
    }
    plausible(sum, field)
}

/// Milliseconds; HAProxy writes -1 for what did not happen, and a plus before what was logged early.
pub(super) fn millis(text: &str, field: &'static str) -> Result<Option<Duration>, BadLine> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    if digits == "-1" {
        return Ok(None);
    }
    plausible(number(digits, field)?.map(Duration::from_millis), field)
}

/// The status; 0, -1 and 000 stand for none.
pub(super) fn status(text: &str) -> Result<Option<u16>, BadLine> {
    match text {
        "" | "-" | "-1" => Ok(None),
        text => {
            let status: u16 = text.parse().map_err(|_| BadLine::Field("status"))?;
            Ok((status > 0).then_some(status))
        }
    }
}

/// The path of a target, and its query. Over HTTP/2 HAProxy logs `https://name/path`.
pub(super) fn path_and_query(target: &str) -> (&str, &str) {
    let (target, query) = target.split_once('?').unwrap_or((target, ""));
    let path = match target.split_once("://") {
        Some((scheme, rest)) if !scheme.contains('/') => rest.find('/').map_or("/", |at| &rest[at..]),
        _ => target,
    };
    (path, query)
}

/// Method, path, query and protocol of a request line; a line that is no HTTP has only empty parts.
pub(super) fn request_line(line: &str) -> [&str; 4] {
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(protocol), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return [""; 4];
    };
    let (path, query) = path_and_query(target);
    [method, path, query, protocol]
}
