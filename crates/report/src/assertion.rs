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
    /// In the metric's unit, for latencies microseconds.
    limit: f64,
    /// The limit was given as a time.
    is_time: bool,
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
    #[error("{0:?}: expected a number, or a time such as 500us, 5ms or 1s")]
    Value(String),
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
        let (limit, is_time) = parse_value(value).ok_or_else(|| AssertionError::Value(clean.clone()))?;
        Ok(Self { text: clean, metric: metric.trim().to_owned(), comparison, limit, is_time })
    }
}

fn parse_value(text: &str) -> Option<(f64, bool)> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (amount, unit) = text.split_at(unit_at);
    let amount: f64 = amount.parse().ok()?;
    match unit.trim() {
        "" => Some((amount, false)),
        "%" => Some((amount / 100.0, false)),
        "ns" => Some((amount / 1e3, true)),
        "us" | "µs" => Some((amount, true)),
        "ms" => Some((amount * 1e3, true)),
        "s" => Some((amount * 1e6, true)),
        _ => None,
    }
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
    /// Finds out whether there is such a figure.
    ///
    /// # Errors
    /// With those that there are.
    pub fn is_known(&self, figures: &Figures<'_>) -> Result<(), AssertionError> {
        match self.check(figures) {
            Verdict::Unknown => Err(AssertionError::Unknown(self.text.clone(), figures.known())),
            Verdict::Holds | Verdict::Breached(_) => Ok(()),
        }
    }

    /// Finds out before a load whether there will be such a figure.
    ///
    /// # Errors
    /// With those that there will be.
    pub fn is_known_of_load(&self) -> Result<(), AssertionError> {
        let (model, run) = load_that_counted_nothing();
        model.run(run).map_or(Ok(()), |run| self.is_known(&Figures::of(&model, run, None)))
    }

    /// Holds it against a run's figures.
    pub fn check(&self, figures: &Figures<'_>) -> Verdict {
        let (value, is_latency) = match figures.find(&self.metric) {
            None => return Verdict::Unknown,
            Some(Found::Plain(value)) => (value, false),
            Some(Found::Time(us)) => (us, true),
            Some(Found::Percentile(q, histogram)) => {
                let n = histogram.count();
                if quantile_is_thin(n, q) {
                    // A part in 10⁹ of slack: 1 − 0.99 is not exactly a hundredth.
                    let needed = (10.0 / (1.0 - q) * (1.0 - 1e-9)).ceil();
                    return Verdict::Breached(format!(
                        "too few samples: {n} of the {needed:.0} that it takes"
                    ));
                }
                (histogram.quantile_ns(q).map(|ns| ns as f64 / 1e3), true)
            }
        };
        let Some(value) = value else { return Verdict::Breached("there are no samples".to_owned()) };
        if is_latency != self.is_time {
            let expected = if is_latency { "a time such as 5ms" } else { "a number without a unit of time" };
            return Verdict::Breached(format!("{} is compared with {expected}", self.metric));
        }
        if self.holds(value) {
            return Verdict::Holds;
        }
        let shown = match value {
            us if is_latency => format!("{:.3} ms", us / 1e3),
            count if count.fract() == 0.0 => count.to_string(),
            share => format!("{share:.6}"),
        };
        Verdict::Breached(format!("it is {shown}{}", self.distance(value)))
    }

    /// By how much a value misses the limit, in words; nothing where a share of it says nothing.
    fn distance(&self, value: f64) -> String {
        let percent = (value / self.limit - 1.0) * 100.0;
        match self.comparison {
            Comparison::Unequal => String::new(),
            _ if self.limit <= 0.0 || percent.abs() < 0.05 => String::new(),
            _ if percent > 0.0 => format!(", {percent:.1} % above"),
            _ => format!(", {:.1} % below", -percent),
        }
    }

    fn holds(&self, value: f64) -> bool {
        // Equality within what the figures can tell; counts are whole numbers far below that.
        let is_equal = (value - self.limit).abs() <= self.limit.abs() * 1e-9;
        match self.comparison {
            Comparison::Below => value < self.limit,
            Comparison::AtMost => value <= self.limit,
            Comparison::Above => value > self.limit,
            Comparison::AtLeast => value >= self.limit,
            Comparison::Equal => is_equal,
            Comparison::Unequal => !is_equal,
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
