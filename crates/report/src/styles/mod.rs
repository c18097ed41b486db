//! The results of a load, in the formats of well-known tools. They come from a run's model, so also from an old
//! journal.
//!
//! Each format has a module with a function from a `RunView` to text. The figures are tlsdash's in every format: where
//! a tool defines a name differently, `docs/load.md` explains it. The notes, such as that no certificate was
//! verified, end every format.

mod ab;
mod h2load;
mod jmeter;
mod units;
mod vegeta;
mod wrk;

use std::fmt::Write as _;
use std::str::FromStr;
use std::sync::Arc;

use model::figures::ANSWERED;
use model::runs::{Interval, MetricSeries, Run};
use model::summary::LoadSummary;
use records::histogram::{Histogram, Histograms};
use records::metrics::{LoadCounter, LoadLatency};
use records::setting::Value;

/// The shape of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportStyle {
    /// As `vegeta report` prints it.
    Vegeta,
    /// As `h2load` does.
    H2load,
    /// As `ApacheBench` does.
    Ab,
    /// As `wrk --latency` does.
    Wrk,
    /// The columns of `JMeter`'s summary report.
    Jmeter,
}

impl ReportStyle {
    pub const ALL: [(&str, Self); 5] = [
        ("vegeta", Self::Vegeta),
        ("h2load", Self::H2load),
        ("ab", Self::Ab),
        ("wrk", Self::Wrk),
        ("jmeter", Self::Jmeter),
    ];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected vegeta, h2load, ab, wrk or jmeter")]
pub struct ReportStyleError;

impl FromStr for ReportStyle {
    type Err = ReportStyleError;

    fn from_str(text: &str) -> Result<Self, ReportStyleError> {
        Self::ALL.into_iter().find(|(name, _)| *name == text).map(|(_, style)| style).ok_or(ReportStyleError)
    }
}

/// A run's load in a shape; `None` if the run had none.
pub fn report(run: &Run, style: ReportStyle) -> Option<String> {
    let view = RunView::of(run)?;
    let mut text = match style {
        ReportStyle::Vegeta => vegeta::text(&view),
        ReportStyle::H2load => h2load::text(&view),
        ReportStyle::Ab => ab::text(&view),
        ReportStyle::Wrk => wrk::text(&view),
        ReportStyle::Jmeter => jmeter::text(&view),
    };
    if let Some(observed) = &run.summary().observed {
        let _ = writeln!(
            text,
            "# process {}: CPU {:.2} s, {:.1} %; at most {} threads, {:.1} MB",
            observed.pid,
            observed.cpu_s,
            observed.cpu_percent,
            observed.threads_max,
            observed.memory_max_bytes as f64 / 1e6
        );
    }
    for note in &view.load.notes {
        let _ = writeln!(text, "# {note}");
    }
    Some(text)
}

/// The data that reports are made of.
#[derive(Debug)]
struct RunView<'a> {
    run: &'a Run,
    load: LoadSummary,
    latencies: &'a Histograms<LoadLatency>,
}

impl<'a> RunView<'a> {
    fn of(run: &'a Run) -> Option<Self> {
        let latencies = run.load()?.whole();
        Some(Self { run, load: run.summary().load?, latencies })
    }

    /// The time of a request: from when it should have been sent where that is known, else from when it was.
    fn request(&self) -> &'a Histogram {
        let response = &self.latencies[LoadLatency::Response];
        if response.is_empty() { &self.latencies[LoadLatency::Service] } else { response }
    }

    /// The name of the latency class that [`Self::request`] returns.
    fn request_name(&self) -> &'static str {
        if self.latencies[LoadLatency::Response].is_empty() {
            "service (actual send to answer), uncorrected"
        } else {
            "response (intended send to answer), corrected for coordinated omission"
        }
    }

    /// Whether requests were due at times that the server did not decide.
    fn is_open_loop(&self) -> bool {
        self.load.rate_per_s.wanted.is_some()
    }

    fn setting(&self, name: &str) -> String {
        self.run.setting(name).map(|setting| setting.value.to_string()).unwrap_or_default()
    }

    fn number(&self, name: &str) -> f64 {
        match self.run.setting(name).map(|setting| &setting.value) {
            Some(Value::Number(number)) => *number,
            _ => 0.0,
        }
    }

    /// Requests that count as results: those of the warm-up do not.
    fn requests(&self) -> u64 {
        self.load.requests.scheduled.saturating_sub(self.load.requests.warmup)
    }

    /// Requests that were answered whole, well or not.
    fn answered(&self) -> u64 {
        self.load.requests.answered
    }

    /// So much a second of the measured time.
    fn per_second(&self, amount: u64) -> f64 {
        ratio(amount as f64, self.load.spans_s.measured)
    }

    /// Answers a second in each whole interval that is known.
    fn rates(&self) -> Vec<f64> {
        let intervals = self.run.load().into_iter().flat_map(MetricSeries::timeline);
        let whole: Vec<_> = intervals.filter(|interval| !interval.after_loss).collect();
        // The last one ends with the load, somewhere within its time.
        let rate = |interval: &&Arc<Interval<LoadCounter, LoadLatency>>| {
            ratio(interval.counters.sum(&ANSWERED) as f64, interval.length_us() as f64 / 1e6)
        };
        whole.iter().rev().skip(1).rev().map(rate).collect()
    }

    fn failures(&self, causes: &[&str]) -> u64 {
        let count = |cause: &&str| self.load.failures.get(*cause).copied().unwrap_or(0);
        causes.iter().map(count).fold(0, u64::saturating_add)
    }
}

/// A quotient, 0 if there is nothing to divide by.
fn ratio(part: f64, whole: f64) -> f64 {
    mean(part, whole).unwrap_or(0.0)
}

/// A quotient, if there is anything to divide by.
fn mean(sum: f64, count: f64) -> Option<f64> {
    (count > 0.0).then(|| sum / count)
}

/// A figure as `write` writes it, or a dash: an unmeasured figure is not 0.
fn or_dash(figure: Option<f64>, write: impl Fn(f64) -> String) -> String {
    figure.map_or_else(|| "-".to_owned(), write)
}

/// The times of some requests or connections, in nanoseconds; `None` without samples.
struct LatencyStats<'a>(&'a Histogram);

impl LatencyStats<'_> {
    fn min(&self) -> Option<f64> {
        self.0.min_ns().map(|ns| ns as f64)
    }

    fn mean(&self) -> Option<f64> {
        self.0.mean_ns()
    }

    fn sd(&self) -> Option<f64> {
        self.0.stdev_ns()
    }

    fn at(&self, q: f64) -> Option<f64> {
        self.0.quantile_ns(q).map(|ns| ns as f64)
    }

    fn max(&self) -> Option<f64> {
        (!self.0.is_empty()).then(|| self.0.max_ns() as f64)
    }

    /// Share within one standard deviation of the mean, in percent.
    fn within_sd(&self) -> Option<f64> {
        let (mean, sd) = (self.mean()?, self.sd()?);
        let share = self.0.share_within((mean - sd).max(0.0) as u64, (mean + sd) as u64)?;
        Some(share * 100.0)
    }
}

#[cfg(test)]
mod tests;
