//! Types for the values of flags and configuration keys, each parsed once from its text.

pub(crate) mod options;

use std::fmt::Display;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::ops::{Deref, RangeInclusive};
use std::str::FromStr;
use std::time::Duration;

use records::text::quantity;
use serde::de::{DeserializeOwned, Error, IntoDeserializer};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Shortest interval: a proxy, a load and a host record for each take half of the record budget of a file of our own.
/// With the smaller budget of the system's journal, several short intervals are published as one.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// Longest interval.
const INTERVAL_MAX: Duration = Duration::from_secs(60);

/// A value with the text it was parsed from. A printed configuration shows the text.
#[derive(Clone, Debug)]
pub(crate) struct ParsedValue<T> {
    text: String,
    value: T,
}

impl<T> ParsedValue<T> {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl<T> Deref for ParsedValue<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: FromStr> FromStr for ParsedValue<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        Ok(Self { text: text.to_owned(), value: text.parse()? })
    }
}

impl<T> Serialize for ParsedValue<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

/// A value of a file.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a text or a number")]
pub(crate) enum TextOrNumber {
    Text(String),
    Number(f64),
}

impl TextOrNumber {
    /// As it would be on the command line.
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number.to_string(),
        }
    }
}

impl<'de, T: FromStr<Err: Display>> Deserialize<'de> for ParsedValue<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = TextOrNumber::deserialize(deserializer)?.into_text();
        text.parse().map_err(|error| D::Error::custom(format_args!("{text}: {error}")))
    }
}

/// Returns the values without their texts.
pub(crate) fn values<T: Clone>(parsed: &[ParsedValue<T>]) -> Vec<T> {
    parsed.iter().map(|one| one.value.clone()).collect()
}

/// Deserializes a single text, or a list of texts, to a list.
pub(crate) fn one_or_many<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a text or a list of texts")]
    enum TextOrList {
        One(String),
        Many(Vec<String>),
    }
    let texts = match TextOrList::deserialize(deserializer)? {
        TextOrList::One(text) => vec![text],
        TextOrList::Many(texts) => texts,
    };
    texts.into_iter().map(|text| T::deserialize(text.into_deserializer())).collect()
}

/// The text is not a valid value. Holds a phrase for the expected form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {0}")]
pub(crate) struct InvalidValue(pub(crate) &'static str);

const TIME: InvalidValue = InvalidValue("a time such as 500ms, 10s or 5m");
const NONZERO_TIME: InvalidValue = InvalidValue("a time longer than nothing");
const INTERVAL: InvalidValue = InvalidValue("a time from 100ms to 60s, such as 1s");

/// Parses a duration such as `10s`; `0s` means none.
pub(crate) fn time_or_none(text: &str) -> Result<Duration, InvalidValue> {
    quantity::time(text).ok_or(TIME)
}

/// Parses a duration above 0, such as `10s`.
pub(crate) fn time(text: &str) -> Result<Duration, InvalidValue> {
    match time_or_none(text)? {
        Duration::ZERO => Err(NONZERO_TIME),
        time => Ok(time),
    }
}

/// Parses how many times as much, or as fast.
pub(crate) fn factor(text: &str) -> Result<f64, InvalidValue> {
    let factor = text.parse().ok().filter(|factor| (0.001..=1_000.0).contains(factor));
    factor.ok_or(InvalidValue("a factor from 0.001 to 1000"))
}

/// Returns a parser of whole numbers in a range. Its errors name the range.
pub(crate) fn whole<T>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static
where
    T: TryFrom<u64> + Send + Sync + Clone + 'static,
{
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        let high = if *range.end() == u64::MAX { f64::INFINITY } else { *range.end() as f64 };
        let allowed = || quantity::allowed((*range.start() as f64, high), "", true);
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| format!("expected {}", allowed()))
    }
}

/// Parses an address with a port.
pub(crate) fn address(text: &str) -> Result<SocketAddr, InvalidValue> {
    text.parse().map_err(|_| InvalidValue("an address and a port, such as 127.0.0.1:9443"))
}

/// Parses the number of the proxy's workers.
pub(crate) fn workers(text: &str) -> Result<NonZeroUsize, String> {
    let (low, high) = proxy_core::WORKERS_RANGE;
    let number = whole::<usize>(low as u64..=high as u64)(text)?;
    NonZeroUsize::new(number).ok_or_else(|| format!("expected {}", quantity::allowed((low, high), "", true)))
}

/// A duration above 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PositiveDuration(pub(crate) Duration);

impl FromStr for PositiveDuration {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        time(text).map(Self)
    }
}

/// The time between two records of the counters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordInterval(pub(crate) Duration);

impl FromStr for RecordInterval {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        let interval = time(text).ok().filter(|time| (INTERVAL_MIN..=INTERVAL_MAX).contains(time));
        interval.map(Self).ok_or(INTERVAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_number_is_told_its_range() {
        for text in ["0", "1.5", "257", "-1", "two", ""] {
            assert_eq!(workers(text).unwrap_err(), "expected a whole number from 1 to 256", "{text}");
        }
        assert_eq!(workers("4").map(NonZeroUsize::get), Ok(4));
        assert_eq!(whole::<u64>(1..=u64::MAX)("1.5").unwrap_err(), "expected a whole number from 1");
    }

    #[test]
    fn a_time_is_in_seconds_without_a_unit_and_above_zero() {
        assert_eq!(time("10s"), Ok(Duration::from_secs(10)));
        for text in ["0", "0s", "-1s", "soon", ""] {
            assert!(time(text).is_err(), "{text:?}");
        }
        assert_eq!(time_or_none("0s"), Ok(Duration::ZERO));
        assert_eq!(time("10"), time("10s"));
        for text in ["99ms", "61s", "0"] {
            assert_eq!(text.parse::<RecordInterval>().unwrap_err(), INTERVAL);
        }
    }
}
