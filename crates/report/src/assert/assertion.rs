//! Conditions that a run must meet, such as `response.p99 < 5ms`.

use std::fmt;
use std::str::FromStr;

use model::figures::{
    AbsentSubject, Condition, ConditionError, Figure, FigureSide, FigureSubjects, FigureUnit, UnknownFigure,
    WrongUnit,
};
use records::metrics::KnownValue;

use crate::figures::Figures;

/// A condition that a run must meet.
#[derive(Clone, Debug, PartialEq)]
pub struct Assertion(Condition);

/// Why a text is not an assertion, or not an assertion for this run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssertionError {
    #[error(
        "{0:?} is no assertion; expected METRIC < VALUE such as 'response.p99 < 5ms', or with <=, >, >=, == or !="
    )]
    NoComparison(String),
    #[error("{0}: {1}")]
    Unknown(String, UnknownFigure),
    /// The run lacks the subject of the figure.
    #[error("{0}: the run has no {1}")]
    Absent(String, AbsentSubject),
    #[error(transparent)]
    Value(ConditionError),
    /// The value has another unit than the figure.
    #[error("{0}: {1}")]
    Unit(String, WrongUnit),
}

impl fmt::Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Assertion {
    type Err = AssertionError;

    fn from_str(text: &str) -> Result<Self, AssertionError> {
        text.parse().map(Self).map_err(|error| match error {
            ConditionError::NoOperator(text) => AssertionError::NoComparison(text),
            ConditionError::Unknown(text, error) => AssertionError::Unknown(text, error),
            error @ ConditionError::Value(_) => AssertionError::Value(error),
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AssertionOutcome {
    Holds,
    /// It does not hold: why, and by how much.
    Breached(String),
}

impl Assertion {
    /// Checks that this run has the figure, and that the value has its unit.
    ///
    /// # Errors
    /// With the subject that the run lacks, or the right form of the value.
    pub fn is_known(&self, figures: &Figures<'_>) -> Result<(), AssertionError> {
        self.is_known_as(figures.find(self.0.figure()))
    }

    /// Checks before a load that the figure will exist.
    ///
    /// # Errors
    /// With the subject that a load lacks, or the right form of the value.
    pub fn is_known_of_load(&self) -> Result<(), AssertionError> {
        let sides = [FigureSide::Run, FigureSide::Process, FigureSide::Observed, FigureSide::Load];
        let subjects = FigureSubjects::new(sides.to_vec(), &[], &[]);
        self.is_known_as(self.0.figure().first_of(|figure| subjects.check(figure)))
    }

    fn is_known_as(&self, found: Result<Figure, AbsentSubject>) -> Result<(), AssertionError> {
        let figure = found.map_err(|side| AssertionError::Absent(self.to_string(), side))?;
        self.0.limit_of(&figure).map(drop).map_err(|error| AssertionError::Unit(self.to_string(), error))
    }

    /// The figures that its name may mean.
    pub(crate) fn figures(&self) -> impl Iterator<Item = Figure> {
        self.0.figure().figures()
    }

    /// Holds it against a run's figures.
    pub fn check(&self, figures: &Figures<'_>) -> AssertionOutcome {
        let figure = match figures.find(self.0.figure()) {
            Ok(figure) => figure,
            Err(absent) => return AssertionOutcome::Breached(format!("the run has no {absent}")),
        };
        let limit = match self.0.limit_of(&figure) {
            Ok(limit) => limit,
            Err(error) => return AssertionOutcome::Breached(error.to_string()),
        };
        if let Some(reason) = figure.absent(figures.run) {
            return AssertionOutcome::Breached(format!("the log does not say: {reason}"));
        }
        if let Some((n, needed)) = figure.too_few_samples(figures.run) {
            return AssertionOutcome::Breached(format!("too few samples: {n} of the {needed} that it takes"));
        }
        let Some(value) = figures.known_value(&figure) else {
            return AssertionOutcome::Breached("there are no samples".to_owned());
        };
        let shown = figure.unit().show_known(value);
        match self.0.operator().judge(value, limit) {
            Some(true) => return AssertionOutcome::Holds,
            Some(false) => {}
            None => {
                return AssertionOutcome::Breached(format!(
                    "cannot be judged: it is {shown}, at the log's resolution"
                ));
            }
        }
        let KnownValue::Exact(value) = value else {
            return AssertionOutcome::Breached(format!("it is {shown}, at the log's resolution"));
        };
        let shown = match value {
            us if figure.unit() == FigureUnit::Micros => format!("{:.3} ms", us / 1e3),
            count if count.fract() == 0.0 => count.to_string(),
            share => format!("{share:.6}"),
        };
        let distance = self.0.operator().distance(value, limit);
        let distance = distance.map_or_else(String::new, |distance| format!(", {distance}"));
        AssertionOutcome::Breached(format!("it is {shown}{distance}"))
    }
}
