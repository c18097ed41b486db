//! The comparison of two runs, figure by figure.

mod cut;
mod differences;
mod experiments;
mod reasons;
mod row;
mod text;

use std::time::Duration;

use experiment::{ComparableFigure, RunBlocks, alpha_of, compare};
use model::runs::Run;
use records::metrics::LoadLatency;
use serde::Serialize;

use crate::report::Report;
use cut::Cut;
pub(crate) use differences::{Difference, side_by_side};
use differences::{differences, obstacle, unlike};
pub(crate) use experiments::ComparedExperiment;
pub use experiments::{ExperimentComparison, NoExperiment, experiments};
pub(crate) use reasons::ReasonShare;
use reasons::reason_shares;
pub(crate) use row::{ComparisonRow, RowOutcome};
pub(crate) use text::{digits, probability};

#[derive(Clone, Debug)]
pub struct CompareOptions {
    /// The figures to compare; if empty, the usual ones that both runs have.
    pub metrics: Vec<ComparableFigure>,
    /// Length of a block; by default, by the length of the runs.
    pub block: Option<Duration>,
    /// Time at the start of each run that is left out; by default, by the length of the runs.
    pub discard: Option<Duration>,
    /// Compares runs that are not comparable, too.
    pub force: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotComparable {
    /// They differ in something that affects every figure.
    #[error("not comparable: {}; --force compares them all the same", .0.join("; "))]
    Unlike(Vec<String>),
    /// No figure has enough samples in both runs.
    #[error("not comparable: the runs have no figure in common that has enough samples")]
    NoCommonFigure,
}

#[derive(Debug, Serialize)]
pub struct Comparison<'a> {
    schema: u64,
    /// The result in a sentence or two.
    pub(crate) verdict: String,
    /// Why the runs are not comparable, and were compared only because that was forced.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) forced: Vec<String>,
    pub(crate) a: ComparedRun<'a>,
    pub(crate) b: ComparedRun<'a>,
    pub(crate) block_s: f64,
    pub(crate) discard_s: f64,
    pub(crate) differs: Vec<Difference>,
    pub(crate) metrics: Vec<ComparisonRow>,
    /// Why handshakes were full in each; absent without a record.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) full_by_reason: Vec<ReasonShare>,
    pub(crate) notes: Vec<String>,
    /// The command that makes this comparison again.
    pub(crate) command: &'a str,
}

impl Comparison<'_> {
    /// A heading with the targets.
    pub(crate) fn title(&self) -> String {
        let [a, b] = [self.a.report, self.b.report].map(Report::target);
        if a == b {
            return format!("tlsdash: {a}: two runs compared");
        }
        format!("tlsdash: {a} (A) and {b} (B) compared")
    }
}

/// One of the two runs.
#[derive(Debug, Serialize)]
pub(crate) struct ComparedRun<'a> {
    #[serde(skip)]
    pub(crate) report: &'a Report<'a>,
    source: &'a str,
    run: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<u32>,
    #[serde(skip_serializing_if = "str::is_empty")]
    unit: &'a str,
    duration_s: f64,
    blocks: usize,
    /// Caveats about its figures.
    pub(crate) quality: Vec<String>,
}

/// Compares two runs, at the wish of `command`.
///
/// # Errors
/// If the settings of one are not known, the load differed, a setting changed during one of them, or they have no figure in common.
pub fn comparison<'a>(
    a: &'a Report<'a>,
    b: &'a Report<'a>,
    how: &CompareOptions,
    command: &'a str,
) -> Result<Comparison<'a>, NotComparable> {
    let differs = differences(a.run, b.run);
    let unlike = unlike(a.run, b.run, &differs);
    if !unlike.is_empty() && !how.force {
        return Err(NotComparable::Unlike(unlike));
    }
    let forced = unlike;
    let metrics = if how.metrics.is_empty() { usual(a.run, b.run) } else { how.metrics.clone() };
    if metrics.is_empty() {
        return Err(NotComparable::NoCommonFigure);
    }
    let cut = Cut::of([a, b], how);
    let blocks = [a, b].map(|side| cut.blocks(side.run, &metrics));
    let counts = blocks.each_ref().map(|blocks| blocks.values.len());
    let judge = (alpha_of(metrics.len()), how.force);
    let row = |(at, metric): (usize, &ComparableFigure)| row(metric, at, [a, b], &blocks, &cut, judge);
    let rows: Vec<ComparisonRow> = metrics.iter().enumerate().map(row).collect();
    let mut notes = differences::notes(a, b, &differs);
    notes.extend(cut.advice(counts[0].min(counts[1])));
    Ok(Comparison {
        schema: 1,
        verdict: text::verdict(&rows),
        forced,
        a: ComparedRun::new(a, counts[0]),
        b: ComparedRun::new(b, counts[1]),
        block_s: cut.block.as_secs_f64(),
        discard_s: cut.discard.as_secs_f64(),
        notes,
        metrics: rows,
        full_by_reason: reason_shares([a, b]),
        differs,
        command,
    })
}

/// Compares the figure at index `at` of the blocks.
fn row(
    metric: &ComparableFigure,
    at: usize,
    runs: [&Report<'_>; 2],
    blocks: &[RunBlocks; 2],
    cut: &Cut,
    (alpha, force): (f64, bool),
) -> ComparisonRow {
    let [a, b] = blocks.each_ref().map(|blocks| &*blocks.values);
    let compared = compare(metric, at, a, b, alpha);
    let obstacle = obstacle(metric, runs[0], runs[1]);
    let too_short = compared.estimate.and_then(|_| cut.too_short(a.len().min(b.len())));
    let (outcome, reason, estimate) = match (obstacle, too_short) {
        (Some(reason), _) if !force => (RowOutcome::NotComparable, reason, None),
        (obstacle, too_short) => {
            let outcome =
                if too_short.is_some() { RowOutcome::Inconclusive } else { compared.finding.into() };
            let reasons = obstacle.into_iter().chain([too_short.unwrap_or(compared.reason)]);
            let reasons: Vec<String> = reasons.filter(|reason| !reason.is_empty()).collect();
            (outcome, reasons.join("; "), compared.estimate)
        }
    };
    let over = |blocks: &[Vec<_>]| metric.over(blocks.iter().filter_map(|values| values.get(at)));
    let resolution = runs.map(|report| metric.resolution(report.run));
    let known = |value: Option<f64>, resolution| value.map(|value| metric.known(value, resolution));
    let over_time = |(run, blocks): (&Report<'_>, &RunBlocks)| {
        let figures = blocks.values.iter().map(|values| metric.over(values.get(at).into_iter()));
        blocks.ends_us.iter().map(|end_us| run.seconds_at(*end_us)).zip(figures).collect()
    };
    ComparisonRow {
        a: known(over(a), resolution[0]),
        b: known(over(b), resolution[1]),
        resolution,
        estimate,
        over_time: [over_time((runs[0], &blocks[0])), over_time((runs[1], &blocks[1]))],
        ..ComparisonRow::new(metric, outcome, reason)
    }
    .at_its_resolution()
}

/// Whether both had an open loop, whose responses are timed from when they should have been sent.
pub(crate) fn are_open(a: &Run, b: &Run) -> bool {
    let is_open = |run: &Run| run.load().is_some_and(|load| !load.whole()[LoadLatency::Response].is_empty());
    is_open(a) && is_open(b)
}

/// The usual figures with enough samples in both runs, at most eight.
fn usual(a: &Run, b: &Run) -> Vec<ComparableFigure> {
    const BOTH: [&str; 5] =
        ["exchange.p50", "exchange.p99", "handshake_full.p50", "handshake_resumed.p50", "cpu.per_exchange"];
    const HTTP: [&str; 5] = [
        "http.upstream.p50",
        "http.upstream.p99",
        "handshake_full.p50",
        "handshake_resumed.p50",
        "http.cpu.per_request",
    ];
    let of_load: &[&str] = if are_open(a, b) {
        &["response.p50", "response.p99"]
    } else {
        &["requests.rate", "service.p50", "service.p99"]
    };
    let is_http = [a, b].iter().all(|run| run.http().is_some());
    let of_proxy = if is_http { &HTTP } else { &BOTH };
    let metrics = of_load.iter().chain(of_proxy).filter_map(|name| name.parse::<ComparableFigure>().ok());
    metrics.filter(|metric| [a, b].iter().all(|run| metric.has_samples(run))).collect()
}

impl Comparison<'_> {
    /// The comparison as JSON (docs/compare.md).
    ///
    /// # Errors
    /// None for any run that a journal can hold.
    pub fn json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}

impl<'a> ComparedRun<'a> {
    fn new(report: &'a Report<'a>, blocks: usize) -> Self {
        Self {
            source: &report.source,
            run: &report.summary.run,
            uid: report.summary.uid,
            unit: &report.summary.unit,
            duration_s: report.summary.duration_s,
            quality: report.quality(),
            report,
            blocks,
        }
    }
}
