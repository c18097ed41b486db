//! The plan of a load, as in `--load rate=500,connections=64,resume=80%`.

mod options;
mod rate;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use options::whole;
pub use options::{PlanError, ValueError};
pub(crate) use rate::REQUEST;
pub use rate::{Profile, ProfileError, Rate};

use crate::protocol::Protocol;

pub(crate) const CONNECTIONS_MAX: u32 = 100_000;
/// Most source addresses: 127.0.0.2 to 127.0.255.254.
const SOURCES_MAX: u32 = 65_533;
/// Most streams on a connection.
const STREAMS_MAX: u32 = 10_000;
const THREADS_MAX: u32 = 256;

/// A plan: the rate, the connections and the duration of a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Requests a second on a fixed schedule (open loop); `None` sends the next request of a connection when the
    /// answer to the last one is whole (closed loop).
    pub rate: Option<Profile>,
    /// How the requests of an open loop are spread.
    pub arrivals: Arrivals,
    pub protocol: Protocol,
    /// Connections kept in use, over all threads.
    pub connections: u32,
    /// Share of the new connections that resume an earlier session.
    pub resume: Share,
    /// Connections that resume send their first request as early data (0-RTT), if their ticket allows it.
    pub early_data: bool,
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
    pub threads: u32,
}

impl Default for Plan {
    /// A closed loop of HTTP/1.1 over 64 connections on one thread that are kept alive, without resumption, without an end.
    fn default() -> Self {
        Self {
            rate: None,
            arrivals: Arrivals::Even,
            protocol: Protocol::Http1,
            connections: 64,
            resume: Share::ZERO,
            early_data: false,
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

/// A share from 0 to 100 %, with a resolution of 0.01 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Share {
    parts: u32,
}

impl Share {
    pub const ZERO: Self = Self { parts: 0 };
    pub const ALL: Self = Self { parts: Self::WHOLE };
    /// Parts in a whole.
    pub(crate) const WHOLE: u32 = 10_000;

    /// A share in percent, rounded to a hundredth; `None` outside of 0 to 100.
    pub fn percent(percent: f64) -> Option<Self> {
        (0.0..=100.0).contains(&percent).then(|| Self { parts: (percent * 100.0).round() as u32 })
    }

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
    /// Independent arrivals, as of many people: a Poisson process of the same rate. Every run draws the same moments.
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
    /// This many requests, at least one; the last one says `Connection: close`.
    Requests(u32),
    /// As many as the server allows.
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

#[cfg(test)]
mod tests;
