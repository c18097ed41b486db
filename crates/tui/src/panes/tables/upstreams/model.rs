//! What an upstream did in the span.

use std::borrow::Cow;
use std::sync::Arc;

use model::runs::{Run, UpstreamStats};
use records::kinds::{UpstreamRecord, UpstreamState};
use records::metrics::{Counters, Metric as _, TimeResolution, UpstreamCounter, UpstreamLatency};

use crate::panes::tables::routes::model::RequestTimes;
use crate::table::NameId;
use crate::theme::format;
use crate::view_model::span::{Samples, Span};

/// One upstream at a moment. Figures are `None` where records do not tell them.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamRow {
    pub(crate) id: NameId,
    pub(crate) name: Arc<str>,
    pub(crate) state: UpstreamState,
    /// How long it had been in this state, in microseconds.
    state_us: Option<u64>,
    /// Why it is not up; empty if it is.
    pub(crate) reason: Arc<str>,
    /// Connections now, idle ones included, and idle ones; `None` at a moment of the past.
    pub(crate) open: Option<u64>,
    pub(crate) idle: Option<u64>,
    /// What was counted over the span.
    counted: Option<Counters<UpstreamCounter>>,
    /// The time that was counted in, in microseconds.
    span_us: u64,
    /// Latencies of each class, in the order of [`UpstreamLatency::ALL`].
    times: [Option<RequestTimes>; UpstreamLatency::ALL.len()],
}

fn by_class<T>(of: impl Fn(UpstreamLatency) -> T) -> [T; UpstreamLatency::ALL.len()] {
    std::array::from_fn(|at| of(UpstreamLatency::ALL[at]))
}

impl UpstreamRow {
    /// An upstream at a moment; `None` before its first record.
    pub(crate) fn at(
        run: &Run,
        upstream: &UpstreamStats,
        (us, is_past): (u64, bool),
        span: Span,
    ) -> Option<Self> {
        let (told_us, told) = upstream.state_at(us)?;
        let now = (!is_past).then(|| upstream.record());
        let row = Self {
            id: NameId::of(upstream.name()),
            name: upstream.name().into(),
            state: told.state,
            state_us: (told.state_us > 0).then(|| us.saturating_sub(*told_us).saturating_add(told.state_us)),
            reason: told.reason.as_str().into(),
            open: now.map(|record| record.open),
            idle: now.map(|record| record.idle),
            counted: None,
            span_us: 0,
            times: [None; UpstreamLatency::ALL.len()],
        };
        let time = |samples: Samples<'_>| RequestTimes::of(samples, TimeResolution::FINE);
        Some(match span {
            Span::WholeRun => {
                let whole = upstream.series().whole();
                let times = by_class(|class| time(Samples::Whole(&whole[class])));
                Self { counted: Some(*upstream.totals()), span_us: run.duration_us(), times, ..row }
            }
            Span::Last(span_us) => {
                let window = run.named_window(upstream, us, span_us);
                let counted = (window.span_us > 0).then_some(window.counters);
                let times = by_class(|class| time(Samples::WindowHistogram(window.latency(class))));
                Self { counted, span_us: window.span_us, times, ..row }
            }
        })
    }

    pub(crate) fn is_up(&self) -> bool {
        self.state == UpstreamState::Up
    }

    pub(crate) fn since(&self) -> Cow<'_, str> {
        self.state_us.map_or(Cow::Borrowed(""), |us| format::age(us / 1_000_000).into())
    }

    pub(crate) fn count(&self, counter: UpstreamCounter) -> Option<u64> {
        self.counted.map(|counted| counted[counter])
    }

    pub(crate) fn per_second(&self, counter: UpstreamCounter) -> Option<f64> {
        self.count(counter).map(|n| n as f64 * 1e6 / self.span_us.max(1) as f64)
    }

    /// Attempts to connect that failed.
    pub(crate) fn failed(&self) -> Option<u64> {
        self.counted.as_ref().map(UpstreamRecord::failed)
    }

    /// The most frequent cause of these; empty without failures.
    pub(crate) fn main_cause(&self) -> &'static str {
        let causes = UpstreamCounter::FAILED.into_iter().map(|cause| (self.count(cause).unwrap_or(0), cause));
        let most = causes.filter(|(n, _)| *n > 0).max_by_key(|(n, _)| *n);
        most.map_or("", |(_, cause)| cause.names().label)
    }

    /// Resumed handshakes among all; `None` without any.
    pub(crate) fn resumed_share(&self) -> Option<f64> {
        let [full, resumed] =
            [UpstreamCounter::TlsFull, UpstreamCounter::TlsResumed].map(|kind| self.count(kind).unwrap_or(0));
        (full + resumed > 0).then(|| resumed as f64 / (full + resumed) as f64)
    }

    pub(crate) fn times(&self, class: UpstreamLatency) -> Option<RequestTimes> {
        self.times[class.index()]
    }
}
