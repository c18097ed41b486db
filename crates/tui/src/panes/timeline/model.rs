//! One class of latencies over time, column by column.

use std::collections::{VecDeque, vec_deque};

use model::runs::{Experiment, Interval, Marker, MetricSeries, Run};
use records::histogram::SparseHistogram;
use records::ids::RunId;
use records::kinds::Arm;
use records::metrics::{
    CpuGroup, HttpLatency, LatencyClass, LoadCounter, LoadLatency, Metric, Percentile, ProxyCounter,
    ProxyLatency, RequestFailure, TimeResolution,
};

use super::levels::{self, Levels};
use crate::view_model::mark_comparison::events_of;

/// The values that an experiment had in force in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnArm {
    One(Arm),
    /// The column is longer than a block.
    Both,
}

/// The classes that have a timeline, in the order in which a key goes through them.
const CLASSES: &[LatencyClass] = &[
    LatencyClass::Http(HttpLatency::FirstByte),
    LatencyClass::Http(HttpLatency::Upstream),
    LatencyClass::Http(HttpLatency::Request),
    LatencyClass::Http(HttpLatency::Queue),
    LatencyClass::Load(LoadLatency::Response),
    LatencyClass::Load(LoadLatency::Service),
    LatencyClass::Proxy(ProxyLatency::Exchange),
    LatencyClass::Proxy(ProxyLatency::HandshakeFull),
    LatencyClass::Proxy(ProxyLatency::HandshakeResumed),
    LatencyClass::Proxy(ProxyLatency::ComputeFull),
    LatencyClass::Proxy(ProxyLatency::ComputeResumed),
];

/// The class that matters most of those with samples: what a client waits for in HTTP mode, which a log does not have, else
/// what the load waits for, else what the upstream takes.
pub(crate) fn first_class(run: &Run) -> LatencyClass {
    let found = CLASSES.iter().copied().find(|&class| has_samples(class, run));
    found.unwrap_or(LatencyClass::Proxy(ProxyLatency::Exchange))
}

/// The next class with samples.
pub(crate) fn next_class(class: LatencyClass, run: &Run) -> LatencyClass {
    let at = CLASSES.iter().position(|other| *other == class).unwrap_or(0);
    let others = (1..=CLASSES.len()).map(|step| CLASSES[(at + step) % CLASSES.len()]);
    others.clone().find(|&other| has_samples(other, run)).unwrap_or(class)
}

fn has_samples(class: LatencyClass, run: &Run) -> bool {
    match class {
        LatencyClass::Proxy(class) => run.proxy().is_some_and(|series| series.samples_total(class) > 0),
        LatencyClass::Tls(class) => run.tls().is_some_and(|series| series.samples_total(class) > 0),
        LatencyClass::Http(class) => run.http().is_some_and(|series| series.samples_total(class) > 0),
        LatencyClass::Load(class) => run.load().is_some_and(|series| series.samples_total(class) > 0),
    }
}

/// The end of the last interval, in microseconds.
fn end_of_series(class: LatencyClass, run: &Run) -> u64 {
    match class {
        LatencyClass::Proxy(_) => run.proxy().map_or(0, MetricSeries::last_us),
        LatencyClass::Tls(_) => run.tls().map_or(0, MetricSeries::last_us),
        LatencyClass::Http(_) => run.http().map_or(0, MetricSeries::last_us),
        LatencyClass::Load(_) => run.load().map_or(0, MetricSeries::last_us),
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct TimelineColumn {
    /// True if records cover any of its time; else it is blank.
    pub(crate) is_covered: bool,
    /// Samples by level.
    pub(crate) levels: Levels,
    /// Samples.
    pub(crate) n: u64,
    /// Time of which the samples are, in microseconds: older records are kept in stretches that may be longer than a
    /// column.
    pub(crate) span_us: u64,
    /// The samples of that time: all but those of intervals after lost records, whose length is not known.
    timed_n: u64,
    /// At each of [`Percentile::TIMELINE`], in nanoseconds.
    pub(crate) quantiles: [Option<u64>; 4],
    /// Exact maximum in nanoseconds; 0 without samples.
    pub(crate) max_ns: u64,
    pub(crate) resolution: TimeResolution,
    pub(crate) counted: ColumnCounts,
}

impl TimelineColumn {
    /// Returns the samples a second; `None` where nothing is known.
    pub(crate) fn rate(&self) -> Option<f64> {
        self.per_second(self.timed_n)
    }

    /// Returns the failures a second; `None` where nothing is known.
    pub(crate) fn failed_rate(&self) -> Option<f64> {
        self.per_second(self.counted.failed)
    }

    /// Returns the share of resumed handshakes; `None` without handshakes.
    pub(crate) fn resumed_share(&self) -> Option<f64> {
        let [full, resumed] = self.counted.handshakes;
        let all = full.saturating_add(resumed);
        (all > 0).then(|| resumed as f64 / all as f64)
    }

    fn per_second(&self, n: u64) -> Option<f64> {
        (self.span_us > 0).then(|| n as f64 * 1e6 / self.span_us as f64)
    }
}

/// What was counted in the time of a column, besides the samples of its class.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ColumnCounts {
    /// Failed requests of HTTP mode, else failed connections of the proxy, else failed requests of the load; without
    /// those after lost records, whose time is not known.
    pub(crate) failed: u64,
    /// Full and resumed handshakes.
    pub(crate) handshakes: [u64; 2],
    /// Cores that the proxy's workers kept busy.
    pub(crate) proxy_cores: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TimelineKey {
    run: RunId,
    /// The number of the reading: a run may be read several times.
    reading: u64,
    class: LatencyClass,
    column_us: u64,
}

/// The columns up to a moment, oldest first. Kept from one look to the next: a column whose time has been read does not
/// change any more.
#[derive(Debug, Default)]
pub(crate) struct LatencyTimeline {
    of: Option<TimelineKey>,
    /// Where the first column ever would begin.
    origin_us: u64,
    /// Number of the first column that is kept, counted from there.
    first: u64,
    /// The end of the last interval that was read: no column before it changes any more.
    settled_us: u64,
    columns: VecDeque<TimelineColumn>,
}

impl LatencyTimeline {
    /// Brings it to `columns` columns up to the one that holds `until_us`. A run may have been read several times: the
    /// number says which reading it is.
    pub(crate) fn refresh(
        &mut self,
        (run, reading): (&Run, u64),
        class: LatencyClass,
        column_us: u64,
        until_us: u64,
        columns: usize,
    ) {
        let of = TimelineKey { run: run.id(), reading, class, column_us: column_us.max(1) };
        if self.of != Some(of) {
            *self = Self { of: Some(of), origin_us: run.began_us(), ..Self::default() };
        }
        let last = self.number(until_us.saturating_sub(1));
        let first = (last + 1).saturating_sub(columns.max(1) as u64);
        // Columns after the last settled moment are computed again: the newest one was still growing, and of others the
        // interval's record was late.
        let settled = self.number(self.settled_us);
        self.settled_us = end_of_series(class, run);
        let known_until = (self.first + self.columns.len() as u64).saturating_sub(1).min(settled);
        let is_near = first >= self.first && first <= known_until;
        if !is_near {
            self.columns.clear();
            self.first = first;
        }
        while self.first < first {
            self.columns.pop_front();
            self.first += 1;
        }
        self.columns.truncate((last + 1 - first) as usize);
        let fresh = if is_near { known_until.max(first) } else { first };
        for number in fresh..=last {
            let at = (number - first) as usize;
            self.columns.resize_with((at + 1).max(self.columns.len()), TimelineColumn::default);
            self.columns[at] = self.column(run, number);
        }
        self.leave_out_unread(last);
    }

    /// Leaves out the newest columns while no interval that is read belongs to them: they are not missing yet.
    fn leave_out_unread(&mut self, last: u64) {
        let read = self.number(self.settled_us);
        if last > read + 1 {
            return;
        }
        let kept = read.saturating_sub(self.first) as usize;
        while self.columns.len() > kept && self.columns.back().is_some_and(|column| !column.is_covered) {
            self.columns.pop_back();
        }
    }

    fn column(&self, run: &Run, number: u64) -> TimelineColumn {
        let class = self.of.map(|of| of.class);
        let resolution = class.map(|class| run.resolution(class)).unwrap_or_default();
        let column = match class {
            Some(LatencyClass::Proxy(class)) => {
                run.proxy().map(|series| self.column_of(series, class, number))
            }
            Some(LatencyClass::Tls(class)) => run.tls().map(|series| self.column_of(series, class, number)),
            Some(LatencyClass::Http(class)) => run.http().map(|series| self.column_of(series, class, number)),
            Some(LatencyClass::Load(class)) => run.load().map(|series| self.column_of(series, class, number)),
            None => None,
        };
        TimelineColumn { resolution, counted: self.counted(run, number), ..column.unwrap_or_default() }
    }

    fn column_of<C: Metric, L: Metric>(
        &self,
        series: &MetricSeries<C, L>,
        class: L,
        number: u64,
    ) -> TimelineColumn {
        let (mut column, mut taken) = (TimelineColumn::default(), Vec::new());
        for interval in self.intervals(series, number) {
            column.is_covered = true;
            let latency = interval.latency(class);
            if !interval.after_loss {
                column.span_us += interval.length_us();
                column.timed_n += latency.count();
            }
            taken.push(latency);
        }
        let latency = SparseHistogram::merged(taken);
        levels::add(&mut column.levels, &latency);
        column.n = latency.count();
        column.quantiles = Percentile::TIMELINE.map(|Percentile { q, .. }| latency.quantile_ns(q));
        column.max_ns = latency.max_ns();
        column
    }

    /// Returns the intervals that belong to a column, newest first: those within it, or the one around it.
    fn intervals<'s, C: Metric, L: Metric>(
        &self,
        series: &'s MetricSeries<C, L>,
        number: u64,
    ) -> impl Iterator<Item = &'s Interval<C, L>> {
        let ([from_us, to_us], column_us) = (self.bounds(number), self.column_us());
        let newest_first = series.timeline().rev().skip_while(move |interval| interval.start_us > to_us);
        let near = newest_first.take_while(move |interval| interval.end_us > from_us);
        near.map(|interval| &**interval).filter(move |interval| {
            let is_within = (from_us..to_us).contains(&interval.place_us());
            let overlap_us = interval.end_us.min(to_us).saturating_sub(interval.start_us.max(from_us));
            let is_around =
                !interval.after_loss && interval.length_us() > column_us && overlap_us * 2 >= column_us;
            is_within || is_around
        })
    }

    fn counted(&self, run: &Run, number: u64) -> ColumnCounts {
        let [from_us, to_us] = self.bounds(number);
        let cpu = run.cpu_until(to_us, CpuGroup::Proxy, to_us - from_us);
        let mut counted = ColumnCounts { proxy_cores: cpu.map(|cpu| cpu.cores), ..ColumnCounts::default() };
        if let Some(series) = run.proxy() {
            for interval in self.intervals(series, number) {
                let of = |counter: ProxyCounter| interval.counters[counter];
                counted.failed += if interval.after_loss { 0 } else { of(ProxyCounter::Failed) };
                counted.handshakes[0] += of(ProxyCounter::HandshakesFull);
                counted.handshakes[1] += of(ProxyCounter::HandshakesResumed);
            }
        } else if let Some(series) = run.load() {
            for interval in self.intervals(series, number) {
                let of = |counter: LoadCounter| interval.counters[counter];
                counted.failed += if interval.after_loss { 0 } else { of(LoadCounter::Failed) };
                counted.handshakes[0] += of(LoadCounter::HandshakesFull);
                counted.handshakes[1] += of(LoadCounter::HandshakesResumed);
            }
        }
        if let Some(series) = run.http() {
            let failures = RequestFailure::ALL.map(|(_, counter)| counter);
            let of = |interval: &Interval<_, _>| interval.counters.sum(&failures);
            counted.failed =
                self.intervals(series, number).filter(|interval| !interval.after_loss).map(of).sum();
        }
        counted
    }

    fn number(&self, us: u64) -> u64 {
        us.saturating_sub(self.origin_us) / self.column_us()
    }

    /// Beginning and end of a column, by its number.
    fn bounds(&self, number: u64) -> [u64; 2] {
        let from_us = self.origin_us.saturating_add(number.saturating_mul(self.column_us()));
        [from_us, from_us.saturating_add(self.column_us())]
    }

    /// The end of the column that holds a moment, whether or not it is among those kept.
    pub(crate) fn snap(&self, us: u64) -> u64 {
        self.bounds(self.number(us.saturating_sub(1)))[1]
    }

    pub(crate) fn column_us(&self) -> u64 {
        self.of.map_or(1, |of| of.column_us)
    }

    pub(crate) fn class(&self) -> Option<LatencyClass> {
        self.of.map(|of| of.class)
    }

    /// Oldest first.
    pub(crate) fn columns(&self) -> &VecDeque<TimelineColumn> {
        &self.columns
    }

    /// The columns that begin before a moment, oldest first.
    pub(crate) fn columns_before(&self, us: u64) -> vec_deque::Iter<'_, TimelineColumn> {
        let begun = us.saturating_sub(self.origin_us).div_ceil(self.column_us()).saturating_sub(self.first);
        self.columns.range(..self.columns.len().min(usize::try_from(begun).unwrap_or(usize::MAX)))
    }

    /// The place of the column that holds a moment, if it is among them. A moment belongs to what ends with it.
    pub(crate) fn place(&self, us: u64) -> Option<usize> {
        let at = self.number(us.saturating_sub(1)).checked_sub(self.first)?;
        usize::try_from(at).ok().filter(|&at| at < self.columns.len())
    }

    /// The end of the column at a place.
    pub(crate) fn end_us(&self, at: usize) -> u64 {
        self.bounds(self.first + at as u64)[1]
    }

    /// Marks and changes within the columns, with their places, oldest first.
    pub(crate) fn markers(&self, run: &Run) -> Vec<(usize, Marker)> {
        let placed = |marker: &Marker| Some((self.place(marker.mono_us + 1)?, marker.clone()));
        events_of(run).filter_map(placed).collect()
    }

    /// The value that an experiment had in force in the middle of each column; empty without an experiment.
    pub(crate) fn arms(&self, run: &Run) -> Vec<Option<ColumnArm>> {
        let (mut arms, column_us) = (vec![None; self.columns.len()], self.column_us());
        let Some(last) = arms.len().checked_sub(1) else { return arms };
        let (first_us, end_us) = (self.bounds(self.first)[0], self.end_us(last));
        for stretch in run.experiments().flat_map(Experiment::stretches) {
            let (from_us, to_us) = (stretch.start_us.max(first_us), stretch.end_us.min(end_us));
            if from_us >= to_us {
                continue;
            }
            let is_short = stretch.end_us - stretch.start_us < column_us;
            let arm = if is_short { ColumnArm::Both } else { ColumnArm::One(stretch.arm) };
            let places =
                [from_us + column_us / 2, to_us.saturating_sub(column_us / 2)].map(|us| self.place(us));
            if let [Some(from), Some(to)] = places {
                arms.iter_mut().take(to + 1).skip(from.min(to)).for_each(|cell| *cell = Some(arm));
            }
        }
        if arms.iter().all(Option::is_none) { Vec::new() } else { arms }
    }
}
