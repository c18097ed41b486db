//! A run's figures for Prometheus and others that scrape.
//!
//! Counters and histograms cover the whole run; rates and quantiles are made of them elsewhere. The names are stable, and
//! `docs/metrics.md` lists them. Label values are bounded: versions, groups, ciphers, causes, the routes, upstreams
//! and certificates of the configuration, and as many clients as are asked for.

mod counters;
mod family;
mod gauges;
mod histograms;
mod native;
mod protobuf;

use model::runs::Run;
use records::kinds::{RouteRecord, UpstreamRecord};

use family::Family;
pub use family::MetricsFormat;

/// The beginning of every name.
const PREFIX: &str = "tlsdash_";

/// The figures of a run in a format. `version` is the program's; the `clients_max` clients with the most bytes have
/// separate figures.
pub fn open_metrics(run: &Run, version: &str, clients_max: usize, format: MetricsFormat) -> Vec<u8> {
    let mut bytes = Vec::new();
    for family in families(run, version, clients_max) {
        match format {
            MetricsFormat::Protobuf => protobuf::write(&family, &mut bytes, PREFIX),
            MetricsFormat::OpenMetrics | MetricsFormat::Prometheus => {
                // Writing to a vector cannot fail.
                let _ = family.write_text(&mut bytes, PREFIX, format);
            }
        }
    }
    if format == MetricsFormat::OpenMetrics {
        bytes.extend_from_slice(b"# EOF\n");
    }
    bytes
}

fn families(run: &Run, version: &str, clients_max: usize) -> Vec<Family> {
    let mut all = gauges::of_run(run, version);
    all.extend(counters::of_proxy(run));
    all.extend(histograms::of_proxy(run));
    all.extend(counters::of_http(run));
    all.extend(histograms::of_http(run));
    all.extend(gauges::of_certificates(run));
    all.extend(gauges::of_upstreams(run));
    all.extend(counters::of_named::<UpstreamRecord>(run));
    all.extend(histograms::of_named::<UpstreamRecord>(run));
    all.extend(counters::of_named::<RouteRecord>(run));
    all.extend(histograms::of_named::<RouteRecord>(run));
    all.extend(counters::of_clients(run, clients_max));
    all.extend(counters::of_load(run));
    all.extend(histograms::of_load(run));
    all.extend(gauges::of_process(run));
    all.extend(gauges::of_journal(run));
    // Metrics without a sample are omitted.
    all.retain(|family| !family.is_empty());
    all
}

#[cfg(test)]
mod tests;
