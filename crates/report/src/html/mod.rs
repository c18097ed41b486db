//! A report as one page that works without a network, prints, and needs no script.

mod heat;
mod plot;
mod tables;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use telemetry::{LoadCounter, LoadLatency, ProxyCounter, ProxyLatency};

use crate::content::{Column, Report, columns};
use plot::{Plot, Scale, Series, Tick, round_steps};

const STYLE: &str = include_str!("style.css");

impl Report<'_> {
    /// The page.
    pub fn html(&self) -> String {
        let title = format!("tlsdash: run {}", self.run.id().short());
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (title) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    h1 { (title) }
                    (self.lead())
                    (section("Latencies", &self.latency_table()))
                    (section("Percentile curves", &self.curves()))
                    (section("In time", &self.in_time()))
                    (section("Experiments", &self.experiment_tables()))
                    (section("Handshakes", &self.handshake_table()))
                    (section("Load", &self.load_tables()))
                    (section("Clients", &self.client_table()))
                    (section("CPU", &self.cpu_table()))
                    (section("What happened", &self.happening_table()))
                    (section("Environment and settings", &self.environment_tables()))
                    (section("Quality of the data", &self.quality_list()))
                    (section("What the words mean", &self.definitions()))
                    p.dim { "Made by " code { (self.command) } }
                }
            }
        };
        page.into_string()
    }

    /// The gist, in words.
    fn lead(&self) -> Markup {
        let (proxy, load) = (self.summary.proxy.as_ref(), self.summary.load.as_ref());
        let is_doubtful = load.is_some_and(|load| !load.generator.limits.is_empty());
        let lost = self.summary.journal.as_ref().map_or(0, |journal| journal.lost);
        html! {
            p.lead {
                (format!("In {:.1} s", self.summary.duration_s))
                @if let Some(proxy) = proxy {
                    @let handshakes = &proxy.handshakes;
                    (format!(" the proxy served {} connections with {} full and {} resumed handshakes", proxy.connections.accepted, handshakes.full, handshakes.resumed))
                    @if handshakes.failed > 0 { (format!("; {} failed", handshakes.failed)) }
                    "."
                }
                @if let Some(load) = load {
                    (format!(" The load had {} requests answered well and {} failed, {:.1} a second", load.requests.ok, load.requests.failed, load.rate_per_s.achieved))
                    @if let Some(wanted) = load.rate_per_s.wanted { (format!(" of {wanted:.1} wanted")) }
                    "."
                }
            }
            @if is_doubtful { p.warn { "The generator was at its limit: the latencies tell of it rather than of the server." } }
            @if lost > 0 { p.warn { (lost) " records were lost: what happened in their intervals is missing from the plots." } }
            @if load.is_some_and(|load| !load.rate_per_s.is_achieved) { p.warn { "The rate that was wanted was not achieved." } }
        }
    }

    fn curves(&self) -> Markup {
        let shown: Vec<_> = self
            .latencies()
            .into_iter()
            .filter(|latency| CURVES.contains(&(latency.side, latency.label)))
            .collect();
        let most = shown.iter().map(|latency| latency.histogram.count()).max().unwrap_or(0);
        let nines = (most.max(10) as f64).log10().min(6.0);
        let steps: Vec<f64> = (0..=60).map(|n| f64::from(n) / 60.0 * nines).collect();
        let series = shown.iter().map(|latency| Series {
            name: curve_name(latency.side, latency.label),
            points: steps
                .iter()
                .map(|&nines| {
                    let above = 10_f64.powf(-nines);
                    // Its curve ends where less than a sample is left.
                    let has_samples = latency.histogram.count() as f64 * above >= 1.0;
                    (nines, latency.quantile(1.0 - above).filter(|_| has_samples).map(|quantile| quantile.ms))
                })
                .collect(),
        });
        let ticks =
            [(0.0, "0"), (1.0, "90 %"), (2.0, "99 %"), (3.0, "99.9 %"), (4.0, "99.99 %"), (5.0, "99.999 %")];
        let plot = Plot {
            title: "Latency by percentile; each step to the right leaves out a tenth of what was left"
                .to_owned(),
            x_name: "share of samples (nines in the table)",
            x_ticks: ticks.map(|(at, label)| (at, label.to_owned())).to_vec(),
            y_name: "ms",
            scale: Scale::Log,
            series: series.collect(),
            marks: Vec::new(),
        };
        plot.markup()
    }

    fn in_time(&self) -> Markup {
        let marks = self.marks();
        html! {
            @if let Some(track) = self.run.load() {
                @let response = !track.whole()[LoadLatency::Response].is_empty();
                @let (class, name) = if response { (LoadLatency::Response, "response (corrected)") } else { (LoadLatency::Service, "service (uncorrected)") };
                @let columns = columns(self, track, class);
                @if !columns.is_empty() {
                    (latency_plot(&format!("Load: {name}"), &columns, &marks))
                    @if let Some(map) = heat::markup(&format!("Load: {name}"), &columns) { (map) }
                    (rates("Load: requests offered and achieved", &columns, &marks, &[("due", LoadCounter::Scheduled), ("sent", LoadCounter::Sent), ("ok", LoadCounter::Ok), ("failed", LoadCounter::Failed)]))
                }
            }
            @if let Some(track) = self.run.proxy() {
                @let columns = columns(self, track, ProxyLatency::Exchange);
                @if !columns.is_empty() {
                    (latency_plot("Proxy: exchange", &columns, &marks))
                    @if self.run.load().is_none() {
                        @if let Some(map) = heat::markup("Proxy: exchange", &columns) { (map) }
                    }
                    (rates("Proxy: handshakes", &columns, &marks, &[("full", ProxyCounter::HandshakesFull), ("resumed", ProxyCounter::HandshakesResumed), ("failed", ProxyCounter::HandshakesFailed)]))
                    (rates("Proxy: exchanges", &columns, &marks, &[("exchanges", ProxyCounter::Exchanges)]))
                }
            }
        }
    }

    /// What happened, by its number in the list.
    fn marks(&self) -> Vec<Tick> {
        let numbered = self.happenings().into_iter().enumerate().take(tables::HAPPENINGS_SHOWN);
        numbered.map(|(at, (seconds, _))| (seconds, (at + 1).to_string())).collect()
    }
}

/// The classes whose curves are drawn.
const CURVES: [(&str, &str); 5] = [
    ("load", "response"),
    ("load", "service"),
    ("proxy", "exchange"),
    ("proxy", "handshake_full"),
    ("proxy", "handshake_resumed"),
];

fn curve_name(side: &str, label: &str) -> &'static str {
    match (side, label) {
        ("load", "response") => "response (corrected)",
        ("load", _) => "service (uncorrected)",
        (_, "exchange") => "exchange",
        (_, "handshake_full") => "full handshake",
        _ => "resumed handshake",
    }
}

fn section(title: &str, content: &Markup) -> Markup {
    html! { @if !content.0.is_empty() { section { h2 { (title) } (content) } } }
}

fn time_ticks<C: telemetry::Metric>(columns: &[Column<C>]) -> Vec<Tick> {
    let first = columns.first().map_or(0.0, |column| column.end_s);
    let last = columns.last().map_or(0.0, |column| column.end_s);
    round_steps(first, last, 8.0).into_iter().map(|at| (at, plot::short(at))).collect()
}

fn latency_plot<C: telemetry::Metric>(title: &str, columns: &[Column<C>], marks: &[Tick]) -> Markup {
    let line = |name: &'static str, of: &dyn Fn(&Column<C>) -> Option<f64>| Series {
        name,
        points: columns.iter().map(|column| (column.end_s, of(column))).collect(),
    };
    let plot = Plot {
        title: title.to_owned(),
        x_name: "seconds since the beginning",
        x_ticks: time_ticks(columns),
        y_name: "ms",
        scale: Scale::Log,
        series: vec![
            line("p50", &|column| column.quantile_ms(0.5)),
            line("p99", &|column| column.quantile_ms(0.99)),
            line("max", &Column::max_ms),
        ],
        marks: marks.to_vec(),
    };
    plot.markup()
}

fn rates<C: telemetry::Metric>(
    title: &str,
    columns: &[Column<C>],
    marks: &[Tick],
    counters: &[(&'static str, C)],
) -> Markup {
    let line = |&(name, counter): &(&'static str, C)| Series {
        name,
        points: columns.iter().map(|column| (column.end_s, column.rate(column.counters[counter]))).collect(),
    };
    let plot = Plot {
        title: title.to_owned(),
        x_name: "seconds since the beginning",
        x_ticks: time_ticks(columns),
        y_name: "1/s",
        scale: Scale::Linear,
        series: counters.iter().map(line).collect(),
        marks: marks.to_vec(),
    };
    plot.markup()
}
