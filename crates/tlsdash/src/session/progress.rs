//! One line on the terminal with the progress of a load; nothing if standard error is not a terminal.

use std::io::IsTerminal;

use model::runs::Run;
use records::metrics::{LoadCounter, LoadLatency};

use crate::say::rewrite_line;

#[derive(Debug)]
pub(crate) struct HeadlessProgress {
    is_wanted: bool,
    /// The end of the last interval shown.
    told_us: u64,
}

impl HeadlessProgress {
    pub(crate) fn new(is_wanted: bool) -> Self {
        Self { is_wanted: is_wanted && std::io::stderr().is_terminal(), told_us: 0 }
    }

    /// Shows the last interval, once.
    pub(crate) fn show(&mut self, run: Option<&Run>) {
        let load = run.filter(|_| self.is_wanted).and_then(|run| Some((run, run.load()?)));
        let Some((run, series)) = load else { return };
        let Some(interval) = series.intervals().next_back().filter(|last| last.end_us > self.told_us) else {
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
            series.totals()[LoadCounter::Ok],
            series.totals()[LoadCounter::Failed]
        );
        rewrite_line(&line);
    }

    /// Erases the line.
    pub(crate) fn clear(&self) {
        if self.told_us > 0 {
            rewrite_line("");
        }
    }
}
