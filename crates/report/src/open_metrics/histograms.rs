//! Latencies, as histograms.

use model::figures::FigurePart;
use model::runs::Run;
use records::histogram::{Histogram, Histograms, SparseHistogram};
use records::metrics::{Metric, TimeResolution};

use super::counters::{label, named};
use super::family::{Family, HistogramSample, Label};
use super::native::NativeBuckets;

/// The upper bounds of the buckets in seconds: 25 µs to 60 s, three to a decade.
pub(super) const BOUNDS_S: [f64; 20] = [
    0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
    0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
];

/// Latencies of handshakes and connections.
pub(super) fn of_proxy(run: &Run) -> Vec<Family> {
    let proxy = run.proxy().map(|series| each(series.whole(), run.log_resolution()));
    let tls = run.tls().map(|series| each(series.whole(), TimeResolution::FINE));
    proxy.into_iter().chain(tls).flatten().collect()
}

/// Latencies of requests over all routes.
pub(super) fn of_http(run: &Run) -> Vec<Family> {
    run.http().map(|series| each(series.whole(), run.log_resolution())).unwrap_or_default()
}

/// Latencies of the load.
pub(super) fn of_load(run: &Run) -> Vec<Family> {
    run.load().map(|series| each(series.whole(), TimeResolution::FINE)).unwrap_or_default()
}

/// Latencies of each route or upstream.
pub(super) fn of_named<R: FigurePart>(run: &Run) -> Vec<Family> {
    let add = |class: R::Latency, labels: &[Label], samples: &mut Vec<_>| {
        samples.extend(R::table(run).iter().map(|part| {
            let latencies = &part.series().whole()[class];
            let labels = [&[label(R::NOUN, part.name())], labels].concat();
            (labels, sample(latencies, run.log_resolution()))
        }));
    };
    named(add, Family::histogram)
}

fn each<M: Metric>(latencies: &Histograms<M>, resolution: TimeResolution) -> Vec<Family> {
    let add = |class: M, labels: &[Label], samples: &mut Vec<_>| {
        samples.push((labels.to_vec(), sample(&latencies[class], resolution)));
    };
    named(add, Family::histogram)
}

/// A histogram by [`BOUNDS_S`] and by native buckets. A sample counts in the first bucket whose bound is not below it, to the
/// three digits to which it was recorded, or to the resolution of its log. No bucket is finer than that.
pub(super) fn sample(histogram: &Histogram, resolution: TimeResolution) -> HistogramSample {
    let sparse: SparseHistogram = histogram.to_sparse();
    let mut counts = [0_u64; BOUNDS_S.len() + 1];
    let mut native = NativeBuckets::new(resolution);
    for (highest_ns, count) in sparse.buckets() {
        let seconds = resolution.known_us(highest_ns as f64 / 1e3).number() / 1e6;
        counts[BOUNDS_S.partition_point(|bound| *bound < seconds)] += count;
        native.add(seconds, count);
    }
    let bounds = BOUNDS_S.into_iter().chain([f64::INFINITY]);
    HistogramSample {
        sum: histogram.sum_ns() as f64 / 1e9,
        count: histogram.count(),
        buckets: bounds.zip(counts).filter(|(bound, _)| *bound * 1e6 >= resolution.us() as f64).collect(),
        native,
    }
}
