//! Files that the tools around `HdrHistogram` read.

use std::fmt::Write as _;

use model::runs::{MetricSeries, Run};
use records::histogram::Histogram;
use records::metrics::{LatencyClass, LoadLatency, Metric, ProxyLatency};

/// Lines for each halving of the distance to 100 %, as plotters expect.
const TICKS: u32 = 5;

/// The latency of a run's requests that is closest to the client's view.
enum RequestLatency {
    /// Response times, or service times in a closed loop.
    Load(LoadLatency),
    /// The proxy's exchanges.
    Proxy,
}

impl RequestLatency {
    fn of(run: &Run) -> Option<Self> {
        match (run.load(), run.proxy()) {
            (Some(load), _) if load.whole()[LoadLatency::Response].is_empty() => {
                Some(Self::Load(LoadLatency::Service))
            }
            (Some(_), _) => Some(Self::Load(LoadLatency::Response)),
            (None, Some(_)) => Some(Self::Proxy),
            (None, None) => None,
        }
    }

    fn meaning(&self) -> &'static str {
        match self {
            Self::Load(LoadLatency::Response) => {
                "response (intended send to answer), corrected for coordinated omission"
            }
            Self::Load(_) => "service (actual send to answer), uncorrected",
            Self::Proxy => "exchange (last byte of a request to first byte of its answer, at the proxy)",
        }
    }
}

fn notes(run: &Run) -> Vec<String> {
    run.summary().load.map(|load| load.notes).unwrap_or_default()
}

/// The percentiles of a run's requests in milliseconds, as `HdrHistogram`'s plotter reads them; `None` if the run had
/// neither load nor proxy.
pub fn percentile_file(run: &Run) -> Option<String> {
    let requests = RequestLatency::of(run)?;
    let histogram = match requests {
        RequestLatency::Load(class) => &run.load()?.whole()[class],
        RequestLatency::Proxy => &run.proxy()?.whole()[ProxyLatency::Exchange],
    };
    let mut text = percentiles(histogram);
    let _ = writeln!(text, "# {}", requests.meaning());
    for note in notes(run) {
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
    let shown = |ns: Option<f64>| ns.map_or_else(|| "-".to_owned(), |ns| format!("{:.3}", ms(ns)));
    let max = (!histogram.is_empty()).then(|| histogram.max_ns() as f64);
    let (mean, sd, max) = (shown(histogram.mean_ns()), shown(histogram.stdev_ns()), shown(max));
    let _ = writeln!(out, "#[Mean    = {mean:>12}, StdDeviation   = {sd:>12}]");
    let _ = writeln!(out, "#[Max     = {max:>12}, Total count    = {:>12}]", histogram.count());
    out
}

/// The intervals of a run's requests as an `HdrHistogram` interval log, as far as the model has kept them; the second
/// value is the number of samples that it lacks. `None` if the run had neither load nor proxy.
pub fn interval_log(run: &Run) -> Option<(String, u64)> {
    let began_s = run.began_realtime_us() as f64 / 1e6;
    let mut text = format!(
        "#[Histogram log format version 1.3]\n#[StartTime: {began_s:.3} (seconds since epoch)]\n#[BaseTime: {began_s:.3} (seconds since epoch)]\n"
    );
    for note in notes(run) {
        let _ = writeln!(text, "#[{note}]");
    }
    text.push_str(
        "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
    );
    let lacking = match RequestLatency::of(run)? {
        RequestLatency::Load(class) => intervals(run, run.load()?, class, &mut text),
        RequestLatency::Proxy => intervals(run, run.proxy()?, ProxyLatency::Exchange, &mut text),
    };
    Some((text, lacking))
}

/// Adds a line for each interval with samples; gives the number of samples that have none.
fn intervals<C: Metric, L: Metric + Into<LatencyClass>>(
    run: &Run,
    series: &MetricSeries<C, L>,
    class: L,
    text: &mut String,
) -> u64 {
    let start_us = run.last_us().saturating_sub(run.duration_us());
    let mut written = 0_u64;
    for interval in series.timeline() {
        let latency = interval.latency(class);
        if !latency.is_empty() {
            let after_s = interval.start_us.saturating_sub(start_us) as f64 / 1e6;
            text.push_str(&records::histogram::interval_log_line(
                class.into().key(),
                after_s,
                interval.seconds(),
                latency,
            ));
            written = written.saturating_add(latency.count());
        }
    }
    series.whole()[class].count().saturating_sub(written)
}
