//! How the load goes: the words of `--load PLAN`, such as `rate=500,connections=64,resume=80%`.

mod rate;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

pub(crate) use rate::REQUEST;
pub use rate::{Profile, ProfileError, Rate};

/// Most connections of a plan.
pub(crate) const CONNECTIONS_MAX: u32 = 100_000;
/// Most source addresses: 127.0.0.2 to 127.0.255.254.
const SOURCES_MAX: u32 = 65_533;
/// Most threads.
const THREADS_MAX: u32 = 256;
/// Longest duration: a year.
const DURATION_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// How much load, over how many connections, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Requests a second on a fixed schedule (open loop); `None` sends the next request of a connection when the
    /// answer to the last one is whole (closed loop).
    pub rate: Option<Profile>,
    /// How the requests of an open loop are spread.
    pub arrivals: Arrivals,
    /// Connections kept in use, over all threads.
    pub connections: u32,
    /// Share of the new connections that resume an earlier session.
    pub resume: Share,
    /// How many requests a connection carries.
    pub keepalive: KeepAlive,
    /// How long a connection is used before the generator ends it.
    pub lifetime: Option<Duration>,
    /// Number of source addresses, from 127.0.0.2 up; `None` leaves the source to the kernel.
    pub sources: Option<u32>,
    /// Time after which no more requests fall due, while the load runs; pauses do not count.
    pub duration: Option<Duration>,
    /// Time at the beginning, part of the duration, whose requests are neither counted as results nor timed.
    pub warmup: Option<Duration>,
    /// Number of requests after which no more fall due, over all threads.
    pub requests: Option<u64>,
    /// Threads of the generator.
    pub threads: u32,
}

impl Default for Plan {
    /// A closed loop of 64 connections on one thread that are kept alive, without resumption, without an end.
    fn default() -> Self {
        Self {
            rate: None,
            arrivals: Arrivals::Even,
            connections: 64,
            resume: Share::ZERO,
            keepalive: KeepAlive::Unlimited,
            lifetime: None,
            sources: None,
            duration: None,
            warmup: None,
            requests: None,
            threads: 1,
        }
    }
}

/// A share from nothing to everything, to a hundredth of a percent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share {
    parts: u32,
}

impl Share {
    /// Nothing.
    pub const ZERO: Self = Self { parts: 0 };
    /// Everything.
    pub const ALL: Self = Self { parts: Self::WHOLE };
    /// Parts in a whole.
    pub(crate) const WHOLE: u32 = 10_000;

    /// A share in percent, rounded to a hundredth; `None` outside of 0 to 100.
    pub fn percent(percent: f64) -> Option<Self> {
        (0.0..=100.0).contains(&percent).then(|| Self { parts: (percent * 100.0).round() as u32 })
    }

    /// The share in percent.
    pub fn as_percent(self) -> f64 {
        f64::from(self.parts) / 100.0
    }

    /// The share in ten-thousandths.
    pub(crate) fn parts(self) -> u32 {
        self.parts
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.as_percent())
    }
}

/// How the requests of an open loop are spread over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrivals {
    /// At even distances.
    #[default]
    Even,
    /// As those of many people who know nothing of each other: a Poisson process of the same rate. Every run draws
    /// the same moments.
    Poisson,
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Even { "even" } else { "poisson" })
    }
}

/// How many requests a connection carries before the generator ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeepAlive {
    /// So many, at least one; the last one says `Connection: close`.
    Requests(u32),
    /// As many as the server lets it.
    Unlimited,
}

impl fmt::Display for KeepAlive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Requests(1) => f.write_str("off"),
            Self::Requests(n) => write!(f, "{n}"),
            Self::Unlimited => f.write_str("on"),
        }
    }
}

/// The text is neither `on`, `off` nor a number of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected on, off or a number of requests from 1")]
pub struct KeepAliveError;

impl FromStr for KeepAlive {
    type Err = KeepAliveError;

    fn from_str(text: &str) -> Result<Self, KeepAliveError> {
        match text {
            "off" => Ok(Self::Requests(1)),
            "on" | "unlimited" => Ok(Self::Unlimited),
            _ => whole(text, u32::MAX).map(Self::Requests).ok_or(KeepAliveError),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(rate) = &self.rate {
            write!(f, "rate={rate},")?;
            if self.arrivals == Arrivals::Poisson {
                write!(f, "arrivals={},", self.arrivals)?;
            }
        }
        write!(f, "connections={},resume={},keepalive={}", self.connections, self.resume, self.keepalive)?;
        if let Some(lifetime) = self.lifetime {
            write!(f, ",lifetime={}", Seconds(lifetime))?;
        }
        if let Some(sources) = self.sources {
            write!(f, ",sources={sources}")?;
        }
        if let Some(duration) = self.duration {
            write!(f, ",duration={}", Seconds(duration))?;
        }
        if let Some(warmup) = self.warmup {
            write!(f, ",warmup={}", Seconds(warmup))?;
        }
        if let Some(requests) = self.requests {
            write!(f, ",requests={requests}")?;
        }
        write!(f, ",threads={}", self.threads)
    }
}

/// Writes a duration in whole seconds, else milliseconds, else nanoseconds, without loss.
struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.subsec_nanos() {
            0 => write!(f, "{}s", self.0.as_secs()),
            nanos if nanos % 1_000_000 == 0 => write!(f, "{}ms", self.0.as_millis()),
            _ => write!(f, "{}ns", self.0.as_nanos()),
        }
    }
}

/// Why a text is not a plan; names the word that is wrong and what it may be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// A word is not `NAME=VALUE`.
    #[error("{0:?} in the load plan is not NAME=VALUE; the names are {NAMES}")]
    NotAPair(String),
    /// A name is not known.
    #[error("{0:?} is no word of a load plan; the names are {NAMES}")]
    UnknownName(String),
    /// A name stands there twice.
    #[error("{0} stands twice in the load plan")]
    Twice(String),
    /// A value is not of its kind, or absurd.
    #[error("{name}={value} in the load plan: {name} must be {expected}")]
    Value {
        /// The word's name.
        name: &'static str,
        /// Its value as given.
        value: String,
        /// What it may be.
        expected: &'static str,
    },
    /// Each thread needs a connection.
    #[error(
        "threads={threads} in the load plan: there must be at least as many connections, not {connections}"
    )]
    IdleThreads {
        /// Threads asked for.
        threads: u32,
        /// Connections asked for.
        connections: u32,
    },
    /// Requests of a closed loop arrive when their connection is free.
    #[error(
        "arrivals=poisson in the load plan needs a rate: the requests of a closed loop come as their answers do"
    )]
    ArrivalsWithoutRate,
    /// Nothing would be measured.
    #[error("warmup={} in the load plan leaves nothing to measure: duration is {}", Seconds(*.warmup), Seconds(*.duration))]
    OnlyWarmup {
        /// The warm-up.
        warmup: Duration,
        /// The duration it is a part of.
        duration: Duration,
    },
}

const NAMES: &str =
    "rate, arrivals, connections, resume, keepalive, lifetime, sources, duration, warmup, requests, threads";
const TIME: &str = "a time above zero and up to a year, such as 500ms, 10s, 5m or 1h";

impl FromStr for Plan {
    type Err = PlanError;

    /// Reads words separated by commas; what is not named keeps its default.
    fn from_str(text: &str) -> Result<Self, PlanError> {
        let mut plan = Self::default();
        let mut seen: Vec<&str> = Vec::new();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let (name, value) =
                word.split_once('=').ok_or_else(|| PlanError::NotAPair(telemetry::clean::text(word)))?;
            let (name, value) = (name.trim(), value.trim());
            if seen.contains(&name) {
                return Err(PlanError::Twice(telemetry::clean::text(name)));
            }
            plan.set(name, value)?;
            seen.push(name);
        }
        plan.check()?;
        Ok(plan)
    }
}

impl Plan {
    fn set(&mut self, name: &str, value: &str) -> Result<(), PlanError> {
        let refuse =
            |name, expected| PlanError::Value { name, value: telemetry::clean::text(value), expected };
        match name {
            "rate" => {
                self.rate = Some(value.parse().map_err(|ProfileError| refuse("rate", rate::EXPECTED))?);
            }
            "arrivals" => {
                self.arrivals = match value {
                    "even" => Arrivals::Even,
                    "poisson" => Arrivals::Poisson,
                    _ => return Err(refuse("arrivals", "even or poisson")),
                };
            }
            "connections" => {
                self.connections = whole(value, CONNECTIONS_MAX)
                    .ok_or_else(|| refuse("connections", "a number from 1 to 100000"))?;
            }
            "resume" => {
                self.resume = number(value.strip_suffix('%').unwrap_or(value))
                    .and_then(Share::percent)
                    .ok_or_else(|| refuse("resume", "a percentage from 0% to 100%"))?;
            }
            "keepalive" => {
                self.keepalive = value.parse().map_err(|KeepAliveError| {
                    refuse(
                        "keepalive",
                        "requests a connection from 1, or off (a connection a request), or on",
                    )
                })?;
            }
            "sources" => {
                self.sources = Some(
                    whole(value, SOURCES_MAX).ok_or_else(|| refuse("sources", "a number from 1 to 65533"))?,
                );
            }
            "lifetime" => {
                self.lifetime = Some(duration(value).ok_or_else(|| refuse("lifetime", TIME))?);
            }
            "duration" => {
                self.duration = Some(duration(value).ok_or_else(|| refuse("duration", TIME))?);
            }
            "warmup" => {
                self.warmup = Some(duration(value).ok_or_else(|| refuse("warmup", TIME))?);
            }
            "requests" => {
                self.requests = Some(
                    value
                        .parse()
                        .ok()
                        .filter(|n| *n > 0)
                        .ok_or_else(|| refuse("requests", "a number of requests from 1"))?,
                );
            }
            "threads" => {
                self.threads =
                    whole(value, THREADS_MAX).ok_or_else(|| refuse("threads", "a number from 1 to 256"))?;
            }
            _ => return Err(PlanError::UnknownName(telemetry::clean::text(name))),
        }
        Ok(())
    }

    /// How long it lasts: its duration, or the end of its stages if that comes first; `None` if it has no end in time.
    pub fn length(&self) -> Option<Duration> {
        let stages = self.rate.as_ref().and_then(Profile::length);
        self.duration.into_iter().chain(stages).min()
    }

    /// Checks what holds between the parts.
    fn check(&self) -> Result<(), PlanError> {
        if self.threads > self.connections {
            return Err(PlanError::IdleThreads { threads: self.threads, connections: self.connections });
        }
        if self.rate.is_none() && self.arrivals == Arrivals::Poisson {
            return Err(PlanError::ArrivalsWithoutRate);
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
fn number(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    text.parse().ok().filter(|_| plain)
}

fn whole(text: &str, max: u32) -> Option<u32> {
    text.parse().ok().filter(|n| (1..=max).contains(n))
}

fn duration(text: &str) -> Option<Duration> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (amount, unit) = text.split_at(unit_at);
    let unit_ns = match unit {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" | "" => 1e9,
        "m" | "min" => 60e9,
        "h" => 3600e9,
        _ => return None,
    };
    // A whole number of a unit stays exact; a fraction is rounded to the nanosecond.
    let nanos = match amount.parse::<u64>() {
        Ok(whole) => u128::from(whole) * unit_ns as u128,
        Err(_) => (number(amount)? * unit_ns).round() as u128,
    };
    let duration = Duration::from_nanos(u64::try_from(nanos).ok()?);
    (duration > Duration::ZERO && duration <= DURATION_MAX).then_some(duration)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plan(text: &str) -> Plan {
        text.parse().unwrap()
    }

    fn rate(per_second: f64) -> Option<Profile> {
        Rate::per_second(per_second).map(Profile::constant)
    }

    #[test]
    fn all_words_are_understood() {
        let all = "rate=500,arrivals=poisson,connections=64,resume=80%,keepalive=10,lifetime=3s,sources=16,duration=10s,warmup=1s,requests=1000,threads=2";
        let expected = Plan {
            rate: rate(500.0),
            arrivals: Arrivals::Poisson,
            connections: 64,
            resume: Share::percent(80.0).unwrap(),
            keepalive: KeepAlive::Requests(10),
            lifetime: Some(Duration::from_secs(3)),
            sources: Some(16),
            duration: Some(Duration::from_secs(10)),
            warmup: Some(Duration::from_secs(1)),
            requests: Some(1_000),
            threads: 2,
        };
        assert_eq!(plan(all), expected);
        assert_eq!(
            plan(
                " rate = 500 ,arrivals=poisson, connections=64,resume=80,keepalive=10,lifetime=3s,sources=16,duration=10000ms,warmup=1000ms,requests=1000,threads=2,"
            ),
            expected
        );
    }

    #[test]
    fn what_is_not_named_keeps_its_default() {
        assert_eq!(plan(""), Plan::default());
        assert_eq!(plan("").rate, None, "no rate is a closed loop");
    }

    #[test]
    fn values_have_several_spellings() {
        assert_eq!(plan("keepalive=off").keepalive, KeepAlive::Requests(1));
        assert_eq!(plan("keepalive=1").keepalive, KeepAlive::Requests(1));
        assert_eq!(plan("keepalive=unlimited").keepalive, KeepAlive::Unlimited);
        assert_eq!(plan("duration=1.5m").duration, Some(Duration::from_secs(90)));
        assert_eq!(plan("duration=2").duration, Some(Duration::from_secs(2)));
        assert_eq!(plan("rate=0.5").rate, rate(0.5));
        assert_eq!(plan("rate=10..20/5s").length(), Some(Duration::from_secs(5)));
    }

    #[test]
    fn bad_words_are_named_with_what_they_may_be() {
        for (text, name) in [
            ("rate=0", "rate"),
            ("rate=-5", "rate"),
            ("rate=1e9", "rate"),
            ("rate=inf", "rate"),
            ("rate=99999999999", "rate"),
            ("rate=0.0001", "rate"),
            ("rate=10..20", "rate"),
            ("rate=10+20/5s", "rate"),
            ("arrivals=odd", "arrivals"),
            ("warmup=0", "warmup"),
            ("lifetime=soon", "lifetime"),
            ("connections=0", "connections"),
            ("connections=1.5", "connections"),
            ("connections=100001", "connections"),
            ("resume=101%", "resume"),
            ("resume=-1%", "resume"),
            ("resume=some", "resume"),
            ("keepalive=0", "keepalive"),
            ("keepalive=maybe", "keepalive"),
            ("sources=0", "sources"),
            ("sources=65534", "sources"),
            ("duration=0", "duration"),
            ("duration=0s", "duration"),
            ("duration=10x", "duration"),
            ("duration=s", "duration"),
            ("duration=9999999h", "duration"),
            ("duration=99999999999999999999h", "duration"),
            ("requests=0", "requests"),
            ("requests=many", "requests"),
            ("threads=0", "threads"),
            ("threads=257", "threads"),
        ] {
            let error = text.parse::<Plan>().unwrap_err();
            assert!(
                matches!(&error, PlanError::Value { name: found, .. } if *found == name),
                "{text}: {error}"
            );
            assert!(
                error.to_string().starts_with(&format!("{text} in the load plan: {name} must be ")),
                "{error}"
            );
        }
    }

    #[test]
    fn words_that_do_not_belong_are_refused() {
        assert_eq!("fast".parse::<Plan>(), Err(PlanError::NotAPair("fast".into())));
        assert_eq!("speed=5".parse::<Plan>(), Err(PlanError::UnknownName("speed".into())));
        assert_eq!("rate=5,rate=6".parse::<Plan>(), Err(PlanError::Twice("rate".into())));
        assert_eq!(
            "threads=4,connections=3".parse::<Plan>(),
            Err(PlanError::IdleThreads { threads: 4, connections: 3 })
        );
        assert_eq!("arrivals=poisson".parse::<Plan>(), Err(PlanError::ArrivalsWithoutRate));
        let only = "duration=5s,warmup=5s".parse::<Plan>().unwrap_err().to_string();
        assert!(only.contains("warmup=5s") && only.contains("duration is 5s"), "{only}");
        let escape = "\u{1b}[2J=1".parse::<Plan>().unwrap_err().to_string();
        assert!(!escape.contains('\u{1b}'), "{escape:?}");
    }

    fn plans() -> impl Strategy<Value = Plan> {
        let duration = prop_oneof![
            (1_u64..=31_536_000).prop_map(Duration::from_secs),
            (1_u64..10_000_000).prop_map(Duration::from_millis),
            (1_u64..u64::from(u32::MAX)).prop_map(Duration::from_nanos),
        ];
        (
            proptest::option::of((1_u64..=10_000_000_000, any::<bool>()).prop_map(|(milli, poisson)| {
                let rate = Rate::per_second(milli as f64 / 1e3).unwrap();
                (Profile::constant(rate), if poisson { Arrivals::Poisson } else { Arrivals::Even })
            })),
            1..=CONNECTIONS_MAX,
            (0..=Share::WHOLE).prop_map(|parts| Share { parts }),
            prop_oneof![Just(KeepAlive::Unlimited), (1..=u32::MAX).prop_map(KeepAlive::Requests)],
            proptest::option::of(1..=SOURCES_MAX),
            proptest::option::of((duration, any::<bool>())),
            proptest::option::of(1_u64..),
            1..=THREADS_MAX,
        )
            .prop_map(
                |(rate, connections, resume, keepalive, sources, duration, requests, threads)| Plan {
                    arrivals: rate.as_ref().map_or(Arrivals::Even, |(_, arrivals)| *arrivals),
                    rate: rate.map(|(rate, _)| rate),
                    connections,
                    resume,
                    keepalive,
                    lifetime: duration.map(|(duration, _)| duration),
                    sources,
                    warmup: duration
                        .and_then(|(duration, warm)| warm.then_some(duration / 2))
                        .filter(|w| !w.is_zero()),
                    duration: duration.map(|(duration, _)| duration),
                    requests,
                    threads: threads.min(connections),
                },
            )
    }

    proptest! {
        #[test]
        fn a_plan_reads_back_as_it_is_written(plan in plans()) {
            prop_assert_eq!(plan.to_string().parse::<Plan>(), Ok(plan));
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in "\\PC*") {
            let _ = text.parse::<Plan>();
            let _ = format!("rate={text},duration={text}").parse::<Plan>();
        }
    }
}
