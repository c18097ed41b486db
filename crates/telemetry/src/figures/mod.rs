//! The catalogue of figures: what a run can be asked for by name, what each name means, and its value.
//!
//! A figure is a statistic of a class of latencies (`proxy.handshake_full.p99`), a number of the summary
//! (`load.requests.ok`) or one amount divided by another (`cpu.per_exchange`). Assertions, experiments, comparisons, CSV
//! and `docs/figures.md` all read this catalogue.

mod name;
mod quotients;
mod scalars;

use std::fmt;

use crate::histogram::{Histogram, quantile_is_thin};
use crate::metrics::{LatencyClass, Percentile};
use crate::model::{Run, Summary};

pub use name::{FigureName, UnknownFigure};
pub use quotients::{Better, Quotient, Totals};
pub use scalars::Scalar;

/// What a figure is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FigureSide {
    /// The run as a whole.
    Run,
    /// The threads of the process.
    Process,
    /// How the journal was read.
    Journal,
    /// An observed process.
    Observed,
    /// The proxy; names begin with `proxy.`.
    Proxy,
    /// The load generator; names begin with `load.`.
    Load,
}

/// The unit of a figure's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureUnit {
    /// A number of things.
    Count,
    /// Bytes.
    Bytes,
    /// So many a second.
    PerSecond,
    /// A share, from 0 to 1.
    Ratio,
    /// Percent of one core.
    Percent,
    /// Seconds.
    Seconds,
    /// Microseconds.
    Micros,
}

/// What is taken of the samples of a class of latencies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// The number of samples.
    Count,
    /// The smallest, to three digits.
    Min,
    /// The exact mean.
    Mean,
    /// The standard deviation.
    StandardDeviation,
    /// The latency that this share of the samples does not exceed.
    Percentile(f64),
    /// The exact maximum.
    Max,
}

/// A figure of the catalogue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure {
    /// A statistic of a class of latencies.
    Latency(LatencyClass, Statistic),
    /// A number of the summary.
    Scalar(&'static Scalar),
    /// One amount divided by another.
    Quotient(&'static Quotient),
}

impl FigureSide {
    /// What the names of its figures begin with.
    fn prefix(self) -> &'static str {
        match self {
            Self::Proxy => "proxy.",
            Self::Load => "load.",
            Self::Run | Self::Process | Self::Journal | Self::Observed => "",
        }
    }

    /// Whether a run has such figures.
    pub fn is_in(self, summary: &Summary) -> bool {
        match self {
            Self::Run | Self::Process => true,
            Self::Journal => summary.journal.is_some(),
            Self::Observed => summary.observed.is_some(),
            Self::Proxy => summary.proxy.is_some(),
            Self::Load => summary.load.is_some(),
        }
    }
}

impl fmt::Display for FigureSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Run => "run",
            Self::Process => "process",
            Self::Journal => "journal",
            Self::Observed => "observed process",
            Self::Proxy => "proxy",
            Self::Load => "load",
        })
    }
}

impl FigureUnit {
    /// Its symbol; empty for counts and shares.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Count | Self::Ratio => "",
            Self::Bytes => "B",
            Self::PerSecond => "1/s",
            Self::Percent => "%",
            Self::Seconds => "s",
            Self::Micros => "µs",
        }
    }
}

impl Statistic {
    /// Those of a class that stand among a run's figures without being asked for.
    pub fn listed() -> impl Iterator<Item = Self> {
        let percentiles = Percentile::LISTED.map(|percentile| Self::Percentile(percentile.q));
        let before = [Self::Count, Self::Min, Self::Mean, Self::StandardDeviation];
        before.into_iter().chain(percentiles).chain([Self::Max])
    }

    /// In microseconds, the count aside; `None` without samples.
    fn of(self, histogram: &Histogram) -> Option<f64> {
        let micros = |ns: u64| ns as f64 / 1e3;
        match self {
            Self::Count => Some(histogram.count() as f64),
            Self::Min => histogram.min_ns().map(micros),
            Self::Mean => histogram.mean_ns().map(|ns| ns / 1e3),
            Self::StandardDeviation => histogram.stdev_ns().map(|ns| ns / 1e3),
            Self::Percentile(q) => histogram.quantile_ns(q).map(micros),
            Self::Max => (!histogram.is_empty()).then(|| micros(histogram.max_ns())),
        }
    }
}

impl Figure {
    /// Every scalar of the catalogue, in the order of CSV.
    pub fn scalars() -> impl Iterator<Item = Self> {
        scalars::SCALARS.iter().map(Self::Scalar)
    }

    /// Every quotient.
    pub fn quotients() -> impl Iterator<Item = Self> {
        quotients::QUOTIENTS.iter().map(Self::Quotient)
    }

    /// The statistics of a class that stand among a run's figures without being asked for.
    pub fn of_class(class: LatencyClass) -> impl Iterator<Item = Self> {
        Statistic::listed().map(move |statistic| Self::Latency(class, statistic))
    }

    /// Its name without the side, such as `handshake_full.p99`.
    pub fn short_name(self) -> String {
        match self {
            Self::Latency(class, statistic) => format!("{}.{statistic}", class.key()),
            Self::Scalar(scalar) => scalar.name.to_owned(),
            Self::Quotient(quotient) => quotient.name.to_owned(),
        }
    }

    /// Its whole name, such as `proxy.handshake_full.p99`.
    pub fn name(self) -> String {
        format!("{}{}", self.side().prefix(), self.short_name())
    }

    /// What it is of.
    pub fn side(self) -> FigureSide {
        match self {
            Self::Latency(LatencyClass::Proxy(_), _) => FigureSide::Proxy,
            Self::Latency(LatencyClass::Load(_), _) => FigureSide::Load,
            Self::Scalar(scalar) => scalar.side(),
            Self::Quotient(quotient) => quotient.side,
        }
    }

    /// The unit of its value.
    pub fn unit(self) -> FigureUnit {
        match self {
            Self::Latency(_, Statistic::Count) => FigureUnit::Count,
            Self::Latency(..) => FigureUnit::Micros,
            Self::Scalar(scalar) => scalar.unit(),
            Self::Quotient(quotient) => quotient.unit,
        }
    }

    /// What it is, in a sentence.
    pub fn definition(self) -> &'static str {
        match self {
            Self::Latency(class, _) => class.meaning(),
            Self::Scalar(scalar) => scalar.definition(),
            Self::Quotient(quotient) => quotient.definition,
        }
    }

    /// Its value in a run with this summary; `None` if the run has nothing that it could be made of.
    pub fn value(self, run: &Run, summary: &Summary) -> Option<f64> {
        match self {
            Self::Latency(class, statistic) => statistic.of(histogram(run, class)?),
            Self::Scalar(scalar) => scalar.value(run, summary),
            Self::Quotient(quotient) => quotient.value(&Totals::of(run)),
        }
    }

    /// The samples that there are, and those that it takes, of a percentile with fewer than ten samples above it.
    pub fn too_few_samples(self, run: &Run) -> Option<(u64, u64)> {
        let Self::Latency(class, Statistic::Percentile(q)) = self else { return None };
        let n = samples(run, class);
        // A part in 10⁹ of slack: 1 − 0.99 is not exactly a hundredth.
        let needed = || (10.0 / (1.0 - q) * (1.0 - 1e-9)).ceil() as u64;
        quantile_is_thin(n, q).then(|| (n, needed()))
    }
}

/// The number of samples of a class over the whole run.
pub fn samples(run: &Run, class: LatencyClass) -> u64 {
    histogram(run, class).map_or(0, Histogram::count)
}

/// The samples of a class over the whole run; `None` in a run without that side.
fn histogram(run: &Run, class: LatencyClass) -> Option<&Histogram> {
    match class {
        LatencyClass::Proxy(class) => run.proxy().map(|track| &track.whole()[class]),
        LatencyClass::Load(class) => run.load().map(|track| &track.whole()[class]),
    }
}
