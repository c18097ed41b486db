//! What the proxy of a run counted of TLS, besides its proxy records.

use super::merged::Member;
use super::retention::SeriesStart;
use crate::metrics::{TlsCounter, TlsLatency};
use crate::model::series::MetricSeries;
use crate::record::heap_size::HeapSize as _;
use crate::record::{Latencies, Stamp, TlsRecord};

/// The TLS part of a run.
#[derive(Debug, Default)]
pub(super) struct TlsPart {
    /// `None` in a run without such records.
    pub(super) series: Option<MetricSeries<TlsCounter, TlsLatency>>,
    /// Its last record, without latencies.
    pub(super) record: Option<TlsRecord>,
}

impl TlsPart {
    /// Takes in the record of an interval. If it leaves a gap after the one before, gives the end of that one.
    pub(super) fn apply(&mut self, stamp: &Stamp, mut record: TlsRecord, begun: SeriesStart) -> Option<u64> {
        let series = self.series.get_or_insert_with(|| begun.series());
        let gap_from_us = series.apply(stamp, &record.counters, &record.latencies);
        record.latencies = Latencies::default();
        self.record = Some(record);
        gap_from_us
    }

    /// Takes in the final record.
    pub(super) fn finish(&mut self, record: &TlsRecord, begun: SeriesStart) {
        let series = self.series.get_or_insert_with(|| begun.series());
        series.finish(&record.counters, &record.latencies);
        self.record = Some(record.without_intervals());
    }

    pub(super) fn merged(members: &[Member<'_>]) -> Self {
        let series = members.iter().map(|member| (member.run.tls.series.as_ref(), member.shift_us));
        let mut records = members.iter().filter_map(|member| member.run.tls.record.as_ref());
        let record = records.next().cloned().map(|first| {
            records.fold(first, |mut sum, record| {
                sum.usage_deferred += record.usage_deferred;
                sum.ages_accepted.add(&record.ages_accepted);
                sum.ages_expired.add(&record.ages_expired);
                sum.counters.add(&record.counters);
                sum
            })
        });
        Self { series: MetricSeries::merged(series), record }
    }

    /// The part for reading on from the middle of the run: what was counted before is read again.
    pub(super) fn resumed(&self, history: usize) -> Self {
        let Self { series, record: _ } = self;
        Self { series: series.as_ref().map(|_| MetricSeries::new(None, history)), record: None }
    }

    /// Keeps the totals and the last interval only.
    pub(super) fn abridge(&mut self) {
        let Self { series, record: _ } = self;
        series.iter_mut().for_each(MetricSeries::abridge);
    }

    /// What it takes of memory besides its own.
    pub(super) fn heap_bytes(&self) -> usize {
        let Self { series, record } = self;
        series.as_ref().map_or(0, MetricSeries::bytes) + record.heap_bytes()
    }
}
