//! The gauges of HTTP mode over time.

use std::collections::VecDeque;

use records::kinds::HttpGauges;

/// Gauges of the latest intervals, each with its end on the monotonic clock in microseconds.
#[derive(Debug, Default)]
pub(in crate::runs) struct GaugeHistory(VecDeque<(u64, HttpGauges)>);

impl GaugeHistory {
    /// Appends the gauges of an interval, and keeps the latest `history` intervals.
    pub(in crate::runs) fn push(&mut self, end_us: u64, gauges: HttpGauges, history: usize) {
        let too_many = (self.0.len() + 1).saturating_sub(history);
        self.0.drain(..too_many.min(self.0.len()));
        self.0.push_back((end_us, gauges));
    }

    /// The gauges at a moment; `None` if its interval is not kept.
    pub(in crate::runs) fn at(&self, us: u64) -> Option<HttpGauges> {
        let after = self.0.partition_point(|(end_us, _)| *end_us <= us);
        self.0.get(after.checked_sub(1)?).map(|(_, gauges)| *gauges)
    }

    pub(in crate::runs) fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<(u64, HttpGauges)>()
    }
}
