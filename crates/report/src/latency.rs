//! The latencies of a run by class, with percentiles and their intervals.

use telemetry::{Histogram, LatencyClass, percentile_interval_ns, quantile_is_thin};

/// One class of latencies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassLatency<'a> {
    pub(crate) class: LatencyClass,
    pub(crate) histogram: &'a Histogram,
}

impl ClassLatency<'_> {
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.class.side(), self.class.key().replace('_', " "))
    }

    /// A percentile.
    pub(crate) fn quantile(&self, q: f64) -> Option<PercentileEstimate> {
        let n = self.histogram.count();
        let ms = |ns: u64| ns as f64 / 1e6;
        let (low_ns, high_ns) = percentile_interval_ns(n, q, |q| self.histogram.quantile_ns(q));
        Some(PercentileEstimate {
            ms: self.histogram.quantile_ns(q).map(ms)?,
            interval_ms: low_ns.map(ms).zip(high_ns.map(ms)),
            is_thin: quantile_is_thin(n, q),
        })
    }
}

/// A percentile, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PercentileEstimate {
    pub(crate) ms: f64,
    /// Its 95 % confidence interval, for independent samples; `None` with too few samples.
    pub(crate) interval_ms: Option<(f64, f64)>,
    /// Fewer than ten samples lie above it.
    pub(crate) is_thin: bool,
}
