//! Files that the tools around `HdrHistogram` read.

use std::fmt::Write as _;

use telemetry::model::Run;
use telemetry::{Histogram, LoadLatency};

use super::View;

/// Steps for each halving of what lies above, as the plotters expect.
const TICKS: u32 = 5;

/// The percentiles of a run's requests in milliseconds, as `HdrHistogram`'s plotter reads them; `None` if the run had
/// no load.
pub fn percentile_file(run: &Run) -> Option<String> {
    let view = View::of(run)?;
    let mut text = percentiles(view.request());
    let _ = writeln!(text, "# {}", view.request_name());
    for note in &view.load.notes {
        let _ = writeln!(text, "# {note}");
    }
    Some(text)
}

fn percentiles(histogram: &Histogram) -> String {
    let ms = |ns: f64| ns / 1e6;
    let mut out =
        format!("{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
    for (ns, quantile, below) in histogram.percentiles(TICKS) {
        let _ = write!(out, "{:>12.3} {quantile:2.12} {below:>10}", ms(ns as f64));
        let _ = match quantile {
            1.0.. => writeln!(out),
            _ => writeln!(out, " {:>14.2}", 1.0 / (1.0 - quantile)),
        };
    }
    let (mean, sd) = (histogram.mean_ns().unwrap_or(0.0), histogram.stdev_ns().unwrap_or(0.0));
    let (max, n) = (ms(histogram.max_ns() as f64), histogram.count());
    let _ = writeln!(out, "#[Mean    = {:>12.3}, StdDeviation   = {:>12.3}]", ms(mean), ms(sd));
    let _ = writeln!(out, "#[Max     = {max:>12.3}, Total count    = {n:>12}]");
    out
}

/// The intervals of a run's requests as an `HdrHistogram` interval log, as far as the model has kept them; the second
/// value is the number of samples that it lacks. `None` if the run had no load.
pub fn interval_log(run: &Run) -> Option<(String, u64)> {
    let view = View::of(run)?;
    let track = run.load()?;
    let class = if view.latencies[LoadLatency::Response].is_empty() {
        LoadLatency::Service
    } else {
        LoadLatency::Response
    };
    let began_s = run.began_realtime_us() as f64 / 1e6;
    let start_us = run.last_us().saturating_sub(run.duration_us());
    let mut text = format!(
        "#[Histogram log format version 1.3]\n#[StartTime: {began_s:.3} (seconds since epoch)]\n#[BaseTime: {began_s:.3} (seconds since epoch)]\n"
    );
    for note in &view.load.notes {
        let _ = writeln!(text, "#[{note}]");
    }
    text.push_str(
        "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
    );
    let mut written = 0_u64;
    for interval in track.intervals() {
        let latency = interval.latency(class);
        if !latency.is_empty() {
            let after_s = interval.start_us.saturating_sub(start_us) as f64 / 1e6;
            let name = if class == LoadLatency::Service { "service" } else { "response" };
            text.push_str(&telemetry::interval_log_line(name, after_s, interval.seconds(), latency));
            written = written.saturating_add(latency.count());
        }
    }
    Some((text, track.whole()[class].count().saturating_sub(written)))
}
