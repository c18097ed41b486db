//! The grammar of conditions on a figure, such as `response.p99 < 5ms`: assertions and alerts share it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{Figure, FigureName, FigureUnit, UnknownFigure};
use records::kinds::operator_at;
use records::metrics::KnownValue;
use records::text::clean;

/// A condition on one figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    text: String,
    figure: FigureName,
    bound: Bound,
}

/// The bound that a condition sets for its figure, such as `< 5ms`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
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
    /// The whole value, whose first number is the amount.
    Time(Duration),
    PerSecond,
    /// The number of bytes in the unit.
    Bytes(f64),
    BytesPerSecond(f64),
}

/// Decimal and binary units of bytes.
const BYTE_UNITS: [(&str, f64); 7] = [
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];

/// How a figure is compared with the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `<`
    Below,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `>=`
    AtLeast,
    /// `==`
    Equal,
    /// `!=`
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

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConditionError {
    #[error(
        "{0:?} has no operator; expected FIGURE > VALUE such as 'response.p99 > 5ms', or with <, <=, >=, == or !="
    )]
    NoOperator(String),
    #[error("{0}: {1}")]
    Unknown(String, UnknownFigure),
    #[error("{0:?}: expected a number, a share such as 90%, or a time such as 500us, 5ms, 1s, 2m or 1h")]
    Value(String),
}

/// The value of a condition has another unit than its figure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{figure} is {kind}; write '{figure} {sign} {value}'")]
pub struct WrongUnit {
    figure: String,
    kind: &'static str,
    sign: &'static str,
    value: String,
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        let (name, bound) = Bound::split(text)?;
        let clean = clean::text(text);
        let figure = name.parse().map_err(|error| ConditionError::Unknown(clean.clone(), error))?;
        Ok(Self { text: clean, figure, bound })
    }
}

impl Bound {
    /// Splits a condition into the name of its figure, which may be unknown to the catalogue, and its bound.
    ///
    /// # Errors
    /// If there is no operator, or the value cannot be read.
    pub fn split(text: &str) -> Result<(&str, Self), ConditionError> {
        let no_operator = || ConditionError::NoOperator(clean::text(text));
        let (name, rest) = text.split_at(operator_at(text).ok_or_else(no_operator)?);
        let (sign, operator) = Operator::leading(rest).ok_or_else(no_operator)?;
        let limit = Limit::parse(rest[sign.len()..].trim());
        let limit = limit.ok_or_else(|| ConditionError::Value(clean::text(text)))?;
        Ok((name.trim(), Self { operator, limit }))
    }

    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// The limit in the unit of a figure of the catalogue, which is called `name`.
    ///
    /// # Errors
    /// With what to write, if the limit has another unit.
    pub fn limit_of(&self, name: &str, figure: &Figure) -> Result<f64, WrongUnit> {
        match self.limit.unit {
            LimitUnit::BytesPerSecond(bytes) if figure.is_byte_rate() => Ok(self.limit.amount * bytes),
            _ => self.limit_in(name, figure.unit()),
        }
    }

    /// The limit in this unit, for a figure of this name.
    ///
    /// # Errors
    /// With what to write, if the limit has another unit.
    pub fn limit_in(&self, name: &str, unit: FigureUnit) -> Result<f64, WrongUnit> {
        let write = |kind: &'static str, value: String| {
            Err(WrongUnit { figure: name.to_owned(), kind, sign: self.operator.sign(), value })
        };
        let Limit { amount, unit: written } = self.limit;
        match (unit, written) {
            (FigureUnit::Micros, LimitUnit::Time(time)) => Ok(time.as_nanos() as f64 / 1e3),
            (FigureUnit::Micros, _) => write("a time", format!("{amount}ms")),
            (FigureUnit::Seconds, LimitUnit::Time(time)) => Ok(time.as_secs_f64()),
            (FigureUnit::Ratio, LimitUnit::None) if amount <= 1.0 => Ok(amount),
            (FigureUnit::Ratio, LimitUnit::Percent) if amount <= 100.0 => Ok(amount / 100.0),
            (FigureUnit::Ratio, LimitUnit::None) if amount <= 100.0 => {
                write("a share, from 0 to 1", format!("{amount}%"))
            }
            (FigureUnit::Ratio, _) => write("a share, from 0 to 1", "90%".to_owned()),
            (FigureUnit::Bytes, LimitUnit::Bytes(bytes)) => Ok(amount * bytes),
            (
                FigureUnit::Seconds
                | FigureUnit::Count
                | FigureUnit::Bytes
                | FigureUnit::PerSecond
                | FigureUnit::Percent,
                LimitUnit::None,
            )
            | (FigureUnit::PerSecond, LimitUnit::PerSecond) => Ok(amount),
            (FigureUnit::Seconds, _) => write("a time", format!("{amount}s")),
            (FigureUnit::Count | FigureUnit::Bytes | FigureUnit::PerSecond | FigureUnit::Percent, _) => {
                write("a number", amount.to_string())
            }
        }
    }
}

impl Limit {
    fn parse(text: &str) -> Option<Self> {
        let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (amount, unit) = text.split_at(unit_at);
        let amount: f64 = amount.parse().ok()?;
        let bytes =
            |unit: &str| BYTE_UNITS.into_iter().find(|(name, _)| *name == unit).map(|(_, bytes)| bytes);
        let unit = match unit.trim() {
            "" => LimitUnit::None,
            "%" => LimitUnit::Percent,
            "/s" => LimitUnit::PerSecond,
            unit => match (bytes(unit), unit.strip_suffix("/s").and_then(bytes)) {
                (Some(bytes), _) => LimitUnit::Bytes(bytes),
                (None, Some(bytes)) => LimitUnit::BytesPerSecond(bytes),
                (None, None) => LimitUnit::Time(humantime::parse_duration(text).ok()?),
            },
        };
        Some(Self { amount, unit })
    }
}

impl Condition {
    /// The figure's name, as it was written.
    pub fn figure(&self) -> &FigureName {
        &self.figure
    }

    pub fn operator(&self) -> Operator {
        self.bound.operator
    }

    /// The limit in the figure's unit.
    ///
    /// # Errors
    /// With what to write, if the limit has another unit.
    pub fn limit_of(&self, figure: &Figure) -> Result<f64, WrongUnit> {
        self.bound.limit_of(&self.figure.to_string(), figure)
    }
}

impl Operator {
    /// The sign that a text begins with.
    pub fn leading(text: &str) -> Option<(&'static str, Self)> {
        SIGNS.into_iter().find(|(sign, _)| text.starts_with(sign))
    }

    pub fn sign(self) -> &'static str {
        SIGNS.into_iter().find(|(_, operator)| *operator == self).map_or("", |(sign, _)| sign)
    }

    /// By how much a value misses the limit, such as `20.0 % above`; `None` if a percentage is meaningless.
    pub fn distance(self, value: f64, limit: f64) -> Option<String> {
        let percent = (value / limit - 1.0) * 100.0;
        match self {
            Self::Unequal => None,
            _ if limit <= 0.0 || percent.abs() < 0.05 => None,
            _ if percent > 0.0 => Some(format!("{percent:.1} % above")),
            _ => Some(format!("{:.1} % below", -percent)),
        }
    }

    /// Whether a value meets the limit; `None` if all that is known of it is a bound that does not tell.
    pub fn judge(self, value: KnownValue, limit: f64) -> Option<bool> {
        let at_most = match value {
            KnownValue::Exact(value) => return Some(self.holds(value, limit)),
            KnownValue::AtMost { at_most } => at_most,
        };
        match self {
            Self::Below | Self::Unequal => (at_most < limit).then_some(true),
            Self::AtMost => (at_most <= limit).then_some(true),
            Self::Above => (at_most <= limit).then_some(false),
            Self::AtLeast | Self::Equal => (at_most < limit).then_some(false),
        }
    }

    /// Whether a value meets the limit.
    pub fn holds(self, value: f64, limit: f64) -> bool {
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limit(text: &str) -> Result<f64, String> {
        let condition: Condition = text.parse().map_err(|error: ConditionError| error.to_string())?;
        let figure = condition.figure().first_of(|_| Ok(())).unwrap();
        condition.limit_of(&figure).map_err(|error| error.to_string())
    }

    #[test]
    fn limits_are_read_in_the_figures_unit() {
        for (text, expected) in [
            ("response.p99 > 5ms", 5_000.0),
            ("response.p99 > 5 ms", 5_000.0),
            ("failed.ratio>=1%", 0.01),
            ("rate.achieved < 100/s", 100.0),
            ("rate.achieved < 100", 100.0),
            ("bytes.rate > 1.5MB/s", 1_500_000.0),
            ("proxy.bytes.out > 1MiB", 1_048_576.0),
            ("proxy.bytes.out > 3 kB", 3_000.0),
            ("seconds > 2m", 120.0),
            ("errors != 0", 0.0),
        ] {
            assert_eq!(limit(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_limit_of_another_unit_says_what_to_write() {
        for (text, expected) in [
            ("errors > 5/s", "errors is a number; write 'errors > 5'"),
            ("response.p99 > 1MB", "response.p99 is a time; write 'response.p99 > 1ms'"),
            ("exchanges.rate > 1MB/s", "exchanges.rate is a number; write 'exchanges.rate > 1'"),
        ] {
            assert_eq!(limit(text), Err(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_bound_is_judged_only_where_it_tells() {
        let bound = KnownValue::AtMost { at_most: 1_000.0 };
        // Below, at and above the bound.
        for (operator, expected) in [
            (Operator::Below, [None, None, Some(true)]),
            (Operator::AtMost, [None, Some(true), Some(true)]),
            (Operator::Above, [None, Some(false), Some(false)]),
            (Operator::AtLeast, [None, None, Some(false)]),
            (Operator::Equal, [None, None, Some(false)]),
            (Operator::Unequal, [None, None, Some(true)]),
        ] {
            assert_eq!(
                [500.0, 1_000.0, 5_000.0].map(|limit| operator.judge(bound, limit)),
                expected,
                "{operator:?}"
            );
        }
        assert_eq!(Operator::Below.judge(KnownValue::Exact(1_000.0), 500.0), Some(false));
    }

    proptest! {
        #[test]
        fn any_text_is_a_condition_or_an_error_in_one_line(text in "[a-z.]{0,12} ?[<>=!]{0,2} ?[0-9.]{0,5}[a-zA-Z%/]{0,4}|\\PC{0,40}") {
            match text.parse::<Condition>() {
                Ok(condition) => prop_assert_eq!(condition.to_string().parse::<Condition>(), Ok(condition)),
                Err(error) => prop_assert!(!error.to_string().contains('\n')),
            }
        }
    }
}
