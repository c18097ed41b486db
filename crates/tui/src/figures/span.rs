//! The time over which rates and latencies are taken.

use telemetry::model::{Run, Track, Window};
use telemetry::{Counters, Histograms, Metric};

use crate::format;

/// Some time up to the last record, or all of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    /// So many microseconds.
    Last(u64),
    /// From the first record to the last, which also knows what the records of single intervals no longer do.
    WholeRun,
}

/// The choices, shortest first.
const CHOICES: &[Span] = &[
    Span::Last(1_000_000),
    Span::Last(2_000_000),
    Span::Last(5_000_000),
    Span::Last(10_000_000),
    Span::Last(30_000_000),
    Span::Last(60_000_000),
    Span::Last(120_000_000),
    Span::Last(300_000_000),
    Span::Last(900_000_000),
    Span::WholeRun,
];

impl Default for Span {
    fn default() -> Self {
        Self::Last(10_000_000)
    }
}

impl Span {
    /// The next longer choice.
    pub(crate) fn longer(self) -> Self {
        self.step(1)
    }

    /// The next shorter choice.
    pub(crate) fn shorter(self) -> Self {
        self.step(-1)
    }

    fn step(self, by: isize) -> Self {
        let at = CHOICES.iter().position(|&choice| choice == self).unwrap_or(0);
        CHOICES[at.saturating_add_signed(by).min(CHOICES.len() - 1)]
    }

    /// In words.
    pub(crate) fn words(self) -> String {
        match self {
            Self::Last(us) => format::span(us),
            Self::WholeRun => "whole run".to_owned(),
        }
    }

    /// What a series holds for this time, up to `end_us`.
    pub(super) fn of<C: Metric, L: Metric>(self, run: &Run, track: &Track<C, L>) -> Taken<C, L> {
        match self {
            Self::Last(us) => {
                let Window { span_us, counters, latencies, .. } = track.window(us);
                Taken { span_us, counters, latencies }
            }
            Self::WholeRun => Taken {
                span_us: run.duration_us(),
                counters: *track.totals(),
                latencies: track.whole().clone(),
            },
        }
    }
}

/// What a series holds for a span.
pub(super) struct Taken<C: Metric, L: Metric> {
    span_us: u64,
    pub(super) counters: Counters<C>,
    pub(super) latencies: Histograms<L>,
}

impl<C: Metric, L: Metric> Taken<C, L> {
    /// Events a second; `None` while no time has passed.
    pub(super) fn rate(&self, metric: C) -> Option<f64> {
        (self.span_us > 0).then(|| self.counters[metric] as f64 * 1e6 / self.span_us as f64)
    }
}
