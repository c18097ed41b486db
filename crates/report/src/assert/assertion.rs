//! Conditions that a run must meet, such as `response.p99 < 5ms`.

use std::fmt;
use std::str::FromStr;

use telemetry::{Body, HostRecord, Model, Record, RunId, Stamp, quantile_is_thin};

use crate::figures::{Figures, Found};

/// A condition on one figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Assertion {
    text: String,
    metric: String,
    comparison: Comparison,
    limit: Limit,
}

/// With what a figure is compared, as it was written.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Limit {
    amount: f64,
    unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Unit {
    None,
    Percent,
    /// A unit of time of so many microseconds.
    Time(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Below,
    AtMost,
    Above,
    AtLeast,
    Equal,
    Unequal,
}

/// Longer signs first: `<=` begins as `<` does.
const SIGNS: [(&str, Comparison); 6] = [
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("==", Comparison::Equal),
    ("!=", Comparison::Unequal),
    ("<", Comparison::Below),
    (">", Comparison::Above),
];

/// Why a text is no assertion.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssertionError {
    /// There is no comparison in it.
    #[error(
        "{0:?} is no assertion; expected METRIC < VALUE such as 'response.p99 < 5ms', or with <=, >, >=, == or !="
    )]
    NoComparison(String),
    /// There is no such figure.
    #[error("{0}: there is no such figure; there are {1}")]
    Unknown(String, String),
    /// The value is none.
    #[error("{0:?}: expected a number, a share such as 90%, or a time such as 500us, 5ms, 1s, 2m or 1h")]
    Value(String),
    /// The value has another unit than the figure.
    #[error("{0}: {1}")]
    Unit(String, String),
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
        let (metric, rest) = text.split_at(at);
        let sign = SIGNS.into_iter().find(|(sign, _)| rest.starts_with(sign));
        let (sign, comparison) = sign.ok_or_else(|| AssertionError::NoComparison(clean.clone()))?;
        let value = rest[sign.len()..].trim();
        let limit = parse_value(value).ok_or_else(|| AssertionError::Value(clean.clone()))?;
        Ok(Self { text: clean, metric: metric.trim().to_owned(), comparison, limit })
    }
}

fn parse_value(text: &str) -> Option<Limit> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (amount, unit) = text.split_at(unit_at);
    let amount: f64 = amount.parse().ok()?;
    let unit = match unit.trim() {
        "" => Unit::None,
        "%" => Unit::Percent,
        "ns" => Unit::Time(1e-3),
        "us" | "µs" => Unit::Time(1.0),
        "ms" => Unit::Time(1e3),
        "s" => Unit::Time(1e6),
        "m" => Unit::Time(60e6),
        "h" => Unit::Time(3_600e6),
        _ => return None,
    };
    Some(Limit { amount, unit })
}

/// What became of an assertion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Holds,
    /// It does not: why, and by how much.
    Breached(String),
    /// There is no such figure.
    Unknown,
}

impl Assertion {
    /// Finds out whether there is such a figure, and the value has its unit.
    ///
    /// # Errors
    /// With those that there are, or with what to write.
    pub fn is_known(&self, figures: &Figures<'_>) -> Result<(), AssertionError> {
        let found = figures.find(&self.metric);
        let found = found.ok_or_else(|| AssertionError::Unknown(self.text.clone(), figures.known()))?;
        self.limit_of(&found).map(drop).map_err(|expected| AssertionError::Unit(self.text.clone(), expected))
    }

    /// Finds out before a load whether there will be such a figure.
    ///
    /// # Errors
    /// With those that there will be.
    pub fn is_known_of_load(&self) -> Result<(), AssertionError> {
        let (model, run) = load_that_counted_nothing();
        model.run(run).map_or(Ok(()), |run| self.is_known(&Figures::of(&model, run, None)))
    }

    /// The limit in the figure's unit.
    ///
    /// # Errors
    /// With what to write, if it is in another one.
    fn limit_of(&self, found: &Found<'_>) -> Result<f64, String> {
        let instead = |what: &str, value: String| {
            let (metric, sign) = (&self.metric, self.comparison.sign());
            Err(format!("{metric} is {what}; write '{metric} {sign} {value}'"))
        };
        let Limit { amount, unit } = self.limit;
        match (found, unit) {
            (Found::Time(_) | Found::Percentile(..), Unit::Time(us)) => Ok(amount * us),
            (Found::Time(_) | Found::Percentile(..), _) => instead("a time", format!("{amount}ms")),
            (Found::Seconds(_), Unit::Time(us)) => Ok(amount * us / 1e6),
            (Found::Seconds(_), Unit::Percent) => instead("a time", format!("{amount}s")),
            (Found::Seconds(_) | Found::Plain(_), Unit::None) => Ok(amount),
            (Found::Plain(_), _) => instead("a number", amount.to_string()),
            (Found::Share(_), Unit::None) if amount <= 1.0 => Ok(amount),
            (Found::Share(_), Unit::Percent) if amount <= 100.0 => Ok(amount / 100.0),
            (Found::Share(_), Unit::None) if amount <= 100.0 => {
                instead("a share, from 0 to 1", format!("{amount}%"))
            }
            (Found::Share(_), _) => instead("a share, from 0 to 1", "90%".to_owned()),
        }
    }

    /// Holds it against a run's figures.
    pub fn check(&self, figures: &Figures<'_>) -> Verdict {
        let Some(found) = figures.find(&self.metric) else { return Verdict::Unknown };
        let limit = match self.limit_of(&found) {
            Ok(limit) => limit,
            Err(expected) => return Verdict::Breached(expected),
        };
        let value = match found {
            Found::Plain(value) | Found::Share(value) | Found::Seconds(value) | Found::Time(value) => value,
            Found::Percentile(q, histogram) => {
                let n = histogram.count();
                if quantile_is_thin(n, q) {
                    // A part in 10⁹ of slack: 1 − 0.99 is not exactly a hundredth.
                    let needed = (10.0 / (1.0 - q) * (1.0 - 1e-9)).ceil();
                    return Verdict::Breached(format!(
                        "too few samples: {n} of the {needed:.0} that it takes"
                    ));
                }
                histogram.quantile_ns(q).map(|ns| ns as f64 / 1e3)
            }
        };
        let Some(value) = value else { return Verdict::Breached("there are no samples".to_owned()) };
        if self.comparison.holds(value, limit) {
            return Verdict::Holds;
        }
        let shown = match value {
            us if matches!(found, Found::Time(_) | Found::Percentile(..)) => format!("{:.3} ms", us / 1e3),
            count if count.fract() == 0.0 => count.to_string(),
            share => format!("{share:.6}"),
        };
        Verdict::Breached(format!("it is {shown}{}", self.comparison.distance(value, limit)))
    }
}

impl Comparison {
    fn sign(self) -> &'static str {
        SIGNS.into_iter().find(|(_, comparison)| *comparison == self).map_or("", |(sign, _)| sign)
    }

    /// By how much a value misses the limit, in words; nothing where a share of it says nothing.
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
        // Equality within what the figures can tell; counts are whole numbers far below that.
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

/// A run of a load that counted nothing, which has every figure by its name.
fn load_that_counted_nothing() -> (Model, RunId) {
    let run = RunId::from_bits(1);
    let mut model = Model::new(1);
    let host = HostRecord { observed_pid: 1, ..HostRecord::default() };
    for (body, seq) in [Body::Load(Box::default()), Body::Host(host)].into_iter().zip(1..) {
        let stamp = Stamp { run, seq, mono_us: 0, realtime_us: 0, interval_us: 0 };
        model.apply(Record { stamp, body }, None);
    }
    (model, run)
}
