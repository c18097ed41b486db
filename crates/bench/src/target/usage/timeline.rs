//! Samples with their times.

use std::collections::VecDeque;
use std::time::Duration;

use super::sampler::{SAMPLE_EVERY, SampleTimes};

/// How long samples are kept. Older ones are dropped, except for the first.
const KEPT: Duration = Duration::from_secs(7 * 3_600);
const SAMPLES_MAX: usize = (KEPT.as_millis() / SAMPLE_EVERY.as_millis()) as usize;

/// A span of the monotonic clock, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeSpan {
    pub from_us: u64,
    pub to_us: u64,
}

impl TimeSpan {
    pub fn length_us(&self) -> u64 {
        self.to_us.saturating_sub(self.from_us)
    }
}

/// Samples in the order of their times, which are microseconds of the monotonic clock.
#[derive(Debug)]
pub(super) struct Timeline<T> {
    times: SampleTimes,
    samples: VecDeque<(u64, T)>,
}

impl<T> Timeline<T> {
    pub(super) fn new(times: SampleTimes) -> Self {
        Self { times, samples: VecDeque::new() }
    }

    /// Adds a sample of a time that is not before that of the last one.
    pub(super) fn push_at(&mut self, at_us: u64, sample: T) {
        if self.samples.len() == SAMPLES_MAX {
            self.samples.remove(1);
        }
        self.samples.push_back((at_us, sample));
    }

    pub(super) fn last(&self) -> Option<&T> {
        self.samples.back().map(|(_, sample)| sample)
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.samples.iter().map(|(_, sample)| sample)
    }

    /// The samples from the first of these spans to the last, and those next to them.
    pub(super) fn within(&self, spans: &[TimeSpan]) -> impl Iterator<Item = &T> {
        let from_us = spans.first().map_or(0, |span| span.from_us);
        let to_us = spans.last().map_or(0, |span| span.to_us);
        let first = self.samples.partition_point(|(at_us, _)| *at_us < from_us).saturating_sub(1);
        let end = self.samples.partition_point(|(at_us, _)| *at_us <= to_us) + 1;
        self.samples.range(first..end.min(self.samples.len())).map(|(_, sample)| sample)
    }

    /// By how much a counter grew within these spans.
    pub(super) fn growth(&self, spans: &[TimeSpan], of: impl Fn(&T) -> u64) -> f64 {
        let within = |span: &TimeSpan| match self.times {
            SampleTimes::Periodic => self.value_at(span.to_us, &of) - self.value_at(span.from_us, &of),
            SampleTimes::Multiples { idle, .. } => self.growth_around(span, idle, &of),
        };
        spans.iter().map(within).sum()
    }

    /// By how much a counter grew that stands still outside of a span, and for a time after its beginning: from the last
    /// sample before it grows to the first after the span, however late they are.
    fn growth_around(&self, span: &TimeSpan, idle: Duration, of: impl Fn(&T) -> u64) -> f64 {
        let grows_from_us = span.from_us + idle.as_micros() as u64;
        let before = self.samples.partition_point(|(at_us, _)| *at_us <= grows_from_us).saturating_sub(1);
        let after = self.samples.partition_point(|(at_us, _)| *at_us < span.to_us);
        let value = |sample: Option<&(u64, T)>| sample.map_or(0, |(_, sample)| of(sample));
        let last = || self.samples.back();
        let (before, after) = (self.samples.get(before), self.samples.get(after).or_else(last));
        value(after) as f64 - value(before) as f64
    }

    /// A counter at a time, interpolated. Before the first sample it is the first value, after the last sample the
    /// last value.
    fn value_at(&self, at_us: u64, of: impl Fn(&T) -> u64) -> f64 {
        let next = self.samples.partition_point(|(sample_us, _)| *sample_us < at_us);
        let value =
            |index: usize| self.samples.get(index).map(|(sample_us, sample)| (*sample_us, of(sample) as f64));
        match (next.checked_sub(1).and_then(value), value(next)) {
            (Some((before_us, before)), Some((after_us, after))) => {
                before + (after - before) * (at_us - before_us) as f64 / (after_us - before_us) as f64
            }
            (Some((_, one)), None) | (None, Some((_, one))) => one,
            (None, None) => 0.0,
        }
    }
}

/// By how much a counter that began at 0 grew within these spans. Its readings, each with its time in microseconds of the
/// monotonic clock, are in the order of time.
pub fn growth_within(readings: &[(u64, u64)], times: SampleTimes, spans: &[TimeSpan]) -> f64 {
    let mut timeline = Timeline::new(times);
    timeline.push_at(0, 0);
    for (at_us, value) in readings {
        timeline.push_at(*at_us, *value);
    }
    timeline.growth(spans, |value| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(samples: &[(u64, u64)]) -> Timeline<u64> {
        let mut timeline = Timeline::new(SampleTimes::Periodic);
        for (at_us, value) in samples {
            timeline.push_at(*at_us, *value);
        }
        timeline
    }

    #[test]
    fn counters_are_interpolated_between_samples() {
        let timeline = timeline(&[(1_000, 10), (2_000, 20), (4_000, 60)]);
        let grown = |from_us, to_us| timeline.growth(&[TimeSpan { from_us, to_us }], |value| *value);
        assert!((grown(1_000, 4_000) - 50.0).abs() < 1e-9);
        assert!((grown(1_500, 3_000) - 25.0).abs() < 1e-9);
        assert!((grown(0, 9_000) - 50.0).abs() < 1e-9, "nothing is known before and after");
        let turns = [(1_000, 1_500), (3_000, 4_000)].map(|(from_us, to_us)| TimeSpan { from_us, to_us });
        assert!((timeline.growth(&turns, |value| *value) - 25.0).abs() < 1e-9, "only what grew within them");
        let whole = [TimeSpan { from_us: 0, to_us: 1 }];
        let empty = Timeline::<u64>::new(SampleTimes::Periodic);
        assert!((empty.growth(&whole, |value| *value)).abs() < 1e-9);
    }

    #[test]
    fn in_turns_late_samples_change_nothing() {
        let times =
            SampleTimes::Multiples { period: Duration::from_millis(200), idle: Duration::from_millis(20) };
        // Grows from 420 to 590 ms, and from 820 to 990 ms.
        let spans = [400_000, 800_000].map(|from_us| TimeSpan { from_us, to_us: from_us + 200_000 });
        let grown = |readings: &[(u64, u64)]| growth_within(readings, times, &spans).round() as u64;
        let punctual = [(200_500, 5), (400_500, 5), (601_000, 105), (800_500, 105), (1_000_700, 305)];
        assert_eq!(grown(&punctual), 300);
        let late = [(260_000, 5), (418_000, 5), (655_000, 105), (819_000, 105), (1_150_000, 305)];
        assert_eq!(grown(&late), 300);
        // The counter grew already: the sample before it counts.
        let too_late = [(200_500, 5), (450_000, 25), (601_000, 105), (850_000, 140), (1_000_700, 305)];
        assert_eq!(grown(&too_late), 300);
        assert_eq!(grown(&late[2..]), 305, "it began at 0");
        assert_eq!((grown(&late[..4]), grown(&[])), (100, 0), "it ended within the second");
    }

    #[test]
    fn the_samples_of_a_span_include_its_neighbours() {
        let timeline = timeline(&[(1, 10), (2, 20), (3, 30), (4, 40), (5, 50)]);
        let within =
            |from_us, to_us| timeline.within(&[TimeSpan { from_us, to_us }]).copied().collect::<Vec<_>>();
        assert_eq!(within(3, 3), [20, 30, 40]);
        assert_eq!(within(0, 1), [10, 20]);
        assert_eq!(within(9, 9), [50]);
    }

    #[test]
    fn the_first_sample_stays_when_old_ones_go() {
        let mut timeline = Timeline::new(SampleTimes::Periodic);
        (0..=SAMPLES_MAX as u64 + 1).for_each(|at_us| timeline.push_at(at_us, at_us));
        let kept: Vec<u64> = timeline.values().take(2).copied().collect();
        assert_eq!((kept, timeline.samples.len()), (vec![0, 3], SAMPLES_MAX));
        assert_eq!(SAMPLE_EVERY * SAMPLES_MAX as u32, KEPT);
    }
}
