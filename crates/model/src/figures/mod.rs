//! The catalogue of figures: the name, definition, unit and value of every number that can be asked of a run.
//!
//! A figure is a statistic of a latency class (`proxy.handshake_full.p99`), a scalar, which is one number of the run
//! (`load.requests.ok`), a quotient, which is one amount divided by another (`proxy.cpu.per_exchange`), or one of these of
//! a route or an upstream (`proxy.http.route."/api".request.p99`). Assertions,
//! experiments, comparisons, CSV and `docs/figures.md` all read this catalogue.
//!
//! A new scalar is an entry in `scalars.rs`, a new quotient one in `quotients.rs`, a new latency class one in
//! `metrics/families.rs` and `metrics/latency_class.rs`. `just schema` then writes the document.

mod alert;
mod condition;
pub(crate) mod load;
mod name;
mod named;
mod quotients;
mod scalars;
mod subjects;
mod unit;

use std::fmt;

use crate::runs::{MetricSeries, Run};
use records::histogram::{Histogram, quantile_is_thin};
use records::metrics::{KnownValue, LatencyClass, Metric, Percentile, TimeResolution};

pub use alert::AlertFigure;
pub(crate) use alert::RoundedSeconds;
pub use condition::{Bound, Condition, ConditionError, Operator, WrongUnit};
pub use load::{
    ANSWERED, BUSY_MAX, EarlyData, LATE_MAX, MeasuredSeconds, Rates, RequestCounts, answers, generator_limits,
};
pub use name::{FigureName, UnknownFigure, nearest};
pub(crate) use named::PartFigure;
pub use named::{FigurePart, NamedFigure};
pub use quotients::{Better, Quotient, Totals};
pub(crate) use scalars::cpu_percent;
pub use scalars::{Scalar, unserved};
pub use subjects::{AbsentSubject, FigureSubjects};
pub use unit::FigureUnit;
pub(crate) use unit::significant_digits;

/// The subject of a figure: what it measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FigureSide {
    /// The run as a whole.
    Run,
    /// The threads of the process.
    Process,
    /// The journal: lost, merged or malformed records.
    Journal,
    /// The process named by `--observe-pid`, or by `--pid` or `--unit` of `observe`.
    Observed,
    /// The proxy; full names begin with `proxy.`.
    Proxy,
    /// The proxy in HTTP mode; full names begin with `proxy.http.`.
    Http,
    /// The load generator; full names begin with `load.`.
    Load,
}

/// Counts made while the journal of a run was read. A run that was not read from a journal has none.
#[derive(Clone, Copy, Debug)]
pub struct JournalCounts {
    /// Entries that are marked as records and cannot be decoded.
    pub malformed: u64,
}

/// A statistic of a latency class's samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    Count,
    /// The minimum, to three significant digits.
    Min,
    /// The exact mean.
    Mean,
    StandardDeviation,
    /// The latency that this ratio of the samples does not exceed: 0.99 is p99.
    Percentile(f64),
    /// The exact maximum.
    Max,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    Latency(LatencyClass, Statistic),
    /// One number of the run: a counter, or a number of its summary.
    Scalar(&'static Scalar),
    /// One amount divided by another.
    Quotient(&'static Quotient),
    /// A number or a latency of one route or upstream.
    Named(NamedFigure),
}

impl FigureSide {
    pub(crate) const ALL: [Self; 7] =
        [Self::Run, Self::Process, Self::Journal, Self::Observed, Self::Proxy, Self::Http, Self::Load];

    /// The prefix of its figures' full names.
    fn prefix(self) -> &'static str {
        match self {
            Self::Proxy | Self::Http => "proxy.",
            Self::Load => "load.",
            Self::Run | Self::Process | Self::Journal | Self::Observed => "",
        }
    }

    /// Whether a run has figures of this side.
    pub fn is_in(self, run: &Run, journal: Option<JournalCounts>) -> bool {
        match self {
            Self::Run | Self::Process => true,
            Self::Journal => journal.is_some(),
            Self::Observed => scalars::observed(run).is_some(),
            Self::Proxy => run.proxy().is_some(),
            Self::Http => run.proxy().is_some() && run.http().is_some(),
            Self::Load => run.load().is_some(),
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
            Self::Http => "proxy in HTTP mode",
            Self::Load => "load",
        })
    }
}

impl Statistic {
    /// The statistics that are listed by default for every latency class.
    pub fn listed() -> impl Iterator<Item = Self> {
        let percentiles = Percentile::LISTED.map(|percentile| Self::Percentile(percentile.q));
        let before = [Self::Count, Self::Min, Self::Mean, Self::StandardDeviation];
        before.into_iter().chain(percentiles).chain([Self::Max])
    }

    /// The statistic's value, in microseconds unless it is a count; `None` without samples.
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

    /// What is known of its value if samples have this resolution.
    fn known(self, value: f64, resolution: TimeResolution) -> KnownValue {
        match self {
            Self::Count => KnownValue::Exact(value),
            Self::Min | Self::Percentile(_) | Self::Max => resolution.known_us(value),
            Self::Mean => resolution.known_mean_us(value),
            Self::StandardDeviation => resolution.known_deviation_us(value),
        }
    }
}

impl Figure {
    /// Every scalar, in the order that CSV and the document list them.
    pub fn scalars() -> impl Iterator<Item = Self> {
        scalars::SCALARS.iter().map(Self::Scalar)
    }

    pub fn quotients() -> impl Iterator<Item = Self> {
        quotients::QUOTIENTS.iter().map(Self::Quotient)
    }

    /// The figures that are listed by default for a latency class.
    pub fn of_class(class: LatencyClass) -> impl Iterator<Item = Self> {
        Statistic::listed().map(move |statistic| Self::Latency(class, statistic))
    }

    /// The name without the side's prefix, such as `handshake_full.p99`.
    pub fn short_name(&self) -> String {
        match self {
            Self::Latency(class, statistic) => format!("{}.{statistic}", class.key()),
            Self::Scalar(scalar) => scalar.name.to_owned(),
            Self::Quotient(quotient) => quotient.name.to_owned(),
            Self::Named(figure) => figure.short_name(),
        }
    }

    /// The full name, such as `proxy.handshake_full.p99`.
    pub fn name(&self) -> String {
        format!("{}{}", self.side().prefix(), self.short_name())
    }

    pub fn side(&self) -> FigureSide {
        match self {
            Self::Latency(LatencyClass::Proxy(_) | LatencyClass::Tls(_), _) => FigureSide::Proxy,
            Self::Latency(LatencyClass::Http(_), _) => FigureSide::Http,
            Self::Named(figure) => figure.side(),
            Self::Latency(LatencyClass::Load(_), _) => FigureSide::Load,
            Self::Scalar(scalar) => scalar.side(),
            Self::Quotient(quotient) => quotient.side,
        }
    }

    pub fn unit(&self) -> FigureUnit {
        match self {
            Self::Latency(_, Statistic::Count) => FigureUnit::Count,
            Self::Latency(..) => FigureUnit::Micros,
            Self::Scalar(scalar) => scalar.unit(),
            Self::Quotient(quotient) => quotient.unit,
            Self::Named(figure) => figure.unit(),
        }
    }

    /// True if the figure has a value over a part of a run during the run. Other figures describe the whole run, or
    /// the reading of its journal.
    pub(crate) fn has_windows(&self) -> bool {
        let is_of_whole = match self {
            Self::Scalar(scalar) => ["duration", "ended", "clients"].contains(&scalar.name),
            Self::Latency(..) | Self::Quotient(_) | Self::Named(_) => false,
        };
        !is_of_whole && self.side() != FigureSide::Journal
    }

    fn is_byte_rate(&self) -> bool {
        self.unit() == FigureUnit::PerSecond && self.short_name().starts_with("bytes.")
    }

    pub fn definition(&self) -> &'static str {
        match self {
            Self::Latency(class, _) => class.meaning(),
            Self::Scalar(scalar) => scalar.definition(),
            Self::Quotient(quotient) => quotient.definition,
            Self::Named(figure) => figure.definition(),
        }
    }

    /// The figure's value in a run; `None` if the run has no data for it.
    pub fn value(&self, run: &Run, journal: Option<JournalCounts>) -> Option<f64> {
        match self {
            Self::Latency(class, statistic) => statistic.of(histogram(run, *class)?),
            Self::Scalar(scalar) => scalar.value(run, journal),
            Self::Quotient(quotient) => quotient.value(&Totals::of(run)),
            Self::Named(figure) => figure.value(run),
        }
    }

    /// Why the log of another terminator does not give the figure; `None` if it does.
    pub fn absent<'r>(&self, run: &'r Run) -> Option<&'r str> {
        match self {
            Self::Latency(class, _) => run.absent_class(*class),
            Self::Scalar(scalar) => scalar.absent(run),
            Self::Quotient(_) | Self::Named(_) => None,
        }
    }

    /// The figure's value, or a bound if the value is not known exactly.
    pub fn known_value(&self, run: &Run, journal: Option<JournalCounts>) -> Option<KnownValue> {
        self.value(run, journal).map(|value| self.known(value, self.resolution(run)))
    }

    /// What is known of a value of the figure at this resolution of times.
    pub fn known(&self, value: f64, resolution: TimeResolution) -> KnownValue {
        match self {
            Self::Latency(_, statistic) => statistic.known(value, resolution),
            Self::Named(figure) => figure.known(value, resolution),
            Self::Scalar(_) | Self::Quotient(_) => KnownValue::Exact(value),
        }
    }

    /// The resolution of its times in a run.
    pub fn resolution(&self, run: &Run) -> TimeResolution {
        match self {
            Self::Latency(class, _) => run.resolution(*class),
            Self::Named(_) => run.log_resolution(),
            Self::Scalar(_) | Self::Quotient(_) => TimeResolution::FINE,
        }
    }

    /// For a percentile with fewer than ten samples above it: the number of samples, and the number needed.
    pub fn too_few_samples(&self, run: &Run) -> Option<(u64, u64)> {
        let q = self.percentile()?;
        let n = match self {
            Self::Latency(class, _) => samples(run, *class),
            Self::Named(figure) => figure.samples(run)?,
            Self::Scalar(_) | Self::Quotient(_) => return None,
        };
        quantile_is_thin(n, q).then(|| Some((n, self.samples_needed()?)))?
    }

    /// The samples that a percentile takes; `None` for another figure.
    pub(crate) fn samples_needed(&self) -> Option<u64> {
        // 1 − 0.99 is not exactly 0.01 in binary, so `ceil` needs a tolerance of 10⁻⁹.
        self.percentile().map(|q| (10.0 / (1.0 - q) * (1.0 - 1e-9)).ceil() as u64)
    }

    /// The samples of a latency in the intervals since a moment of the monotonic clock, as far back as they are kept.
    /// `None` for other figures, and if the run lacks the figure's subject.
    pub(crate) fn samples_since(&self, run: &Run, from_us: u64) -> Option<u64> {
        match self {
            Self::Latency(LatencyClass::Proxy(class), _) => Some(since(run.proxy()?, *class, from_us)),
            Self::Latency(LatencyClass::Tls(class), _) => Some(since(run.tls()?, *class, from_us)),
            Self::Latency(LatencyClass::Http(class), _) => Some(since(run.http()?, *class, from_us)),
            Self::Latency(LatencyClass::Load(class), _) => Some(since(run.load()?, *class, from_us)),
            Self::Named(figure) => figure.samples_since(run, from_us),
            Self::Scalar(_) | Self::Quotient(_) => None,
        }
    }

    fn percentile(&self) -> Option<f64> {
        match self {
            Self::Latency(_, Statistic::Percentile(q)) => Some(*q),
            Self::Named(figure) => figure.percentile(),
            Self::Latency(..) | Self::Scalar(_) | Self::Quotient(_) => None,
        }
    }
}

/// The samples of a class in the intervals since a moment.
fn since<C: Metric, L: Metric>(series: &MetricSeries<C, L>, class: L, from_us: u64) -> u64 {
    let recent = series.timeline().rev().take_while(|interval| interval.place_us() >= from_us);
    recent.map(|interval| interval.latency(class).count()).sum()
}

/// The number of samples of a latency class over the whole run.
pub fn samples(run: &Run, class: LatencyClass) -> u64 {
    histogram(run, class).map_or(0, Histogram::count)
}

/// The samples of a latency class over the whole run; `None` if the run has no proxy or no load.
fn histogram(run: &Run, class: LatencyClass) -> Option<&Histogram> {
    match class {
        LatencyClass::Proxy(class) => run.proxy().map(|series| &series.whole()[class]),
        LatencyClass::Tls(class) => run.tls().map(|series| &series.whole()[class]),
        LatencyClass::Http(class) => run.http().map(|series| &series.whole()[class]),
        LatencyClass::Load(class) => run.load().map(|series| &series.whole()[class]),
    }
}
