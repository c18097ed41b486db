//! How the targets compare in a case.

use std::collections::BTreeSet;

use experiment::{Ratio, median, sign_flip_p_of_pairs};
use model::figures::FigureUnit;
use serde::Serialize;

use super::figure::{CPU_PER_REQUEST, CellFigure, RATE_ACHIEVED};
use super::pairs::{CellsByRound, figures_of};
use super::serialize;
use super::verdict::CaseVerdict;
use crate::results::CellResult;
use crate::scenario::{BenchCase, LatencyBound, Question, Scenario};

/// How the targets compare in a case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CaseComparison {
    pub name: String,
    pub question: Question,
    /// The latency bound of a capacity case.
    pub bound: Option<LatencyBound>,
    /// Whether it has verdicts.
    pub primary: bool,
    /// The figure that the verdicts are about.
    pub figure: String,
    /// The requests per second that were asked of an open loop: the median, as capacity differs by target.
    pub rate: Option<f64>,
    /// The targets, in the order of the scenario.
    pub targets: Vec<TargetComparison>,
}

/// How a target compares with the baseline in a case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TargetComparison {
    pub name: String,
    /// The rounds in which it was measured.
    pub rounds_run: u32,
    /// The rounds that the ratio of the primary figure rests on; of the baseline those with usable cells.
    pub rounds_used: u32,
    pub figures: Vec<CellFigureComparison>,
    /// The verdict on the primary figure; `None` for the baseline, and for a case without verdicts.
    pub verdict: Option<CaseVerdict>,
    /// The p-value of the sign-flip test on the ratio of the primary figure; 1 without a ratio.
    pub p_sign_flip: f64,
    /// The negotiated parameters; several if they differed between rounds.
    pub negotiated: BTreeSet<String>,
    /// Why figures are less certain than they seem, or missing.
    pub remarks: Vec<Remark>,
    /// The latency curve: percentiles of the response time in microseconds, medians over rounds.
    pub response_curve: Vec<(f64, f64)>,
}

/// A figure of a target in a case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellFigureComparison {
    /// Its name in the catalogue, or in [`USAGE_FIGURES`](crate::compare::USAGE_FIGURES).
    pub name: String,
    #[serde(serialize_with = "serialize::unit")]
    pub unit: FigureUnit,
    /// The median over rounds.
    pub median: f64,
    /// The smallest value of a round.
    pub min: f64,
    /// The largest value of a round.
    pub max: f64,
    /// True if no round of it is free of doubt: the median is of doubtful ones.
    pub is_doubtful: bool,
    /// The ratio to the baseline; `None` for the baseline, and if they cannot be compared.
    pub ratio: Option<Ratio>,
    /// Why there is no ratio, in words.
    pub withheld: Option<String>,
}

/// A remark on a target in a case, and the rounds that it is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Remark {
    pub text: String,
    pub rounds: Vec<u32>,
    #[serde(skip)]
    pub weight: RemarkWeight,
}

/// How much a remark matters, the weightiest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RemarkWeight {
    /// It voids the figure that the verdict is about.
    VoidsPrimary,
    /// It voids other figures.
    VoidsOthers,
    /// It voids no figure.
    Qualifies,
}

impl CaseComparison {
    pub(super) fn of(scenario: &Scenario, case: &BenchCase, cells: &[CellResult]) -> Self {
        let of_target = |target: &str| CellsByRound::new(cells, &case.name, target);
        let baseline = of_target(&scenario.baseline);
        let targets = scenario.targets.iter().filter(|target| case.is_for(target));
        let targets: Vec<(&str, CellsByRound<'_>)> =
            targets.map(|target| (&*target.name, of_target(&target.name))).collect();
        let all: Vec<&CellResult> = targets.iter().flat_map(|(_, cells)| cells.all()).collect();
        let figures = figures_of(&all);
        let name = primary_figure(case.question);
        let primary: Option<CellFigure> = name.parse().ok();
        let compare = |(name, cells): &(&str, CellsByRound<'_>)| {
            let beside = (*name != scenario.baseline).then_some(&baseline);
            TargetComparison::of(name, cells, beside, &figures, primary.as_ref())
        };
        let rates: Vec<f64> = all.iter().filter_map(|cell| cell.rate).collect();
        Self {
            name: case.name.clone(),
            question: case.question,
            bound: case.bound,
            primary: case.primary,
            figure: name.to_owned(),
            rate: (!rates.is_empty()).then(|| median(rates)),
            targets: targets.iter().map(compare).collect(),
        }
    }

    pub fn target(&self, name: &str) -> Option<&TargetComparison> {
        self.targets.iter().find(|target| target.name == name)
    }

    /// True if a target has the primary figure in a round without doubt.
    pub fn has_usable_round(&self) -> bool {
        let figures = self.targets.iter().filter_map(|target| target.figure(&self.figure));
        figures.into_iter().any(|figure| !figure.is_doubtful)
    }
}

impl TargetComparison {
    fn of(
        name: &str,
        cells: &CellsByRound<'_>,
        baseline: Option<&CellsByRound<'_>>,
        figures: &[CellFigure],
        primary: Option<&CellFigure>,
    ) -> Self {
        let figures: Vec<CellFigureComparison> =
            figures.iter().filter_map(|figure| cells.compare(figure, baseline)).collect();
        let pairs = baseline.zip(primary).and_then(|(baseline, figure)| cells.pairs(figure, baseline).ok());
        let rounds_used = match baseline {
            Some(_) => pairs.as_ref().map_or(0, Vec::len),
            None => primary.map_or(0, |figure| cells.usable_rounds(figure)),
        };
        Self {
            name: name.to_owned(),
            rounds_run: cells.all().count() as u32,
            rounds_used: rounds_used as u32,
            figures,
            verdict: None,
            p_sign_flip: pairs.map_or(1.0, |pairs| sign_flip_p_of_pairs(&pairs)),
            negotiated: cells.negotiated(),
            remarks: cells.remarks(primary),
            response_curve: cells.response_curve(),
        }
    }

    pub fn figure(&self, name: &str) -> Option<&CellFigureComparison> {
        self.figures.iter().find(|figure| figure.name == name)
    }
}

/// The figure that answers the question.
fn primary_figure(question: Question) -> &'static str {
    match question {
        Question::Cost | Question::Load => CPU_PER_REQUEST,
        Question::Capacity => RATE_ACHIEVED,
    }
}
