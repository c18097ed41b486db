//! The figures that can be compared, by their names.

use std::fmt;
use std::str::FromStr;

use model::figures;
use model::figures::{
    Better, Figure, FigureName, FigureSide, FigureUnit, Quotient, Statistic, Totals, UnknownFigure,
};
use model::runs::Run;
use records::metrics::{KnownValue, LatencyClass, TimeResolution};

use crate::block::BlockValue;
use crate::statistics::PooledValues;

/// The unit of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Percent of the first figure; both must be above 0.
    Relative,
    /// Percentage points: the figure is a share, and may be 0.
    Points,
}

/// A figure that can be compared, with its name as it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparableFigure {
    name: String,
    pub(crate) kind: FigureKind,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum FigureKind {
    /// The latency that this share of the samples does not exceed.
    Quantile(LatencyClass, f64),
    Mean(LatencyClass),
    Quotient(&'static Quotient),
}

/// The text names no figure that can be compared.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NotAComparableFigure {
    #[error(transparent)]
    Unknown(#[from] UnknownFigure),
    /// The figure is a count, a minimum or another figure that blocks cannot compare.
    #[error("{0} cannot be compared; there are {known}", known = known())]
    Unsuitable(FigureName),
}

fn known() -> String {
    let quotients: Vec<String> = Figure::quotients().map(|figure| figure.short_name()).collect();
    format!("{}, and mean or any percentile of a class of latencies", quotients.join(", "))
}

impl ComparableFigure {
    /// Its name as it was written.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn figure(&self) -> Figure {
        match self.kind {
            FigureKind::Quantile(class, q) => Figure::Latency(class, Statistic::Percentile(q)),
            FigureKind::Mean(class) => Figure::Latency(class, Statistic::Mean),
            FigureKind::Quotient(quotient) => Figure::Quotient(quotient),
        }
    }

    /// Its unit; shares have none.
    pub fn unit(&self) -> FigureUnit {
        self.figure().unit()
    }

    pub fn better(&self) -> Better {
        match self.kind {
            FigureKind::Quantile(..) | FigureKind::Mean(_) => Better::Lower,
            FigureKind::Quotient(quotient) => quotient.better,
        }
    }

    pub fn scale(&self) -> Scale {
        if self.unit() == FigureUnit::Ratio { Scale::Points } else { Scale::Relative }
    }

    /// True if a load generator at its limit distorts the figure: the load measures it, or bounds it as a rate. The
    /// proxy's times and costs per request do not depend on the generator.
    pub fn is_of_generator(&self) -> bool {
        self.figure().side() == FigureSide::Load || self.unit() == FigureUnit::PerSecond
    }

    /// The figure over blocks, in its unit; `None` without samples.
    pub fn over<'a>(&self, blocks: impl Iterator<Item = &'a BlockValue> + Clone) -> Option<f64> {
        let weights = vec![1; blocks.clone().count()];
        PooledValues::new(self, blocks).figure(&weights)
    }

    /// What is known of a value of the figure at this resolution of times.
    pub fn known(&self, value: f64, resolution: TimeResolution) -> KnownValue {
        self.figure().known(value, resolution)
    }

    /// The resolution of its times in a run.
    pub fn resolution(&self, run: &Run) -> TimeResolution {
        self.figure().resolution(run)
    }

    /// True if a run has enough samples of it.
    pub fn has_samples(&self, run: &Run) -> bool {
        match self.kind {
            FigureKind::Quantile(..) => self.figure().too_few_samples(run).is_none(),
            FigureKind::Mean(class) => figures::samples(run, class) > 0,
            FigureKind::Quotient(quotient) => {
                quotient.value(&Totals::of(run)).is_some_and(|value| value > 0.0)
            }
        }
    }

    /// The class of latencies that it is of; `None` for a quotient.
    pub fn class(&self) -> Option<LatencyClass> {
        match self.kind {
            FigureKind::Quantile(class, _) | FigureKind::Mean(class) => Some(class),
            FigureKind::Quotient(_) => None,
        }
    }
}

impl fmt::Display for ComparableFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

impl FromStr for ComparableFigure {
    type Err = NotAComparableFigure;

    fn from_str(text: &str) -> Result<Self, NotAComparableFigure> {
        let name: FigureName = text.parse()?;
        let kind = name.figures().find_map(|figure| match figure {
            Figure::Latency(class, Statistic::Percentile(q)) => Some(FigureKind::Quantile(class, q)),
            Figure::Latency(class, Statistic::Mean) => Some(FigureKind::Mean(class)),
            Figure::Quotient(quotient) => Some(FigureKind::Quotient(quotient)),
            Figure::Latency(
                _,
                Statistic::Count | Statistic::Min | Statistic::StandardDeviation | Statistic::Max,
            )
            | Figure::Scalar(_)
            | Figure::Named(_) => None,
        });
        match kind {
            Some(kind) => Ok(Self { name: name.to_string(), kind }),
            None => Err(NotAComparableFigure::Unsuitable(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::metrics::{LoadLatency, ProxyLatency};

    #[test]
    fn percentiles_means_and_quotients_can_be_compared() {
        let kind = |text: &str| text.parse::<ComparableFigure>().map(|figure| figure.kind);
        assert_eq!(kind("exchange.p99"), Ok(FigureKind::Quantile(ProxyLatency::Exchange.into(), 0.99)));
        assert_eq!(kind("response.p99.9"), Ok(FigureKind::Quantile(LoadLatency::Response.into(), 0.999)));
        assert_eq!(kind("connect.mean"), Ok(FigureKind::Mean(ProxyLatency::Connect.into())));
        assert_eq!(kind("load.connect.p50"), Ok(FigureKind::Quantile(LoadLatency::Connect.into(), 0.5)));
        assert_eq!(kind("full.p99"), Ok(FigureKind::Quantile(ProxyLatency::HandshakeFull.into(), 0.99)));
        for figure in Figure::quotients() {
            assert!(matches!(kind(&figure.short_name()), Ok(FigureKind::Quotient(_))), "{}", figure.name());
        }
    }

    #[test]
    fn other_figures_are_refused_with_those_that_can_be_compared() {
        for text in ["exchange.max", "exchange.n", "requests.ok", "errors", "rate.achieved"] {
            let error = text.parse::<ComparableFigure>().unwrap_err().to_string();
            let expected = format!("{text} cannot be compared; there are exchanges.rate, ");
            assert!(error.starts_with(&expected), "{error}");
        }
        let error = "speed".parse::<ComparableFigure>().unwrap_err().to_string();
        assert!(error.starts_with("there is no figure speed"), "{error}");
    }
}
