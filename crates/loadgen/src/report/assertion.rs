//! Conditions that a load must meet, such as `response.p99 < 5ms`.

use std::fmt;
use std::str::FromStr;

use telemetry::model::Run;
use telemetry::{LoadLatency, Metric, quantile_is_thin};

use super::View;
use super::metrics::{self, Figure, metrics};

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

/// What became of an assertion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Holds,
    /// It does not, and why.
    Breached(String),
    /// There is no such figure; those that there are.
    Unknown(String),
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

impl Assertion {
    /// Finds out before a load whether there will be such a figure.
    ///
    /// # Errors
    /// With those that there are.
    pub fn is_known(&self) -> Result<(), AssertionError> {
        let (model, run) = metrics::example();
        match model.run(run).map(|run| self.check(run)) {
            Some(Verdict::Unknown(known)) => Err(AssertionError::Unknown(self.text.clone(), known)),
            _ => Ok(()),
        }
    }

    /// Holds it against a run's load.
    pub fn check(&self, run: &Run) -> Verdict {
        let (Some(view), Some(figures)) = (View::of(run), metrics(run)) else {
            return Verdict::Breached("the run had no load".to_owned());
        };
        let found = match percentile(&view, &self.metric) {
            Some(Percentile { q, n, us }) => {
                if quantile_is_thin(n, q) {
                    let needed = (10.0 / (1.0 - q) - 1e-6).ceil();
                    return Verdict::Breached(format!(
                        "too few samples: {n} of the {needed:.0} that it takes"
                    ));
                }
                us
            }
            None => match figures.iter().find(|(name, _)| *name == self.metric) {
                Some((_, value)) => *value,
                None => return Verdict::Unknown(known(&figures)),
            },
        };
        let Some(value) = found else { return Verdict::Breached("there are no samples".to_owned()) };
        let is_latency = View::class_names().any(|class| {
            self.metric.strip_prefix(class).is_some_and(|rest| rest.starts_with('.') && rest != ".n")
        });
        if is_latency != self.is_time {
            let expected = if is_latency { "a time such as 5ms" } else { "a number without a unit of time" };
            return Verdict::Breached(format!("{} is compared with {expected}", self.metric));
        }
        if self.holds(value) {
            return Verdict::Holds;
        }
        let shown = if is_latency { format!("{:.3} ms", value / 1e3) } else { format!("{value}") };
        Verdict::Breached(format!("it is {shown}"))
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

struct Percentile {
    q: f64,
    n: u64,
    us: Option<f64>,
}

/// A percentile such as `response.p99`, `lag.p999` or `service.p99.95`.
fn percentile(view: &View<'_>, metric: &str) -> Option<Percentile> {
    let (class, what) = metric.split_once('.')?;
    let class = View::class_names().zip(LoadLatency::ALL).find(|(name, _)| *name == class)?.1;
    let q = telemetry::parse_percentile(what)?;
    let histogram = &view.latencies[*class];
    let us = histogram.quantile_ns(q).map(|ns| ns as f64 / 1e3);
    Some(Percentile { q, n: histogram.count(), us })
}

/// The names of the figures, those of the latencies folded.
fn known(figures: &[Figure]) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut classes: Vec<&str> = Vec::new();
    let is_class = |name: &str| figures.iter().any(|(other, _)| *other == format!("{name}.p50"));
    for (name, _) in figures {
        match name.split_once('.') {
            Some((class, _)) if is_class(class) => {
                if !classes.contains(&class) {
                    classes.push(class);
                }
            }
            _ => names.push(name),
        }
    }
    format!(
        "{}; and n, min, mean, sd, p50, p99 or any other percentile, and max of {}",
        names.join(", "),
        classes.join(", ")
    )
}
