//! The time zone of the screen. Records, files and headless output are in UTC.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use crate::theme::format;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Zone(TimeZone);

impl Default for Zone {
    fn default() -> Self {
        Self(TimeZone::UTC)
    }
}

impl Zone {
    /// The zone of `TZ`, else of the machine; UTC if neither is known.
    pub fn local() -> Self {
        Self(TimeZone::try_system().unwrap_or(TimeZone::UTC))
    }

    fn at(&self, realtime_us: u64) -> Option<Zoned> {
        let us = i64::try_from(realtime_us).ok()?;
        Some(Timestamp::from_microsecond(us).ok()?.to_zoned(self.0.clone()))
    }

    /// Formats a time of day: `13:04:10`, and in UTC `12:04:10Z`.
    pub(crate) fn time_of_day(&self, realtime_us: u64) -> String {
        let is_utc = |time: &Zoned| time.offset().is_zero() && self.name(realtime_us) == "UTC";
        match self.at(realtime_us).filter(|time| !is_utc(time)) {
            Some(time) => format!("{:02}:{:02}:{:02}", time.hour(), time.minute(), time.second()),
            None => format::time_of_day(realtime_us),
        }
    }

    /// Returns the zone's name at a time, such as `UTC` or `CET`.
    pub(crate) fn name(&self, realtime_us: u64) -> String {
        self.at(realtime_us).map_or_else(|| "UTC".to_owned(), |time| time.strftime("%Z").to_string())
    }

    /// Returns how many seconds the zone is ahead of UTC at a time.
    pub(crate) fn ahead_s(&self, realtime_us: u64) -> i32 {
        self.at(realtime_us).map_or(0, |time| time.offset().seconds())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-01-02 12:04:10 UTC.
    const WINTER_US: u64 = 1_767_355_450_000_000;
    const HALF_A_YEAR_US: u64 = 182 * 86_400 * 1_000_000;

    #[test]
    fn a_zone_is_ahead_by_the_season() {
        let zone = Zone(TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap());
        assert_eq!(zone.time_of_day(WINTER_US), "13:04:10");
        assert_eq!((zone.name(WINTER_US).as_str(), zone.ahead_s(WINTER_US)), ("CET", 3_600));
        let summer_us = WINTER_US + HALF_A_YEAR_US;
        assert_eq!(zone.time_of_day(summer_us), "14:04:10");
        assert_eq!((zone.name(summer_us).as_str(), zone.ahead_s(summer_us)), ("CEST", 7_200));
    }

    #[test]
    fn utc_is_marked() {
        let utc = Zone::default();
        assert_eq!((utc.time_of_day(WINTER_US), utc.name(WINTER_US)), ("12:04:10Z".into(), "UTC".into()));
        assert_eq!(utc.ahead_s(WINTER_US), 0);
    }
}
