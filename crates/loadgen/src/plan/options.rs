//! Parses and prints plans.

use records::text::{clean, quantity};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{
    Arrivals, CONNECTIONS_MAX, KeepAliveError, Plan, Profile, ProfileError, SOURCES_MAX, STREAMS_MAX, Share,
    THREADS_MAX, rate,
};
use crate::protocol::Protocol;

/// Longest duration: a year.
const DURATION_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(rate) = &self.rate {
            write!(f, "rate={rate},")?;
            if self.arrivals == Arrivals::Poisson {
                write!(f, "arrivals={},", self.arrivals)?;
            }
        }
        write!(f, "connections={},resume={},keep-alive={}", self.connections, self.resume, self.keepalive)?;
        if let Protocol::Http2 { streams } = self.protocol {
            write!(f, ",http2=on,streams={streams}")?;
        }
        if self.early_data {
            f.write_str(",early-data=on")?;
        }
        if let Some(lifetime) = self.lifetime {
            write!(f, ",lifetime={}", ExactSeconds(lifetime))?;
        }
        if let Some(sources) = self.sources {
            write!(f, ",source-addresses={sources}")?;
        }
        if let Some(duration) = self.duration {
            write!(f, ",duration={}", ExactSeconds(duration))?;
        }
        if let Some(warmup) = self.warmup {
            write!(f, ",warmup={}", ExactSeconds(warmup))?;
        }
        if let Some(requests) = self.requests {
            write!(f, ",requests={requests}")?;
        }
        write!(f, ",threads={}", self.threads)
    }
}

/// Writes a duration in whole seconds, else milliseconds, else nanoseconds, without loss.
pub(super) struct ExactSeconds(pub(super) Duration);

impl fmt::Display for ExactSeconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.subsec_nanos() {
            0 => write!(f, "{}s", self.0.as_secs()),
            nanos if nanos % 1_000_000 == 0 => write!(f, "{}ms", self.0.as_millis()),
            _ => write!(f, "{}ns", self.0.as_nanos()),
        }
    }
}

/// An error in the text of a plan; names the wrong word and the allowed values.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    #[error("{0:?} in the load plan is not NAME=VALUE; the names are {NAMES}")]
    NotAPair(String),
    #[error("{0:?} is not a name of the load plan; the names are {NAMES}")]
    UnknownName(String),
    #[error("{0} is given twice in the load plan")]
    Twice(String),
    /// A value is not of its kind, or absurd.
    #[error("{name}={value} in the load plan: {name} must be {expected}")]
    Value { name: &'static str, value: String, expected: &'static str },
    #[error(
        "threads={threads} in the load plan: there must be at least as many connections, not {connections}"
    )]
    IdleThreads { threads: u32, connections: u32 },
    /// Requests of a closed loop arrive when their connection is free.
    #[error(
        "arrivals=poisson in the load plan needs a rate: the requests of a closed loop come as their answers do"
    )]
    ArrivalsWithoutRate,
    #[error("streams={0} in the load plan needs http2=on")]
    StreamsWithoutHttp2(String),
    /// Only a session that is resumed allows early data.
    #[error(
        "early-data=on in the load plan needs resume above 0%: only a connection that resumes can send early data"
    )]
    EarlyDataWithoutResumption,
    #[error("warmup={} in the load plan leaves nothing to measure: duration is {}", ExactSeconds(*.warmup), ExactSeconds(*.duration))]
    OnlyWarmup { warmup: Duration, duration: Duration },
}

const NAMES: &str = "rate, arrivals, connections, http2, streams, resume, early-data, keep-alive, lifetime, source-addresses, duration, warmup, requests, threads";
const KEEP_ALIVE: &str = "requests a connection from 1, or off (a connection a request), or on";
const TIME: &str = "a time above zero and up to a year, such as 500ms, 10s, 5m or 1h";

impl FromStr for Plan {
    type Err = PlanError;

    /// Parses words separated by commas; other options keep their defaults.
    fn from_str(text: &str) -> Result<Self, PlanError> {
        let mut plan = Self::default();
        let mut seen: Vec<(&str, &str)> = Vec::new();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let (name, value) = word.split_once('=').ok_or_else(|| PlanError::NotAPair(clean::text(word)))?;
            let (name, value) = (name.trim(), value.trim());
            if seen.iter().any(|(other, _)| *other == name) {
                return Err(PlanError::Twice(clean::text(name)));
            }
            plan.set(name, value)?;
            seen.push((name, value));
        }
        if let Some((_, streams)) = seen.iter().find(|(name, _)| *name == "streams")
            && !seen.contains(&("http2", "on"))
        {
            return Err(PlanError::StreamsWithoutHttp2(clean::text(streams)));
        }
        plan.check()?;
        Ok(plan)
    }
}

/// The numbers of a plan, each with its largest value.
const NUMBERS: [(&str, u64, &str); 5] = [
    ("connections", CONNECTIONS_MAX as u64, "a number from 1 to 100000"),
    ("streams", STREAMS_MAX as u64, "a number from 1 to 10000"),
    ("source-addresses", SOURCES_MAX as u64, "a number from 1 to 65533"),
    ("requests", u64::MAX, "a number of requests from 1"),
    ("threads", THREADS_MAX as u64, "a number from 1 to 256"),
];

/// A number of a plan, within its bounds; `text` is how it was given.
fn bounded(name: &str, n: Option<u64>, text: &dyn fmt::Display) -> Result<u64, PlanError> {
    let known = NUMBERS.into_iter().find(|(known, ..)| *known == name);
    let (name, max, expected) = known.ok_or_else(|| PlanError::UnknownName(name.to_owned()))?;
    n.filter(|n| (1..=max).contains(n)).ok_or_else(|| refuse(name, &text.to_string(), expected))
}

fn is_time(time: &Duration) -> bool {
    (Duration::from_nanos(1)..=DURATION_MAX).contains(time)
}

fn time_of(name: &'static str, text: &str) -> Result<Option<Duration>, PlanError> {
    quantity::time(text).filter(is_time).map(Some).ok_or_else(|| refuse(name, text, TIME))
}

fn on_or_off(name: &'static str, value: &str) -> Result<bool, PlanError> {
    match value {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(refuse(name, value, "on or off")),
    }
}

fn refuse(name: &'static str, value: &str, expected: &'static str) -> PlanError {
    PlanError::Value { name, value: clean::text(value), expected }
}

/// A value of a plan is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {0}")]
pub struct ValueError(&'static str);

impl FromStr for Arrivals {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        match text {
            "even" => Ok(Self::Even),
            "poisson" => Ok(Self::Poisson),
            _ => Err(ValueError("even or poisson")),
        }
    }
}

impl FromStr for Share {
    type Err = ValueError;

    /// Reads a percentage. From above 0 to 1 the sign is required, since a share may be meant.
    fn from_str(text: &str) -> Result<Self, ValueError> {
        let percentage = match text.strip_suffix('%') {
            Some(text) => number(text),
            None => number(text).filter(|&percentage| percentage == 0.0 || percentage > 1.0),
        };
        let expected = ValueError("a percentage from 0% to 100%; with the sign if it is not above 1");
        percentage.and_then(Self::percent).ok_or(expected)
    }
}

impl Plan {
    fn set(&mut self, name: &str, value: &str) -> Result<(), PlanError> {
        let number = || bounded(name, value.parse().ok(), &value);
        match name {
            "rate" => {
                let rate = value.parse().map_err(|ProfileError| refuse("rate", value, rate::EXPECTED))?;
                self.rate = Some(rate);
            }
            "arrivals" => {
                self.arrivals =
                    value.parse().map_err(|ValueError(expected)| refuse("arrivals", value, expected))?;
            }
            "resume" => {
                self.resume =
                    value.parse().map_err(|ValueError(expected)| refuse("resume", value, expected))?;
            }
            "connections" => self.connections = number()? as u32,
            "threads" => self.threads = number()? as u32,
            "source-addresses" => self.sources = Some(number()? as u32),
            "requests" => self.requests = Some(number()?),
            "lifetime" => self.lifetime = time_of("lifetime", value)?,
            "duration" => self.duration = time_of("duration", value)?,
            "warmup" => self.warmup = time_of("warmup", value)?,
            "early-data" => self.early_data = on_or_off("early-data", value)?,
            "streams" => self.protocol = Protocol::Http2 { streams: number()? as u32 },
            "http2" if on_or_off("http2", value)? => {
                self.protocol = Protocol::Http2 { streams: self.protocol.streams() };
            }
            "http2" => {}
            "keep-alive" => {
                self.keepalive =
                    value.parse().map_err(|KeepAliveError| refuse("keep-alive", value, KEEP_ALIVE))?;
            }
            _ => return Err(PlanError::UnknownName(clean::text(name))),
        }
        Ok(())
    }

    /// How long it lasts: its duration, or the end of its stages if that comes first; `None` if it has no end in time.
    pub fn length(&self) -> Option<Duration> {
        let stages = self.rate.as_ref().and_then(Profile::length);
        self.duration.into_iter().chain(stages).min()
    }

    /// Checks every number and time, and their combination.
    ///
    /// # Errors
    /// With the first one that is not accepted.
    pub fn check(&self) -> Result<(), PlanError> {
        let numbers = [
            ("connections", Some(u64::from(self.connections))),
            ("streams", Some(self.protocol.streams().into())),
            ("source-addresses", self.sources.map(u64::from)),
            ("requests", self.requests),
            ("threads", Some(self.threads.into())),
        ];
        for (name, n) in numbers {
            n.map_or(Ok(0), |n| bounded(name, Some(n), &n))?;
        }
        let times = [("lifetime", self.lifetime), ("duration", self.duration), ("warmup", self.warmup)];
        if let Some((name, Some(time))) =
            times.into_iter().find(|(_, time)| !time.as_ref().is_none_or(is_time))
        {
            return Err(refuse(name, &ExactSeconds(time).to_string(), TIME));
        }
        if self.threads > self.connections {
            return Err(PlanError::IdleThreads { threads: self.threads, connections: self.connections });
        }
        if self.rate.is_none() && self.arrivals == Arrivals::Poisson {
            return Err(PlanError::ArrivalsWithoutRate);
        }
        if self.early_data && self.resume == Share::ZERO {
            return Err(PlanError::EarlyDataWithoutResumption);
        }
        if let (Some(warmup), Some(duration)) = (self.warmup, self.length())
            && warmup >= duration
        {
            return Err(PlanError::OnlyWarmup { warmup, duration });
        }
        Ok(())
    }
}

/// A plain decimal number: no exponent, no infinity, no sign.
pub(super) fn number(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    text.parse().ok().filter(|_| plain)
}

pub(super) fn whole(text: &str, max: u32) -> Option<u32> {
    text.parse().ok().filter(|n| (1..=max).contains(n))
}
