//! Percentile curves. Each step of the x axis is one more nine.

use maud::Markup;
use records::metrics::{HttpLatency, LatencyClass, LoadLatency, ProxyLatency};

use super::{AxisScale, Plot, PlotLine, TimeMarks};
use crate::report::latency::ClassLatency;

/// The most nines of the axis.
const NINES_MAX: f64 = 6.0;
/// Points of a curve.
const STEPS: u32 = 60;

pub(crate) const CURVES: [LatencyClass; 7] = [
    LatencyClass::Load(LoadLatency::Response),
    LatencyClass::Load(LoadLatency::Service),
    LatencyClass::Http(HttpLatency::FirstByte),
    LatencyClass::Http(HttpLatency::Upstream),
    LatencyClass::Proxy(ProxyLatency::Exchange),
    LatencyClass::Proxy(ProxyLatency::HandshakeFull),
    LatencyClass::Proxy(ProxyLatency::HandshakeResumed),
];

/// The title of a class with its note.
pub(crate) fn curve_name(class: LatencyClass) -> String {
    match class.names().note {
        "" => class.title().to_owned(),
        note => format!("{} ({note})", class.title()),
    }
}

/// A plot of these curves, each with its name.
pub(crate) fn markup(title: String, curves: &[(String, ClassLatency<'_>)]) -> Markup {
    let most = curves.iter().map(|(_, latency)| latency.histogram.count()).max().unwrap_or(0);
    let nines = (most.max(10) as f64).log10().min(NINES_MAX);
    let series =
        curves.iter().map(|(name, latency)| PlotLine { name: name.clone(), points: points(latency, nines) });
    plot(title, series.collect()).markup()
}

/// A plot of latencies in milliseconds, each over the nines of the share of samples that took at most so long.
pub(crate) fn plot(title: String, series: Vec<PlotLine>) -> Plot {
    let ticks =
        [(0.0, "0 %"), (1.0, "90 %"), (2.0, "99 %"), (3.0, "99.9 %"), (4.0, "99.99 %"), (5.0, "99.999 %")];
    Plot {
        title,
        x_name: "share of samples that took at most so long; each step to the right divides the rest by ten",
        x_ticks: ticks.map(|(at, label)| (at, label.to_owned())).to_vec(),
        x_text: share,
        y_name: "ms",
        scale: AxisScale::Log,
        series,
        marks: TimeMarks::default(),
    }
}

/// A number of nines as a share of samples.
fn share(nines: f64) -> String {
    let decimals = nines.floor().max(1.0) as usize;
    format!("{:.decimals$} %", (1.0 - 10_f64.powf(-nines)) * 100.0)
}

/// A curve from the smallest latency to this many nines.
fn points(latency: &ClassLatency<'_>, nines: f64) -> Vec<(f64, Option<f64>)> {
    let point = |step: u32| {
        let nines = f64::from(step) / f64::from(STEPS) * nines;
        let above = 10_f64.powf(-nines);
        // It ends where less than a sample is left.
        let has_samples = latency.histogram.count() as f64 * above >= 1.0;
        (nines, latency.quantile(1.0 - above).filter(|_| has_samples).map(|quantile| quantile.ms))
    };
    (0..=STEPS).map(point).collect()
}
