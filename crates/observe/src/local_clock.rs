//! Local times without a zone, as most logs write them.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use recorder::observer::AHEAD;

/// A log is not in order by less than this.
const DISORDER_US: u64 = Duration::from_secs(30 * 60).as_micros() as u64;
/// The longest time that the end of summer time repeats.
const REPEATED_US: u64 = Duration::from_secs(2 * 3_600).as_micros() as u64;
/// A leap day may be this many years ago.
const LEAP_YEARS: i16 = 8;

/// Reads local times, each after those of the lines before.
#[derive(Clone, Debug)]
pub(crate) struct LocalClock {
    zone: TimeZone,
    /// When reading began.
    now: Timestamp,
    /// The time that was read last, and what it is in microseconds since 1970: many lines have the same second.
    last: Option<(DateTime, u64)>,
    /// The latest that was read.
    latest_us: u64,
}

impl LocalClock {
    /// In the zone of this machine.
    pub(crate) fn system() -> Self {
        Self { zone: TimeZone::system(), ..Self::utc(Timestamp::now()) }
    }

    pub(crate) fn utc(now: Timestamp) -> Self {
        Self { zone: TimeZone::UTC, now, last: None, latest_us: 0 }
    }

    /// A time in a format of `strptime`, in microseconds since 1970; `None` if the text is no such time.
    pub(crate) fn parse(&mut self, format: &str, text: &str) -> Option<u64> {
        self.us(DateTime::strptime(format, text).ok()?)
    }

    /// The latest year's that is not in the future. `of_year` gives the time in a year, if that has such a day.
    pub(crate) fn us_of_latest_year(&mut self, of_year: impl Fn(i16) -> Option<DateTime>) -> Option<u64> {
        let this = self.now.to_zoned(self.zone.clone()).year();
        let future_us = (self.now + AHEAD).as_microsecond() as u64;
        let times = (0..=LEAP_YEARS).filter_map(|years| of_year(this + 1 - years));
        let (time, _) =
            times.map(|time| (time, self.resolve(time))).find(|(_, us)| *us <= Some(future_us))?;
        self.us(time)
    }

    fn us(&mut self, time: DateTime) -> Option<u64> {
        let us = match self.last {
            Some((last, us)) if last == time => us,
            _ => self.resolve(time)?,
        };
        self.last = Some((time, us));
        self.latest_us = self.latest_us.max(us);
        Some(us)
    }

    /// In the hour that the end of summer time repeats, a log goes on from the line before.
    fn resolve(&self, time: DateTime) -> Option<u64> {
        let since_1970 = |time: Timestamp| u64::try_from(time.as_microsecond()).ok();
        let read = self.zone.to_ambiguous_timestamp(time);
        let us = since_1970(read.compatible().ok()?)?;
        let goes_back = us + DISORDER_US < self.latest_us && self.latest_us < us + REPEATED_US;
        if goes_back && matches!(read.offset(), AmbiguousOffset::Fold { .. }) {
            return since_1970(read.later().ok()?);
        }
        Some(us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hour_that_summer_time_repeats_is_two_hours() {
        let berlin = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let mut clock = LocalClock { zone: berlin, ..LocalClock::utc(Timestamp::UNIX_EPOCH) };
        let hours =
            [1, 2, 2, 3].map(|hour| (0..60).map(move |minute| format!("2025-10-26 0{hour}:{minute:02}")));
        let times: Vec<u64> =
            hours.into_iter().flatten().map(|text| clock.parse("%Y-%m-%d %H:%M", &text).unwrap()).collect();
        assert!(times.windows(2).all(|two| two[1] - two[0] == 60_000_000), "{times:?}");
    }
}
