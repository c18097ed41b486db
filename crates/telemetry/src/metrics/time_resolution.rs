//! How finely times are known.

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
}
