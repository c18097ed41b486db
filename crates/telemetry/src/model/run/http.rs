//! What the proxy of a run counted of HTTP over all routes.

use super::merged::Member;
use super::retention::SeriesStart;
use crate::metrics::{HttpCounter, HttpLatency};
use crate::model::series::MetricSeries;
use crate::record::heap_size::HeapSize as _;
use crate::record::{HttpRecord, Latencies, Stamp};

/// The HTTP part of a run.
#[derive(Debug, Default)]
pub(super) struct HttpPart {
    /// `None` in a run that is not in HTTP mode.
    pub(super) series: Option<MetricSeries<HttpCounter, HttpLatency>>,
    /// Its last record; without latencies while the run lasts.
    pub(super) record: Option<HttpRecord>,
}

impl HttpPart {
    /// Takes in the record of an interval. If it leaves a gap after the one before, gives the end of that one.
    pub(super) fn apply(&mut self, stamp: &Stamp, mut record: HttpRecord, begun: SeriesStart) -> Option<u64> {
        let series = self.series.get_or_insert_with(|| begun.series());
        let gap_from_us = series.apply(stamp, &record.counters, &record.latencies);
        record.latencies = Latencies::default();
        self.record = Some(record);
        gap_from_us
    }

    /// Takes in the final record.
    pub(super) fn finish(&mut self, record: &HttpRecord, begun: SeriesStart) {
        let series = self.series.get_or_insert_with(|| begun.series());
        series.finish(&record.counters, &record.latencies);
        self.record = Some(HttpRecord { latencies: Latencies::default(), ..record.clone() });
    }

    pub(super) fn merged(members: &[Member<'_>]) -> Self {
        let series = members.iter().map(|member| (member.run.http.series.as_ref(), member.shift_us));
        Self { series: MetricSeries::merged(series), record: merged_record(members) }
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

    /// Routes that changed and whose record the last interval put off.
    pub(super) fn routes_deferred(&self) -> u64 {
        self.record.as_ref().map_or(0, |record| record.routes_deferred)
    }
}

fn merged_record(members: &[Member<'_>]) -> Option<HttpRecord> {
    let all = || members.iter().filter_map(|member| Some((member, member.run.http.record.as_ref()?)));
    all().next()?;
    let mut sum = HttpRecord::default();
    for (member, record) in all() {
        let HttpRecord {
            requests,
            queued,
            upstream_open,
            upstream_idle,
            routes_deferred,
            statuses,
            counters,
            latencies: _,
        } = record;
        if member.is_together {
            sum.requests += requests;
            sum.queued += queued;
            sum.upstream_open += upstream_open;
            sum.upstream_idle += upstream_idle;
            sum.routes_deferred += routes_deferred;
        }
        sum.statuses.add(statuses);
        sum.counters.add(counters);
    }
    Some(sum)
}

impl HttpRecord {
    /// Counts from an earlier record on.
    pub(crate) fn rebase(&mut self, before: &Self) {
        let Self {
            requests: _,
            queued: _,
            upstream_open: _,
            upstream_idle: _,
            routes_deferred: _,
            statuses,
            counters,
            latencies,
        } = self;
        *statuses = statuses.since(&before.statuses);
        *counters = counters.since(&before.counters);
        latencies.rebase(&before.latencies);
    }

    /// The same without the latencies of its interval.
    pub(crate) fn without_intervals(&self) -> Self {
        Self { latencies: self.latencies.without_intervals(), statuses: self.statuses.clone(), ..*self }
    }

    /// Takes in the record before it, to cover the time of both: all but the latencies are totals or present values.
    pub(crate) fn downsample(&mut self, earlier: &Self) {
        self.latencies.downsample(&earlier.latencies);
    }
}
