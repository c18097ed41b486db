//! A part of a run that gets one record each interval: its series, and its last record. TLS, HTTP mode over all routes and
//! the load have one each.

use crate::runs::run::aligned::{AlignedRun, covered_us};
use crate::runs::run::retention::SeriesStart;
use crate::runs::series::MetricSeries;
use records::kinds::heap_size::HeapSize;
use records::kinds::{HttpRecord, LoadRecord, Stamp, TlsRecord};
use records::metrics::{
    Counters, HttpCounter, HttpLatency, LoadCounter, LoadLatency, Metric, TlsCounter, TlsLatency,
};
use records::values::{EventCounts, Latencies};

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

    pub(in crate::runs) fn condense(&mut self, period_us: u64) {
        let Self { series, record: _ } = self;
        if let Some(series) = series {
            series.condense(period_us);
        }
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

impl MeasuredRecord for TlsRecord {
    type Counter = TlsCounter;
    type Latency = TlsLatency;

    fn measured(&self) -> (&Counters<TlsCounter>, &Latencies<TlsLatency>) {
        (&self.counters, &self.latencies)
    }

    fn without_latencies(self) -> Self {
        Self { latencies: Latencies::default(), ..self }
    }

    fn merged(members: &[(AlignedRun<'_>, &MeasuredPart<Self>)]) -> Option<Self> {
        let all = members.iter().filter_map(|(run, part)| Some((run, part.record.as_ref()?)));
        all.clone().next()?;
        Some(all.fold(Self::default(), |mut sum, (run, record)| {
            let Self { usage_deferred, ages_accepted, ages_expired, counters, latencies: _ } = record;
            if run.is_together {
                sum.usage_deferred += usage_deferred;
            }
            sum.ages_accepted.add(ages_accepted);
            sum.ages_expired.add(ages_expired);
            sum.counters.add(counters);
            sum
        }))
    }
}

impl MeasuredRecord for HttpRecord {
    type Counter = HttpCounter;
    type Latency = HttpLatency;

    fn measured(&self) -> (&Counters<HttpCounter>, &Latencies<HttpLatency>) {
        (&self.counters, &self.latencies)
    }

    fn without_latencies(self) -> Self {
        Self { latencies: Latencies::default(), ..self }
    }

    fn merged(members: &[(AlignedRun<'_>, &MeasuredPart<Self>)]) -> Option<Self> {
        let all = || members.iter().filter_map(|(run, part)| Some((run, part.record.as_ref()?)));
        all().next()?;
        let mut sum = Self::default();
        for (run, record) in all() {
            let Self {
                requests,
                queued,
                upstream_open,
                upstream_idle,
                routes_deferred,
                statuses,
                grpc_statuses,
                counters,
                latencies: _,
            } = record;
            if run.is_together {
                sum.requests += requests;
                sum.queued += queued;
                sum.upstream_open += upstream_open;
                sum.upstream_idle += upstream_idle;
                sum.routes_deferred += routes_deferred;
            }
            sum.statuses.add(statuses);
            sum.grpc_statuses.add(grpc_statuses);
            sum.counters.add(counters);
        }
        Some(sum)
    }
}

impl MeasuredRecord for LoadRecord {
    type Counter = LoadCounter;
    type Latency = LoadLatency;

    fn measured(&self) -> (&Counters<LoadCounter>, &Latencies<LoadLatency>) {
        (&self.counters, &self.latencies)
    }

    fn without_latencies(self) -> Self {
        Self { latencies: Latencies::default(), ..self }
    }

    fn merged(members: &[(AlignedRun<'_>, &MeasuredPart<Self>)]) -> Option<Self> {
        let loads = || members.iter().filter_map(|(run, part)| Some((run, part.record.as_ref()?)));
        let mut sum = loads().next_back()?.1.clone();
        (sum.running, sum.rate, sum.connections, sum.threads) = (false, 0.0, 0, 0);
        (sum.events, sum.counters) = (EventCounts::default(), Counters::default());
        for (run, record) in loads() {
            let Self {
                running,
                rate,
                resume_percent: _,
                connections,
                threads,
                due_us: _,
                sending_us: _,
                measured_us: _,
                events,
                counters,
                latencies: _,
            } = record;
            if run.is_together {
                sum.running |= running;
                sum.rate += rate;
                sum.connections += connections;
                sum.threads += threads;
            }
            sum.events.add(events);
            sum.counters.add(counters);
        }
        // Rates are divided by the time in which any of the runs measured: simultaneous runs add up, successive ones
        // do not.
        let covered = |of: fn(&Self) -> u64| {
            covered_us(loads().map(|(run, record)| {
                let start_us = run.span_us.1.saturating_sub(record.measured_us);
                (start_us, start_us + of(record))
            }))
        };
        (sum.due_us, sum.sending_us) = (covered(|record| record.due_us), covered(|record| record.sending_us));
        sum.measured_us = covered(|record| record.measured_us);
        Some(sum)
    }
}
