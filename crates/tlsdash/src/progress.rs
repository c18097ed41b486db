//! One line on the terminal that tells how a load gets on; nothing where standard error is no terminal.

use std::io::{IsTerminal, Write};

use telemetry::model::Run;
use telemetry::{LoadCounter, LoadLatency};

#[derive(Debug)]
pub(crate) struct Progress {
    is_wanted: bool,
    /// The end of the interval that was told last.
    told_us: u64,
}

impl Progress {
    pub(crate) fn new(is_wanted: bool) -> Self {
        Self { is_wanted: is_wanted && std::io::stderr().is_terminal(), told_us: 0 }
    }

    /// Tells the last interval, once.
    pub(crate) fn show(&mut self, run: Option<&Run>) {
        let load = run.filter(|_| self.is_wanted).and_then(|run| Some((run, run.load()?)));
        let Some((run, track)) = load else { return };
        let Some(interval) = track.intervals().next_back().filter(|last| last.end_us > self.told_us) else {
            return;
        };
        self.told_us = interval.end_us;
        let response = interval.latency(LoadLatency::Response);
        let latency = if response.is_empty() { interval.latency(LoadLatency::Service) } else { response };
        let ms = |q: f64| {
            latency.quantile_ns(q).map_or_else(|| "-".to_owned(), |ns| format!("{:.2}", ns as f64 / 1e6))
        };
        let line = format!(
            "{:>6.0} s  {:>9.0}/s  p50 {} ms  p99 {} ms  {} ok  {} failed",
            run.duration_us() as f64 / 1e6,
            interval.rate(LoadCounter::Ok).unwrap_or(0.0),
            ms(0.5),
            ms(0.99),
            track.totals()[LoadCounter::Ok],
            track.totals()[LoadCounter::Failed]
        );
        Self::write(&line);
    }

    /// Takes the line off again.
    pub(crate) fn clear(&self) {
        if self.told_us > 0 {
            Self::write("");
        }
    }

    fn write(line: &str) {
        // Back to the first column, and the rest of the line erased. A terminal that is gone is no failure.
        let _ = write!(std::io::stderr(), "\r\x1b[K{line}").and_then(|()| std::io::stderr().flush());
    }
}
