//! What the formats are made of: a load, its figures and its latencies.

use std::sync::Arc;

use model::figures::ANSWERED;
use model::runs::{Interval, MetricSeries, Run};
use model::summary::LoadSummary;
use records::histogram::{Histogram, Histograms};
use records::metrics::{LoadCounter, LoadLatency};
use records::setting::Value;

/// The data that reports are made of.
#[derive(Debug)]
pub(super) struct RunView<'a> {
    pub(super) run: &'a Run,
    pub(super) load: LoadSummary,
    pub(super) latencies: &'a Histograms<LoadLatency>,
}

impl<'a> RunView<'a> {
    pub(super) fn of(run: &'a Run) -> Option<Self> {
        let latencies = run.load()?.whole();
        Some(Self { run, load: run.summary().load?, latencies })
    }

    /// The time of a request: from when it should have been sent where that is known, else from when it was.
    pub(super) fn request(&self) -> &'a Histogram {
        let response = &self.latencies[LoadLatency::Response];
        if response.is_empty() { &self.latencies[LoadLatency::Service] } else { response }
    }

    /// The name of the latency class that [`Self::request`] returns.
    pub(super) fn request_name(&self) -> &'static str {
        if self.latencies[LoadLatency::Response].is_empty() {
            "service (actual send to answer), uncorrected"
        } else {
            "response (intended send to answer), corrected for coordinated omission"
        }
    }

    /// Whether requests were due at times that the server did not decide.
    pub(super) fn is_open_loop(&self) -> bool {
        self.load.rate_per_s.wanted.is_some()
    }

    pub(super) fn setting(&self, name: &str) -> String {
        self.run.setting(name).map(|setting| setting.value.to_string()).unwrap_or_default()
    }

    pub(super) fn number(&self, name: &str) -> f64 {
        match self.run.setting(name).map(|setting| &setting.value) {
            Some(Value::Number(number)) => *number,
            _ => 0.0,
        }
    }

    /// Requests that count as results: those of the warm-up do not.
    pub(super) fn requests(&self) -> u64 {
        self.load.requests.scheduled.saturating_sub(self.load.requests.warmup)
    }

    /// Requests that were answered whole, well or not.
    pub(super) fn answered(&self) -> u64 {
        self.load.requests.answered
    }

    /// So much a second of the measured time.
    pub(super) fn per_second(&self, amount: u64) -> f64 {
        ratio(amount as f64, self.load.spans_s.measured)
    }

    /// Answers a second in each whole interval after the warm-up that is known.
    pub(super) fn rates(&self) -> Vec<f64> {
        let intervals = self.run.load().into_iter().flat_map(MetricSeries::timeline);
        let whole: Vec<_> = intervals.filter(|interval| !interval.after_loss).collect();
        let is_warmup = |interval: &&Arc<Interval<_, _>>| interval.counters[LoadCounter::Warmup] > 0;
        let warm = whole.iter().rposition(is_warmup).map_or(0, |at| at + 1);
        // The last one ends with the load, somewhere within its time.
        let rate = |interval: &&Arc<Interval<LoadCounter, LoadLatency>>| {
            ratio(interval.counters.sum(&ANSWERED) as f64, interval.length_us() as f64 / 1e6)
        };
        whole[warm..].iter().rev().skip(1).rev().map(rate).collect()
    }

    pub(super) fn failures(&self, causes: &[&str]) -> u64 {
        let count = |cause: &&str| self.load.failures.get(*cause).copied().unwrap_or(0);
        causes.iter().map(count).fold(0, u64::saturating_add)
    }
}

/// A quotient, 0 if there is nothing to divide by.
pub(super) fn ratio(part: f64, whole: f64) -> f64 {
    mean(part, whole).unwrap_or(0.0)
}

/// A quotient, if there is anything to divide by.
pub(super) fn mean(sum: f64, count: f64) -> Option<f64> {
    (count > 0.0).then(|| sum / count)
}

/// A figure as `write` writes it, or a dash: an unmeasured figure is not 0.
pub(super) fn or_dash(figure: Option<f64>, write: impl Fn(f64) -> String) -> String {
    figure.map_or_else(|| "-".to_owned(), write)
}

/// The times of some requests or connections, in nanoseconds; `None` without samples.
pub(super) struct LatencyStats<'a>(pub(super) &'a Histogram);

impl LatencyStats<'_> {
    pub(super) fn min(&self) -> Option<f64> {
        self.0.min_ns().map(|ns| ns as f64)
    }

    pub(super) fn mean(&self) -> Option<f64> {
        self.0.mean_ns()
    }

    pub(super) fn sd(&self) -> Option<f64> {
        self.0.stdev_ns()
    }

    pub(super) fn at(&self, q: f64) -> Option<f64> {
        self.0.quantile_ns(q).map(|ns| ns as f64)
    }

    pub(super) fn max(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.max_ns() as f64)
    }

    /// Share within one standard deviation of the mean, in percent.
    pub(super) fn within_sd(&self) -> Option<f64> {
        let (mean, sd) = (self.mean()?, self.sd()?);
        let share = self.0.share_within((mean - sd).max(0.0) as u64, (mean + sd) as u64)?;
        Some(share * 100.0)
    }
}
