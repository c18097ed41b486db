//! All figures of a run by dotted names: for assertions, CSV, and the spread over several runs.
//!
//! A figure of one side has that side's name in front (`proxy.handshake_full.p99`, `load.requests.ok`). It may be left
//! out; where both sides have such a figure, the proxy's is meant.

use telemetry::model::{LoadSummary, Percentiles, ProxySummary, Run, Summary};
use telemetry::{
    Histogram, Histograms, LatencyClass, LoadEvent, LoadLatency, Metric, Model, Percentile, ProxyLatency,
};

/// A figure by its name; latencies in microseconds. `None` where there are no samples.
pub type Figure = (String, Option<f64>);

/// All figures of a run.
#[derive(Debug)]
pub struct Figures<'a> {
    run: &'a Run,
    plain: Vec<Figure>,
}

/// What a name stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Found<'a> {
    /// A number; `None` where there are no samples.
    Plain(Option<f64>),
    /// A share, from 0 to 1; `None` where there is nothing of which it is one.
    Share(Option<f64>),
    /// A length of time in seconds; `None` where there are no samples.
    Seconds(Option<f64>),
    /// A time in microseconds; `None` where there are no samples.
    Time(Option<f64>),
    /// A percentile of these samples.
    Percentile(f64, &'a Histogram),
}

impl<'a> Figures<'a> {
    /// Those of a run; with what the model knows of the journal if `source` names it.
    pub fn of(model: &Model, run: &'a Run, source: Option<&str>) -> Self {
        let summary = model.summary(run, source);
        let mut plain = Vec::new();
        let mut add = |side: &str, figures: Vec<Figure>| {
            plain.extend(figures.into_iter().map(|(name, value)| (format!("{side}{name}"), value)));
        };
        if let Some(proxy) = &summary.proxy {
            add("proxy.", of_proxy(proxy));
        }
        if let Some(load) = &summary.load {
            add("load.", of_load(load));
        }
        add("", of_run(&summary));
        Self { run, plain }
    }

    /// What a name stands for; `None` if there is no such figure.
    pub(crate) fn find(&self, name: &str) -> Option<Found<'a>> {
        if let Some(found) = self.latency(name) {
            return Some(found);
        }
        let named = |wanted: &str| self.plain.iter().find(|(known, _)| known == wanted);
        let found = named(name).or_else(|| SIDES.iter().find_map(|side| named(&format!("{side}.{name}"))));
        found.map(|(name, value)| {
            let name =
                SIDES.iter().find_map(|side| name.strip_prefix(side)?.strip_prefix('.')).unwrap_or(name);
            if matches!(name.rsplit_once('.'), Some((_, "ratio"))) || name == "generator.busy" {
                Found::Share(*value)
            } else if matches!(name, "duration" | "seconds" | "observed.cpu_s") || name.starts_with("cpu.") {
                Found::Seconds(*value)
            } else {
                Found::Plain(*value)
            }
        })
    }

    fn latency(&self, name: &str) -> Option<Found<'a>> {
        let (side, rest) = match name.split_once('.') {
            Some((side, rest)) if SIDES.contains(&side) => (Some(side), rest),
            _ => (None, name),
        };
        let (label, what) = rest.split_once('.')?;
        let histogram = self.histogram(side, label)?;
        let time = |us: Option<f64>| Some(Found::Time(us));
        let all = Percentiles::of(histogram);
        match what {
            "n" => Some(Found::Plain(Some(histogram.count() as f64))),
            "min" => time(all.min),
            "mean" => time(all.mean),
            "sd" => time(all.sd),
            "max" => time(all.max),
            _ => telemetry::parse_percentile(what).map(|q| Found::Percentile(q, histogram)),
        }
    }

    fn histogram(&self, side: Option<&str>, label: &str) -> Option<&'a Histogram> {
        let proxy = || self.run.proxy().and_then(|track| of_class(track.whole(), label));
        let load = || self.run.load().and_then(|track| of_class(track.whole(), label));
        match side {
            Some("proxy") => proxy(),
            Some(_) => load(),
            None => proxy().or_else(load),
        }
    }

    /// The names that there are, those of the latencies folded.
    pub fn known(&self) -> String {
        let names: Vec<&str> = self.plain.iter().map(|(name, _)| &**name).collect();
        let mut classes: Vec<String> = Vec::new();
        if self.run.proxy().is_some() {
            classes.extend(
                ProxyLatency::ALL.iter().map(|class| format!("proxy.{}", LatencyClass::Proxy(*class).key())),
            );
        }
        if self.run.load().is_some() {
            classes.extend(
                LoadLatency::ALL.iter().map(|class| format!("load.{}", LatencyClass::Load(*class).key())),
            );
        }
        format!(
            "{}; and n, min, mean, sd, p50, p99 or any other percentile, and max of {} (the side may be left out)",
            names.join(", "),
            classes.join(", ")
        )
    }

    /// Every figure with its value, the usual percentiles among them.
    pub fn all(&self) -> Vec<Figure> {
        let mut all = self.plain.clone();
        let prefixed = |side: &'static str| move |(name, value)| (format!("{side}.{name}"), value);
        if let Some(track) = self.run.proxy() {
            all.extend(latencies(track.whole()).into_iter().map(prefixed("proxy")));
        }
        if let Some(track) = self.run.load() {
            all.extend(latencies(track.whole()).into_iter().map(prefixed("load")));
        }
        all
    }
}

const SIDES: [&str; 2] = ["proxy", "load"];

fn of_class<'a, L: Metric + Into<LatencyClass>>(
    histograms: &'a Histograms<L>,
    label: &str,
) -> Option<&'a Histogram> {
    L::ALL.iter().copied().find(|&class| class.into().key() == label).map(|class| &histograms[class])
}

/// The figures of a run's load, without its name in front; `None` if the run had none.
pub fn load_figures(run: &Run) -> Option<Vec<Figure>> {
    let summary = run.summary();
    let mut all = of_load(summary.load.as_ref()?);
    all.extend(latencies(run.load()?.whole()));
    all.extend(of_host(&summary));
    Some(all)
}

fn figure(name: &str, value: f64) -> Figure {
    (name.to_owned(), Some(value))
}

fn count(name: &str, value: u64) -> Figure {
    figure(name, value as f64)
}

fn ratio(part: u64, rest: u64) -> Option<f64> {
    let whole = part.saturating_add(rest);
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn of_proxy(proxy: &ProxySummary) -> Vec<Figure> {
    let ProxySummary { connections, handshakes, bytes, .. } = proxy;
    vec![
        count("connections.accepted", connections.accepted),
        count("connections.open", connections.open),
        count("connections.failed", connections.failed),
        count("handshakes.full", handshakes.full),
        count("handshakes.resumed", handshakes.resumed),
        count("handshakes.failed", handshakes.failed),
        ("resumed.ratio".to_owned(), ratio(handshakes.resumed, handshakes.full)),
        count("bytes.in", bytes.r#in),
        count("bytes.out", bytes.out),
    ]
}

/// Failures that a load saw.
fn load_errors(load: &LoadSummary) -> u64 {
    let requests = &load.requests;
    [requests.failed, requests.never_sent, requests.unfinished].into_iter().fold(0, u64::saturating_add)
}

fn of_load(load: &LoadSummary) -> Vec<Figure> {
    let requests = &load.requests;
    let mut all = vec![
        figure("seconds", load.spans_s.measured),
        figure("rate.achieved", load.rate_per_s.achieved),
        ("rate.wanted".to_owned(), load.rate_per_s.wanted),
        count("requests.scheduled", requests.scheduled),
        count("requests.sent", requests.sent),
        count("requests.answered", requests.answered),
        count("requests.ok", requests.ok),
        count("requests.failed", requests.failed),
        count("requests.never_sent", requests.never_sent),
        count("requests.throttled", requests.throttled),
        count("requests.unfinished", requests.unfinished),
        count("requests.late", requests.late),
        count("requests.warmup", requests.warmup),
        count("requests.reused", requests.reused),
        count("requests.retried", requests.retried),
        count("errors", load_errors(load)),
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

/// What concerns both sides, and what the run used.
fn of_run(summary: &Summary) -> Vec<Figure> {
    let proxy_errors = summary
        .proxy
        .as_ref()
        .map_or(0, |proxy| proxy.connections.failed.saturating_add(proxy.handshakes.failed));
    let load_errors = summary.load.as_ref().map_or(0, load_errors);
    let mut all = vec![
        figure("duration", summary.duration_s),
        count("ended", u64::from(summary.ended)),
        count("errors", proxy_errors.saturating_add(load_errors)),
        count("clients", summary.clients.len() as u64),
    ];
    if let Some(journal) = &summary.journal {
        all.push(count("lost", journal.lost));
        all.push(count("merged", journal.merged));
        all.push(count("suppressed", journal.suppressed));
        all.push(count("malformed", journal.malformed));
    }
    all.extend(of_host(summary));
    all
}

fn of_host(summary: &Summary) -> Vec<Figure> {
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

fn latencies<L: Metric + Into<LatencyClass>>(histograms: &Histograms<L>) -> Vec<Figure> {
    let mut all = Vec::new();
    for &class in L::ALL {
        let histogram = &histograms[class];
        let mut add = |what: &str, us: Option<f64>| all.push((format!("{}.{what}", class.into().key()), us));
        add("n", Some(histogram.count() as f64));
        add("min", histogram.min_ns().map(|ns| ns as f64 / 1e3));
        add("mean", histogram.mean_ns().map(|ns| ns / 1e3));
        add("sd", histogram.stdev_ns().map(|ns| ns / 1e3));
        for percentile in Percentile::LISTED {
            add(&percentile.key(), histogram.quantile_ns(percentile.q).map(|ns| ns as f64 / 1e3));
        }
        add("max", (!histogram.is_empty()).then(|| histogram.max_ns() as f64 / 1e3));
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
