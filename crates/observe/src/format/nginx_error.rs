//! Lines of nginx's error log: failed handshakes, with their cause (level `info`).

use std::borrow::Cow;

use super::{BadLine, failure, fields};
use crate::event::{LogEvent, LoggedConnection, LoggedFailure};
use crate::local_clock::LocalClock;

/// Ends what failed, and begins where.
const HANDSHAKING: &str = " while SSL handshaking, ";

/// Parses a line; `None` if it is not from the error log.
pub(super) fn parse<'a>(
    line: &'a str,
    clock: &mut LocalClock,
) -> Option<Result<Option<LogEvent<'a>>, BadLine>> {
    // 2026/11/23 13:00:00 [info] 123#123: *5 message, client: 127.0.0.1, server: 0.0.0.0:443
    let is_time = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || b"/ :".contains(&byte));
    let (time, rest) = line.split_once(" [").filter(|(time, _)| is_time(time))?;
    let (_, message) = rest.split_once("] ")?;
    let Some((what, whence)) = message.split_once(HANDSHAKING) else { return Some(Ok(None)) };
    let time_us = clock.parse("%Y/%m/%d %H:%M:%S", time).ok_or(BadLine::Field("time"));
    Some(time_us.and_then(|time_us| event(what, whence, time_us)).map(Some))
}

fn event<'a>(what: &'a str, whence: &'a str, time_us: u64) -> Result<LogEvent<'a>, BadLine> {
    let client = whence.strip_prefix("client: ").and_then(|rest| rest.split(',').next());
    let detail = what.split_once(' ').map_or(what, |(_, detail)| detail);
    let failure = LoggedFailure {
        outcome: failure::outcome_of(what),
        detail: Cow::Borrowed(detail.split_once(' ').map_or(detail, |(_, detail)| detail)),
    };
    let connection = LoggedConnection { failure: Some(failure), ..LoggedConnection::default() };
    let client = fields::client(client.unwrap_or_default())?;
    Ok(LogEvent { time_us: Some(time_us), connection: Some(connection), ..LogEvent::of(client) })
}
