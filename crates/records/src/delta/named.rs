//! Counts of one named part of the traffic, such as a route or an upstream.

use crate::histogram::SparseHistogram;
use crate::kinds::NamedRecord;

type LatencyOf<D> = <<D as NamedDelta>::Record as NamedRecord>::Latency;

/// Counters of one named part over an interval.
pub trait NamedDelta {
    /// The record that carries the counts.
    type Record: NamedRecord;

    /// Adds the counts, and what else it has to say, to a record of the totals, but for latencies. False if that changes
    /// nothing.
    fn add_to(&self, totals: &mut Self::Record) -> bool;

    /// Latencies of a class since the last hand-over.
    fn latency(&self, class: LatencyOf<Self>) -> SparseHistogram;
}
