//! One figure of a comparison, and what it came to.

use std::fmt;

use experiment::{ComparableFigure, Estimate, Finding};
use serde::{Serialize, Serializer};

/// The result for one figure.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct ComparisonRow {
    pub(crate) metric: String,
    pub(super) unit: &'static str,
    pub(crate) outcome: RowOutcome,
    pub(crate) reason: String,
    /// The figure of each run in its unit, with or without a verdict; `None` without samples.
    pub(crate) a: Option<f64>,
    pub(crate) b: Option<f64>,
    pub(crate) estimate: Option<RowEstimate>,
    /// The figure of each block: when it ended, in seconds since its run began, and how much it was.
    #[serde(skip)]
    pub(crate) over_time: [Vec<(f64, Option<f64>)>; 2],
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

impl From<Estimate> for RowEstimate {
    fn from(estimate: Estimate) -> Self {
        Self {
            a: estimate.a,
            b: estimate.b,
            effect_percent: estimate.effect,
            low_percent: estimate.low,
            high_percent: estimate.high,
            confidence_percent: (1.0 - estimate.alpha) * 100.0,
            p: estimate.p,
        }
    }
}

impl ComparisonRow {
    /// A figure without a verdict.
    pub(super) fn new(metric: &ComparableFigure, outcome: RowOutcome, reason: String) -> Self {
        Self {
            metric: metric.name().to_owned(),
            unit: metric.unit().symbol(),
            outcome,
            reason,
            a: None,
            b: None,
            estimate: None,
            over_time: [Vec::new(), Vec::new()],
        }
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
