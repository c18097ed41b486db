//! A window: several intervals of a series taken together.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::runs::series::MetricSeries;
use crate::runs::series::interval::Interval;
use records::histogram::WindowHistogram;
use records::metrics::{Counters, Metric};

/// Several intervals taken together: counters added, latencies merged.
///
/// A window slides along its series: only the intervals that enter or leave it cost anything, so it is cheap to move
/// with each record.
#[derive(Clone, Debug)]
pub struct Window<C: Metric, L: Metric> {
    /// Time that the counters cover, in microseconds.
    pub span_us: u64,
    pub counters: Counters<C>,
    /// Intervals in it that follow a loss.
    pub losses: usize,
    /// One for each class.
    latencies: Box<[WindowHistogram]>,
    /// The intervals in it, oldest first.
    held: VecDeque<Arc<Interval<C, L>>>,
}

impl<C: Metric, L: Metric> Default for Window<C, L> {
    fn default() -> Self {
        Self {
            span_us: 0,
            counters: Counters::default(),
            losses: 0,
            latencies: L::ALL.iter().map(|_| WindowHistogram::default()).collect(),
            held: VecDeque::new(),
        }
    }
}

impl<C: Metric, L: Metric> Window<C, L> {
    /// Moves it to the intervals of the `span_us` microseconds up to `end_us`. Ticks wander by milliseconds, and by
    /// more on a busy machine, so an interval counts if its middle lies within. The newest interval always counts.
    pub fn slide(&mut self, series: &MetricSeries<C, L>, end_us: u64, span_us: u64) {
        let from_us = end_us.saturating_sub(span_us);
        let newest_first = series.timeline().rev().skip_while(|interval| interval.place_us() > end_us);
        let within = newest_first
            .enumerate()
            .take_while(|(i, interval)| *i == 0 || interval.middle_us() > from_us)
            .map(|(_, interval)| interval);
        let mut wanted: Vec<&Arc<Interval<C, L>>> = within.collect();
        wanted.reverse();
        self.hold(&wanted);
    }

    /// Moves the window in a series whose intervals do not cover all time. An interval counts if its middle lies
    /// within, and so does the newest unless it reaches to the end.
    pub(in crate::runs) fn slide_sparse(&mut self, series: &MetricSeries<C, L>, end_us: u64, span_us: u64) {
        let from_us = end_us.saturating_sub(span_us);
        let newest_first = series.timeline().rev().skip_while(|interval| interval.place_us() > end_us);
        let within = newest_first.enumerate().take_while(|(i, interval)| {
            (*i == 0 && interval.end_us >= end_us) || interval.middle_us() > from_us
        });
        let mut wanted: Vec<&Arc<Interval<C, L>>> = within.map(|(_, interval)| interval).collect();
        wanted.reverse();
        self.hold(&wanted);
    }

    /// The moment from which a window from `from_us` to `end_us` covers all time: an interval on the edge counts
    /// completely or not at all.
    pub(in crate::runs) fn covered_from_us(
        &self,
        series: &MetricSeries<C, L>,
        from_us: u64,
        end_us: u64,
    ) -> u64 {
        let first_us = self.held.front().map(|interval| interval.start_us);
        let before = series.timeline().rev().find(|interval| interval.end_us <= first_us.unwrap_or(end_us));
        let from_us = before.map_or(from_us, |before| before.end_us.max(from_us));
        first_us.map_or(from_us, |us| us.min(from_us))
    }

    /// Drops and takes in intervals until it holds the wanted ones.
    fn hold(&mut self, wanted: &[&Arc<Interval<C, L>>]) {
        let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else { return self.clear() };
        while self.held.front().is_some_and(|interval| interval.end_us < first.end_us) {
            self.held.pop_front().into_iter().for_each(|interval| self.remove(&interval));
        }
        while self.held.back().is_some_and(|interval| interval.end_us > last.end_us) {
            self.held.pop_back().into_iter().for_each(|interval| self.remove(&interval));
        }
        let kept_from = self.held.front().map(|kept| wanted.partition_point(|w| w.end_us < kept.end_us));
        let kept = kept_from.and_then(|from| wanted.get(from..from + self.held.len()));
        let is_kept = kept.is_some_and(|kept| kept.iter().zip(&self.held).all(|(a, b)| Arc::ptr_eq(a, b)));
        if !is_kept {
            self.clear();
        }
        let before = if is_kept { kept_from.unwrap_or(0) } else { 0 };
        let after = before + self.held.len();
        for &interval in wanted[..before].iter().rev() {
            self.add(interval);
            self.held.push_front(Arc::clone(interval));
        }
        for &interval in &wanted[after..] {
            self.add(interval);
            self.held.push_back(Arc::clone(interval));
        }
    }

    fn clear(&mut self) {
        while let Some(interval) = self.held.pop_back() {
            self.remove(&interval);
        }
    }

    fn add(&mut self, interval: &Interval<C, L>) {
        self.span_us = self.span_us.saturating_add(interval.length_us());
        self.counters.add(&interval.counters);
        self.losses += usize::from(interval.after_loss);
        for (merged, &class) in self.latencies.iter_mut().zip(L::ALL) {
            merged.add(interval.latency(class));
        }
    }

    /// Takes out an interval that was removed from those held.
    fn remove(&mut self, interval: &Interval<C, L>) {
        self.span_us = self.span_us.saturating_sub(interval.length_us());
        self.counters = self.counters.since(&interval.counters);
        self.losses -= usize::from(interval.after_loss);
        for (merged, &class) in self.latencies.iter_mut().zip(L::ALL) {
            let leaving = interval.latency(class);
            if merged.remove(leaving) {
                let others = self.held.iter().map(|held| held.latency(class).max_ns());
                merged.set_max_ns(others.max().unwrap_or(0));
            }
        }
    }

    pub fn intervals(&self) -> usize {
        self.held.len()
    }

    pub fn latency(&self, class: L) -> &WindowHistogram {
        &self.latencies[class.index()]
    }

    /// Events a second over the window; `None` while it is empty.
    pub fn rate(&self, metric: C) -> Option<f64> {
        (self.span_us > 0).then(|| self.counters[metric] as f64 * 1e6 / self.span_us as f64)
    }
}
