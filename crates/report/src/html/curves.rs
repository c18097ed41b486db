//! Percentile curves, on an axis on which each step leaves out a tenth of what was left.

use maud::Markup;

use super::plot::{Plot, Scale, Series};
use crate::report::Latency;

/// Where the axis ends at the latest.
const NINES_MAX: f64 = 6.0;
/// Points of a curve.
const STEPS: u32 = 60;

/// The classes whose curves are drawn.
pub(super) const CURVES: [(&str, &str); 5] = [
    ("load", "response"),
    ("load", "service"),
    ("proxy", "exchange"),
    ("proxy", "handshake_full"),
    ("proxy", "handshake_resumed"),
];

/// What people call such a class.
pub(super) fn curve_name(side: &str, label: &str) -> &'static str {
    match (side, label) {
        ("load", "response") => "response (corrected)",
        ("load", _) => "service (uncorrected)",
        (_, "exchange") => "exchange",
        (_, "handshake_full") => "full handshake",
        _ => "resumed handshake",
    }
}

/// A plot of these curves, each with its name.
pub(super) fn markup(title: String, curves: &[(&'static str, Latency<'_>)]) -> Markup {
    let most = curves.iter().map(|(_, latency)| latency.histogram.count()).max().unwrap_or(0);
    let nines = (most.max(10) as f64).log10().min(NINES_MAX);
    let series = curves.iter().map(|(name, latency)| Series { name, points: points(latency, nines) });
    let ticks =
        [(0.0, "0"), (1.0, "90 %"), (2.0, "99 %"), (3.0, "99.9 %"), (4.0, "99.99 %"), (5.0, "99.999 %")];
    let plot = Plot {
        title,
        x_name: "share of samples (nines in the table)",
        x_ticks: ticks.map(|(at, label)| (at, label.to_owned())).to_vec(),
        y_name: "ms",
        scale: Scale::Log,
        series: series.collect(),
        marks: Vec::new(),
    };
    plot.markup()
}

/// A curve from the least latency to this many nines.
fn points(latency: &Latency<'_>, nines: f64) -> Vec<(f64, Option<f64>)> {
    let point = |step: u32| {
        let nines = f64::from(step) / f64::from(STEPS) * nines;
        let above = 10_f64.powf(-nines);
        // It ends where less than a sample is left.
        let has_samples = latency.histogram.count() as f64 * above >= 1.0;
        (nines, latency.quantile(1.0 - above).filter(|_| has_samples).map(|quantile| quantile.ms))
    };
    (0..=STEPS).map(point).collect()
}
