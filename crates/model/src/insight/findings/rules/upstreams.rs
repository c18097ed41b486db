//! Findings about one upstream that stands out against the others.

use super::rule::{FindingContext, HysteresisLimit, MINUTE_US, Rule};
use crate::insight::shares::{out_of, percent, share};
use crate::runs::findings::{FindingText, Severity};
use crate::runs::{Run, UpstreamStats, UpstreamWindow};
use records::kinds::UpstreamRecord;
use records::metrics::{UpstreamCounter, UpstreamLatency, percentile_interval_ns};

pub(super) const SLOW: Rule = Rule { id: "upstream-slow", judge: slow, text: slow_text };
pub(super) const FAILING: Rule = Rule { id: "upstream-failing", judge: failing, text: failing_text };

/// The rules are judged once in this time, since each window costs more than a counter.
const JUDGED_EACH_US: u64 = 10_000_000;
/// How many times the p99 of the others one must have, by the ends of the intervals nearest to each other.
const TIMES_SLOWER: HysteresisLimit = HysteresisLimit { open: 2.0, close: 1.2 };
const N_MIN: f64 = 10.0;
const FAILED: &[(Severity, HysteresisLimit)] =
    &[(Severity::Warning, HysteresisLimit::at(0.02)), (Severity::Critical, HysteresisLimit::at(0.5))];
/// How many times the share of failures of the others one must have.
const TIMES_MORE: f64 = 5.0;

/// p99 of the first byte with its confidence interval, in nanoseconds.
struct FirstByte<'a> {
    upstream: &'a str,
    n: u64,
    p99_ns: u64,
    low_ns: u64,
    high_ns: u64,
}

impl<'a> FirstByte<'a> {
    /// `None` if there are too few samples for an interval.
    fn of((upstream, window): &(&'a UpstreamStats, UpstreamWindow)) -> Option<Self> {
        let samples = window.latency(UpstreamLatency::FirstByte);
        let (low, high) = percentile_interval_ns(samples.count(), 0.99, |q| samples.quantile_ns(q));
        Some(Self {
            upstream: upstream.name(),
            n: samples.count(),
            p99_ns: samples.quantile_ns(0.99)?,
            low_ns: low?,
            high_ns: high?,
        })
    }

    fn words(&self) -> String {
        let ms = |ns: u64| format!("{:.3}", ns as f64 / 1e6);
        let Self { n, p99_ns, low_ns, high_ns, .. } = self;
        format!("{} ms (95 %: {} to {} ms, n {n})", ms(*p99_ns), ms(*low_ns), ms(*high_ns))
    }
}

/// The last minute of each upstream.
fn windows(run: &Run) -> Vec<(&UpstreamStats, UpstreamWindow)> {
    let upstreams = run.upstreams().iter();
    upstreams.map(|upstream| (upstream, run.named_window(upstream, run.last_us(), MINUTE_US))).collect()
}

/// Whether the rules are judged in this interval, of a run with upstreams to compare.
fn is_due(run: &Run) -> bool {
    let last = run.proxy().and_then(|series| series.timeline().next_back());
    let is_first = last.is_some_and(|it| it.start_us / JUDGED_EACH_US != it.end_us / JUDGED_EACH_US);
    run.upstreams().len() > 1 && is_first
}

/// The slowest upstream, and the slowest of the others.
fn slowest<'a>(all: &[(&'a UpstreamStats, UpstreamWindow)]) -> Option<(FirstByte<'a>, FirstByte<'a>)> {
    let mut timed: Vec<FirstByte<'a>> = all.iter().filter_map(FirstByte::of).collect();
    timed.sort_by_key(|first_byte| std::cmp::Reverse(first_byte.low_ns));
    let mut timed = timed.into_iter();
    let slowest = timed.next()?;
    Some((slowest, timed.max_by_key(|first_byte| first_byte.high_ns)?))
}

fn slow(context: &FindingContext<'_>) -> Option<Severity> {
    if !is_due(context.run) {
        return context.was;
    }
    let (slowest, other) = slowest(&windows(context.run))?;
    let times = slowest.low_ns as f64 / other.high_ns.max(1) as f64;
    context.passes(Severity::Warning, times, TIMES_SLOWER).then_some(Severity::Warning)
}

fn slow_text(context: &FindingContext<'_>) -> FindingText {
    let all = windows(context.run);
    let title = "one upstream is slower than the others";
    let Some((slowest, other)) = slowest(&all) else { return FindingText::new(title) };
    let times = slowest.p99_ns as f64 / other.p99_ns.max(1) as f64;
    FindingText::new(format!("{title}: its p99 of the first byte is {times:.1} times theirs"))
        .figure("p99 of the first byte, last minute", slowest.words())
        .figure("the slowest of the others", other.words())
        .advise("compare what runs on it: load, version, garbage collection, its own upstreams; a connection goes to the upstream with the fewest, so a slow one gets less work, but its clients wait")
        .whom([slowest.upstream.to_owned()])
}

/// Failures of an upstream in a window, and what could fail: attempts to connect, and exchanges.
fn failures(window: &UpstreamWindow) -> Share {
    use UpstreamCounter as U;
    let counters = &window.counters;
    let failed = UpstreamRecord::failed(counters);
    let others = counters.sum(&[U::Connections, U::Exchanges]);
    (failed + counters.sum(&[U::Broken, U::Late]), failed + others)
}

/// Failures, and what could fail.
type Share = (u64, u64);

/// The upstream with the highest share of failures: its name, its own share, and that of all others.
fn worst<'a>(all: &[(&'a UpstreamStats, UpstreamWindow)]) -> Option<(&'a str, Share, Share)> {
    let counted = || all.iter().map(|(upstream, window)| (upstream.name(), failures(window)));
    let (name, of_it) =
        counted().max_by(|(_, (a, of_a)), (_, (b, of_b))| share(*a, *of_a).total_cmp(&share(*b, *of_b)))?;
    let others = counted().filter(|(other, _)| *other != name);
    let of_others = others.fold((0, 0), |(n, whole), (_, (more, of))| (n + more, whole + of));
    Some((name, of_it, of_others))
}

fn failing(context: &FindingContext<'_>) -> Option<Severity> {
    if !is_due(context.run) {
        return context.was;
    }
    let (_, of_it, (n, whole)) = worst(&windows(context.run))?;
    let stands_out = share(of_it.0, of_it.1) >= TIMES_MORE * share(n, whole);
    context.graded(of_it, N_MIN, FAILED).filter(|_| stands_out)
}

fn failing_text(context: &FindingContext<'_>) -> FindingText {
    let all = windows(context.run);
    let Some((name, (n, whole), of_others)) = worst(&all) else { return FindingText::default() };
    FindingText::new(format!("one upstream fails more than the others: {} of what it is asked", percent(share(n, whole))))
        .figure("failed attempts, broken or late, last minute", out_of(n, whole))
        .figure("of all others", out_of(of_others.0, of_others.1))
        .advise("look at its own log, and at the state and the cause in the pane of upstreams (9) or in `tlsdash report`")
        .whom([name.to_owned()])
}
