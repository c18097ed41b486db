//! The series of the proxy or the load: totals, intervals, windows.

mod interval;
mod merged;
mod rollup;
pub(in crate::runs) mod window;

use std::collections::VecDeque;
use std::sync::Arc;

pub use self::interval::Interval;
use crate::runs::series::rollup::Rollup;
use crate::runs::series::window::Window;
use records::histogram::{Histograms, SparseHistogram};
use records::kinds::Stamp;
use records::kinds::heap_size::HeapSize as _;
use records::metrics::{Counters, Metric};
use records::values::Latencies;

/// Intervals that a model keeps of each series for a screen, the latest: a quarter of an hour at one a second.
pub const HISTORY: usize = 900;

/// Time that an abridged run keeps of each series up to its last record, in microseconds, for a list of hosts.
pub(in crate::runs) const BRIEF_US: u64 = 10_000_000;

/// Intervals that an abridged run keeps of each series in that time.
pub(in crate::runs) const BRIEF_INTERVALS_MAX: usize = 100;

/// Time up to its last record that a condensed run keeps interval by interval, in microseconds, for findings.
pub(in crate::runs) const UNMERGED_US: u64 = 60_000_000;

/// Latency buckets that a series keeps, eight bytes each: a quarter of an hour of some 9,000 an interval. Of intervals of
/// a minute and more, as long recordings are read, a quarter is enough.
pub(in crate::runs) const BUCKETS_MAX: usize = 8_000_000;
const LONG_US: u64 = 60_000_000;

/// The series of the proxy or the load of one run.
#[derive(Debug)]
pub struct MetricSeries<C: Metric, L: Metric> {
    totals: Counters<C>,
    samples_total: Counters<L>,
    whole: Histograms<L>,
    /// Shared with the windows that hold them.
    intervals: VecDeque<Arc<Interval<C, L>>>,
    /// Latency buckets in all of them.
    buckets: usize,
    /// Intervals before them, if a whole screen's history is kept.
    rollup: Option<Rollup<C, L>>,
    last_us: u64,
    begun: bool,
    history: usize,
    /// True if the latencies of the whole run are not kept.
    is_brief: bool,
}

impl<C: Metric, L: Metric> MetricSeries<C, L> {
    /// The series of a run whose beginning, with all counters at zero, was read at `start_us`; `None` if
    /// reading began in its middle. Keeps the latest `history` intervals.
    pub(in crate::runs) fn new(start_us: Option<u64>, history: usize) -> Self {
        Self {
            totals: Counters::default(),
            samples_total: Counters::default(),
            whole: Histograms::default(),
            intervals: VecDeque::new(),
            buckets: 0,
            rollup: (history >= HISTORY).then(Rollup::default),
            last_us: start_us.unwrap_or(0),
            begun: start_us.is_some(),
            history,
            is_brief: false,
        }
    }

    /// Keeps so many intervals one by one at the most.
    pub(in crate::runs) fn keeping(self, history: usize) -> Self {
        Self { history: self.history.min(history), ..self }
    }

    /// Adds the record of an interval. If there is a gap after the previous interval, returns that interval's end.
    pub(in crate::runs) fn apply(
        &mut self,
        stamp: &Stamp,
        counters: &Counters<C>,
        latencies: &Latencies<L>,
    ) -> Option<u64> {
        // Without a record before it nothing is known of the counters: they cover no time, which is not a zero.
        let start_us = if self.begun { self.last_us } else { stamp.mono_us };
        let delta = if self.begun { counters.since(&self.totals) } else { Counters::default() };
        let gap_from_us = Some(start_us).filter(|end_us| self.begun && stamp.is_after_gap(*end_us));
        let after_loss = !self.begun || gap_from_us.is_some();
        self.add((start_us, stamp.mono_us), after_loss, delta, counters, latencies);
        gap_from_us
    }

    /// Adds a record that covers only its own interval, in a series that does not cover all time: an idle route has no
    /// records. `after_loss` if a record before it may have been lost.
    pub(in crate::runs) fn apply_alone(
        &mut self,
        stamp: &Stamp,
        counters: &Counters<C>,
        latencies: &Latencies<L>,
        after_loss: bool,
    ) {
        let delta = if self.begun { counters.since(&self.totals) } else { Counters::default() };
        let after_loss = after_loss || !self.begun;
        let own_start_us = stamp.mono_us.saturating_sub(stamp.interval_us);
        let start_us = match (self.begun, after_loss) {
            (false, _) => stamp.mono_us,
            (true, true) => self.last_us,
            (true, false) => own_start_us.max(self.last_us),
        };
        if delta.is_zero() && stamp.interval_us == 0 {
            self.totals = *counters;
            return;
        }
        self.add((start_us, stamp.mono_us), after_loss, delta, counters, latencies);
    }

    fn add(
        &mut self,
        span_us: (u64, u64),
        after_loss: bool,
        delta: Counters<C>,
        counters: &Counters<C>,
        latencies: &Latencies<L>,
    ) {
        for (class, latency) in latencies.iter() {
            if !self.is_brief {
                self.whole[class].add_sparse(&latency.interval);
            }
            self.samples_total[class] = latency.samples_total;
        }
        self.totals = *counters;
        self.last_us = span_us.1;
        self.begun = true;
        let latencies = latencies.iter().map(|(_, latency)| latency.interval.clone()).collect();
        self.keep(Interval::new(span_us, after_loss, delta, latencies));
    }

    /// Keeps an interval. The oldest go to the rollup when there are too many, or too many buckets.
    fn keep(&mut self, interval: Interval<C, L>) {
        let buckets_max = if interval.length_us() < LONG_US { BUCKETS_MAX } else { BUCKETS_MAX / 4 };
        self.buckets += interval.buckets();
        self.intervals.push_back(Arc::new(interval));
        while self.intervals.len() > self.history || (self.buckets > buckets_max && self.intervals.len() > 1)
        {
            self.roll_up_oldest();
        }
    }

    fn roll_up_oldest(&mut self) {
        if let Some(oldest) = self.intervals.pop_front() {
            self.buckets -= oldest.buckets();
            self.rollup.iter_mut().for_each(|rollup| rollup.add(&oldest));
        }
    }

    /// The series for reading on from the middle of the run, with the totals of all records read. Later records have
    /// their own totals.
    pub(in crate::runs) fn resumed(&self, history: usize) -> Self {
        Self { totals: self.totals, ..Self::new(None, history) }
    }

    /// Keeps intervals of at least `period_us` before the last minute, if any, and latencies of the whole run in less memory.
    pub(in crate::runs) fn condense(&mut self, period_us: u64) {
        self.rollup.iter_mut().for_each(|rollup| rollup.widen(period_us));
        let from_us = self.last_us.saturating_sub(UNMERGED_US);
        while self.intervals.front().is_some_and(|interval| interval.end_us <= from_us) {
            self.roll_up_oldest();
        }
        self.intervals.shrink_to_fit();
        self.whole.pack();
    }

    /// Keeps the totals and the last ten seconds only.
    pub(in crate::runs) fn abridge(&mut self) {
        self.history = BRIEF_INTERVALS_MAX;
        let from_us = self.last_us.saturating_sub(BRIEF_US);
        let early = self.intervals.partition_point(|interval| interval.middle_us() <= from_us);
        let too_many = self.intervals.len().saturating_sub(BRIEF_INTERVALS_MAX);
        self.intervals.drain(..early.min(self.intervals.len().saturating_sub(1)).max(too_many));
        if self.intervals.capacity() > 2 * BRIEF_INTERVALS_MAX {
            self.intervals.shrink_to_fit();
        }
        self.buckets = self.intervals.iter().map(|interval| interval.buckets()).sum();
        self.rollup = None;
        self.whole = Histograms::default();
        self.is_brief = true;
    }

    /// Its size in memory, in bytes.
    pub(in crate::runs) fn bytes(&self) -> usize {
        let intervals = self.intervals.len() * Interval::<C, L>::bytes_without_buckets();
        let buckets = self.buckets * SparseHistogram::BUCKET_BYTES;
        intervals + buckets + self.rollup.as_ref().map_or(0, Rollup::bytes) + self.whole.heap_bytes()
    }

    /// Adds the final totals, and the histograms of the whole run in place of those gathered here.
    pub(in crate::runs) fn finish(&mut self, counters: &Counters<C>, latencies: &Latencies<L>) {
        self.totals = *counters;
        self.whole.clear();
        for (class, latency) in latencies.iter() {
            if !self.is_brief {
                self.whole[class].add_sparse(&latency.interval);
            }
            self.samples_total[class] = latency.samples_total;
        }
    }

    /// Totals of the run, up to the last record read.
    pub fn totals(&self) -> &Counters<C> {
        &self.totals
    }

    /// The totals at a moment of the monotonic clock, back to the oldest interval that is kept.
    pub fn totals_at(&self, us: u64) -> Counters<C> {
        let later = self.timeline().rev().take_while(|interval| interval.place_us() > us);
        later.fold(self.totals, |totals, interval| totals.since(&interval.counters))
    }

    /// Samples that were counted in the run, whether or not their histograms were read.
    pub fn samples_total(&self, class: L) -> u64 {
        self.samples_total[class]
    }

    /// The latencies of the whole run, as far as read.
    pub fn whole(&self) -> &Histograms<L> {
        &self.whole
    }

    /// The kept intervals, oldest first.
    pub fn intervals(&self) -> impl DoubleEndedIterator<Item = &Arc<Interval<C, L>>> + ExactSizeIterator {
        self.intervals.iter()
    }

    /// All kept intervals, oldest first: before [`Self::intervals`], intervals of ten seconds, more if their latencies have
    /// many buckets or the run is condensed, with latencies to two significant digits.
    pub fn timeline(&self) -> impl DoubleEndedIterator<Item = &Arc<Interval<C, L>>> {
        self.rollup.iter().flat_map(Rollup::iter).chain(&self.intervals)
    }

    /// `CLOCK_MONOTONIC` of the last record, in microseconds.
    pub fn last_us(&self) -> u64 {
        self.last_us
    }

    /// The intervals that end in the `span_us` microseconds up to the last record.
    pub fn window(&self, span_us: u64) -> Window<C, L> {
        self.window_until(self.last_us, span_us)
    }

    /// The intervals of the `span_us` microseconds up to `end_us`; see [`Window::slide`] for a window that is read
    /// repeatedly.
    pub fn window_until(&self, end_us: u64, span_us: u64) -> Window<C, L> {
        let mut window = Window::default();
        window.slide(self, end_us, span_us);
        window
    }
}
