//! What the load of a run counted.

use super::merged::{Member, covered_us};
use super::retention::SeriesStart;
use crate::metrics::Counters;
use crate::metrics::{LoadCounter, LoadLatency};
use crate::model::series::MetricSeries;
use crate::record::event_counts::EventCounts;
use crate::record::heap_size::HeapSize as _;
use crate::record::{Latencies, LoadRecord, Stamp};

/// The load's part of a run.
#[derive(Debug, Default)]
pub(super) struct LoadPart {
    /// `None` in a run without a load.
    pub(super) series: Option<MetricSeries<LoadCounter, LoadLatency>>,
    /// Its last record; without latencies while the run lasts.
    pub(super) record: Option<LoadRecord>,
}

impl LoadPart {
    /// Takes in the record of an interval. If it leaves a gap after the one before, gives the end of that one.
    pub(super) fn apply(&mut self, stamp: &Stamp, mut record: LoadRecord, begun: SeriesStart) -> Option<u64> {
        let series = self.series.get_or_insert_with(|| begun.series());
        let gap_from_us = series.apply(stamp, &record.counters, &record.latencies);
        record.latencies = Latencies::default();
        self.record = Some(record);
        gap_from_us
    }

    /// Takes in the final record.
    pub(super) fn finish(&mut self, record: &LoadRecord, begun: SeriesStart) {
        let series = self.series.get_or_insert_with(|| begun.series());
        series.finish(&record.counters, &record.latencies);
        self.record = Some(record.clone());
    }

    pub(super) fn merged(members: &[Member<'_>]) -> Self {
        let series = members.iter().map(|member| (member.run.load.series.as_ref(), member.shift_us));
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
}

fn merged_record(members: &[Member<'_>]) -> Option<LoadRecord> {
    let loads = || members.iter().filter_map(|member| Some((member, member.run.load.record.as_ref()?)));
    let mut sum = loads().next_back()?.1.clone();
    (sum.running, sum.rate, sum.connections, sum.threads) = (false, 0.0, 0, 0);
    (sum.tally, sum.counters) = (EventCounts::default(), Counters::default());
    for (member, record) in loads() {
        let LoadRecord {
            running,
            rate,
            resume_percent: _,
            connections,
            threads,
            due_us: _,
            sending_us: _,
            measured_us: _,
            tally,
            counters,
            latencies: _,
        } = record;
        if member.is_together {
            sum.running |= running;
            sum.rate += rate;
            sum.connections += connections;
            sum.threads += threads;
        }
        sum.tally.add(tally);
        sum.counters.add(counters);
    }
    // Rates are over the time in which any of them measured: at the same time they add up, one after the other not.
    let covered = |of: fn(&LoadRecord) -> u64| {
        covered_us(loads().map(|(member, record)| {
            let start_us = member.span_us().1.saturating_sub(record.measured_us);
            (start_us, start_us + of(record))
        }))
    };
    (sum.due_us, sum.sending_us) = (covered(|record| record.due_us), covered(|record| record.sending_us));
    sum.measured_us = covered(|record| record.measured_us);
    Some(sum)
}

impl LoadRecord {
    /// Counts from an earlier record on.
    pub(crate) fn rebase(&mut self, before: &Self) {
        let Self {
            running: _,
            rate: _,
            resume_percent: _,
            connections: _,
            threads: _,
            due_us,
            sending_us,
            measured_us,
            tally,
            counters,
            latencies,
        } = self;
        *due_us = due_us.saturating_sub(before.due_us);
        *sending_us = sending_us.saturating_sub(before.sending_us);
        *measured_us = measured_us.saturating_sub(before.measured_us);
        *tally = tally.since(&before.tally);
        *counters = counters.since(&before.counters);
        latencies.rebase(&before.latencies);
    }

    /// The same without the latencies of its interval.
    pub(crate) fn without_intervals(&self) -> Self {
        Self { latencies: self.latencies.without_intervals(), tally: self.tally.clone(), ..*self }
    }

    /// Takes in the record before it, to cover the time of both: all but the latencies are totals or present values.
    pub(crate) fn downsample(&mut self, earlier: &Self) {
        self.latencies.downsample(&earlier.latencies);
    }
}
