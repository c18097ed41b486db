//! A rate that a client must not exceed, as options write it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::options::OptionError;

/// Largest count and largest burst of a rate.
const COUNT_MAX: u32 = 1_000_000;
/// The time that a rate is for, by its letter.
const PERIODS: [(&str, Duration); 2] = [("s", Duration::from_secs(1)), ("m", Duration::from_secs(60))];

/// A number of events in each second or minute, and a number that may come at once: `100/s,burst=200`. Without a burst,
/// as many as a second allows may come at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    count: u32,
    unit: &'static str,
    period: Duration,
    burst: u32,
}

impl Rate {
    /// The time in which one event is allowed, in nanoseconds.
    pub(crate) fn interval_ns(self) -> u64 {
        self.period.as_nanos() as u64 / u64::from(self.count)
    }

    /// The time in which a burst is allowed, in nanoseconds.
    pub(crate) fn burst_ns(self) -> u64 {
        self.interval_ns() * u64::from(self.burst)
    }

    fn default_burst(count: u32, period: Duration) -> u32 {
        count.div_ceil(period.as_secs() as u32)
    }
}

impl FromStr for Rate {
    type Err = OptionError;

    fn from_str(text: &str) -> Result<Self, OptionError> {
        let whole = |text: &str| {
            text.parse().ok().filter(|number| (1..=COUNT_MAX).contains(number)).ok_or(OptionError::Rate)
        };
        let (rate, burst) = text.split_once(',').map_or((text, None), |(rate, burst)| (rate, Some(burst)));
        let rate = rate.trim();
        let (count, unit) = rate.split_once('/').unwrap_or((rate, "s"));
        let known = PERIODS.into_iter().find(|(known, _)| *known == unit);
        let (unit, period) = known.ok_or(OptionError::Rate)?;
        let count = whole(count)?;
        let burst = burst.map(|burst| burst.trim().strip_prefix("burst=").ok_or(OptionError::Rate));
        let burst = burst.map_or_else(|| Ok(Self::default_burst(count, period)), |number| whole(number?))?;
        Ok(Self { count, unit, period, burst })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { count, unit, period, burst } = *self;
        write!(f, "{count}/{unit}")?;
        if burst != Self::default_burst(count, period) {
            write!(f, ",burst={burst}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_reads_back_as_it_is_shown() {
        for (text, shown) in [
            ("100/s", "100/s"),
            ("100/s,burst=200", "100/s,burst=200"),
            ("100/s,burst=100", "100/s"),
            ("6000/m", "6000/m"),
            (" 1/m, burst=1 ", "1/m"),
            ("100", "100/s"),
            ("100,burst=200", "100/s,burst=200"),
            ("61/m,burst=1000000", "61/m,burst=1000000"),
        ] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!(rate.to_string(), shown, "{text}");
            assert_eq!(shown.parse(), Ok(rate), "{text}");
        }
        for text in ["", "/s", "0/s", "1000001/s", "1.5/s", "-1/s", "10/h", "10/s,", "10/s,burst=0", "10/s,5"]
        {
            assert_eq!(text.parse::<Rate>(), Err(OptionError::Rate), "{text}");
        }
    }

    #[test]
    fn the_burst_is_what_a_second_allows_unless_it_is_given() {
        let burst_ns = |text: &str| text.parse::<Rate>().unwrap().burst_ns();
        assert_eq!(burst_ns("100/s"), 1_000_000_000);
        assert_eq!(burst_ns("6000/m"), 1_000_000_000);
        assert_eq!(burst_ns("6/m"), 10_000_000_000, "one at once");
        assert_eq!(burst_ns("100/s,burst=250"), 2_500_000_000);
    }
}
