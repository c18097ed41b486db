//! The time over which rates and latencies are taken.

use std::borrow::Cow;

use telemetry::model::{Run, Track, Window};
use telemetry::{Counters, Histograms, LoadCounter, LoadLatency, Metric, ProxyCounter, ProxyLatency};

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

    /// What a series holds for this time, up to its last record.
    pub(super) fn of<'r, C: Metric, L: Metric>(
        self,
        run: &'r Run,
        track: &'r Track<C, L>,
    ) -> Taken<'r, C, L> {
        match self {
            Self::Last(us) => {
                let Window { span_us, counters, latencies, .. } = track.window(us);
                Taken { span_us, counters, latencies: Cow::Owned(latencies) }
            }
            Self::WholeRun => Taken {
                span_us: run.duration_us(),
                counters: *track.totals(),
                latencies: Cow::Borrowed(track.whole()),
            },
        }
    }
}

/// What a series holds for a span. Merging histograms is the dearest part of a refresh, so it is done once for each
/// series.
pub(super) struct Taken<'r, C: Metric, L: Metric> {
    span_us: u64,
    pub(super) counters: Counters<C>,
    pub(super) latencies: Cow<'r, Histograms<L>>,
}

/// What the proxy's series holds.
pub(super) type ProxyTaken<'r> = Taken<'r, ProxyCounter, ProxyLatency>;
/// What the load's series holds.
pub(super) type LoadTaken<'r> = Taken<'r, LoadCounter, LoadLatency>;

impl<C: Metric, L: Metric> Taken<'_, C, L> {
    /// Events a second; `None` while no time has passed.
    pub(super) fn rate(&self, metric: C) -> Option<f64> {
        (self.span_us > 0).then(|| self.counters[metric] as f64 * 1e6 / self.span_us as f64)
    }
}
