//! A part of a run that gets one record each interval: its series, and its last record.

use crate::runs::run::aligned::AlignedRun;
use crate::runs::run::retention::SeriesStart;
use crate::runs::series::MetricSeries;
use records::kinds::Stamp;
use records::kinds::heap_size::HeapSize;
use records::metrics::{Counters, Metric};
use records::values::Latencies;

/// A record of an interval with totals and latencies.
pub(in crate::runs) trait MeasuredRecord: Clone + HeapSize {
    type Counter: Metric;
    type Latency: Metric;

    fn measured(&self) -> (&Counters<Self::Counter>, &Latencies<Self::Latency>);

    /// Drops the latencies, which the series keeps.
    fn without_latencies(self) -> Self;

    /// The last records of several runs as one, without latencies.
    fn merged(members: &[(AlignedRun<'_>, &MeasuredPart<Self>)]) -> Option<Self>;
}

/// The series and the latest record of one kind.
#[derive(Debug)]
pub(in crate::runs) struct MeasuredPart<R: MeasuredRecord> {
    /// `None` in a run without such records.
    pub(in crate::runs) series: Option<MetricSeries<R::Counter, R::Latency>>,
    /// The last one, without latencies.
    pub(in crate::runs) record: Option<R>,
}

impl<R: MeasuredRecord> Default for MeasuredPart<R> {
    fn default() -> Self {
        Self { series: None, record: None }
    }
}

impl<R: MeasuredRecord> MeasuredPart<R> {
    /// Adds the record of an interval. If there is a gap after the previous interval, returns that interval's end.
    pub(in crate::runs) fn apply(&mut self, stamp: &Stamp, record: R, begun: SeriesStart) -> Option<u64> {
        let (counters, latencies) = record.measured();
        let series = self.series.get_or_insert_with(|| begun.series());
        let gap_from_us = series.apply(stamp, counters, latencies);
        self.record = Some(record.without_latencies());
        gap_from_us
    }

    pub(in crate::runs) fn finish(&mut self, record: &R, begun: SeriesStart) {
        let (counters, latencies) = record.measured();
        self.series.get_or_insert_with(|| begun.series()).finish(counters, latencies);
        self.record = Some(record.clone().without_latencies());
    }

    pub(in crate::runs) fn merged(members: &[(AlignedRun<'_>, &Self)]) -> Self {
        let series = members.iter().map(|(run, part)| (part.series.as_ref(), run.shift_us));
        Self { series: MetricSeries::merged(series), record: R::merged(members) }
    }

    /// The part for reading on from the middle of the run: earlier counts are read again.
    pub(in crate::runs) fn resumed(&self, history: usize) -> Self {
        let Self { series, record: _ } = self;
        Self { series: series.as_ref().map(|_| MetricSeries::new(None, history)), record: None }
    }

    /// Keeps the totals and the last ten seconds only.
    pub(in crate::runs) fn abridge(&mut self) {
        let Self { series, record: _ } = self;
        series.iter_mut().for_each(MetricSeries::abridge);
    }

    pub(in crate::runs) fn heap_bytes(&self) -> usize {
        let Self { series, record } = self;
        series.as_ref().map_or(0, MetricSeries::bytes) + record.heap_bytes()
    }
}
