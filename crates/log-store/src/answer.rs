//! The lines of answers: JSON objects of texts.

use std::borrow::Cow;
use std::fmt;

use journal::Entry;
use records::rollups::RunCount;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};

use crate::client::{Reason, shown};

/// The most fields of a line, as journald's.
const FIELDS_MAX: usize = 1024;

/// Most lines have fewer.
const FIELDS_USUAL: usize = 128;

/// Names and values of a line; a name may come twice.
struct Line<'a>(Vec<(Cow<'a, str>, Cow<'a, str>)>);

/// A text, borrowed where it has no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de> Deserialize<'de> for Line<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = Line<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of texts")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Line<'de>, M::Error> {
                let mut fields = Vec::with_capacity(FIELDS_USUAL);
                while let Some((Text(name), Text(value))) = map.next_entry::<Text<'_>, Text<'_>>()? {
                    if fields.len() == FIELDS_MAX {
                        return Err(serde::de::Error::custom("too many fields"));
                    }
                    fields.push((name, value));
                }
                Ok(Line(fields))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

impl<'a> Line<'a> {
    fn parse(text: &'a str) -> Result<Self, Reason> {
        serde_json::from_str(text)
            .map_err(|_| format!("an unexpected line in its answer: {}", shown(text.as_bytes())))
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| &**value)
    }

    fn time_us(&self, name: &str) -> Option<i64> {
        let time: jiff::Timestamp = self.get(name)?.parse().ok()?;
        Some(time.as_microsecond())
    }
}

/// The text of a line. Whoever may write there may write any bytes, which must not stop the rest.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    // Much faster than to look for what is to be replaced.
    str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// An entry of a line. Fields that the store adds are left out.
pub(crate) fn entry(bytes: &[u8]) -> Result<Entry, Reason> {
    let text = text(bytes);
    let line = Line::parse(&text)?;
    let time_us = line.time_us("_time").ok_or_else(|| format!("a line without _time: {}", shown(bytes)))?;
    let realtime_us = u64::try_from(time_us).unwrap_or(0);
    let fields = line.0.iter().filter_map(|(name, value)| match &**name {
        "_msg" => Some(("MESSAGE", &**value)),
        name if name.bytes().any(|byte| byte.is_ascii_lowercase()) => None,
        name => Some((name, &**value)),
    });
    Ok(Entry::from_fields(realtime_us, fields))
}

/// A line of a count by runs.
pub(crate) fn run_count(bytes: &[u8]) -> Result<RunCount, Reason> {
    let text = text(bytes);
    let line = Line::parse(&text)?;
    let time_us = |name| Some(u64::try_from(line.time_us(name)?).unwrap_or(0));
    let number = |name| line.get(name)?.parse().ok();
    let parsed = || {
        Some(RunCount {
            run: line.get("TLSDASH_RUN").unwrap_or_default().to_owned(),
            from_us: time_us("from")?,
            to_us: time_us("to")?,
            first: number("first").unwrap_or(0),
            last: number("last").unwrap_or(0),
            intervals: number("intervals")?,
            minutes: number("minutes")?,
            hours: number("hours")?,
        })
    };
    parsed().ok_or_else(|| format!("an unexpected count: {}", shown(bytes)))
}

/// The second at which a bucket of a census begins, and its count; `None` before 1970.
pub(crate) fn bucket(bytes: &[u8]) -> Result<Option<(u64, u64)>, Reason> {
    let text = text(bytes);
    let line = Line::parse(&text)?;
    let parsed = line.time_us("_time").zip(line.get("n").and_then(|n| n.parse().ok()));
    let (time_us, count) = parsed.ok_or_else(|| format!("an unexpected count: {}", shown(bytes)))?;
    Ok(u64::try_from(time_us).ok().map(|time_us| (time_us / 1_000_000, count)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_the_fields_of_the_journal_only() {
        let line = r#"{"A":"1","_time":"2026-11-28T06:38:17.768184Z","_msg":"a\nb","A":"2","_PID":"7","_stream":"{}",
            "_stream_id":"0","level":"info"}"#;
        let entry = entry(line.as_bytes()).unwrap();
        assert_eq!(entry.realtime_us(), 1_795_847_897_768_184);
        let fields: Vec<_> =
            entry.iter().map(|(name, value)| (name, str::from_utf8(value).unwrap())).collect();
        assert_eq!(fields, [("A", "1"), ("MESSAGE", "a\nb"), ("A", "2"), ("_PID", "7")]);
    }

    #[test]
    fn a_line_that_is_no_object_of_texts_is_shown_shortened() {
        let long = format!("<html>\u{1b}[31m{}", "x".repeat(200));
        for text in [&*long, "[]", "{\"a\":1}", "{\"a\":\"1\"", "{\"a\":\"1\"}"] {
            let error = entry(text.as_bytes()).unwrap_err();
            assert!(error.len() < 120 && !error.contains('\u{1b}'), "{error}");
        }
        assert_eq!(bucket(b"{\"_time\":\"1970-01-01T00:00:05Z\",\"n\":\"3\"}"), Ok(Some((5, 3))));
        assert_eq!(bucket(b"{\"_time\":\"1965-01-01T00:00:05Z\",\"n\":\"3\"}"), Ok(None));
        let odd = entry(b"{\"_time\":\"1970-01-01T00:00:05Z\",\"_msg\":\"a\xff\xfeb\"}").unwrap();
        assert_eq!(odd.text("MESSAGE"), Some("a\u{fffd}\u{fffd}b"));
        assert!(bucket(b"{\"_time\":\"1970-01-01T00:00:05Z\",\"n\":\"x\"}").is_err());
    }
}
