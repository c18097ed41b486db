//! The A/B experiments of a run, in the forms of a comparison.

use std::fmt::Write as _;

use experiment::{BlockValue, ComparableFigure, blocks_between};
use model::runs::{ComparedFigure, Experiment};
use model::summary::both_figures;
use records::kinds::{Arm, Estimate, Stage};
use records::metrics::KnownValue;
use serde::Serialize;

use super::row::{ComparisonRow, RowOutcome};
use super::text::{self, HEADS};
use crate::report::Report;
use crate::text::markdown;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the run has no A/B experiment")]
pub struct NoExperiment;

/// The verdicts of the experiments of a run.
#[derive(Debug, Serialize)]
pub struct ExperimentComparison<'a> {
    schema: u64,
    /// The results in sentences.
    pub(crate) verdict: String,
    source: &'a str,
    run: &'a str,
    duration_s: f64,
    quality: Vec<String>,
    pub(crate) experiments: Vec<ComparedExperiment>,
    /// The command that makes this comparison again.
    pub(crate) command: &'a str,
    #[serde(skip)]
    pub(crate) report: &'a Report<'a>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ComparedExperiment {
    pub(crate) setting: String,
    pub(crate) a: String,
    pub(crate) b: String,
    pub(crate) verdict: String,
    pub(crate) block_s: f64,
    pub(crate) discard_s: f64,
    pub(crate) seed: u64,
    /// The figures, the primary one first.
    pub(crate) metrics: Vec<ComparisonRow>,
    /// The figures of the stage that has the first value in both arms and must show no difference; empty without this
    /// stage.
    pub(crate) calibration: Vec<ComparisonRow>,
}

/// Compares the values that the experiments of a run switched, at the wish of `command`.
///
/// # Errors
/// If the run has none.
pub fn experiments<'a>(
    report: &'a Report<'a>,
    command: &'a str,
) -> Result<ExperimentComparison<'a>, NoExperiment> {
    let experiments: Vec<_> =
        report.run.experiments().map(|experiment| ComparedExperiment::of(report, experiment)).collect();
    if experiments.is_empty() {
        return Err(NoExperiment);
    }
    let verdicts: Vec<&str> = experiments.iter().map(|one: &ComparedExperiment| &*one.verdict).collect();
    Ok(ExperimentComparison {
        schema: 1,
        verdict: verdicts.join(" "),
        source: &report.source,
        run: &report.summary.run,
        duration_s: report.summary.duration_s,
        quality: report.quality(),
        experiments,
        command,
        report,
    })
}

impl ComparedExperiment {
    fn of(report: &Report<'_>, experiment: &Experiment) -> Self {
        let state = &experiment.state;
        let over_time = FiguresOverTime::of(report, experiment);
        let no_verdict = report.run.why_no_verdict(experiment).unwrap_or_default();
        let row = |compared: &ComparedFigure| row(experiment, compared, &over_time, &no_verdict);
        let metrics: Vec<ComparisonRow> = experiment.metrics.iter().map(row).collect();
        let calibration = experiment.metrics.iter().filter_map(calibration).collect();
        Self {
            setting: state.setting.clone(),
            a: state.a.clone(),
            b: state.b.clone(),
            verdict: verdict(experiment, &no_verdict),
            block_s: state.block_us as f64 / 1e6,
            discard_s: state.discard_us as f64 / 1e6,
            seed: state.seed,
            metrics,
            calibration,
        }
    }

    /// The setting with both values.
    pub(crate) fn title(&self) -> String {
        format!("{} {} (A) against {} (B)", self.setting, self.a, self.b)
    }

    /// The names of both arms.
    pub(crate) fn names(&self) -> [String; 2] {
        [("A", &self.a), ("B", &self.b)].map(|(name, value)| format!("{name}, {} {value}", self.setting))
    }

    /// How it was made.
    pub(crate) fn method(&self) -> String {
        format!(
            "pairs of blocks of {} s in random order, the first {} s of each left out, seed {}; interval by bootstrap over the \
             pairs, p by a sign-flip test",
            self.block_s, self.discard_s, self.seed
        )
    }
}

/// Says the verdict on each figure, the primary one first.
fn verdict(experiment: &Experiment, no_verdict: &str) -> String {
    let none = || experiment.state.judged().without_verdict(no_verdict);
    let sentence = |compared: &ComparedFigure| {
        let figures = compared.verdict.as_ref().map(|verdict| both_figures(&compared.metric, verdict));
        format!("{}{}.", experiment.sentence(compared).unwrap_or_else(none), figures.unwrap_or_default())
    };
    let mut sentences: Vec<_> = experiment.metrics.iter().map(sentence).collect();
    // Without a verdict each figure says the same.
    sentences.dedup();
    sentences.join(" ")
}

/// The figures of each block of the comparison, by arm.
struct FiguresOverTime {
    metrics: Vec<ComparableFigure>,
    /// When each block ended, in seconds since the run began, and its values.
    arms: [Vec<(f64, Option<Vec<BlockValue>>)>; 2],
}

impl FiguresOverTime {
    fn of(report: &Report<'_>, experiment: &Experiment) -> Self {
        let metrics: Vec<ComparableFigure> =
            experiment.metrics.iter().filter_map(|compared| compared.metric.parse().ok()).collect();
        let (block_us, discard_us) = (experiment.state.block_us, experiment.state.discard_us);
        let of_arm = |arm: Arm| {
            let switches = experiment.switches().filter(|at| at.stage == Stage::Comparison && at.arm == arm);
            let ranges: Vec<(u64, u64)> =
                switches.map(|at| (at.mono_us + discard_us, at.mono_us + block_us)).collect();
            let values = blocks_between(report.run, &metrics, &ranges);
            ranges.iter().map(|(_, end_us)| report.seconds_at(*end_us)).zip(values).collect()
        };
        Self { arms: [of_arm(Arm::A), of_arm(Arm::B)], metrics }
    }

    fn points(&self, metric: &str) -> [Vec<(f64, Option<f64>)>; 2] {
        let Some(at) = self.metrics.iter().position(|known| known.name() == metric) else {
            return [Vec::new(), Vec::new()];
        };
        let figure = |values: &Vec<BlockValue>| self.metrics[at].over(values.get(at).into_iter());
        let point =
            |(end_s, values): &(f64, Option<Vec<BlockValue>>)| (*end_s, values.as_ref().and_then(figure));
        self.arms.each_ref().map(|blocks| blocks.iter().map(point).collect())
    }
}

fn row(
    experiment: &Experiment,
    compared: &ComparedFigure,
    over_time: &FiguresOverTime,
    no_verdict: &str,
) -> ComparisonRow {
    let over_time = over_time.points(&compared.metric);
    let (outcome, reason, estimate) = match (&compared.verdict, &compared.calibration) {
        (Some(verdict), _) => (verdict.outcome.into(), verdict.reason.clone(), verdict.estimate),
        (None, Some(calibration)) if experiment.is_over() => {
            let reason = format!("a against a came to {}, and b was not tried", calibration.outcome);
            (RowOutcome::Inconclusive, reason, None)
        }
        (None, _) => (RowOutcome::Inconclusive, no_verdict.to_owned(), compared.running),
    };
    ComparisonRow { over_time, ..with_estimate(&compared.metric, outcome, reason, estimate) }
}

fn calibration(compared: &ComparedFigure) -> Option<ComparisonRow> {
    let verdict = compared.calibration.as_ref()?;
    Some(with_estimate(&compared.metric, verdict.outcome.into(), verdict.reason.clone(), verdict.estimate))
}

fn with_estimate(
    metric: &str,
    outcome: RowOutcome,
    reason: String,
    estimate: Option<Estimate>,
) -> ComparisonRow {
    ComparisonRow {
        a: estimate.map(|estimate| KnownValue::Exact(estimate.a)),
        b: estimate.map(|estimate| KnownValue::Exact(estimate.b)),
        estimate,
        ..ComparisonRow::named(metric, outcome, reason)
    }
}

impl ExperimentComparison<'_> {
    /// The comparison as JSON (docs/compare.md).
    ///
    /// # Errors
    /// None for any run that a journal can hold.
    pub fn json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    pub(crate) fn title(&self) -> String {
        format!("{}: A/B experiments", self.report.title())
    }

    /// A line about the run: source, id and length.
    pub(crate) fn source_line(&self) -> String {
        format!("{}, run {}, {:.1} s", self.source, self.run, self.duration_s)
    }

    /// Tables for people.
    pub fn text(&self) -> String {
        let mut out = format!("{}\n\n{}\n", self.verdict, self.source_line());
        for experiment in &self.experiments {
            let _ = writeln!(out, "\n{}: {}", experiment.title(), experiment.method());
            text::table(&mut out, &experiment.metrics);
            if !experiment.calibration.is_empty() {
                let _ = writeln!(out, "A against A, which must show no difference:");
                text::table(&mut out, &experiment.calibration);
            }
        }
        for line in &self.quality {
            let _ = writeln!(out, "{line}");
        }
        out
    }

    pub fn markdown(&self) -> String {
        let mut out = format!(
            "# {}\n\n{}\n\n- {}\n",
            markdown::escaped(&self.title()),
            markdown::escaped(&self.verdict),
            markdown::escaped(&self.source_line())
        );
        for experiment in &self.experiments {
            let mut table = |title: &str, rows: &[ComparisonRow]| {
                markdown::table(&mut out, title, &HEADS, rows.iter().map(|row| row.cells().to_vec()));
            };
            table(&markdown::escaped(&experiment.title()), &experiment.metrics);
            table("A against A, which must show no difference", &experiment.calibration);
            let _ = writeln!(out, "\nBy {}.", markdown::escaped(&experiment.method()));
        }
        let _ = writeln!(out, "\nMade by {}", markdown::escaped(self.command));
        out
    }
}
