//! Records of one named part of the traffic, such as a route or an upstream.

use crate::kinds::heap_size::HeapSize;
use crate::metrics::{Counters, Metric};
use crate::values::Latencies;

/// A record of one named part of the traffic: cumulative counters, and the latencies since its last record.
pub trait NamedRecord: Clone + Default + std::fmt::Debug + HeapSize + 'static {
    type Counter: Metric;
    type Latency: Metric;

    /// A record of this name, with nothing counted.
    fn named(name: String) -> Self;
    fn name(&self) -> &str;
    /// True for its last record, at the end of the run: its latencies are those of the whole run.
    fn is_last(&self) -> bool;
    fn set_last(&mut self, last: bool);
    /// Totals of the run.
    fn counters(&self) -> &Counters<Self::Counter>;
    fn counters_mut(&mut self) -> &mut Counters<Self::Counter>;
    /// Latencies of the time that the record covers.
    fn latencies(&self) -> &Latencies<Self::Latency>;
    fn latencies_mut(&mut self) -> &mut Latencies<Self::Latency>;

    /// Counts from an earlier record on. The latencies of a whole run cannot be rebased, so a last record becomes a
    /// record that covers no time.
    fn rebase(&mut self, before: Option<&Self>) {
        if self.is_last() {
            self.set_last(false);
            *self.latencies_mut() = self.latencies().without_intervals();
        }
        if let Some(before) = before {
            *self.counters_mut() = self.counters().since(before.counters());
            self.latencies_mut().rebase(before.latencies());
        }
    }

    /// Copies the record without the latencies of its interval.
    #[must_use]
    fn without_intervals(&self) -> Self {
        let mut copy = self.clone();
        *copy.latencies_mut() = self.latencies().without_intervals();
        copy
    }

    /// Merges the previous record of the same name, to cover the time of both.
    fn downsample(&mut self, earlier: &Self) {
        self.latencies_mut().downsample(earlier.latencies());
    }
}

/// Makes a named record of a record with the members `last`, `counters` and `latencies`.
macro_rules! named_record {
    ($record:ident { $name:ident, $counter:ty, $latency:ty }) => {
        impl $crate::kinds::NamedRecord for $record {
            type Counter = $counter;
            type Latency = $latency;

            fn named(name: String) -> Self {
                Self { $name: name, ..Self::default() }
            }

            fn name(&self) -> &str {
                &self.$name
            }

            fn is_last(&self) -> bool {
                self.last
            }

            fn set_last(&mut self, last: bool) {
                self.last = last;
            }

            fn counters(&self) -> &Counters<Self::Counter> {
                &self.counters
            }

            fn counters_mut(&mut self) -> &mut Counters<Self::Counter> {
                &mut self.counters
            }

            fn latencies(&self) -> &Latencies<Self::Latency> {
                &self.latencies
            }

            fn latencies_mut(&mut self) -> &mut Latencies<Self::Latency> {
                &mut self.latencies
            }
        }
    };
}
pub(crate) use named_record;
