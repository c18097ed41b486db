//! The values of flags and of words in the configuration file, each read once from its text.

use std::fmt::Display;
use std::ops::Deref;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{DeserializeOwned, Error, IntoDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Shortest interval: the budget of records must hold proxy, load and host of every interval.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// Longest interval.
const INTERVAL_MAX: Duration = Duration::from_secs(60);

/// A value, and the text that it was read from, which stands for it in a configuration file.
#[derive(Clone, Debug)]
pub(crate) struct Parsed<T> {
    text: String,
    value: T,
}

impl<T> Parsed<T> {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl<T> Deref for Parsed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: FromStr> FromStr for Parsed<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        Ok(Self { text: text.to_owned(), value: text.parse()? })
    }
}

impl<T> Serialize for Parsed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for Parsed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|error| D::Error::custom(format_args!("{text}: {error}")))
    }
}

/// The values of several.
pub(crate) fn values<T: Clone>(parsed: &[Parsed<T>]) -> Vec<T> {
    parsed.iter().map(|one| one.value.clone()).collect()
}

/// Reads a text where a list of them may stand.
pub(crate) fn one_or_many<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a text or a list of texts")]
    enum Texts {
        One(String),
        Many(Vec<String>),
    }
    let texts = match Texts::deserialize(deserializer)? {
        Texts::One(text) => vec![text],
        Texts::Many(texts) => texts,
    };
    texts.into_iter().map(|text| T::deserialize(text.into_deserializer())).collect()
}

/// A text is not what may stand there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {0}")]
pub(crate) struct Expected(pub(crate) &'static str);

const TIME: Expected = Expected("a time with its unit, such as 500ms, 10s or 5m");
const SOME_TIME: Expected = Expected("a time longer than nothing");
const INTERVAL: Expected = Expected("a time from 100ms to 60s");

/// Reads a length of time such as `10s`, or nothing, such as `0s`.
pub(crate) fn time_or_none(text: &str) -> Result<Duration, Expected> {
    humantime::parse_duration(text).map_err(|_| TIME)
}

/// Reads a length of time such as `10s`.
pub(crate) fn time(text: &str) -> Result<Duration, Expected> {
    match time_or_none(text)? {
        Duration::ZERO => Err(SOME_TIME),
        time => Ok(time),
    }
}

/// The same as wrk and h2load read it: seconds, where there is no unit.
pub(crate) fn time_or_seconds(text: &str) -> Result<Duration, Expected> {
    let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if is_number { time(&format!("{text}s")) } else { time(text) }
}

/// A length of time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time(pub(crate) Duration);

impl FromStr for Time {
    type Err = Expected;

    fn from_str(text: &str) -> Result<Self, Expected> {
        time(text).map(Self)
    }
}

/// How often counters become records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordInterval(pub(crate) Duration);

impl FromStr for RecordInterval {
    type Err = Expected;

    fn from_str(text: &str) -> Result<Self, Expected> {
        let interval = time(text)?;
        let is_possible = (INTERVAL_MIN..=INTERVAL_MAX).contains(&interval);
        if is_possible { Ok(Self(interval)) } else { Err(INTERVAL) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_need_a_unit_and_a_length() {
        assert_eq!(time("10s"), Ok(Duration::from_secs(10)));
        for text in ["0", "0s", "10", "-1s", "soon", ""] {
            assert!(time(text).is_err(), "{text:?}");
        }
        assert_eq!(time_or_none("0s"), Ok(Duration::ZERO));
        assert_eq!(time_or_seconds("10"), time("10s"));
        for text in ["99ms", "61s"] {
            assert_eq!(text.parse::<RecordInterval>().unwrap_err(), INTERVAL);
        }
    }
}
