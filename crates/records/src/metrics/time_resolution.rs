//! How finely times are known.

use serde::Serialize;

/// The resolution of a run's times: [`Self::FINE`] if tlsdash measured them, otherwise the log's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeResolution {
    /// In nanoseconds; 0 is finer than a histogram keeps.
    step_ns: u64,
}

/// A time, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownTime {
    /// As finely as a histogram keeps it, in nanoseconds.
    Fine(u64),
    /// A whole number of steps, in nanoseconds.
    Rounded(u64),
    /// At most one step, in nanoseconds.
    AtMost(u64),
}

/// A figure's value, as far as it is known. In JSON a bound is an object, so that no reader takes it for a value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum KnownValue {
    /// The value, as finely as it is kept.
    Exact(f64),
    /// The value is this or less: it is at the resolution of the log.
    AtMost { at_most: f64 },
}

impl KnownValue {
    /// The value, or its bound.
    pub fn number(self) -> f64 {
        match self {
            Self::Exact(value) | Self::AtMost { at_most: value } => value,
        }
    }

    /// True if only a bound is known.
    pub fn is_bound(self) -> bool {
        matches!(self, Self::AtMost { .. })
    }
}

impl TimeResolution {
    /// Finer than a histogram keeps.
    pub const FINE: Self = Self { step_ns: 0 };

    /// A resolution in microseconds; 0 is finer than a histogram keeps.
    pub fn from_us(us: u64) -> Self {
        Self { step_ns: us.saturating_mul(1_000) }
    }

    /// The resolution in microseconds; 0 is finer than a histogram keeps.
    pub fn us(self) -> u64 {
        self.step_ns / 1_000
    }

    /// The bound or value for a time from a histogram. Histograms keep three digits, so the time is slightly more than
    /// a whole number of steps.
    pub fn known(self, ns: u64) -> KnownTime {
        let Some(steps) = ns.saturating_add(self.step_ns / 2).checked_div(self.step_ns) else {
            return KnownTime::Fine(ns);
        };
        match steps {
            0 | 1 => KnownTime::AtMost(self.step_ns),
            steps => KnownTime::Rounded(steps.saturating_mul(self.step_ns)),
        }
    }

    /// What is known of a time in microseconds that a histogram gave.
    pub fn known_us(self, us: f64) -> KnownValue {
        match self.known((us * 1e3).round() as u64) {
            KnownTime::Fine(_) => KnownValue::Exact(us),
            KnownTime::Rounded(ns) => KnownValue::Exact(ns as f64 / 1e3),
            KnownTime::AtMost(ns) => KnownValue::AtMost { at_most: ns as f64 / 1e3 },
        }
    }

    /// What is known of a mean in microseconds: samples below a step count as one, so that it is up to a step too high. From
    /// ten steps on that is less than a tenth.
    pub fn known_mean_us(self, us: f64) -> KnownValue {
        if us < 10.0 * self.step_us() { KnownValue::AtMost { at_most: us } } else { KnownValue::Exact(us) }
    }

    /// What is known of a standard deviation in microseconds. Counting samples below a step as one lowers it, by at most
    /// half a step: that is the largest deviation of what was added (Popoviciu's inequality).
    pub fn known_deviation_us(self, us: f64) -> KnownValue {
        let step_us = self.step_us();
        if us < step_us { KnownValue::AtMost { at_most: us + step_us / 2.0 } } else { KnownValue::Exact(us) }
    }

    /// Whether two times in microseconds differ by more than a step.
    pub fn tells_apart(self, a_us: f64, b_us: f64) -> bool {
        self == Self::FINE || (a_us - b_us).abs() > self.step_us()
    }

    fn step_us(self) -> f64 {
        self.step_ns as f64 / 1e3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_no_finer_than_its_log() {
        let log = TimeResolution::from_us(1_000);
        assert_eq!(log.known(1_000_400), KnownTime::AtMost(1_000_000));
        assert_eq!(log.known(0), KnownTime::AtMost(1_000_000));
        assert_eq!(log.known(12_004_000), KnownTime::Rounded(12_000_000));
        assert_eq!(TimeResolution::FINE.known(1_000_400), KnownTime::Fine(1_000_400));
    }

    #[test]
    fn small_figures_of_a_log_are_bounds() {
        let log = TimeResolution::from_us(1_000);
        let at_most = |at_most: f64| KnownValue::AtMost { at_most };
        assert_eq!(log.known_us(1_000.4), at_most(1_000.0));
        assert_eq!(log.known_us(3_001.0), KnownValue::Exact(3_000.0));
        assert_eq!(log.known_mean_us(1_240.0), at_most(1_240.0), "samples of 0 count as 1,000");
        assert_eq!(log.known_mean_us(2_900.0), at_most(2_900.0), "ten of 20,000 and ninety of 0");
        assert_eq!(log.known_mean_us(17_240.0), KnownValue::Exact(17_240.0));
        assert_eq!(log.known_deviation_us(0.0), at_most(500.0));
        assert_eq!(TimeResolution::FINE.known_mean_us(0.5), KnownValue::Exact(0.5));
        assert_eq!(TimeResolution::FINE.known_deviation_us(0.0), KnownValue::Exact(0.0));
        assert!(!log.tells_apart(1_000.0, 2_000.0) && log.tells_apart(1_000.0, 3_000.0));
        assert!(TimeResolution::FINE.tells_apart(1.0, 1.5));
    }

    #[test]
    fn a_bound_is_no_number_in_json() {
        let json = |value: KnownValue| serde_json::to_string(&value).unwrap();
        assert_eq!(json(KnownValue::Exact(12.5)), "12.5");
        assert_eq!(json(KnownValue::AtMost { at_most: 1_000.0 }), r#"{"at_most":1000.0}"#);
    }
}
