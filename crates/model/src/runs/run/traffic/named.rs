//! The named parts of a run's traffic: its upstreams, and the routes of HTTP mode.

use std::collections::{BTreeMap, VecDeque};

use crate::runs::run::Run;
use crate::runs::run::aligned::AlignedRun;
use crate::runs::run::retention::SeriesStart;
use crate::runs::series::MetricSeries;
use crate::runs::series::window::Window;
use records::kinds::heap_size::HeapSize as _;
use records::kinds::{NamedRecord, RouteRecord, Stamp, UpstreamRecord};
use records::metrics::Counters;

/// Parts of a kind that are kept of a run. The writer distinguishes fewer; further ones of a hostile journal are
/// ignored.
const NAMED_MAX: usize = 256;
/// Records with another state that are kept of each part.
const STATES_MAX: usize = 32;
/// Intervals kept of each part one by one: five minutes with one a second, and longer where many parts take turns.
const HISTORY_MAX: usize = 300;

/// A record of which a run keeps a table.
pub trait NamedPart: NamedRecord {
    fn table(run: &Run) -> &NamedTable<Self>;

    /// Changed parts whose record was deferred in the last interval.
    fn deferred(run: &Run) -> u64;

    /// Whether it tells another state of the part than an earlier record; false for a part without states.
    fn has_other_state(&self, _earlier: &Self) -> bool {
        false
    }

    /// Adds what is known of a part of this name in another run, but for counters and latencies.
    fn merge(&mut self, _other: &Self) {}
}

impl NamedPart for RouteRecord {
    fn table(run: &Run) -> &NamedTable<Self> {
        &run.routes
    }

    fn deferred(run: &Run) -> u64 {
        run.http.record.as_ref().map_or(0, |record| record.routes_deferred)
    }
}

impl NamedPart for UpstreamRecord {
    fn table(run: &Run) -> &NamedTable<Self> {
        &run.upstreams
    }

    fn deferred(run: &Run) -> u64 {
        run.proxy.upstreams_deferred
    }

    fn has_other_state(&self, earlier: &Self) -> bool {
        (self.state, &self.reason) != (earlier.state, &earlier.reason) || earlier.state_us == 0
    }

    /// Connections of simultaneous runs add up, and an upstream that is down for one of them is down.
    fn merge(&mut self, other: &Self) {
        self.open += other.open;
        self.idle += other.idle;
        if other.state > self.state || self.state_us == 0 {
            (self.state, self.state_us) = (other.state, other.state_us);
            self.reason.clone_from(&other.reason);
        }
    }
}

/// A part's counts in some seconds. Each latency class has its own samples.
pub type NamedWindow<R> = Window<<R as NamedRecord>::Counter, <R as NamedRecord>::Latency>;
/// A part's intervals and its latencies of the whole run.
pub type NamedSeries<R> = MetricSeries<<R as NamedRecord>::Counter, <R as NamedRecord>::Latency>;

pub type RouteStats = NamedStats<RouteRecord>;
pub type RouteWindow = NamedWindow<RouteRecord>;
pub type UpstreamStats = NamedStats<UpstreamRecord>;
pub type UpstreamWindow = NamedWindow<UpstreamRecord>;

#[derive(Debug)]
pub struct NamedStats<R: NamedRecord> {
    /// Its last record, without latencies.
    record: R,
    /// When that was made, `CLOCK_MONOTONIC` in microseconds.
    recorded_us: u64,
    series: NamedSeries<R>,
    /// The records that told another state, without latencies, and when they were made; oldest first.
    states: VecDeque<(u64, R)>,
    /// Records of the run that were known to be lost when its last record was read.
    lost_before: u64,
}

impl<R: NamedRecord> NamedStats<R> {
    /// The name by which records have it.
    pub fn name(&self) -> &str {
        self.record.name()
    }

    /// Its last record, without latencies.
    pub fn record(&self) -> &R {
        &self.record
    }

    /// The latest record that told another state by a moment of the monotonic clock, and when it was made.
    pub fn state_at(&self, us: u64) -> Option<&(u64, R)> {
        self.states.iter().rev().find(|(told_us, _)| *told_us <= us)
    }

    /// When [`Self::record`] was made, `CLOCK_MONOTONIC` in microseconds.
    pub fn recorded_us(&self) -> u64 {
        self.recorded_us
    }

    /// Totals of the run, up to its last record.
    pub fn totals(&self) -> &Counters<R::Counter> {
        self.series.totals()
    }

    /// Its intervals and its latencies of the whole run. While nothing of it is counted it has no intervals, so they do
    /// not touch each other; each covers only time that its own record does.
    pub fn series(&self) -> &NamedSeries<R> {
        &self.series
    }
}

/// The named parts of a run, by their names.
#[derive(Debug)]
pub struct NamedTable<R: NamedRecord>(BTreeMap<String, NamedStats<R>>);

impl<R: NamedRecord> Default for NamedTable<R> {
    fn default() -> Self {
        Self(BTreeMap::default())
    }
}

impl<R: NamedPart> NamedTable<R> {
    /// Adds a record; `lost` records of the run are known to be lost by then.
    pub(in crate::runs) fn apply(&mut self, stamp: &Stamp, mut record: R, begun: SeriesStart, lost: u64) {
        if !self.0.contains_key(record.name()) && self.0.len() >= NAMED_MAX {
            return;
        }
        let latencies = std::mem::take(record.latencies_mut());
        let part = self.0.entry(record.name().to_owned()).or_insert_with(|| NamedStats {
            record: R::default(),
            recorded_us: 0,
            states: VecDeque::new(),
            series: begun.series().keeping(HISTORY_MAX),
            lost_before: 0,
        });
        if record.is_last() {
            part.series.finish(record.counters(), &latencies);
        } else {
            // A lost record may have been of this part, so its counters may cover more time than the record.
            let after_loss = lost > std::mem::replace(&mut part.lost_before, lost);
            part.series.apply_alone(stamp, record.counters(), &latencies, after_loss);
        }
        let is_new = match part.states.back() {
            Some((_, told)) => record.has_other_state(told),
            None => record.has_other_state(&R::default()),
        };
        if is_new {
            if part.states.len() == STATES_MAX {
                part.states.pop_front();
            }
            part.states.push_back((stamp.mono_us, record.clone()));
        }
        (part.record, part.recorded_us) = (record, stamp.mono_us);
    }

    /// The parts that were idle after a moment, with their totals, and those with a state at that moment. Others are read
    /// again.
    pub(in crate::runs) fn joined_at(&self, us: u64, history: usize) -> Self {
        let joined = self.0.iter().filter_map(|(name, part)| {
            let is_idle = part.series.last_us() <= us;
            let states: VecDeque<_> =
                part.states.iter().filter(|(told_us, _)| *told_us <= us).cloned().collect();
            let told = states.back().cloned();
            let last = (part.recorded_us, part.record.clone());
            let (recorded_us, record) = if is_idle { last } else { told? };
            let series = part.series.resumed(history).keeping(HISTORY_MAX);
            Some((name.clone(), NamedStats { record, recorded_us, states, series, lost_before: 0 }))
        });
        Self(joined.collect())
    }

    pub(in crate::runs) fn condense(&mut self, period_us: u64) {
        self.0.values_mut().for_each(|part| part.series.condense(period_us));
    }

    pub(in crate::runs) fn heap_bytes(&self) -> usize {
        let part = |(name, part): (&String, &NamedStats<R>)| {
            let states = part.states.iter().map(|(_, told)| size_of::<(u64, R)>() + told.heap_bytes());
            size_of::<NamedStats<R>>()
                + name.heap_bytes()
                + part.record.heap_bytes()
                + states.sum::<usize>()
                + part.series.bytes()
        };
        self.0.iter().map(part).sum()
    }

    /// All parts, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &NamedStats<R>> {
        self.0.values()
    }

    pub fn get(&self, name: &str) -> Option<&NamedStats<R>> {
        self.0.get(name)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(in crate::runs) fn merged(members: &[(AlignedRun<'_>, &Self)]) -> Self {
        let mut merged = Self::default();
        let names = members.iter().flat_map(|(_, table)| table.0.keys());
        for name in names {
            if merged.0.len() >= NAMED_MAX || merged.0.contains_key(name) {
                continue;
            }
            let all =
                members.iter().map(|(run, table)| (table.get(name).map(NamedStats::series), run.shift_us));
            if let Some(series) = MetricSeries::merged(all) {
                let mut record = R::named(name.clone());
                let mut recorded_us = 0;
                let together = members.iter().filter(|(run, _)| run.is_together);
                for (run, part) in together.filter_map(|(run, table)| Some((run, table.get(name)?))) {
                    record.merge(&part.record);
                    recorded_us = recorded_us.max(run.shifted_us(part.recorded_us));
                }
                let states = VecDeque::from([(recorded_us, record.clone())]);
                merged
                    .0
                    .insert(name.clone(), NamedStats { record, recorded_us, states, series, lost_before: 0 });
            }
        }
        merged
    }
}

impl Run {
    /// Moves a part's window to the `span_us` microseconds up to `end_us` (`CLOCK_MONOTONIC`), and sets the time that it
    /// covers: [`Window::rate`] is right also for a part of which nothing was counted in some of it. While its record may
    /// have been deferred or lost, the window ends with the part's last record, for up to 10 s.
    pub fn slide_named<R: NamedPart>(
        &self,
        part: &NamedStats<R>,
        window: &mut NamedWindow<R>,
        end_us: u64,
        span_us: u64,
    ) {
        let last_us = part.series.last_us();
        // Intervals of several runs lie on a grid, which ends a little earlier.
        let newest = self.proxy().and_then(|series| series.timeline().next_back());
        let now_us = newest.map_or(last_us, |interval| interval.end_us);
        let may_be_missing = R::deferred(self) > 0 || self.clients.has_new_losses(self.reading.lost());
        let is_recent = now_us.saturating_sub(last_us) <= crate::runs::run::DEFERRED_US_MAX;
        let known_us = if may_be_missing && is_recent { last_us } else { now_us };
        let end_us = end_us.min(known_us);
        let from_us = end_us.saturating_sub(span_us);
        window.slide_sparse(&part.series, end_us, span_us);
        let began_us = self.proxy().and_then(|series| Some(series.timeline().next()?.start_us));
        let from_us = from_us.max(began_us.unwrap_or(from_us)).min(end_us);
        let covered_from_us = window.covered_from_us(&part.series, from_us, end_us);
        window.span_us = end_us.saturating_sub(covered_from_us);
    }

    /// A part over the `span_us` microseconds up to `end_us`; see [`Self::slide_named`].
    pub fn named_window<R: NamedPart>(
        &self,
        part: &NamedStats<R>,
        end_us: u64,
        span_us: u64,
    ) -> NamedWindow<R> {
        let mut window = NamedWindow::<R>::default();
        self.slide_named(part, &mut window, end_us, span_us);
        window
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::insight::testing::RunBuilder;
    use records::kinds::Body;
    use records::metrics::UpstreamCounter;

    #[test]
    fn a_window_reaches_back_beyond_the_intervals_that_are_kept_one_by_one() {
        let mut recorder = RunBuilder::begun(&[]);
        let mut record = UpstreamRecord { upstream: "unix:/run/a".into(), ..UpstreamRecord::default() };
        for second in 0..800 {
            recorder.seconds(1, |_| {});
            // Idle in between.
            if !(200..500).contains(&second) {
                record.counters[UpstreamCounter::Exchanges] += 10;
                recorder.write(Body::Upstream(Box::new(record.clone())));
            }
        }
        let run = recorder.run();
        let upstream = run.upstreams().get("unix:/run/a").unwrap();
        let rate = |ago_s: u64, span_s: u64| {
            let end_us = run.last_us() - ago_s * 1_000_000;
            run.named_window(upstream, end_us, span_s * 1_000_000).rate(UpstreamCounter::Exchanges)
        };
        for (ago_s, span_s, expected) in
            [(0, 100, 10.0), (0, 600, 5.0), (0, 800, 6.25), (400, 60, 0.0), (620, 60, 10.0), (600, 10, 10.0)]
        {
            let rate = rate(ago_s, span_s).unwrap();
            assert!((rate - expected).abs() <= expected * 0.05, "{ago_s} s ago over {span_s} s: {rate}");
        }
    }
}
