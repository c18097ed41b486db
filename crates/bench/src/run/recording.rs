//! The contents of a cell's journal. The program reads journals; see [`RunPrograms`](super::RunPrograms).

use std::collections::BTreeMap;

use model::figures::FigureUnit;

use crate::compare::CellFigure;
use crate::results::NegotiatedParameters;
use crate::target::TimeSpan;

/// The figure of how busy the generator's threads were.
pub(super) const GENERATOR_BUSY: &str = "generator.busy";

/// The generator's records of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadRecording {
    /// When it began, in microseconds since 1970.
    pub began_us: u64,
    /// When the measured part began, after the warm-up, `CLOCK_MONOTONIC` in microseconds.
    pub measured_from_us: u64,
    /// The length of the measured part, in microseconds.
    pub measured_us: u64,
    /// The requests answered until each record, with its time on the monotonic clock in microseconds, ascending.
    pub answered: Vec<(u64, u64)>,
    /// The figures of the load by their names in the catalogue; only those with a value.
    pub figures: BTreeMap<String, f64>,
    /// Percentiles of the response time in microseconds, ascending.
    pub response_curve: Vec<(f64, u64)>,
    /// The parameters that the connections of the measured part negotiated, without duplicates.
    pub negotiated: Vec<NegotiatedParameters>,
    /// The share of the requests that the generator took on more than 1 ms late, 0 to 1.
    pub late_share: f64,
    /// Failures and their counts, in words.
    pub failures: Vec<String>,
    /// False if an open loop was not kept up with.
    pub is_rate_achieved: bool,
}

impl LoadRecording {
    /// The value of a figure; 0 without one.
    pub(super) fn figure(&self, name: &str) -> f64 {
        self.figures.get(name).copied().unwrap_or(0.0)
    }

    /// The time that was measured.
    pub(super) fn span(&self) -> TimeSpan {
        let from_us = self.measured_from_us;
        TimeSpan { from_us, to_us: from_us.saturating_add(self.measured_us) }
    }

    /// Makes rates and lengths those of the time in which requests were due, which is this share of the whole.
    pub(super) fn count_active_share(&mut self, active_share: f64) {
        for (name, value) in &mut self.figures {
            let unit = format!("load.{name}").parse().map(|figure: CellFigure| figure.unit());
            match unit {
                Ok(FigureUnit::PerSecond) => *value /= active_share,
                Ok(FigureUnit::Seconds) => *value *= active_share,
                // CPU time over the length.
                _ if name == GENERATOR_BUSY => *value = (*value / active_share).min(1.0),
                _ => {}
            }
        }
    }

    /// The response time that so many percent of the requests do not exceed, in microseconds, rounded up to the next
    /// point of the curve; `None` without samples.
    pub(super) fn response_at(&self, percentile: f64) -> Option<u64> {
        let point = self.response_curve.iter().find(|(known, _)| *known >= percentile);
        point.or_else(|| self.response_curve.last()).map(|(_, us)| *us)
    }
}
