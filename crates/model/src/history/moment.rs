//! Moments and ranges of time as people write them: `13:05..13:10`, `-10m..`, `mark:2..mark:3`.

use std::str::FromStr;
use std::time::{Duration, SystemTime};

use crate::runs::{Run, TimelineEvent};
use records::slice::TimeRange;

const DAY_US: u64 = 24 * 3600 * 1_000_000;

/// A part of a run, from a moment to a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MomentRange {
    from: Option<Moment>,
    until: Option<Moment>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moment {
    /// `CLOCK_REALTIME`, in microseconds.
    At(u64),
    /// A time of day, UTC, in microseconds. Without `Z` it is in the reader's zone; see [`Moment::in_zone`].
    TimeOfDay {
        /// Microseconds since midnight.
        us: u64,
        /// Whether it was written with `Z`.
        is_utc: bool,
    },
    /// After the run's beginning.
    After(Duration),
    /// Before its end; for `--since`, before now.
    Before(Duration),
    /// When the mark of this number was left.
    Mark(u64),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no time: expected one such as 13:05:20, +01:20 or +5m (into the run), -30s (before its end), mark:2, 2026-01-31T13:05:00Z"
)]
pub struct ParseMomentError(String);

impl FromStr for Moment {
    type Err = ParseMomentError;

    fn from_str(text: &str) -> Result<Self, ParseMomentError> {
        let moment = if let Some(number) = text.strip_prefix("mark:") {
            number.parse().ok().map(Self::Mark)
        } else if let Some(length) = text.strip_prefix('+') {
            let time = elapsed(length).or_else(|| humantime::parse_duration(length).ok());
            time.map(Self::After)
        } else if let Some(length) = text.strip_prefix('-') {
            humantime::parse_duration(length).ok().map(Self::Before)
        } else if let Ok(time) = humantime::parse_rfc3339_weak(text) {
            time.duration_since(SystemTime::UNIX_EPOCH).ok().map(|since| Self::At(since.as_micros() as u64))
        } else if text.contains(':') {
            let clock = text.strip_suffix(['Z', 'z']);
            time_of_day(clock.unwrap_or(text)).map(|us| Self::TimeOfDay { us, is_utc: clock.is_some() })
        } else {
            humantime::parse_duration(text).ok().map(Self::After)
        };
        moment.ok_or_else(|| ParseMomentError(text.to_owned()))
    }
}

/// What [`quantity::elapsed_text`](records::text::quantity::elapsed_text) writes.
fn elapsed(text: &str) -> Option<Duration> {
    let parts: Option<Vec<u64>> = text.split(':').map(|digits| digits.parse().ok()).collect();
    let seconds = match parts?[..] {
        [m, s @ 0..=59] => m.checked_mul(60)?.checked_add(s)?,
        [h, m @ 0..=59, s @ 0..=59] => h.checked_mul(3_600)?.checked_add(m * 60 + s)?,
        _ => return None,
    };
    Some(Duration::from_secs(seconds))
}

/// `13:05` or `13:05:30`, in microseconds since midnight.
fn time_of_day(text: &str) -> Option<u64> {
    let mut parts = text.split(':');
    let mut part = |max: u64| parts.next().map(|digits| digits.parse::<u64>().ok().filter(|n| *n <= max));
    let (hours, minutes, seconds) = (part(23)??, part(59)??, part(59).unwrap_or(Some(0))?);
    parts.next().is_none().then_some(((hours * 60 + minutes) * 60 + seconds) * 1_000_000)
}

fn micros(length: &Duration) -> u64 {
    u64::try_from(length.as_micros()).unwrap_or(u64::MAX)
}

impl Moment {
    /// Interprets a time of day without `Z` in a zone `ahead_s` seconds ahead of UTC.
    #[must_use]
    pub fn in_zone(self, ahead_s: i32) -> Self {
        match self {
            Self::TimeOfDay { us, is_utc: false } => {
                let offset = i64::from(ahead_s) * 1_000_000;
                let us = (us as i64 - offset).rem_euclid(DAY_US as i64) as u64;
                Self::TimeOfDay { us, is_utc: true }
            }
            moment => moment,
        }
    }

    /// The moment in a run, as `CLOCK_MONOTONIC` in microseconds. That clock measures the time after the run's beginning
    /// and before its end, since the wall clock may be adjusted meanwhile.
    ///
    /// # Errors
    /// If the run has no such mark.
    pub fn mono_us(&self, run: &Run) -> Result<u64, String> {
        Ok(match self {
            Self::After(length) => run.began_us().saturating_add(micros(length)),
            Self::Before(length) => run.last_us().saturating_sub(micros(length)),
            Self::At(_) | Self::TimeOfDay { .. } | Self::Mark(_) => run.mono_at(self.realtime_us(run)?),
        })
    }

    /// The moment in a run, as `CLOCK_REALTIME` in microseconds.
    ///
    /// # Errors
    /// If the run has no such mark.
    pub fn realtime_us(&self, run: &Run) -> Result<u64, String> {
        let (began_us, ended_us) = (run.began_realtime_us(), run.last_realtime_us());
        Ok(match self {
            Self::At(us) => *us,
            // The first such time that is not before the run.
            Self::TimeOfDay { us, .. } => {
                let today = began_us / DAY_US * DAY_US + us;
                if today < began_us && today + DAY_US <= ended_us { today + DAY_US } else { today }
            }
            Self::After(length) => began_us.saturating_add(micros(length)),
            Self::Before(length) => ended_us.saturating_sub(micros(length)),
            Self::Mark(number) => {
                let is_it = |event: &TimelineEvent| matches!(event, TimelineEvent::Mark { number: found, .. } if found == number);
                let marker = run.markers().find(|marker| is_it(&marker.event));
                let none = || format!("run {} has no mark {number}{}", run.id().short(), known_marks(run));
                marker.map(|marker| marker.realtime_us).ok_or_else(none)?
            }
        })
    }

    /// The moment without a run, as journalctl understands it: before now, or the last such time of day.
    ///
    /// # Errors
    /// If it has a meaning only within a run.
    pub fn by_clock(&self, now_us: u64) -> Result<u64, String> {
        match self {
            Self::At(us) => Ok(*us),
            Self::TimeOfDay { us, .. } => {
                let today = now_us / DAY_US * DAY_US + us;
                Ok(if today > now_us { today.saturating_sub(DAY_US) } else { today })
            }
            Self::Before(length) => Ok(now_us.saturating_sub(micros(length))),
            Self::After(_) | Self::Mark(_) => {
                Err("expected a time by the clock, such as -1h, 13:05 or 2026-01-31T13:05:00Z; of a run it is SOURCE@FROM..TO".to_owned())
            }
        }
    }
}

fn known_marks(run: &Run) -> String {
    let numbers = run.markers().filter_map(|marker| match marker.event {
        TimelineEvent::Mark { number, .. } => Some(number),
        TimelineEvent::Change { .. } | TimelineEvent::Alert { .. } => None,
    });
    let numbers: Vec<u64> = numbers.collect();
    match numbers[..] {
        [] => ": it has none".to_owned(),
        [one] => format!(": it has mark {one}"),
        [first, .., last] => format!(": it has marks {first} to {last}"),
    }
}

impl FromStr for MomentRange {
    type Err = ParseMomentError;

    fn from_str(text: &str) -> Result<Self, ParseMomentError> {
        let (from, until) = text.split_once("..").ok_or_else(|| ParseMomentError(text.to_owned()))?;
        let moment = |text: &str| if text.is_empty() { Ok(None) } else { text.parse().map(Some) };
        Ok(Self { from: moment(from)?, until: moment(until)? })
    }
}

impl MomentRange {
    /// The time range in a run.
    ///
    /// # Errors
    /// If there is no such mark, or the range ends before it begins.
    pub fn of_run(&self, run: &Run) -> Result<TimeRange, String> {
        let place = |moment: &Option<Moment>, open| {
            moment.as_ref().map_or(Ok(open), |moment| moment.realtime_us(run))
        };
        let range = TimeRange { from_us: place(&self.from, 0)?, until_us: place(&self.until, u64::MAX)? };
        if range.from_us >= range.until_us {
            return Err("it ends before it begins".to_owned());
        }
        Ok(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::Model;
    use records::ids::RunId;
    use records::kinds::{Body, MarkRecord, Record, RunRecord, Stamp};

    /// An hour from 12:30 UTC on, with a mark after ten minutes. In its last half hour the wall clock is adjusted.
    fn model(adjusted_us: i64) -> Model {
        let began_us = 19_675 * DAY_US + 45_000_000_000;
        let mut model = Model::new(1);
        let mark = Body::Mark(MarkRecord { number: 2, text: String::new() });
        let run = || Body::Run(Box::<RunRecord>::default());
        for (seq, minute, body) in [(1, 0, run()), (2, 10, mark), (3, 60, run())] {
            let stamp = Stamp {
                run: RunId::from_bits(1),
                seq,
                mono_us: minute * 60_000_000,
                realtime_us: (began_us + minute * 60_000_000).saturating_add_signed(if minute > 30 {
                    adjusted_us
                } else {
                    0
                }),
                interval_us: 0,
            };
            model.apply(Record { stamp, body }, None);
        }
        model
    }

    /// Minutes since the run began.
    fn minutes(text: &str) -> Result<(f64, f64), String> {
        let model = model(0);
        let run = model.current().unwrap();
        let minute = |us: u64| (us as f64 - run.began_realtime_us() as f64) / 6e7;
        let range = text.parse::<MomentRange>().map_err(|error| error.to_string())?.of_run(run)?;
        Ok((minute(range.from_us), minute(range.until_us)))
    }

    #[test]
    fn a_window_is_a_stretch_of_its_run() {
        assert_eq!(minutes("12:40..13:05:30"), Ok((10.0, 35.5)));
        assert_eq!(minutes("-10m..-5m"), Ok((50.0, 55.0)));
        assert_eq!(minutes("5m..10m"), Ok((5.0, 10.0)));
        assert_eq!(minutes("+05:00..+1:00:00"), Ok((5.0, 60.0)));
        assert_eq!(minutes("+5m..12:40Z"), Ok((5.0, 10.0)));
        assert_eq!(minutes("mark:2..1h"), Ok((10.0, 60.0)));
        assert_eq!(minutes("2023-11-14T12:45:00Z..").map(|(from, _)| from), Ok(15.0));
        assert!(minutes("..-10m").is_ok_and(|(_, until)| (until - 50.0).abs() < 1e-9));
    }

    #[test]
    fn lengths_of_time_hold_while_the_wall_clock_is_adjusted() {
        let model = model(-30_000_000);
        let run = model.current().unwrap();
        let us = |text: &str| text.parse::<Moment>().unwrap().mono_us(run).unwrap() - run.began_us();
        assert_eq!((us("4s"), us("-1s")), (4_000_000, 3_599_000_000));
        // By the last record's clocks, as the screen shows it.
        assert_eq!(us("13:00"), 30 * 60_000_000 + 30_000_000);
    }

    #[test]
    fn a_time_of_day_without_z_is_that_of_the_zone() {
        let model = model(0);
        let run = model.current().unwrap();
        let minute = |text: &str, ahead_s| {
            let moment = text.parse::<Moment>().unwrap().in_zone(ahead_s);
            (moment.mono_us(run).unwrap() - run.began_us()) / 60_000_000
        };
        assert_eq!((minute("14:40", 7_200), minute("12:40Z", 7_200), minute("07:40", -18_000)), (10, 10, 10));
        assert_eq!((minute("+10m", 7_200), minute("mark:2", 7_200)), (10, 10));
    }

    #[test]
    fn a_malformed_window_is_refused() {
        for text in [
            "",
            "13:05",
            "25:00..",
            "13:05..13:99",
            "1:2:3:4..",
            "soon..later",
            "mark:..",
            "--5m..",
            "+1:60..",
            "+1:2:3:4..",
            "+x..",
        ] {
            assert!(minutes(text).is_err_and(|error| error.contains("no time")), "{text}");
        }
        assert!(minutes("mark:7..").is_err_and(|error| error.contains("has no mark 7")));
        assert!(minutes("20m..10m").is_err_and(|error| error.contains("ends before it begins")));
    }

    #[test]
    fn without_a_run_times_are_before_now() {
        let now_us = 19_675 * DAY_US + 45_000_000_000;
        let at = |text: &str| {
            text.parse::<Moment>().unwrap().by_clock(now_us).map(|us| (now_us - us) / 60_000_000)
        };
        assert_eq!((at("-1h"), at("12:00"), at("13:00")), (Ok(60), Ok(30), Ok(23 * 60 + 30)));
        assert!(at("mark:1").is_err() && at("5m").is_err());
    }
}
