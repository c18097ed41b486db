//! Conditions on a comparison, such as `ratio < 0.8` or `response.p99 < 5ms`.
//!
//! A ratio must meet its limit with its whole 95 % interval; a figure must meet it with its median.

use std::fmt;
use std::str::FromStr;

use experiment::Ratio;
use model::figures::{Bound, ConditionError, FigureUnit, Operator, WrongUnit};
use serde::Serialize;

use super::figure::UnknownCellFigure;
use super::{CaseComparison, CellFigure, TargetComparison};
use crate::scenario::{BenchAssertion, ROUNDS_MIN, Scenario};

/// A condition on a target: on its ratio to the baseline, or on a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct BenchCondition {
    text: String,
    /// `None` means the ratio.
    figure: Option<CellFigure>,
    operator: Operator,
    limit: f64,
}

/// Why a text is not a condition on a target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BenchConditionError {
    #[error(transparent)]
    Syntax(ConditionError),
    #[error("{0}: {1}")]
    Unknown(String, UnknownCellFigure),
    /// The value has another unit than the figure.
    #[error("{0}: {1}")]
    Unit(String, WrongUnit),
    /// A ratio has an interval, which is never equal to a number.
    #[error("{0}: a ratio is compared with <, <=, > or >=")]
    Equality(String),
}

impl FromStr for BenchCondition {
    type Err = BenchConditionError;

    fn from_str(text: &str) -> Result<Self, BenchConditionError> {
        let (name, bound) = Bound::split(text).map_err(BenchConditionError::Syntax)?;
        let text = records::text::clean::text(text);
        let figure = match name {
            "ratio" => None,
            name => Some(
                name.parse::<CellFigure>()
                    .map_err(|error| BenchConditionError::Unknown(text.clone(), error))?,
            ),
        };
        let operator = bound.operator();
        if figure.is_none() && matches!(operator, Operator::Equal | Operator::Unequal) {
            return Err(BenchConditionError::Equality(text));
        }
        let limit = match &figure {
            Some(CellFigure::Load(figure)) => bound.limit_of(name, figure),
            Some(CellFigure::Usage(figure)) => bound.limit_in(name, figure.unit),
            None => bound.limit_in(name, FigureUnit::Count),
        };
        let limit = limit.map_err(|error| BenchConditionError::Unit(text.clone(), error))?;
        Ok(Self { text, figure, operator, limit })
    }
}

impl fmt::Display for BenchCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// A condition of the scenario on a target in a case, with its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BenchAssertionResult {
    /// The line of the scenario that states it, from 1.
    pub line: usize,
    pub target: String,
    pub case: String,
    pub condition: String,
    pub outcome: BenchAssertionOutcome,
}

/// The outcome of a condition, with the compared values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "result", content = "reason")]
pub enum BenchAssertionOutcome {
    Holds(String),
    /// It does not hold, or the outcome is unknown.
    Breached(String),
}

/// Checks the conditions of a scenario, each in every case that it is about.
pub(crate) fn check(scenario: &Scenario, cases: &[CaseComparison]) -> Vec<BenchAssertionResult> {
    let of_cases = |assertion: &BenchAssertion| -> Vec<BenchAssertionResult> {
        let is_known = scenario.targets.iter().any(|target| target.name == assertion.target);
        let is_meant = |case: &&CaseComparison| match &assertion.case {
            Some(name) => *name == case.name,
            // The target may be left out of a case; a target that is in none is a breach.
            None => !is_known || case.target(&assertion.target).is_some(),
        };
        let cases = cases.iter().filter(is_meant);
        cases.map(|case| result(assertion, case, &scenario.baseline)).collect()
    };
    scenario.assertions.iter().flat_map(of_cases).collect()
}

fn result(assertion: &BenchAssertion, case: &CaseComparison, baseline: &str) -> BenchAssertionResult {
    let outcome = match (assertion.condition.parse::<BenchCondition>(), case.target(&assertion.target)) {
        (Err(error), _) => Err(error.to_string()),
        (Ok(_), None) => Err(format!("there is no target {}", assertion.target)),
        (Ok(condition), Some(target)) => condition.check(target, case, baseline),
    };
    BenchAssertionResult {
        line: assertion.line,
        target: assertion.target.clone(),
        case: case.name.clone(),
        condition: assertion.condition.clone(),
        outcome: outcome.map_or_else(BenchAssertionOutcome::Breached, BenchAssertionOutcome::Holds),
    }
}

impl BenchCondition {
    /// What makes it hold, or what does not.
    fn check(
        &self,
        target: &TargetComparison,
        case: &CaseComparison,
        baseline: &str,
    ) -> Result<String, String> {
        match &self.figure {
            None if target.name == baseline => Err(format!("{baseline} is the baseline")),
            None => self.check_ratio(target, &case.figure),
            Some(figure) => self.check_median(target, figure),
        }
    }

    fn check_ratio(&self, target: &TargetComparison, figure: &str) -> Result<String, String> {
        let compared = target.figure(figure).ok_or_else(|| format!("{figure} is unknown"))?;
        let missing = || compared.withheld.clone().unwrap_or_default();
        let Ratio { mean, low, high, pairs, .. } = compared.ratio.ok_or_else(missing)?;
        if pairs < ROUNDS_MIN as usize {
            return Err(format!("{pairs} of the {ROUNDS_MIN} rounds that it takes"));
        }
        let end = match self.operator {
            Operator::Below | Operator::AtMost => high,
            _ => low,
        };
        self.hold(end, &format!("it is {mean:.3}, 95 % interval {low:.3} to {high:.3}"))
    }

    fn check_median(&self, target: &TargetComparison, figure: &CellFigure) -> Result<String, String> {
        let compared = target.figure(&figure.name()).ok_or_else(|| format!("{figure} is unknown"))?;
        if compared.is_doubtful {
            let reason = target.remarks.first().map_or("", |remark| &remark.text);
            return Err(format!("every round is in doubt: {reason}"));
        }
        if let Some((needed, samples)) = figure.samples_min() {
            let n = target.figure(&samples.name()).map_or(0.0, |samples| samples.median);
            if n < needed {
                return Err(format!("too few samples: {n:.0} of the {needed:.0} that it takes"));
            }
        }
        self.hold(compared.median, &format!("its median is {}", figure.unit().show(compared.median)))
    }

    fn hold(&self, value: f64, found: &str) -> Result<String, String> {
        if self.operator.holds(value, self.limit) {
            return Ok(found.to_owned());
        }
        let distance = self.operator.distance(value, self.limit);
        Err(distance.map_or_else(|| found.to_owned(), |distance| format!("{found}, {distance}")))
    }
}
