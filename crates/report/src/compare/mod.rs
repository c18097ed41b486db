//! The comparison of two runs, figure by figure.

mod differences;
mod text;

use std::fmt;
use std::time::Duration;

use experiment::{BLOCKS_MIN, ComparableFigure, Estimate, Finding, alpha_of, blocks, compare};
use serde::{Serialize, Serializer};
use telemetry::LoadLatency;
use telemetry::model::Run;

use crate::report::Report;
pub(crate) use differences::side_by_side;
use differences::{Difference, changed_during, differences, obstacle};
pub(crate) use text::{digits, probability};

/// The shortest quarter of a run that outlasts a busy neighbour, in seconds. Whatever varies for longer than a quarter
/// counts as a difference (docs/compare.md has the rates).
const QUARTER_S_MIN: f64 = 30.0;

/// How runs are compared.
#[derive(Clone, Debug)]
pub struct CompareOptions {
    /// The figures to compare; if empty, the usual ones that both runs have.
    pub metrics: Vec<ComparableFigure>,
    /// Length of a block.
    pub block: Duration,
    /// Time at the start of each run that is left out.
    pub discard: Duration,
}

/// Why two runs cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotComparable {
    /// The first record of a run is missing, and with it the settings.
    #[error("not comparable: the first record of {0} run was not read, so that its settings are not known")]
    SettingsUnknown(&'static str),
    /// A setting had several values during a run.
    #[error("not comparable: {setting} changed during {run} run")]
    SettingChanged {
        /// The setting.
        setting: String,
        /// Which of the two runs.
        run: &'static str,
    },
    /// The settings of the load differ.
    #[error("not comparable: the load differed: {}", .0.join(", "))]
    LoadDiffers(Vec<String>),
    /// No figure has enough samples in both runs.
    #[error("not comparable: the runs have no figure in common that has enough samples")]
    NoCommonFigure,
}

/// The result of comparing two runs.
#[derive(Debug, Serialize)]
pub struct Comparison<'a> {
    schema: u64,
    /// The result in a sentence or two.
    pub(crate) verdict: String,
    pub(crate) a: ComparedRun<'a>,
    pub(crate) b: ComparedRun<'a>,
    pub(crate) block_s: f64,
    pub(crate) discard_s: f64,
    /// Settings that differ.
    pub(crate) differs: Vec<Difference>,
    pub(crate) metrics: Vec<ComparisonRow>,
    pub(crate) notes: Vec<String>,
    /// The command that makes this comparison again.
    pub(crate) command: &'a str,
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
    /// What limits the trust in its figures.
    pub(crate) quality: Vec<String>,
}

/// The result for one figure.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ComparisonRow {
    pub(crate) metric: String,
    unit: &'static str,
    pub(crate) outcome: RowOutcome,
    pub(crate) reason: String,
    pub(crate) estimate: Option<RowEstimate>,
}

/// The outcome for one figure. It never says which run is better: that takes an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowOutcome {
    /// The figure differs by more than it varies within the runs.
    Differs,
    /// No difference is shown, which does not prove that there is none.
    NoDifference,
    /// There are too few blocks or samples.
    Inconclusive,
    /// Losses or a generator at its limit distort the figure.
    NotComparable,
}

/// Effects are in percent of the first run's figure, of shares in percentage points.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct RowEstimate {
    pub(crate) a: f64,
    pub(crate) b: f64,
    pub(crate) effect_percent: f64,
    pub(crate) low_percent: f64,
    pub(crate) high_percent: f64,
    pub(crate) confidence_percent: f64,
    pub(crate) p: f64,
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
    for (name, side) in [("the first", a), ("the second", b)] {
        // Two stretches of one run need no first record: it began with the same settings for both.
        if side.run.began().is_none() && a.run.id() != b.run.id() {
            return Err(NotComparable::SettingsUnknown(name));
        }
        if let Some(setting) = changed_during(side.run) {
            return Err(NotComparable::SettingChanged { setting, run: name });
        }
    }
    let differs = differences(a.run, b.run);
    let loads: Vec<String> = differs
        .iter()
        .filter(|Difference(name, ..)| name.starts_with("load."))
        .map(|Difference(name, a, b)| format!("{name} {a} and {b}"))
        .collect();
    if !loads.is_empty() {
        return Err(NotComparable::LoadDiffers(loads));
    }
    let metrics = if how.metrics.is_empty() { usual(a.run, b.run) } else { how.metrics.clone() };
    if metrics.is_empty() {
        return Err(NotComparable::NoCommonFigure);
    }
    let [of_a, of_b] = [a, b].map(|side| blocks(side.run, &metrics, how.block, how.discard));
    let alpha = alpha_of(metrics.len());
    let row = |(at, metric): (usize, &ComparableFigure)| {
        if let Some(reason) = obstacle(metric, a, b) {
            return ComparisonRow::new(metric, RowOutcome::NotComparable, reason, None);
        }
        let compared = compare(metric, at, &of_a, &of_b, alpha);
        ComparisonRow::new(metric, compared.finding.into(), compared.reason, compared.estimate)
    };
    let rows: Vec<ComparisonRow> = metrics.iter().enumerate().map(row).collect();
    let mut notes = differences::notes(a, b, &differs);
    notes.extend(too_short([a, b], of_a.len().min(of_b.len()), how));
    Ok(Comparison {
        schema: 1,
        verdict: text::verdict(&rows),
        a: ComparedRun::new(a, of_a.len()),
        b: ComparedRun::new(b, of_b.len()),
        block_s: how.block.as_secs_f64(),
        discard_s: how.discard.as_secs_f64(),
        notes,
        metrics: rows,
        differs,
        command,
    })
}

/// What would give enough blocks, or quarters that are long enough.
fn too_short(reports: [&Report<'_>; 2], fewest: usize, how: &CompareOptions) -> Option<String> {
    let (needed, block_s) = (BLOCKS_MIN as f64, how.block.as_secs_f64());
    if fewest >= BLOCKS_MIN {
        let quarter_s = fewest as f64 / needed * block_s;
        let long_s = how.discard.as_secs_f64() + needed * QUARTER_S_MIN;
        return (quarter_s < QUARTER_S_MIN).then(|| {
            format!(
                "a quarter of a run is {quarter_s:.1} s long, and what a neighbour does for longer counts as a \
                 difference; runs of {long_s:.0} s or more tell better"
            )
        });
    }
    let lasted_s = reports.map(|report| report.summary.duration_s).into_iter().fold(f64::INFINITY, f64::min);
    let usable_s = lasted_s - how.discard.as_secs_f64();
    let long_s = how.discard.as_secs_f64() + needed * block_s;
    if lasted_s >= long_s {
        return Some("blocks of which an interval is missing do not count; longer runs have more".to_owned());
    }
    let longer = format!("runs of {long_s:.0} s would have enough blocks");
    // A block is some intervals at least, which are of a second if nobody asked for others.
    Some(match (usable_s / needed).floor() {
        seconds @ 2.0.. if seconds < block_s => {
            format!("{longer}, and so would these with --block {seconds:.0}s")
        }
        _ => longer,
    })
}

/// Whether both had an open loop, whose responses are timed from when they should have been sent.
pub(crate) fn are_open(a: &Run, b: &Run) -> bool {
    let is_open = |run: &Run| run.load().is_some_and(|load| !load.whole()[LoadLatency::Response].is_empty());
    is_open(a) && is_open(b)
}

/// The usual figures of which both runs have enough samples, at most eight.
fn usual(a: &Run, b: &Run) -> Vec<ComparableFigure> {
    const BOTH: [&str; 5] =
        ["exchange.p50", "exchange.p99", "handshake_full.p50", "handshake_resumed.p50", "cpu.per_exchange"];
    let of_load: &[&str] = if are_open(a, b) {
        &["response.p50", "response.p99"]
    } else {
        &["requests.rate", "service.p50", "service.p99"]
    };
    let metrics = of_load.iter().chain(&BOTH).filter_map(|name| name.parse::<ComparableFigure>().ok());
    metrics.filter(|metric| [a, b].iter().all(|run| metric.has_samples(run))).collect()
}

impl Comparison<'_> {
    /// The same as JSON (docs/compare.md).
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

impl ComparisonRow {
    fn new(
        metric: &ComparableFigure,
        outcome: RowOutcome,
        reason: String,
        estimate: Option<Estimate>,
    ) -> Self {
        let figures = |estimate: Estimate| RowEstimate {
            a: estimate.a,
            b: estimate.b,
            effect_percent: estimate.effect,
            low_percent: estimate.low,
            high_percent: estimate.high,
            confidence_percent: (1.0 - estimate.alpha) * 100.0,
            p: estimate.p,
        };
        let unit = metric.unit().symbol();
        let metric = metric.name().to_owned();
        Self { metric, unit, outcome, reason, estimate: estimate.map(figures) }
    }
}

impl fmt::Display for RowOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Differs => f.pad("differs"),
            Self::NoDifference => f.pad("no difference shown"),
            Self::Inconclusive => f.pad("inconclusive"),
            Self::NotComparable => f.pad("not comparable"),
        }
    }
}

impl From<Finding> for RowOutcome {
    fn from(finding: Finding) -> Self {
        match finding {
            Finding::Differs => Self::Differs,
            Finding::NoDifference => Self::NoDifference,
            Finding::Inconclusive => Self::Inconclusive,
        }
    }
}

impl Serialize for RowOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
