//! The time over which rates and latencies are taken.

use model::runs::{MetricSeries, Run, Window};
use records::histogram::{Histogram, Histograms, WindowHistogram};
use records::ids::RunId;
use records::metrics::{
    Counters, HttpCounter, HttpLatency, LoadCounter, LoadLatency, Metric, ProxyCounter, ProxyLatency,
    TlsCounter, TlsLatency,
};

use crate::theme::format;

/// CPU is shown, and warnings are given, for this time up to the last record, whatever the window: a warning must
/// not linger for a quarter of an hour.
pub(crate) const NOW_US: u64 = 10_000_000;

/// What a series counted in the last [`NOW_US`].
pub(super) fn now<C: Metric, L: Metric>(series: &MetricSeries<C, L>) -> Counters<C> {
    let from_us = series.last_us().saturating_sub(NOW_US);
    let mut counters = Counters::default();
    for interval in series.intervals().rev().take_while(|interval| interval.end_us > from_us) {
        counters.add(&interval.counters);
    }
    counters
}

/// A time up to the last record, or the whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    /// This many microseconds up to the moment.
    Last(u64),
    /// The whole run, from its totals: it includes intervals that are no longer kept.
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
        Self::Last(Self::DEFAULT_US)
    }
}

impl Span {
    /// Length of the default choice, in microseconds.
    pub(crate) const DEFAULT_US: u64 = 10_000_000;

    pub(crate) fn longer(self) -> Self {
        self.step(1)
    }

    pub(crate) fn shorter(self) -> Self {
        self.step(-1)
    }

    fn step(self, by: isize) -> Self {
        let at = CHOICES.iter().position(|&choice| choice == self).unwrap_or(0);
        CHOICES[at.saturating_add_signed(by).min(CHOICES.len() - 1)]
    }

    pub(crate) fn words(self) -> String {
        match self {
            Self::Last(us) => format::span(us),
            Self::WholeRun => "whole run".to_owned(),
        }
    }
}

/// Windows over the series of a run for a span. They are kept between frames, so that only intervals that enter or
/// leave are added or removed.
#[derive(Debug, Default)]
pub(crate) struct SpanWindows {
    of: Option<RunId>,
    proxy: Window<ProxyCounter, ProxyLatency>,
    tls: Window<TlsCounter, TlsLatency>,
    http: Window<HttpCounter, HttpLatency>,
    load: Window<LoadCounter, LoadLatency>,
}

impl SpanWindows {
    /// Moves them over the span up to a moment, or to the last records before it.
    pub(crate) fn slide_to(&mut self, run: &Run, span: Span, until_us: u64) {
        if self.of != Some(run.id()) {
            *self = Self { of: Some(run.id()), ..Self::default() };
        }
        let Span::Last(us) = span else { return };
        if let Some(series) = run.proxy() {
            self.proxy.slide(series, series.last_us().min(until_us), us);
        }
        if let Some(series) = run.tls() {
            self.tls.slide(series, series.last_us().min(until_us), us);
        }
        if let Some(series) = run.http() {
            self.http.slide(series, series.last_us().min(until_us), us);
        }
        if let Some(series) = run.load() {
            self.load.slide(series, series.last_us().min(until_us), us);
        }
    }

    pub(crate) fn proxy<'r>(&'r self, run: &'r Run, span: Span) -> Option<ProxySpanData<'r>> {
        run.proxy().map(|series| SpanData::of(run, series, &self.proxy, span))
    }

    pub(crate) fn tls<'r>(&'r self, run: &'r Run, span: Span) -> Option<TlsSpanData<'r>> {
        run.tls().map(|series| SpanData::of(run, series, &self.tls, span))
    }

    pub(crate) fn http<'r>(&'r self, run: &'r Run, span: Span) -> Option<HttpSpanData<'r>> {
        run.http().map(|series| SpanData::of(run, series, &self.http, span))
    }

    pub(crate) fn load<'r>(&'r self, run: &'r Run, span: Span) -> Option<LoadSpanData<'r>> {
        run.load().map(|series| SpanData::of(run, series, &self.load, span))
    }
}

/// What a series holds for a span.
pub(crate) struct SpanData<'r, C: Metric, L: Metric> {
    span_us: u64,
    pub(crate) counters: Counters<C>,
    latencies: SpanLatencies<'r, C, L>,
}

enum SpanLatencies<'r, C: Metric, L: Metric> {
    Window(&'r Window<C, L>),
    Whole(&'r Histograms<L>),
}

/// Events over the span, and since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) recent: u64,
    pub(crate) total: u64,
}

impl Count {
    /// Sums these counters, over the span and since the start.
    pub(crate) fn of<C: Metric, L: Metric>(
        totals: &Counters<C>,
        taken: &SpanData<'_, C, L>,
        counters: &[C],
    ) -> Self {
        Self { recent: taken.counters.sum(counters), total: totals.sum(counters) }
    }

    /// The recent ones, and all of them if there are more.
    pub(crate) fn words(self) -> String {
        let Self { recent, total } = self;
        let all = if total > recent { format!(" ({} total)", format::count(total)) } else { String::new() };
        format::count(recent) + &all
    }
}

#[derive(Clone, Copy)]
pub(crate) enum Samples<'r> {
    WindowHistogram(&'r WindowHistogram),
    Whole(&'r Histogram),
}

pub(crate) type ProxySpanData<'r> = SpanData<'r, ProxyCounter, ProxyLatency>;
pub(crate) type TlsSpanData<'r> = SpanData<'r, TlsCounter, TlsLatency>;
pub(crate) type HttpSpanData<'r> = SpanData<'r, HttpCounter, HttpLatency>;
pub(crate) type LoadSpanData<'r> = SpanData<'r, LoadCounter, LoadLatency>;

impl<'r, C: Metric, L: Metric> SpanData<'r, C, L> {
    fn of(run: &Run, series: &'r MetricSeries<C, L>, window: &'r Window<C, L>, span: Span) -> Self {
        match span {
            Span::Last(_) => Self {
                span_us: window.span_us,
                counters: window.counters,
                latencies: SpanLatencies::Window(window),
            },
            Span::WholeRun => Self {
                span_us: run.duration_us(),
                counters: *series.totals(),
                latencies: SpanLatencies::Whole(series.whole()),
            },
        }
    }

    /// Events a second; `None` while no time has passed.
    pub(crate) fn rate(&self, metric: C) -> Option<f64> {
        (self.span_us > 0).then(|| self.counters[metric] as f64 * 1e6 / self.span_us as f64)
    }

    pub(crate) fn samples(&self, class: L) -> Samples<'r> {
        match self.latencies {
            SpanLatencies::Window(window) => Samples::WindowHistogram(window.latency(class)),
            SpanLatencies::Whole(histograms) => Samples::Whole(&histograms[class]),
        }
    }
}

impl Samples<'_> {
    pub(crate) fn count(self) -> u64 {
        match self {
            Self::WindowHistogram(merged) => merged.count(),
            Self::Whole(histogram) => histogram.count(),
        }
    }

    pub(crate) fn mean_ns(self) -> Option<f64> {
        let sum_ns = match self {
            Self::WindowHistogram(merged) => merged.sum_ns(),
            Self::Whole(histogram) => histogram.sum_ns(),
        };
        (self.count() > 0).then(|| sum_ns as f64 / self.count() as f64)
    }

    pub(crate) fn max_ns(self) -> u64 {
        match self {
            Self::WindowHistogram(merged) => merged.max_ns(),
            Self::Whole(histogram) => histogram.max_ns(),
        }
    }

    pub(crate) fn quantile_ns(self, q: f64) -> Option<u64> {
        match self {
            Self::WindowHistogram(merged) => merged.quantile_ns(q),
            Self::Whole(histogram) => histogram.quantile_ns(q),
        }
    }
}
