//! When a certificate is renewed, and when to try again after a failure. Pure: moments and chance are given.

use std::time::{Duration, SystemTime};

/// The first wait after a failure, and the longest.
const BACKOFF_MIN: Duration = Duration::from_secs(60);
const BACKOFF_MAX: Duration = Duration::from_secs(6 * 3600);
/// When the authority is asked for its suggestion of a window again, if it does not say.
pub(crate) const ASK_USUAL: Duration = Duration::from_secs(6 * 3600);
/// The longest time that a `Retry-After` is believed.
pub(crate) const RETRY_AFTER_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// A clock that is corrected by so little was not set back.
const CLOCK_STEP: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// The validity period of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Validity {
    pub(crate) not_before: SystemTime,
    pub(crate) not_after: SystemTime,
}

/// When to renew: within the window that the authority suggests (RFC 9773, 4.2), else after two thirds of the lifetime and
/// at most a thirtieth later. A window is believed between a twentieth of the lifetime, at most a day, and nine tenths: what
/// is always due would be ordered without end. `chance` from 0 to 1 spreads the renewals of many.
pub(crate) fn renewal_moment(
    validity: Validity,
    window: Option<(SystemTime, SystemTime)>,
    chance: f64,
) -> SystemTime {
    let lifetime = validity.not_after.duration_since(validity.not_before).unwrap_or_default();
    let own = (validity.not_before + lifetime * 2 / 3, lifetime / 30);
    let suggested =
        |(start, end): (SystemTime, SystemTime)| (start, end.duration_since(start).unwrap_or_default());
    let (start, length) = window.map_or(own, suggested);
    let earliest = validity.not_before + (lifetime / 20).min(DAY);
    let latest = validity.not_before + lifetime * 9 / 10;
    (start + length.mul_f64(chance.clamp(0.0, 1.0))).clamp(earliest, latest)
}

/// A wait that began at one moment and ends at another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) since: SystemTime,
    pub(crate) until: SystemTime,
}

impl Wait {
    pub(crate) const NONE: Self = Self { since: SystemTime::UNIX_EPOCH, until: SystemTime::UNIX_EPOCH };

    /// Its end, unless that is past, or the clock was set back to before its beginning.
    pub(crate) fn end(self, now: SystemTime) -> Option<SystemTime> {
        (self.since <= now + CLOCK_STEP && now < self.until).then_some(self.until)
    }
}

/// Waits between failed attempts: doubled each time, from a minute to six hours.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Notes a failure at `now`; returns when to try again: not before `retry_at`, the authority's own wish. `chance` from
    /// 0 to 1 adds up to a tenth.
    pub(crate) fn fail(&mut self, now: SystemTime, retry_at: Option<SystemTime>, chance: f64) -> SystemTime {
        let doubled = BACKOFF_MIN.saturating_mul(1 << self.failures.min(16)).min(BACKOFF_MAX);
        self.failures += 1;
        let own = now + doubled.mul_f64(1.0 + chance.clamp(0.0, 1.0) / 10.0);
        own.max(retry_at.unwrap_or(own).min(now + RETRY_AFTER_MAX))
    }

    /// Notes a success.
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// Failed attempts since the last success.
    pub(crate) fn failures(self) -> u32 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renewal_is_at_two_thirds_of_any_lifetime_or_in_the_window() {
        let not_before = SystemTime::UNIX_EPOCH + DAY * 20_000;
        for lifetime in [DAY * 90, DAY * 6] {
            let validity = Validity { not_before, not_after: not_before + lifetime };
            assert_eq!(renewal_moment(validity, None, 0.0), not_before + lifetime * 2 / 3);
            assert_eq!(renewal_moment(validity, None, 1.0), not_before + lifetime * 7 / 10);
            let window = Some((not_before + DAY, not_before + DAY * 2));
            assert_eq!(renewal_moment(validity, window, 0.5), not_before + DAY * 3 / 2);
            let [past, late] =
                [SystemTime::UNIX_EPOCH, not_before + DAY * 10_000].map(|moment| Some((moment, moment)));
            assert_eq!(renewal_moment(validity, past, 0.0), not_before + (lifetime / 20).min(DAY));
            assert_eq!(renewal_moment(validity, late, 0.0), not_before + lifetime * 9 / 10);
        }
        let backwards = Some((not_before + DAY, not_before));
        let validity = Validity { not_before: not_before + DAY, not_after: not_before };
        assert_eq!(renewal_moment(validity, backwards, 1.0), not_before + DAY);
    }

    #[test]
    fn a_wait_ends_at_its_end_or_when_the_clock_was_set_back() {
        let since = SystemTime::UNIX_EPOCH + DAY * 20_000;
        let wait = Wait { since, until: since + DAY };
        let second = Duration::from_secs(1);
        for (now, is_waited) in [
            (since, true),
            (since - second, true),
            (since + DAY - second, true),
            (since + DAY, false),
            (since - DAY, false),
        ] {
            assert_eq!(wait.end(now), is_waited.then_some(wait.until));
        }
        assert_eq!(Wait::NONE.end(since), None);
    }

    #[test]
    fn an_authority_that_is_down_for_a_day_is_asked_a_few_times() {
        let (mut backoff, begun) = (Backoff::default(), SystemTime::UNIX_EPOCH);
        let mut now = begun;
        while now < begun + DAY {
            let next = backoff.fail(now, None, 1.0);
            let wait = next.duration_since(now).unwrap();
            assert!(wait >= BACKOFF_MIN && wait <= BACKOFF_MAX.mul_f64(1.1), "{wait:?}");
            now = next;
        }
        assert!((8..=13).contains(&backoff.failures()), "{}", backoff.failures());
        backoff.reset();
        assert_eq!(backoff.fail(begun, None, 0.0), begun + BACKOFF_MIN);
    }

    #[test]
    fn a_rate_limit_is_waited_for_and_a_mad_one_is_bounded() {
        let now = SystemTime::UNIX_EPOCH;
        assert_eq!(Backoff::default().fail(now, Some(now + DAY), 0.0), now + DAY);
        assert_eq!(Backoff::default().fail(now, Some(now + DAY * 10_000), 0.0), now + RETRY_AFTER_MAX);
        assert_eq!(Backoff::default().fail(now, Some(now), 0.0), now + BACKOFF_MIN);
    }
}
