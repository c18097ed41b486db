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

/// What a record stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    pub resolution: Resolution,
    /// Of the last of several roll-ups that belong together.
    pub batch: Option<RollupBatch>,
}

/// Roll-ups that stand together for records of intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RollupBatch {
    /// The number of the last record before those, and of the last one of them.
    pub after: u64,
    pub through: u64,
    /// How many roll-ups they are.
    pub rollups: u64,
}

impl Coverage {
    /// Returns whether it is an interval, as it was published.
    pub fn is_interval(self) -> bool {
        self.resolution == Resolution::Interval
    }
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
