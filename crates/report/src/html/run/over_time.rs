//! The plots of a run over time.

use maud::{Markup, html};
use model::runs::{Experiment, MetricSeries};
use records::codec::message::without_connection;
use records::metrics::{
    Counters, CpuGroup, HttpCounter, HttpLatency, LatencyClass, LoadCounter, LoadLatency, Metric,
    ProxyCounter, ProxyLatency,
};

use crate::html::plot::curves::curve_name;
use crate::html::plot::heat::{self, Extent};
use crate::html::plot::time;
use crate::html::plot::{AxisScale, TimeMarks};
use crate::html::tables;
use crate::report::Report;
use crate::report::columns::{PlotColumn, columns};
use crate::report::events::RunEvent;

/// Groups of threads whose CPU is drawn.
const CPU: [(&str, CpuGroup); 3] =
    [("proxy", CpuGroup::Proxy), ("load", CpuGroup::Load), ("upstream", CpuGroup::Upstream)];

/// The columns of all plots of a run.
pub(super) struct PlotColumns {
    marks: TimeMarks,
    /// With the name of its plot.
    load: Option<(String, Vec<PlotColumn<LoadCounter>>)>,
    http: Option<(String, Vec<PlotColumn<HttpCounter>>)>,
    proxy: Option<Vec<PlotColumn<ProxyCounter>>>,
}

impl PlotColumns {
    pub(super) fn of(report: &Report<'_>) -> Self {
        Self {
            marks: report.marks(),
            load: report.run.load().map(|series| {
                let (name, class) = load_class(series);
                (name, columns(report, series, class))
            }),
            http: report.run.http().map(|series| {
                let (name, class) = http_class(series);
                (name, columns(report, series, class))
            }),
            proxy: report.run.proxy().map(|series| columns(report, series, ProxyLatency::Exchange)),
        }
    }

    /// The latency that matters most over time.
    pub(super) fn main_plot(&self) -> Markup {
        match self {
            Self { load: Some((name, columns)), marks, .. } => latency_plot(name, columns, marks),
            Self { http: Some((name, columns)), marks, .. } => latency_plot(name, columns, marks),
            Self { proxy: Some(columns), marks, .. } => latency_plot(PROXY_PLOT, columns, marks),
            Self { load: None, http: None, proxy: None, .. } => Markup::default(),
        }
    }
}

impl Report<'_> {
    /// All plots over time but the main one.
    pub(super) fn over_time(&self, plots: &PlotColumns) -> Markup {
        let PlotColumns { marks, load, http, proxy } = plots;
        html! {
            @if let Some((name, columns)) = load { (self.load_plots(name, columns, marks)) }
            @if let Some((name, columns)) = http {
                @if load.is_some() { (latency_plot(name, columns, marks)) }
                (http_plots(columns, marks))
            }
            @if let Some(columns) = proxy {
                @if load.is_some() || http.is_some() { (latency_plot(PROXY_PLOT, columns, marks)) }
                (self.proxy_plots(columns, load.is_none(), marks))
            }
            @match (proxy, load) {
                (Some(columns), _) => (self.cpu_plot(columns, marks)),
                (None, Some((_, columns))) => (self.cpu_plot(columns, marks)),
                (None, None) => {}
            }
        }
    }

    fn load_plots(&self, name: &str, columns: &[PlotColumn<LoadCounter>], marks: &TimeMarks) -> Markup {
        use LoadCounter::{BytesIn, BytesOut, Closed, Failed, Ok, Opened, Scheduled, Sent};
        let is_alone = self.run.proxy().is_none();
        html! {
            @if let Some(extent) = Extent::of(columns.iter()) { (heat::markup(name, columns, &extent)) }
            (rates("Load: requests offered and achieved", columns, marks, &[("due", Scheduled), ("sent", Sent), ("ok", Ok), ("failed", Failed)]))
            @if is_alone {
                (bytes("Load: bytes", columns, marks, [("sent", BytesIn), ("received", BytesOut)]))
                @if let Some(series) = self.run.load() { (open("Load: open connections", series.totals(), columns, marks, [Opened, Closed])) }
            }
        }
    }

    fn proxy_plots(
        &self,
        columns: &[PlotColumn<ProxyCounter>],
        with_heat: bool,
        marks: &TimeMarks,
    ) -> Markup {
        use ProxyCounter::{
            Accepted, BytesIn, BytesOut, Closed, Exchanges, Failed, HandshakesFailed, HandshakesFull,
            HandshakesResumed, UpstreamConnectsFailed,
        };
        html! {
            @if with_heat {
                @if let Some(extent) = Extent::of(columns.iter()) { (heat::markup(PROXY_PLOT, columns, &extent)) }
            }
            (rates("Proxy: handshakes", columns, marks, &[("full", HandshakesFull), ("resumed", HandshakesResumed), ("failed", HandshakesFailed)]))
            (rates("Proxy: exchanges", columns, marks, &[("exchanges", Exchanges)]))
            @if let Some(series) = self.run.proxy() { (open("Proxy: open connections", series.totals(), columns, marks, [Accepted, Closed])) }
            (bytes("Proxy: bytes", columns, marks, [("in", BytesIn), ("out", BytesOut)]))
            (rates("Proxy: failures", columns, marks, &[("handshakes", HandshakesFailed), ("connections", Failed), ("upstream connects", UpstreamConnectsFailed)]))
        }
    }

    /// CPU of each group of threads.
    fn cpu_plot<C: Metric>(&self, columns: &[PlotColumn<C>], marks: &TimeMarks) -> Markup {
        let percent = |group: CpuGroup| {
            move |column: &PlotColumn<C>| {
                let span_us = ((column.end_s - column.start_s) * 1e6) as u64;
                let used = self.run.cpu_until(self.mono_us_at(column.end_s), group, span_us)?;
                (!column.is_gap).then_some(used.cores * 100.0)
            }
        };
        let used =
            CPU.into_iter().filter(|(_, group)| self.run.host().is_some_and(|host| host.cpu[*group] > 0));
        let groups: Vec<_> = used.map(|(name, group)| (name, percent(group))).collect();
        let lines: Vec<time::Line<'_, C>> =
            groups.iter().map(|(name, percent)| (*name, columns, percent as _)).collect();
        time::markup(
            "CPU by whose threads used it".to_owned(),
            ("% of one core", AxisScale::Linear),
            &lines,
            marks,
        )
    }

    /// The events as ticks, with their labels in the list, and the values that experiments switched. Single connections
    /// that failed are too many.
    pub(super) fn marks(&self) -> TimeMarks {
        let is_of_run = |event: &RunEvent<'_>| without_connection(&event.line.text).is_none();
        let shown = self.events().into_iter().take(tables::EVENTS_LISTED).filter(is_of_run);
        let stretches = self.run.experiments().flat_map(Experiment::stretches);
        TimeMarks {
            ticks: shown.map(|event| (event.after_s, event.label)).collect(),
            arms: stretches
                .map(|stretch| {
                    let [from, to] = [stretch.start_us, stretch.end_us].map(|us| self.seconds_at(us));
                    (from, to, stretch.arm)
                })
                .collect(),
        }
    }
}

const PROXY_PLOT: &str = "Proxy: exchange";

/// The latency of a load that matters most, with the name of its plot.
fn load_class(series: &MetricSeries<LoadCounter, LoadLatency>) -> (String, LoadLatency) {
    let is_open = !series.whole()[LoadLatency::Response].is_empty();
    let class = if is_open { LoadLatency::Response } else { LoadLatency::Service };
    (format!("Load: {}", curve_name(class.into())), class)
}

/// The same of a proxy in HTTP mode: queue and connecting to the upstream are in the time to the first byte. Logs have the
/// upstream's time only.
fn http_class(series: &MetricSeries<HttpCounter, HttpLatency>) -> (String, HttpLatency) {
    let has_first_byte = !series.whole()[HttpLatency::FirstByte].is_empty();
    let class = if has_first_byte { HttpLatency::FirstByte } else { HttpLatency::Upstream };
    (format!("Proxy: {}", LatencyClass::from(class).title()), class)
}

fn http_plots(columns: &[PlotColumn<HttpCounter>], marks: &TimeMarks) -> Markup {
    use HttpCounter::{Status2xx, Status3xx, Status4xx, Status5xx};
    let classes = [("2xx", Status2xx), ("3xx", Status3xx), ("4xx", Status4xx), ("5xx", Status5xx)];
    html! {
        (rates("Proxy: HTTP responses", columns, marks, &classes))
    }
}

fn latency_plot<C: Metric>(title: &str, columns: &[PlotColumn<C>], marks: &TimeMarks) -> Markup {
    let lines: [time::Line<'_, C>; 3] = [
        ("p50", columns, &|column| column.quantile_ms(0.5)),
        ("p99", columns, &|column| column.quantile_ms(0.99)),
        ("max", columns, &PlotColumn::max_ms),
    ];
    time::markup(title.to_owned(), ("ms", AxisScale::Log), &lines, marks)
}

/// Connections that are open at the end of each column, from the totals of the whole run backwards.
fn open<C: Metric>(
    title: &str,
    totals: &Counters<C>,
    columns: &[PlotColumn<C>],
    marks: &TimeMarks,
    [opened, closed]: [C; 2],
) -> Markup {
    let balance = |counters: &Counters<C>| counters[opened] as f64 - counters[closed] as f64;
    let mut open = balance(totals) - columns.iter().map(|column| balance(&column.counters)).sum::<f64>();
    let running = columns.iter().map(|column| {
        open += balance(&column.counters);
        (column.end_s, open)
    });
    let running: Vec<(f64, f64)> = running.collect();
    let open_at = |column: &PlotColumn<C>| {
        let at = running.partition_point(|(end_s, _)| *end_s < column.end_s);
        running.get(at).map(|(_, open)| *open).filter(|_| !column.is_gap)
    };
    let is_used = columns.iter().any(|column| column.counters[opened] > 0);
    let lines: &[time::Line<'_, C>] = if is_used { &[("open", columns, &open_at)] } else { &[] };
    time::markup(title.to_owned(), ("connections", AxisScale::Linear), lines, marks)
}

/// Lines of rates; empty if all counts are 0.
fn rates<C: Metric>(
    title: &str,
    columns: &[PlotColumn<C>],
    marks: &TimeMarks,
    counters: &[(&'static str, C)],
) -> Markup {
    scaled(title, "1/s", 1.0, columns, marks, counters)
}

fn bytes<C: Metric>(
    title: &str,
    columns: &[PlotColumn<C>],
    marks: &TimeMarks,
    counters: [(&'static str, C); 2],
) -> Markup {
    scaled(title, "MB/s", 1e6, columns, marks, &counters)
}

fn scaled<C: Metric>(
    title: &str,
    unit: &'static str,
    per: f64,
    columns: &[PlotColumn<C>],
    marks: &TimeMarks,
    counters: &[(&'static str, C)],
) -> Markup {
    let is_used = |counter: &C| columns.iter().any(|column| column.counters[*counter] > 0);
    if !counters.iter().any(|(_, counter)| is_used(counter)) {
        return html! {};
    }
    let rate = |counter: C| move |column: &PlotColumn<C>| Some(column.rate(column.counters[counter])? / per);
    let rates: Vec<_> = counters.iter().map(|(name, counter)| (*name, rate(*counter))).collect();
    let lines: Vec<time::Line<'_, C>> =
        rates.iter().map(|(name, rate)| (*name, columns, rate as _)).collect();
    time::markup(title.to_owned(), (unit, AxisScale::Linear), &lines, marks)
}
