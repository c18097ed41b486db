//! Rates, and profiles of rates over time.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use records::text::quantity;

use super::options::{ExactSeconds, number};
use crate::clock::{SECOND_NS, nanos};

const STAGES_MAX: usize = 256;
/// Longest stage: a week. The area under a ramp is computed in whole numbers, which must have room for it.
const STAGE_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// Requests per second, with a resolution of 0.001/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate {
    milli_per_s: u64,
}

impl Rate {
    /// The slowest rate: one request in 1,000 seconds.
    pub const MIN: Self = Self { milli_per_s: 1 };
    /// The fastest rate: ten million requests a second.
    pub const MAX: Self = Self { milli_per_s: 10_000_000_000 };

    /// A rate in requests a second, rounded to a thousandth; `None` outside of [`Rate::MIN`] to [`Rate::MAX`].
    pub fn per_second(requests: f64) -> Option<Self> {
        let milli = (requests * 1_000.0).round();
        let rate = Self { milli_per_s: milli as u64 };
        (milli.is_finite() && rate >= Self::MIN && rate <= Self::MAX).then_some(rate)
    }

    pub fn as_per_second(self) -> f64 {
        self.milli_per_s as f64 / 1_000.0
    }

    /// Requests in a thousand seconds.
    pub(crate) fn milli_per_s(self) -> u64 {
        self.milli_per_s
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_per_second())
    }
}

/// A stage of constant or evenly changing rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateStage {
    /// Rate at its beginning, in requests in a thousand seconds; may be 0.
    pub(crate) from: u64,
    /// Rate at its end.
    pub(crate) to: u64,
    /// How long it lasts, in nanoseconds; `None` for ever.
    pub(crate) length_ns: Option<u64>,
}

/// The rate over time, in stages. It ends with its last stage, if that has a length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// At least one; only the last may be without a length.
    stages: Vec<RateStage>,
}

impl Profile {
    /// A constant rate without an end.
    pub fn constant(rate: Rate) -> Self {
        let rate = rate.milli_per_s();
        Self { stages: vec![RateStage { from: rate, to: rate, length_ns: None }] }
    }

    /// The rate `after_ns` nanoseconds from the beginning; 0 after the end.
    pub fn at(&self, after_ns: u64) -> f64 {
        let mut begins_ns = 0_u64;
        for stage in &self.stages {
            let within_ns = after_ns - begins_ns;
            match stage.length_ns {
                Some(length_ns) if within_ns >= length_ns => begins_ns += length_ns,
                length_ns => {
                    let share = length_ns.map_or(0.0, |length_ns| within_ns as f64 / length_ns as f64);
                    return (stage.from as f64 + (stage.to as f64 - stage.from as f64) * share) / 1e3;
                }
            }
        }
        0.0
    }

    pub fn is_constant(&self) -> bool {
        matches!(self.stages[..], [RateStage { length_ns: None, .. }])
    }

    /// How long it lasts; `None` if it has no end.
    pub fn length(&self) -> Option<Duration> {
        self.stages.iter().map(|stage| stage.length_ns).sum::<Option<u64>>().map(Duration::from_nanos)
    }

    pub(crate) fn stages(&self) -> &[RateStage] {
        &self.stages
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, stage) in self.stages.iter().enumerate() {
            let per_second = |milli: u64| milli as f64 / 1e3;
            write!(f, "{}{}", if i == 0 { "" } else { "+" }, per_second(stage.from))?;
            if stage.to != stage.from {
                write!(f, "..{}", per_second(stage.to))?;
            }
            if let Some(length_ns) = stage.length_ns {
                write!(f, "/{}", ExactSeconds(Duration::from_nanos(length_ns)))?;
            }
        }
        Ok(())
    }
}

/// The expected form of a rate.
pub(crate) const EXPECTED: &str = "requests a second from 0.001 to 10000000 (leave it out for a closed loop), or stages of RATE/TIME or FROM..TO/TIME joined by +, such as 100..1000/30s+1000/60s";

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be {EXPECTED}")]
pub struct ProfileError;

impl FromStr for Profile {
    type Err = ProfileError;

    fn from_str(text: &str) -> Result<Self, ProfileError> {
        let stages: Option<Vec<RateStage>> = text.split('+').map(|stage| parse_stage(stage.trim())).collect();
        let stages = stages.ok_or(ProfileError)?;
        let (last, earlier) = stages.split_last().ok_or(ProfileError)?;
        let goes_anywhere = stages.iter().any(|stage| stage.from.max(stage.to) > 0);
        let ends_in_nothing = last.length_ns.is_none() && last.from == 0;
        let good = goes_anywhere && !ends_in_nothing && earlier.iter().all(|stage| stage.length_ns.is_some());
        if good && stages.len() <= STAGES_MAX { Ok(Self { stages }) } else { Err(ProfileError) }
    }
}

fn is_stage_length(length: &Duration) -> bool {
    (Duration::from_nanos(1)..=STAGE_MAX).contains(length)
}

fn parse_stage(text: &str) -> Option<RateStage> {
    // Rates may have their unit.
    let text = text.replace("/s..", "..").replace("/s/", "/");
    let text = text.strip_suffix("/s").filter(|rate| !rate.contains('/')).unwrap_or(&text);
    let (rates, length) = match text.split_once('/') {
        Some((rates, length)) => (rates, Some(quantity::time(length).filter(is_stage_length)?)),
        None => (text, None),
    };
    let milli = |text: &str| match number(text.trim())? {
        0.0 => Some(0),
        rate => Rate::per_second(rate).map(Rate::milli_per_s),
    };
    let (from, to) = match rates.split_once("..") {
        // A change of rate takes time.
        Some((from, to)) if length.is_some() => (milli(from)?, milli(to)?),
        Some(_) => return None,
        None => (milli(rates)?, milli(rates)?),
    };
    Some(RateStage { from, to, length_ns: length.map(nanos) })
}

/// A request in the unit in which areas under a profile are measured: thousandths of a request a second, times
/// nanoseconds. Constant rates stay whole numbers in it.
pub(crate) const REQUEST: u128 = 1_000 * SECOND_NS as u128;

impl RateStage {
    /// Requests that it holds, in units of [`REQUEST`]; `u128::MAX` if it never ends.
    pub(crate) fn area(&self) -> u128 {
        self.length_ns.map_or(u128::MAX, |length| {
            (u128::from(self.from) + u128::from(self.to)) * u128::from(length) / 2
        })
    }

    /// When this much of the area has passed, in nanoseconds from the beginning of the stage; `None` if never.
    pub(crate) fn after_ns(&self, area: u128) -> Option<u64> {
        if self.from == self.to {
            return u64::try_from(area.checked_div(self.from.into())?).ok();
        }
        // `from·t + slope·t²/2 = area`, in the form that loses no digits for small slopes.
        let (from, area) = (self.from as f64, area as f64);
        let slope = (self.to as f64 - from) / self.length_ns? as f64;
        let root = (from * from + 2.0 * slope * area).max(0.0).sqrt();
        Some((2.0 * area / (from + root)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(text: &str) -> Profile {
        text.parse().unwrap()
    }

    #[test]
    fn a_profile_reads_back_as_it_is_written() {
        for text in ["500", "0.5", "100..1000/30s", "100/10s+200/10s+300", "0..50/1500ms+0/5s+50..0/1s"] {
            assert_eq!(profile(text).to_string(), text);
        }
    }

    #[test]
    fn a_malformed_profile_is_refused() {
        for text in
            ["", "0", "fast", "100+200", "100..200", "100/0s", "100/10s+", "-1", "0/5s", "1/10s+0", "1/9w"]
        {
            assert_eq!(text.parse::<Profile>(), Err(ProfileError), "{text:?}");
        }
    }

    #[test]
    fn the_rate_at_a_moment_follows_the_stages() {
        let rates = profile("100/10s+100..300/10s+50");
        for (second, expected) in [(0, 100.0), (9, 100.0), (10, 100.0), (15, 200.0), (20, 50.0), (999, 50.0)]
        {
            assert!((rates.at(second * SECOND_NS) - expected).abs() < 1e-9, "at {second} s");
        }
        assert_eq!(rates.length(), None);
        assert_eq!(profile("100/10s+1..2/5s").length(), Some(Duration::from_secs(15)));
        assert!(profile("100/10s").at(11 * SECOND_NS) <= 0.0, "it has ended");
    }

    #[test]
    fn a_ramp_holds_the_area_under_it() {
        let ramp = profile("0..1000/10s").stages()[0];
        assert_eq!(ramp.area() / REQUEST, 5_000);
        // Half of the time holds a quarter of the requests.
        let after_ns = ramp.after_ns(1_250 * REQUEST).unwrap();
        assert!(after_ns.abs_diff(5 * SECOND_NS) < 10, "{after_ns}");
        let down = profile("1000..0/10s").stages()[0];
        let after_ns = down.after_ns(3_750 * REQUEST).unwrap();
        assert!(after_ns.abs_diff(5 * SECOND_NS) < 10, "{after_ns}");
    }
}
