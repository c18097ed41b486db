//! The header that syslog puts before a line, over the network and in the files of rsyslog.

use std::net::IpAddr;

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};

use crate::local_clock::LocalClock;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
/// The length of `Feb  6 12:14:14`.
const BSD_TIME_BYTES: usize = 15;

/// A line, with its header apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SyslogLine<'a> {
    /// The time of the header as it is written; empty without one.
    time: &'a str,
    /// What the program logged.
    pub(crate) message: &'a str,
}

impl<'a> SyslogLine<'a> {
    /// Takes the header off: that of RFC 3164 or RFC 5424, with its priority or without it as in files, with a time of
    /// either, and with the length of RFC 6587 before it. A line without a header is its own message.
    pub(crate) fn parse(line: &'a str) -> Self {
        let blank = |c: char| c.is_whitespace() || c == '\0';
        let line = line.trim_end_matches(blank).trim_start_matches('\u{feff}');
        let (time, message) = if line.starts_with('{') { ("", line) } else { split_header(line) };
        // The cookie of lumberjack, which says that JSON follows.
        let message = message.strip_prefix("@cee:").map_or(message, str::trim_start);
        Self { time, message }
    }

    /// Whether there was a header with a time.
    pub(crate) fn has_header(&self) -> bool {
        !self.time.is_empty()
    }

    /// When the line was logged, in microseconds since 1970; `None` if the header does not say.
    pub(crate) fn time_us(&self, clock: &mut LocalClock) -> Option<u64> {
        if self.time.starts_with(|first: char| first.is_ascii_digit()) {
            return u64::try_from(self.time.parse::<Timestamp>().ok()?.as_microsecond()).ok();
        }
        let (date, time) = self.time.split_at_checked("Feb  6".len())?;
        let (month, day) = date.split_once(' ')?;
        let month = MONTHS.iter().position(|name| *name == month)? as i8 + 1;
        let day = day.trim_start().parse().ok()?;
        let time: jiff::civil::Time = time.trim_start().parse().ok()?;
        let of_year = |year| Date::new(year, month, day).ok().map(|date| DateTime::from_parts(date, time));
        clock.us_of_latest_year(of_year)
    }
}

/// The time of the header, and what follows the header.
fn split_header(line: &str) -> (&str, &str) {
    let (has_priority, rest) = match without_priority(line) {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    if let Some(split) = rest.strip_prefix("1 ").and_then(split_rfc5424) {
        return split;
    }
    match split_time(rest) {
        Some((time, rest)) => (time, without_tag(rest)),
        None if has_priority => ("", without_tag(rest)),
        None => ("", line),
    }
}

/// What follows `<134>`, which the length of the message may precede.
fn without_priority(line: &str) -> Option<&str> {
    let is_number = |text: &str, digits| {
        (1..=digits).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    let framed = line.split_once(' ').filter(|(length, _)| is_number(length, 6)).map_or(line, |it| it.1);
    let (priority, rest) = framed.strip_prefix('<')?.split_once('>')?;
    is_number(priority, 3).then_some(rest)
}

/// The time and the message behind the version of RFC 5424: `TIME HOST PROGRAM PROCESS ID [DATA] MESSAGE`.
fn split_rfc5424(rest: &str) -> Option<(&str, &str)> {
    let mut words = rest.splitn(6, ' ');
    let time = words.next().filter(|time| *time == "-" || is_iso(time))?;
    let mut rest = words.nth(4)?;
    if let Some(after) = rest.strip_prefix('-') {
        rest = after;
    }
    while rest.starts_with('[') {
        let (mut is_quoted, mut is_escaped) = (false, false);
        let end = rest.find(|c| {
            match c {
                '"' if !is_escaped => is_quoted = !is_quoted,
                ']' if !is_quoted => return true,
                _ => {}
            }
            is_escaped = c == '\\' && !is_escaped;
            false
        })?;
        rest = &rest[end + 1..];
    }
    Some((time.trim_matches('-'), rest.trim_start().trim_start_matches('\u{feff}')))
}

/// The time at the start, `Feb  6 12:14:14` or `2026-02-06T12:14:14.655+00:00`, and what follows it.
fn split_time(rest: &str) -> Option<(&str, &str)> {
    let is_bsd = |time: &str| {
        MONTHS.iter().any(|month| time.starts_with(month))
            && time.bytes().skip(3).all(|byte| matches!(byte, b'0'..=b'9' | b' ' | b':'))
    };
    if let Some((time, _)) = rest.split_at_checked(BSD_TIME_BYTES).filter(|(time, _)| is_bsd(time)) {
        // A fraction of the second may follow.
        let end = rest[time.len()..].find(' ').map_or(rest.len(), |at| time.len() + at);
        return Some((&rest[..end], rest[end..].trim_start()));
    }
    rest.split_once(' ').filter(|(time, _)| is_iso(time)).map(|(time, rest)| (time, rest.trim_start()))
}

/// Whether the text begins as `2026-02-06T` does.
fn is_iso(time: &str) -> bool {
    let shape = time.bytes().take(11).map(|byte| if byte.is_ascii_digit() { b'0' } else { byte });
    shape.eq(*b"0000-00-00T")
}

/// What follows `HOST TAG[PID]: `, of which senders leave out either. rsyslog makes a tag of the client of a line that has
/// none.
fn without_tag(rest: &str) -> &str {
    let (first, after) = rest.split_once(' ').unwrap_or((rest, ""));
    let after = after.trim_start();
    let second = after.split(' ').next().unwrap_or_default();
    if first.starts_with('{') {
        rest
    } else if is_tag(first) || second.starts_with('{') || is_address(second) {
        after
    } else if is_tag(second) {
        after[second.len()..].trim_start()
    } else {
        rest
    }
}

/// `TAG:`, `TAG[PID]:`, or `TAG[PID]` in a file if the header was that of RFC 5424.
fn is_tag(word: &str) -> bool {
    let tag = word.trim_end_matches(':');
    let (name, is_whole) = match tag.split_once('[') {
        Some((name, process)) => (name, process.ends_with(']')),
        None => (tag, word.ends_with(':')),
    };
    // stunnel's own lines begin in the same way.
    let is_name = !name.is_empty() && !name.contains(['{', '"', ':']) && !name.starts_with("LOG");
    is_whole && is_name && !is_address(word)
}

fn is_address(tag: &str) -> bool {
    tag.strip_suffix(':').is_some_and(|name| name.parse::<IpAddr>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGES: [&str; 4] = [
        r#"{"error":"Success: -"}"#,
        "192.0.2.1:33317 [06/Feb/2026:12:14:14.655] in/1: Connection closed",
        "LOG5[0]: Service [x] accepted",
        "unix:1 [06/Feb/2026:12:14:14.655] in be/s1",
    ];

    #[test]
    fn every_form_of_the_header_is_taken_off_and_its_time_is_known() {
        let second_us = 1_770_380_054_000_000;
        for (header, time_us) in [
            ("", None),
            ("<134>", None),
            ("<134>haproxy[1]: ", None),
            ("Feb  6 12:14:14 localhost haproxy[14389]: ", Some(second_us)),
            ("Feb 06 12:14:14.655 web-1.example nginx: ", Some(second_us + 655_000)),
            ("<134>Feb  6 12:14:14 haproxy[1]: ", Some(second_us)),
            ("<6>Feb  6 12:14:14 ", Some(second_us)),
            ("97 <134>Feb  6 12:14:14 web haproxy[1]: ", Some(second_us)),
            ("2026-02-06T12:14:14.655+00:00 localhost haproxy[14389]: ", Some(second_us + 655_000)),
            ("2026-02-06T13:14:14+0100 web stunnel: ", Some(second_us)),
            ("<134>2026-02-06T12:14:14Z web haproxy[1]: ", Some(second_us)),
            ("<134>1 2026-02-06T12:14:14Z web haproxy 1 - - ", Some(second_us)),
            (
                "<134>1 2026-02-06T12:14:14Z web haproxy 1 ID1 [x@1 a=\"b: \\\"c]\"][y@1] \u{feff}",
                Some(second_us),
            ),
            ("<134>1 - web haproxy 1 - - ", None),
            ("Feb  6 12:14:14 - haproxy[23027] ", Some(second_us)),
            ("\u{feff}", None),
        ] {
            for (message, cookie) in MESSAGES.iter().flat_map(|message| [(message, ""), (message, "@cee: ")])
            {
                let line = format!("{header}{cookie}{message}\n\0");
                let mut clock = LocalClock::utc(Timestamp::from_second(1_790_000_000).unwrap());
                let read = SyslogLine::parse(&line);
                assert_eq!(read.message, *message, "{line:?}");
                assert_eq!(read.time_us(&mut clock), time_us, "{line:?}");
            }
        }
    }

    #[test]
    fn a_line_without_a_tag_keeps_what_rsyslog_takes_for_one() {
        for (written, message) in [
            ("localhost  {\"kind\":\"http: x\"}", "{\"kind\":\"http: x\"}"),
            ("localhost 127.0.0.1: 45348 [06/Feb", "127.0.0.1: 45348 [06/Feb"),
        ] {
            assert_eq!(SyslogLine::parse(&format!("Feb  6 12:14:14 {written}")).message, message);
        }
    }

    #[test]
    fn a_date_without_a_year_is_of_the_latest_year_that_has_passed() {
        let mut clock = LocalClock::utc("2026-01-02T00:00:00Z".parse().unwrap());
        let mut time = |text: &str| {
            let us = SyslogLine::parse(&format!("{text} 12:00:00 host a: b")).time_us(&mut clock).unwrap();
            Timestamp::from_microsecond(us as i64).unwrap().to_string()
        };
        assert_eq!(time("Dec 31"), "2025-12-31T12:00:00Z");
        assert_eq!(time("Jan  2"), "2026-01-02T12:00:00Z", "its host's clock is ahead by less than a day");
        assert_eq!(time("Feb 29"), "2024-02-29T12:00:00Z");
    }

    #[test]
    fn a_line_that_only_looks_like_a_header_stays_whole() {
        for line in [
            "10.0.0.7 - anna [10/Oct/2026:13:55:36 -0700] \"GET / HTTP/1.1\" 200 1 \"a: b\"",
            "2026/11/23 13:00:00 [info] 12#12: *5 peer closed: x",
            "2026.11.23 22:02:41 LOG6[ui]: Accepting new connections",
            "<a>b: c",
            "Febrile: x",
        ] {
            assert_eq!(SyslogLine::parse(line).message, line);
        }
    }
}
