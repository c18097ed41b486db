//! Conditions that a run must meet, such as `response.p99 < 5ms`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use telemetry::figures::{Figure, FigureName, FigureSide, FigureUnit, UnknownFigure};

use crate::figures::{Figures, first_of};

/// A condition on one figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Assertion {
    text: String,
    figure: FigureName,
    operator: Operator,
    limit: Limit,
}

/// The number that a figure is compared with, and its unit as it was written.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Limit {
    amount: f64,
    unit: LimitUnit,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum LimitUnit {
    None,
    Percent,
    /// The whole value, of which the amount is but the first number.
    Time(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Below,
    AtMost,
    Above,
    AtLeast,
    Equal,
    Unequal,
}

/// Longer signs first: `<=` begins as `<` does.
const SIGNS: [(&str, Operator); 6] = [
    ("<=", Operator::AtMost),
    (">=", Operator::AtLeast),
    ("==", Operator::Equal),
    ("!=", Operator::Unequal),
    ("<", Operator::Below),
    (">", Operator::Above),
];

/// Why a text is no assertion, or no assertion for this run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssertionError {
    /// The text has no operator.
    #[error(
        "{0:?} is no assertion; expected METRIC < VALUE such as 'response.p99 < 5ms', or with <=, >, >=, == or !="
    )]
    NoComparison(String),
    /// There is no such figure.
    #[error("{0}: {1}")]
    Unknown(String, UnknownFigure),
    /// The run lacks what the figure is of.
    #[error("{0}: the run has no {1}")]
    Absent(String, FigureSide),
    /// The value cannot be read.
    #[error("{0:?}: expected a number, a share such as 90%, or a time such as 500us, 5ms, 1s, 2m or 1h")]
    Value(String),
    /// The value has another unit than the figure.
    #[error("{0}: {1}")]
    Unit(String, WrongUnit),
}

/// The value of an assertion has another unit than its figure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{figure} is {kind}; write '{figure} {sign} {value}'")]
pub struct WrongUnit {
    figure: String,
    kind: &'static str,
    sign: &'static str,
    value: String,
}

impl fmt::Display for Assertion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Assertion {
    type Err = AssertionError;

    fn from_str(text: &str) -> Result<Self, AssertionError> {
        let clean = telemetry::clean::text(text);
        let at =
            text.find(['<', '>', '=', '!']).ok_or_else(|| AssertionError::NoComparison(clean.clone()))?;
        let (name, rest) = text.split_at(at);
        let sign = SIGNS.into_iter().find(|(sign, _)| rest.starts_with(sign));
        let (sign, operator) = sign.ok_or_else(|| AssertionError::NoComparison(clean.clone()))?;
        let value = rest[sign.len()..].trim();
        let limit = Limit::parse(value).ok_or_else(|| AssertionError::Value(clean.clone()))?;
        let figure = name.parse().map_err(|error| AssertionError::Unknown(clean.clone(), error))?;
        Ok(Self { text: clean, figure, operator, limit })
    }
}

impl Limit {
    fn parse(text: &str) -> Option<Self> {
        let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (amount, unit) = text.split_at(unit_at);
        let amount: f64 = amount.parse().ok()?;
        let unit = match unit.trim() {
            "" => LimitUnit::None,
            "%" => LimitUnit::Percent,
            _ => LimitUnit::Time(humantime::parse_duration(text).ok()?),
        };
        Some(Self { amount, unit })
    }
}

/// The outcome of an assertion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AssertionOutcome {
    /// It holds.
    Holds,
    /// It does not hold: why, and by how much.
    Breached(String),
}

impl Assertion {
    /// Finds out whether this run has such a figure, and whether the value has its unit.
    ///
    /// # Errors
    /// With what the run lacks, or with what to write.
    pub fn is_known(&self, figures: &Figures<'_>) -> Result<(), AssertionError> {
        self.is_known_as(figures.find(&self.figure))
    }

    /// Finds out before a load whether there will be such a figure.
    ///
    /// # Errors
    /// With what a load lacks, or with what to write.
    pub fn is_known_of_load(&self) -> Result<(), AssertionError> {
        self.is_known_as(first_of(&self.figure, |side| match side {
            FigureSide::Run | FigureSide::Process | FigureSide::Observed | FigureSide::Load => true,
            FigureSide::Proxy | FigureSide::Journal => false,
        }))
    }

    fn is_known_as(&self, found: Result<Figure, FigureSide>) -> Result<(), AssertionError> {
        let figure = found.map_err(|side| AssertionError::Absent(self.text.clone(), side))?;
        self.limit_of(figure).map(drop).map_err(|error| AssertionError::Unit(self.text.clone(), error))
    }

    /// The figures that its name may stand for.
    pub(crate) fn figures(&self) -> impl Iterator<Item = Figure> {
        self.figure.figures()
    }

    /// The limit in the figure's unit.
    fn limit_of(&self, figure: Figure) -> Result<f64, WrongUnit> {
        let write = |kind: &'static str, value: String| {
            let (figure, sign) = (self.figure.to_string(), self.operator.sign());
            Err(WrongUnit { figure, kind, sign, value })
        };
        let Limit { amount, unit } = self.limit;
        match (figure.unit(), unit) {
            (FigureUnit::Micros, LimitUnit::Time(time)) => Ok(time.as_nanos() as f64 / 1e3),
            (FigureUnit::Micros, _) => write("a time", format!("{amount}ms")),
            (FigureUnit::Seconds, LimitUnit::Time(time)) => Ok(time.as_secs_f64()),
            (FigureUnit::Seconds, LimitUnit::Percent) => write("a time", format!("{amount}s")),
            (FigureUnit::Ratio, LimitUnit::None) if amount <= 1.0 => Ok(amount),
            (FigureUnit::Ratio, LimitUnit::Percent) if amount <= 100.0 => Ok(amount / 100.0),
            (FigureUnit::Ratio, LimitUnit::None) if amount <= 100.0 => {
                write("a share, from 0 to 1", format!("{amount}%"))
            }
            (FigureUnit::Ratio, _) => write("a share, from 0 to 1", "90%".to_owned()),
            (
                FigureUnit::Seconds
                | FigureUnit::Count
                | FigureUnit::Bytes
                | FigureUnit::PerSecond
                | FigureUnit::Percent,
                LimitUnit::None,
            ) => Ok(amount),
            (FigureUnit::Count | FigureUnit::Bytes | FigureUnit::PerSecond | FigureUnit::Percent, _) => {
                write("a number", amount.to_string())
            }
        }
    }

    /// Holds it against a run's figures.
    pub fn check(&self, figures: &Figures<'_>) -> AssertionOutcome {
        let figure = match figures.find(&self.figure) {
            Ok(figure) => figure,
            Err(side) => return AssertionOutcome::Breached(format!("the run has no {side}")),
        };
        let limit = match self.limit_of(figure) {
            Ok(limit) => limit,
            Err(error) => return AssertionOutcome::Breached(error.to_string()),
        };
        if let Some((n, needed)) = figure.too_few_samples(figures.run) {
            return AssertionOutcome::Breached(format!("too few samples: {n} of the {needed} that it takes"));
        }
        let Some(value) = figures.value(figure) else {
            return AssertionOutcome::Breached("there are no samples".to_owned());
        };
        if self.operator.holds(value, limit) {
            return AssertionOutcome::Holds;
        }
        let shown = match value {
            us if figure.unit() == FigureUnit::Micros => format!("{:.3} ms", us / 1e3),
            count if count.fract() == 0.0 => count.to_string(),
            share => format!("{share:.6}"),
        };
        AssertionOutcome::Breached(format!("it is {shown}{}", self.operator.distance(value, limit)))
    }
}

impl Operator {
    fn sign(self) -> &'static str {
        SIGNS.into_iter().find(|(_, operator)| *operator == self).map_or("", |(sign, _)| sign)
    }

    /// By how much a value misses the limit, in words; empty where a percentage says nothing.
    fn distance(self, value: f64, limit: f64) -> String {
        let percent = (value / limit - 1.0) * 100.0;
        match self {
            Self::Unequal => String::new(),
            _ if limit <= 0.0 || percent.abs() < 0.05 => String::new(),
            _ if percent > 0.0 => format!(", {percent:.1} % above"),
            _ => format!(", {:.1} % below", -percent),
        }
    }

    fn holds(self, value: f64, limit: f64) -> bool {
        // Figures are exact to about this; counts are whole numbers far below 10⁹.
        let is_equal = (value - limit).abs() <= limit.abs() * 1e-9;
        match self {
            Self::Below => value < limit,
            Self::AtMost => value <= limit,
            Self::Above => value > limit,
            Self::AtLeast => value >= limit,
            Self::Equal => is_equal,
            Self::Unequal => !is_equal,
        }
    }
}
