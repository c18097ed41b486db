//! TLS counters of a worker, besides those of every proxy.

use crate::histogram::Histograms;
use crate::metrics::{Counters, Dimension, TlsCounter, TlsLatency, UsageCounter};
use crate::values::AgeCounts;

/// The most server names, and fingerprints, that are counted separately; further ones are summed as [`OTHER_VALUE`].
pub const USAGE_VALUES_MAX: usize = 1_000;
/// The value for all values of a dimension beyond the limit.
pub const OTHER_VALUE: &str = "other";

/// TLS counters of one worker over an interval.
#[derive(Clone, Debug, Default)]
pub struct TlsDelta {
    /// Counts since the last hand-over.
    pub counters: Counters<TlsCounter>,
    /// Latencies since the last hand-over.
    pub latencies: Histograms<TlsLatency>,
    /// Ages of tickets and sessions that resumed.
    pub ages_accepted: AgeCounts,
    /// Ages of tickets and sessions that were too old.
    pub ages_expired: AgeCounts,
    /// Values with changes since the last hand-over, each at most once a worker.
    pub usage: Vec<UsageDelta>,
}

/// Counters of one worker for one value of a dimension over an interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageDelta {
    pub dimension: Dimension,
    /// The value, cleaned.
    pub value: Box<str>,
    /// Counts since the last hand-over.
    pub counters: Counters<UsageCounter>,
}

impl TlsDelta {
    /// Adds the counts of another worker, or of the same worker later.
    pub(crate) fn add(&mut self, other: &Self) {
        self.counters.add(&other.counters);
        self.latencies.add(&other.latencies);
        self.ages_accepted.add(&other.ages_accepted);
        self.ages_expired.add(&other.ages_expired);
        self.usage.extend_from_slice(&other.usage);
    }

    /// Forgets everything and keeps the memory.
    pub(crate) fn clear(&mut self) {
        let Self { counters, latencies, ages_accepted, ages_expired, usage } = self;
        *counters = Counters::default();
        latencies.clear();
        ages_accepted.clear();
        ages_expired.clear();
        usage.clear();
    }
}
