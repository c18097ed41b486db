//! All figures of a load by dotted names: for assertions, CSV, and the spread over several runs.

use telemetry::model::{Run, Summary};
use telemetry::{Body, HostRecord, LoadEvent, Metric, Model, Record, RunId, Stamp};

use super::View;

/// Percentiles that are listed; an assertion may ask for any other.
pub(super) const QUANTILES: [(&str, f64); 6] =
    [("p50", 0.5), ("p75", 0.75), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)];

/// A figure by its name; latencies in microseconds. `None` where there are no samples.
pub type Figure = (String, Option<f64>);

/// The figures of a run's load; `None` if the run had none.
pub fn metrics(run: &Run) -> Option<Vec<Figure>> {
    let view = View::of(run)?;
    let summary = run.summary();
    let mut all = counts(&view);
    all.extend(latencies(&view));
    all.extend(host(&summary));
    Some(all)
}

/// A run that counted nothing, which has every figure by its name.
pub(super) fn example() -> (Model, RunId) {
    let run = RunId::from_bits(1);
    let mut model = Model::new(1);
    let bodies =
        [Body::Load(Box::default()), Body::Host(HostRecord { observed_pid: 1, ..HostRecord::default() })];
    for (body, seq) in bodies.into_iter().zip(1..) {
        let stamp = Stamp { run, seq, mono_us: 0, realtime_us: 0, interval_us: 0 };
        model.apply(Record { stamp, body }, None);
    }
    (model, run)
}

fn counts(view: &View<'_>) -> Vec<Figure> {
    let load = &view.load;
    let requests = &load.requests;
    let figure = |name: &str, value: f64| (name.to_owned(), Some(value));
    let count = |name: &str, value: u64| figure(name, value as f64);
    let errors = [requests.failed, requests.never_sent, requests.unfinished];
    let mut all = vec![
        figure("seconds", load.spans_s.measured),
        figure("rate.achieved", load.rate_per_s.achieved),
        ("rate.wanted".to_owned(), load.rate_per_s.wanted),
        count("requests.scheduled", requests.scheduled),
        count("requests.sent", requests.sent),
        count("requests.ok", requests.ok),
        count("requests.failed", requests.failed),
        count("requests.never_sent", requests.never_sent),
        count("requests.unfinished", requests.unfinished),
        count("requests.late", requests.late),
        count("requests.warmup", requests.warmup),
        count("requests.reused", requests.reused),
        count("requests.retried", requests.retried),
        count("errors", errors.into_iter().fold(0, u64::saturating_add)),
        count("connections", load.connections),
        count("handshakes.full", load.handshakes.full),
        count("handshakes.resumed", load.handshakes.resumed),
        count("handshakes.failed", load.handshakes.failed),
        count("resumptions.wanted", load.resumptions.wanted),
        count("resumptions.offered", load.resumptions.offered),
        count("resumptions.observed", load.resumptions.observed),
        count("early_data.wanted", load.early_data.wanted),
        count("early_data.offered", load.early_data.offered),
        count("early_data.accepted", load.early_data.accepted),
        count("early_data.rejected", load.early_data.rejected),
        count("bytes.in", load.bytes.r#in),
        count("bytes.out", load.bytes.out),
        count("body.in", load.parts.body_in),
        count("body.out", load.parts.body_out),
        count("head.out", load.parts.head_out),
        count("head.plain", load.parts.head_plain),
        figure("generator.busy", load.generator.busy),
    ];
    all.extend(load.failures.iter().map(|(cause, n)| count(&format!("errors.{cause}"), *n)));
    all.extend((2..6).map(|class| {
        let of_class = |event| matches!(event, LoadEvent::Status(code) if code / 100 == class);
        let counts = load.events.iter().filter(|entry| of_class(entry.event)).map(|entry| entry.count);
        count(&format!("status.{class}xx"), counts.fold(0, u64::saturating_add))
    }));
    all
}

fn latencies(view: &View<'_>) -> Vec<Figure> {
    let mut all = Vec::new();
    for (&class, name) in telemetry::LoadLatency::ALL.iter().zip(View::class_names()) {
        let histogram = &view.latencies[class];
        let mut add = |what: &str, us: Option<f64>| all.push((format!("{name}.{what}"), us));
        add("n", Some(histogram.count() as f64));
        add("min", histogram.min_ns().map(|ns| ns as f64 / 1e3));
        add("mean", histogram.mean_ns().map(|ns| ns / 1e3));
        add("sd", histogram.stdev_ns().map(|ns| ns / 1e3));
        for (percentile, q) in QUANTILES {
            add(percentile, histogram.quantile_ns(q).map(|ns| ns as f64 / 1e3));
        }
        add("max", (!histogram.is_empty()).then(|| histogram.max_ns() as f64 / 1e3));
    }
    all
}

fn host(summary: &Summary) -> Vec<Figure> {
    let cpu = summary.cpu_s.iter().map(|(group, seconds)| (format!("cpu.{group}"), Some(*seconds)));
    let mut all: Vec<Figure> = cpu.collect();
    if let Some(observed) = &summary.observed {
        let figure = |name: &str, value: f64| (format!("observed.{name}"), Some(value));
        all.push(figure("cpu_s", observed.cpu_s));
        all.push(figure("cpu_percent", observed.cpu_percent));
        all.push(figure("threads_max", observed.threads_max as f64));
        all.push(figure("memory_max_bytes", observed.memory_max_bytes as f64));
    }
    all
}

/// The figures of several runs as CSV: a line of names, then one for each run.
pub fn csv(runs: &[Vec<Figure>]) -> String {
    let Some(first) = runs.first() else { return String::new() };
    let names: Vec<&str> = first.iter().map(|(name, _)| name.as_str()).collect();
    let mut text = names.join(",") + "\n";
    for figures in runs {
        let find =
            |name: &&str| figures.iter().find(|(known, _)| known == name).and_then(|(_, value)| *value);
        let values: Vec<String> =
            names.iter().map(|name| find(name).map_or_else(String::new, |value| value.to_string())).collect();
        text.push_str(&values.join(","));
        text.push('\n');
    }
    text
}
