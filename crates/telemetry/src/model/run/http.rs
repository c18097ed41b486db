//! What the proxy of a run counted of HTTP over all routes.

use std::collections::VecDeque;

use super::merged::Member;
use super::retention::SeriesStart;
use crate::collect::http::HttpGauges;
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
    /// Gauges of the latest intervals, each with its end on the monotonic clock in microseconds.
    gauges: VecDeque<(u64, HttpGauges)>,
}

impl HttpPart {
    /// Takes in the record of an interval. If it leaves a gap after the one before, gives the end of that one.
    pub(super) fn apply(&mut self, stamp: &Stamp, mut record: HttpRecord, begun: SeriesStart) -> Option<u64> {
        let series = self.series.get_or_insert_with(|| begun.series());
        let gap_from_us = series.apply(stamp, &record.counters, &record.latencies);
        record.latencies = Latencies::default();
        let too_many = (self.gauges.len() + 1).saturating_sub(begun.history);
        self.gauges.drain(..too_many.min(self.gauges.len()));
        self.gauges.push_back((stamp.mono_us, record.gauges()));
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
        Self { series: MetricSeries::merged(series), record: merged_record(members), gauges: VecDeque::new() }
    }

    /// The part for reading on from the middle of the run: what was counted before is read again.
    pub(super) fn resumed(&self, history: usize) -> Self {
        let series = self.series.as_ref().map(|_| MetricSeries::new(None, history));
        Self { series, ..Self::default() }
    }

    /// Keeps the totals and the last interval only.
    pub(super) fn abridge(&mut self) {
        let Self { series, record: _, gauges } = self;
        series.iter_mut().for_each(MetricSeries::abridge);
        *gauges = VecDeque::new();
    }

    /// What it takes of memory besides its own.
    pub(super) fn heap_bytes(&self) -> usize {
        let Self { series, record, gauges } = self;
        series.as_ref().map_or(0, MetricSeries::bytes)
            + record.heap_bytes()
            + gauges.capacity() * size_of::<(u64, HttpGauges)>()
    }

    /// The gauges at a moment; `None` if its interval is not kept.
    pub(super) fn gauges_at(&self, us: u64) -> Option<HttpGauges> {
        let after = self.gauges.partition_point(|(at_us, _)| *at_us <= us);
        self.gauges.get(after.checked_sub(1)?).map(|(_, gauges)| *gauges)
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
