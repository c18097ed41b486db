//! The series of one measured part, proxy or load: totals, intervals, windows.

use std::collections::VecDeque;

use crate::histogram::{Distribution, Histograms};
use crate::metric::{Counters, Metric};
use crate::record::{Latencies, Stamp};

/// Buckets of latencies that a series keeps, eight bytes each: a quarter of an hour of some 9,000 an interval.
pub(super) const BUCKETS_MAX: usize = 8_000_000;

/// How far the beginning of an interval may lie behind the end of the one before it without a loss between them. It
/// must be small against an interval: one that was refused goes with the next, which then is long itself.
const GAP_SLACK_US_MAX: u64 = 20_000;

/// What happened between two records of one kind.
#[derive(Clone, Debug)]
pub struct Interval<C: Metric, L: Metric> {
    /// Beginning of the time that the counters cover, `CLOCK_MONOTONIC` in microseconds.
    pub start_us: u64,
    /// End of it.
    pub end_us: u64,
    /// True if records between were lost: the counters cover the hole too, the latencies only its end. A series
    /// shows a gap there, not a slow stretch.
    pub after_loss: bool,
    /// What was counted.
    pub counters: Counters<C>,
    latencies: Vec<Distribution>,
    family: std::marker::PhantomData<L>,
}

impl<C: Metric, L: Metric> Interval<C, L> {
    /// The latencies of one class.
    pub fn latency(&self, class: L) -> &Distribution {
        &self.latencies[class.index()]
    }

    fn buckets(&self) -> usize {
        self.latencies.iter().map(|latency| latency.buckets().len()).sum()
    }

    /// Length of the time that the counters cover, in seconds.
    pub fn seconds(&self) -> f64 {
        self.end_us.saturating_sub(self.start_us) as f64 / 1e6
    }

    /// Events a second; `None` for an interval of no length.
    pub fn rate(&self, metric: C) -> Option<f64> {
        let seconds = self.seconds();
        (seconds > 0.0).then(|| self.counters[metric] as f64 / seconds)
    }
}

/// Several intervals taken together: counters added, histograms merged.
#[derive(Clone, Debug)]
pub struct Window<C: Metric, L: Metric> {
    /// Time that the counters cover, in microseconds.
    pub span_us: u64,
    /// What was counted.
    pub counters: Counters<C>,
    /// The latencies of all intervals.
    pub latencies: Histograms<L>,
    /// Intervals in it.
    pub intervals: usize,
    /// Intervals in it that follow a loss.
    pub losses: usize,
}

impl<C: Metric, L: Metric> Window<C, L> {
    /// Events a second over the window; `None` while it is empty.
    pub fn rate(&self, metric: C) -> Option<f64> {
        (self.span_us > 0).then(|| self.counters[metric] as f64 * 1e6 / self.span_us as f64)
    }
}

/// The series of the proxy or the load of one run.
#[derive(Debug)]
pub struct Track<C: Metric, L: Metric> {
    totals: Counters<C>,
    samples_total: Counters<L>,
    whole: Histograms<L>,
    intervals: VecDeque<Interval<C, L>>,
    /// Buckets in the latencies of all of them.
    buckets: usize,
    last_us: u64,
    begun: bool,
    history: usize,
}

impl<C: Metric, L: Metric> Track<C, L> {
    /// The series of a run whose beginning, when everything stood at nothing, was read at `start_us`; `None` if
    /// reading began in its middle. Keeps the latest `history` intervals.
    pub(super) fn new(start_us: Option<u64>, history: usize) -> Self {
        Self {
            totals: Counters::default(),
            samples_total: Counters::default(),
            whole: Histograms::default(),
            intervals: VecDeque::new(),
            buckets: 0,
            last_us: start_us.unwrap_or(0),
            begun: start_us.is_some(),
            history,
        }
    }

    /// Takes in one record of an interval.
    pub(super) fn apply(&mut self, stamp: &Stamp, counters: &Counters<C>, latencies: &Latencies<L>) {
        let covered_from_us = stamp.mono_us.saturating_sub(stamp.interval_us);
        // Without a record before it nothing is known of the counters: they cover no time, which is not a zero.
        let start_us = if self.begun { self.last_us } else { stamp.mono_us };
        let delta = if self.begun { counters.since(&self.totals) } else { Counters::default() };
        let slack_us = (stamp.interval_us / 2).min(GAP_SLACK_US_MAX);
        let after_loss = !self.begun || covered_from_us > start_us.saturating_add(slack_us);
        for (class, latency) in latencies.iter() {
            self.whole[class].add_distribution(&latency.interval);
            self.samples_total[class] = latency.samples_total;
        }
        self.totals = *counters;
        self.last_us = stamp.mono_us;
        self.begun = true;
        self.keep(Interval {
            start_us,
            end_us: stamp.mono_us,
            after_loss,
            counters: delta,
            latencies: latencies.iter().map(|(_, latency)| latency.interval.clone()).collect(),
            family: std::marker::PhantomData,
        });
    }

    /// Keeps an interval, and lets the oldest go that are too many or too large together.
    fn keep(&mut self, interval: Interval<C, L>) {
        self.buckets += interval.buckets();
        self.intervals.push_back(interval);
        while self.intervals.len() > self.history || (self.buckets > BUCKETS_MAX && self.intervals.len() > 1)
        {
            self.buckets -= self.intervals.pop_front().map_or(0, |oldest| oldest.buckets());
        }
    }

    /// Takes in the final totals, and the histograms of the whole run in place of those gathered here.
    pub(super) fn finish(&mut self, counters: &Counters<C>, latencies: &Latencies<L>) {
        self.totals = *counters;
        self.whole.clear();
        for (class, latency) in latencies.iter() {
            self.whole[class].add_distribution(&latency.interval);
            self.samples_total[class] = latency.samples_total;
        }
    }

    /// Totals of the run, up to the last record read.
    pub fn totals(&self) -> &Counters<C> {
        &self.totals
    }

    /// Samples that were counted in the run, whether or not their histograms were read.
    pub fn samples_total(&self, class: L) -> u64 {
        self.samples_total[class]
    }

    /// The latencies of all that was read of the run.
    pub fn whole(&self) -> &Histograms<L> {
        &self.whole
    }

    /// The kept intervals, oldest first.
    pub fn intervals(&self) -> impl DoubleEndedIterator<Item = &Interval<C, L>> + ExactSizeIterator {
        self.intervals.iter()
    }

    /// `CLOCK_MONOTONIC` of the last record, in microseconds.
    pub fn last_us(&self) -> u64 {
        self.last_us
    }

    /// The intervals that end in the `span_us` microseconds up to the last record.
    pub fn window(&self, span_us: u64) -> Window<C, L> {
        self.window_until(self.last_us, span_us)
    }

    /// The intervals that end in the `span_us` microseconds up to `end_us`, that moment included. Ticks wander by
    /// milliseconds, so an interval counts if its middle lies within; the newest one always does.
    pub fn window_until(&self, end_us: u64, span_us: u64) -> Window<C, L> {
        let from_us = end_us.saturating_sub(span_us);
        let mut window = Window {
            span_us: 0,
            counters: Counters::default(),
            latencies: Histograms::default(),
            intervals: 0,
            losses: 0,
        };
        let newest_first = self.intervals.iter().rev().skip_while(|interval| interval.end_us > end_us);
        let middle_us = |interval: &Interval<C, L>| interval.start_us.midpoint(interval.end_us);
        let within =
            newest_first.enumerate().take_while(|(i, interval)| *i == 0 || middle_us(interval) > from_us);
        for (_, interval) in within {
            let length_us = interval.end_us.saturating_sub(interval.start_us);
            window.span_us = window.span_us.saturating_add(length_us);
            window.counters.add(&interval.counters);
            window.intervals += 1;
            window.losses += usize::from(interval.after_loss);
            for (distribution, &class) in interval.latencies.iter().zip(L::ALL) {
                window.latencies[class].add_distribution(distribution);
            }
        }
        window
    }
}
