//! How much time a record covers.

use std::time::Duration;

use crate::metrics::Field;
use crate::wire::field;

/// What the records of a run cover: an interval as it was published, or several merged into a roll-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Resolution {
    #[default]
    Interval,
    Minute,
    Hour,
}

impl Resolution {
    /// The field that has the kind of a record. Each resolution has its own: who looks for one finds no other.
    pub fn kind_field(self) -> &'static Field {
        match self {
            Self::Interval => &field::KIND,
            Self::Minute => &field::MINUTE,
            Self::Hour => &field::HOUR,
        }
    }

    /// The next coarser one; the coarsest has none.
    #[must_use]
    pub fn next(self) -> Self {
        match self {
            Self::Interval => Self::Minute,
            Self::Minute | Self::Hour => Self::Hour,
        }
    }

    /// The time that a roll-up covers; zero for an interval.
    pub fn period(self) -> Duration {
        match self {
            Self::Interval => Duration::ZERO,
            Self::Minute => Duration::from_secs(60),
            Self::Hour => Duration::from_secs(3_600),
        }
    }
}
