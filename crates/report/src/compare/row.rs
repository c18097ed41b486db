//! One figure of a comparison, and its outcome.

use std::fmt;

use experiment::{ComparableFigure, CompareOutcome};
use model::figures::FigureUnit;
use records::kinds::{Estimate, ExperimentOutcome};
use records::metrics::{KnownValue, TimeResolution};
use serde::{Serialize, Serializer};

#[derive(Clone, Debug, Serialize)]
pub(crate) struct ComparisonRow {
    pub(crate) metric: String,
    pub(super) unit: &'static str,
    pub(crate) outcome: RowOutcome,
    pub(crate) reason: String,
    /// The figure of each run in its unit, with or without a verdict; `None` without samples.
    pub(crate) a: Option<KnownValue>,
    pub(crate) b: Option<KnownValue>,
    /// The resolution of the figure in each run.
    #[serde(skip)]
    pub(super) resolution: [TimeResolution; 2],
    pub(crate) estimate: Option<Estimate>,
    /// The figure of each block: when it ended, in seconds since its run began, and how much it was.
    #[serde(skip)]
    pub(crate) over_time: [Vec<(f64, Option<f64>)>; 2],
}

/// The outcome for one figure. Only an experiment says which value is better: two runs only differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowOutcome {
    /// The figure differs by more than it varies within the runs.
    Differs,
    /// The experiment shows that the second value is better.
    Better,
    /// The experiment shows that the second value is worse.
    Worse,
    /// No difference is shown, which does not prove that there is none.
    NoDifference,
    /// There are too few blocks or samples.
    Inconclusive,
    /// Losses or a generator at its limit distort the figure, or the log does not tell both values apart.
    NotComparable,
}

impl ComparisonRow {
    /// A figure without a verdict.
    pub(super) fn new(metric: &ComparableFigure, outcome: RowOutcome, reason: String) -> Self {
        Self { unit: metric.unit().symbol(), ..Self::named(metric.name(), outcome, reason) }
    }

    /// A row for a name from a journal; this version may not have such a figure.
    pub(super) fn named(metric: &str, outcome: RowOutcome, reason: String) -> Self {
        let unit = metric.parse().map(|figure: ComparableFigure| figure.unit().symbol());
        Self {
            metric: metric.to_owned(),
            unit: unit.unwrap_or_default(),
            outcome,
            reason,
            a: None,
            b: None,
            resolution: [TimeResolution::FINE; 2],
            estimate: None,
            over_time: [Vec::new(), Vec::new()],
        }
    }
}

impl ComparisonRow {
    /// The row without what the resolution of a log does not allow: two times that it does not tell apart are not
    /// compared, and of a difference from a bound only a bound is known.
    pub(super) fn at_its_resolution(self) -> Self {
        let (Some(a), Some(b)) = (self.a, self.b) else { return self };
        let tells_apart = |resolution: &TimeResolution| resolution.tells_apart(a.number(), b.number());
        if self.is_time() && !self.resolution.iter().all(tells_apart) {
            let reason = "at the log's resolution".to_owned();
            return Self { outcome: RowOutcome::NotComparable, reason, estimate: None, ..self };
        }
        let bound = [("A", a), ("B", b)].into_iter().find(|(_, value)| value.is_bound());
        let Some((name, _)) = bound.filter(|_| self.estimate.is_some()) else { return self };
        let at_least = FigureUnit::Micros.show((a.number() - b.number()).abs());
        let reasons = [self.reason, format!("{at_least} or more, as {name} is at the log's resolution")];
        let reasons: Vec<String> = reasons.into_iter().filter(|reason| !reason.is_empty()).collect();
        Self { reason: reasons.join("; "), estimate: None, ..self }
    }
}

impl fmt::Display for RowOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Differs => f.pad("differs"),
            Self::Better => f.pad("better"),
            Self::Worse => f.pad("worse"),
            Self::NoDifference => f.pad("no difference shown"),
            Self::Inconclusive => f.pad("inconclusive"),
            Self::NotComparable => f.pad("not comparable"),
        }
    }
}

impl From<CompareOutcome> for RowOutcome {
    fn from(finding: CompareOutcome) -> Self {
        match finding {
            CompareOutcome::Differs => Self::Differs,
            CompareOutcome::NoDifference => Self::NoDifference,
            CompareOutcome::Inconclusive => Self::Inconclusive,
        }
    }
}

impl From<ExperimentOutcome> for RowOutcome {
    fn from(outcome: ExperimentOutcome) -> Self {
        match outcome {
            ExperimentOutcome::Better => Self::Better,
            ExperimentOutcome::Worse => Self::Worse,
            ExperimentOutcome::NoDifference => Self::NoDifference,
            ExperimentOutcome::Pending | ExperimentOutcome::Inconclusive => Self::Inconclusive,
        }
    }
}

impl RowOutcome {
    /// Whether the figure changed by more than chance.
    pub(crate) fn shows_difference(self) -> bool {
        match self {
            Self::Differs | Self::Better | Self::Worse => true,
            Self::NoDifference | Self::Inconclusive | Self::NotComparable => false,
        }
    }
}

impl Serialize for RowOutcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
