//! Handshakes: how many, how, and why not.

use model::runs::Run;
use records::kinds::handshake_failure;
use records::metrics::{Counters, LoadCounter, Metric, ProxyCounter, ProxyLatency, labels};
use records::values::LogFigure;

use crate::view_model::span::{Count, LoadSpanData, ProxySpanData, SpanData, TlsSpanData};

pub(crate) type NamedCount<'n> = (&'n str, u64);

/// Handshakes over the span, and how many since the beginning.
#[derive(Clone, Debug, Default)]
pub(crate) struct Handshakes {
    /// Full ones a second; `None` while no time has passed.
    pub(crate) full_per_second: Option<f64>,
    pub(crate) resumed_per_second: Option<f64>,
    /// Share of full ones among those completed over the span; `None` without any.
    pub(crate) full_share: Option<f64>,
    /// Full handshakes since the beginning.
    pub(crate) full: u64,
    /// Resumed handshakes since the beginning.
    pub(crate) resumed: u64,
    /// The reasons of full handshakes over the span, the most frequent first; `None` if no record has them.
    pub(crate) full_reasons: Option<Vec<NamedCount<'static>>>,
    /// Where the mean full, and the mean resumed handshake of the span spent its time; `None` where it was not timed.
    pub(crate) walls: [Option<MeanHandshake>; 2],
    pub(crate) failed: Count,
    /// Completed ones since the beginning in which the kernel sent a segment to the client again.
    pub(crate) retransmitted: u64,
    /// What handshakes of the span negotiated.
    pub(crate) versions: Vec<NamedCount<'static>>,
    pub(crate) groups: Vec<NamedCount<'static>>,
    pub(crate) ciphers: Vec<NamedCount<'static>>,
    /// Failures by cause, over the span.
    pub(crate) recent_causes: Vec<NamedCount<'static>>,
    /// Failures by cause, since the beginning.
    pub(crate) causes: Vec<NamedCount<'static>>,
    /// Alerts and other reasons, by the records of single connections; those without a record are not among them.
    pub(crate) reasons: Vec<(String, u64)>,
    /// What a log does not tell of them.
    pub(crate) absent: AbsentHandshakeFigures,
}

/// Why figures of handshakes are absent, and how to get them; `None` for available figures.
#[derive(Clone, Debug, Default)]
pub(crate) struct AbsentHandshakeFigures {
    pub(crate) all: Option<String>,
    pub(crate) full_reasons: Option<String>,
    /// What they cost, and the parts of their time.
    pub(crate) walls: Option<String>,
    pub(crate) causes: Option<String>,
    pub(crate) groups: Option<String>,
}

impl AbsentHandshakeFigures {
    pub(crate) fn of(run: &Run) -> Self {
        let reason = |figure| run.absent(figure).map(str::to_owned);
        Self {
            all: reason(LogFigure::Handshakes),
            full_reasons: reason(LogFigure::FullReasons),
            walls: reason(LogFigure::HandshakeParts),
            causes: reason(LogFigure::Failures).or_else(|| reason(LogFigure::FailureCauses)),
            groups: reason(LogFigure::Groups),
        }
    }
}

/// Where the mean handshake of one type spent its time.
#[derive(Clone, Debug)]
pub(crate) struct MeanHandshake {
    /// Handshakes.
    pub(crate) n: u64,
    /// The parts that were timed, in nanoseconds.
    pub(crate) parts: Vec<NamedCount<'static>>,
}

impl MeanHandshake {
    pub(crate) fn sum_ns(&self) -> u64 {
        self.parts.iter().fold(0, |sum, (_, ns)| sum.saturating_add(*ns))
    }
}

impl Handshakes {
    pub(crate) fn of_proxy(totals: &Counters<ProxyCounter>, taken: &ProxySpanData<'_>) -> Self {
        use ProxyCounter::{HandshakesFailed, HandshakesFull, HandshakesResumed};
        Self {
            versions: versions(&taken.counters),
            groups: seen(labels::groups(), &taken.counters),
            ciphers: seen(labels::ciphers(), &taken.counters),
            recent_causes: seen(labels::handshake_failures(), &taken.counters),
            causes: seen(labels::handshake_failures(), totals),
            ..Self::of(totals, taken, [HandshakesFull, HandshakesResumed, HandshakesFailed])
        }
    }

    /// Adds the figures of TLS records.
    pub(crate) fn add_tls(&mut self, tls: &TlsSpanData<'_>, proxy: &ProxySpanData<'_>) {
        self.full_reasons = Some(seen(labels::full_reasons(), &tls.counters));
        let waits = labels::waits();
        let wall = |at: usize, compute| {
            let waits = waits.iter().map(|(name, classes)| (*name, tls.samples(classes[at])));
            let n = waits.clone().next().map_or(0, |(_, samples)| samples.count());
            let parts = waits.chain([("compute", proxy.samples(compute))]);
            let parts = parts.filter_map(|(name, samples)| Some((name, samples.mean_ns()? as u64)));
            (n > 0).then(|| MeanHandshake { n, parts: parts.collect() })
        };
        self.walls = [wall(0, ProxyLatency::ComputeFull), wall(1, ProxyLatency::ComputeResumed)];
    }

    pub(crate) fn of_load(totals: &Counters<LoadCounter>, taken: &LoadSpanData<'_>) -> Self {
        use LoadCounter::{HandshakesFailed, HandshakesFull, HandshakesResumed};
        Self::of(totals, taken, [HandshakesFull, HandshakesResumed, HandshakesFailed])
    }

    fn of<C: Metric, L: Metric>(totals: &Counters<C>, taken: &SpanData<'_, C, L>, counters: [C; 3]) -> Self {
        let [full, resumed, failed] = counters;
        Self {
            full_per_second: taken.rate(full),
            resumed_per_second: taken.rate(resumed),
            full_share: share(taken.counters[full], taken.counters[resumed]),
            full: totals[full],
            resumed: totals[resumed],
            failed: Count::of(totals, taken, &[failed]),
            ..Self::default()
        }
    }
}

const REASONS_MAX: usize = 8;

/// Why handshakes failed, as the records of connections tell it.
pub(crate) fn reasons(run: &Run) -> Vec<(String, u64)> {
    let all = run.failures().by_frequency();
    let words = |(kind, detail, n): (&str, &str, u64)| {
        (if detail.is_empty() { kind.to_owned() } else { handshake_failure(detail) }, n)
    };
    all.into_iter().take(REASONS_MAX).map(words).collect()
}

fn share(full: u64, resumed: u64) -> Option<f64> {
    let all = full.saturating_add(resumed);
    (all > 0).then(|| full as f64 / all as f64)
}

fn versions(counters: &Counters<ProxyCounter>) -> Vec<NamedCount<'static>> {
    let rows = labels::versions().into_iter();
    let rows = rows.map(|(name, [full, resumed])| (name, counters[full].saturating_add(counters[resumed])));
    rows.filter(|&(_, n)| n > 0).collect()
}

/// The counters that are above nothing, the largest first.
pub(crate) fn seen<C: Metric>(
    table: impl IntoIterator<Item = (&'static str, C)>,
    totals: &Counters<C>,
) -> Vec<NamedCount<'static>> {
    let counted = table.into_iter().map(|(name, counter)| (name, totals[counter]));
    let mut rows: Vec<NamedCount<'static>> = counted.filter(|&(_, n)| n > 0).collect();
    rows.sort_by_key(|&(_, n)| std::cmp::Reverse(n));
    rows
}
