//! The page of a run.

use maud::{Markup, html};
use telemetry::{LoadCounter, LoadLatency, ProxyCounter, ProxyLatency};

use super::curves::{self, CURVES, curve_name};
use super::heat::{self, Extent};
use super::plot::{AxisScale, AxisTick};
use super::{made_by, page, section, tables, time};
use crate::columns::{PlotColumn, columns};
use crate::report::Report;

impl Report<'_> {
    /// The page.
    pub fn html(&self) -> String {
        let title = self.title();
        let body = html! {
            (self.lead())
            (section("Latencies", &self.latency_table()))
            (section("Percentile curves", &self.curves()))
            (section("In time", &self.in_time()))
            (section("Alerts", &self.alert_table()))
            (section("Experiments", &self.experiment_tables()))
            (section("Handshakes", &self.handshake_table()))
            (section("Load", &self.load_tables()))
            (section("Clients", &self.client_table()))
            (section("CPU", &self.cpu_table()))
            (section("What happened", &self.event_table()))
            (section("Environment and settings", &self.environment_tables()))
            (section("Quality of the data", &self.quality_list()))
            (section("What the words mean", &self.definitions()))
            (made_by(&self.command))
        };
        page(&title, &body)
    }

    /// The result in a sentence or two.
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
                    (format!(" The load had {} requests answered well and {} failed; {:.1} a second were answered", load.requests.ok, load.requests.failed, load.rate_per_s.achieved))
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
        let latencies = self.latencies().into_iter();
        let shown = latencies.filter(|latency| CURVES.contains(&latency.class));
        let shown: Vec<_> = shown.map(|latency| (curve_name(latency.class), latency)).collect();
        let title = "Latency by percentile; each step to the right leaves out a tenth of what was left";
        curves::markup(title.to_owned(), &shown)
    }

    fn in_time(&self) -> Markup {
        let marks = self.marks();
        html! {
            @if let Some(track) = self.run.load() {
                @let response = !track.whole()[LoadLatency::Response].is_empty();
                @let class = if response { LoadLatency::Response } else { LoadLatency::Service };
                @let name = curve_name(class.into());
                @let columns = columns(self, track, class);
                @if !columns.is_empty() {
                    (latency_plot(&format!("Load: {name}"), &columns, &marks))
                    @if let Some(extent) = Extent::of(columns.iter()) { (heat::markup(&format!("Load: {name}"), &columns, &extent)) }
                    (rates("Load: requests offered and achieved", &columns, &marks, &[("due", LoadCounter::Scheduled), ("sent", LoadCounter::Sent), ("ok", LoadCounter::Ok), ("failed", LoadCounter::Failed)]))
                }
            }
            @if let Some(track) = self.run.proxy() {
                @let columns = columns(self, track, ProxyLatency::Exchange);
                @if !columns.is_empty() {
                    (latency_plot("Proxy: exchange", &columns, &marks))
                    @if self.run.load().is_none() {
                        @if let Some(extent) = Extent::of(columns.iter()) { (heat::markup("Proxy: exchange", &columns, &extent)) }
                    }
                    (rates("Proxy: handshakes", &columns, &marks, &[("full", ProxyCounter::HandshakesFull), ("resumed", ProxyCounter::HandshakesResumed), ("failed", ProxyCounter::HandshakesFailed)]))
                    (rates("Proxy: exchanges", &columns, &marks, &[("exchanges", ProxyCounter::Exchanges)]))
                }
            }
        }
    }

    /// The events as ticks, with their labels in the list.
    pub(super) fn marks(&self) -> Vec<AxisTick> {
        let shown = self.events().into_iter().take(tables::EVENTS_LISTED);
        shown.map(|event| (event.after_s, event.label)).collect()
    }
}

fn latency_plot<C: telemetry::Metric>(title: &str, columns: &[PlotColumn<C>], marks: &[AxisTick]) -> Markup {
    let lines: [time::Line<'_, C>; 3] = [
        ("p50", columns, &|column| column.quantile_ms(0.5)),
        ("p99", columns, &|column| column.quantile_ms(0.99)),
        ("max", columns, &PlotColumn::max_ms),
    ];
    time::markup(title.to_owned(), ("ms", AxisScale::Log), &lines, marks)
}

fn rates<C: telemetry::Metric>(
    title: &str,
    columns: &[PlotColumn<C>],
    marks: &[AxisTick],
    counters: &[(&'static str, C)],
) -> Markup {
    let rate = |counter: C| move |column: &PlotColumn<C>| column.rate(column.counters[counter]);
    let rates: Vec<_> = counters.iter().map(|(name, counter)| (*name, rate(*counter))).collect();
    let lines: Vec<time::Line<'_, C>> =
        rates.iter().map(|(name, rate)| (*name, columns, rate as _)).collect();
    time::markup(title.to_owned(), ("1/s", AxisScale::Linear), &lines, marks)
}
