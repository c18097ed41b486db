//! Lines of nginx's error log: failed handshakes, with their cause (level `info`).

use std::borrow::Cow;

use super::{BadLine, failure, fields};
use crate::event::{LogEvent, LoggedConnection, LoggedFailure};

/// Ends what failed, and begins where.
const HANDSHAKING: &str = " while SSL handshaking, ";

/// Reads a line; `None` if it is none of the error log.
pub(super) fn parse(line: &str) -> Option<Result<Option<LogEvent<'_>>, BadLine>> {
    // 2026/11/23 13:00:00 [info] 123#123: *5 message, client: 127.0.0.1, server: 0.0.0.0:443
    let is_date = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'/');
    let (date, rest) = line.split_at_checked(10).filter(|(date, _)| is_date(date))?;
    debug_assert_eq!(date.len(), 10);
    let (_, rest) = rest.split_once(" [")?;
    let (_, message) = rest.split_once("] ")?;
    let Some((what, whence)) = message.split_once(HANDSHAKING) else { return Some(Ok(None)) };
    Some(event(what, whence).map(Some))
}

fn event<'a>(what: &'a str, whence: &'a str) -> Result<LogEvent<'a>, BadLine> {
    let client = whence.strip_prefix("client: ").and_then(|rest| rest.split(',').next());
    let detail = what.split_once(' ').map_or(what, |(_, detail)| detail);
    let failure = LoggedFailure {
        outcome: failure::outcome_of(what),
        detail: Cow::Borrowed(detail.split_once(' ').map_or(detail, |(_, detail)| detail)),
    };
    let connection = LoggedConnection { failure: Some(failure), ..LoggedConnection::default() };
    Ok(LogEvent { connection: Some(connection), ..LogEvent::of(fields::client(client.unwrap_or_default())?) })
}
