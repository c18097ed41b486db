//! Reads the journal of a cell, for `bench`.

use std::path::Path;

use anyhow::Context;
use bench::results::NegotiatedParameters;
use bench::run::LoadRecording;
use model::figures::ANSWERED;
use model::history::RunFilter;
use model::runs::{Model, Run};
use records::kinds::{Body, Record};
use records::metrics::{LoadLatency, Percentile};
use records::values::LoadEvent;

use crate::journals::contents::JournalContents;
use crate::journals::source::JournalSource;
use crate::journals::writers::WriterArgs;

/// Points of the latency curve for each nine.
const POINTS_PER_NINE: u32 = 10;
/// The most nines of the curve.
const NINES_MAX: u32 = 5;

/// Reads the journal of a cell.
///
/// # Errors
/// If it cannot be read, or has no load.
pub(super) fn read(path: &Path) -> anyhow::Result<LoadRecording> {
    let (place, writers) = (JournalSource::Path(path.to_owned()), WriterArgs::default());
    let mut measured_from_us = u64::MAX;
    let mut answered = Vec::new();
    let inspect = |record: &Record| {
        let Body::Load(load) = &record.body else { return };
        let at_us = record.stamp.mono_us;
        answered.push((at_us, load.counters.sum(&ANSWERED)));
        if load.measured_us > 0 {
            // A late record, or one after the end of the load, gives a later moment.
            measured_from_us = measured_from_us.min(at_us.saturating_sub(load.measured_us));
        }
    };
    let contents =
        JournalContents::read_into(Model::for_merging(1), &place, &RunFilter::default(), &writers, inspect)?;
    let run = contents.newest()?;
    let summary = run.summary();
    let load = summary.load.with_context(|| format!("{} holds no load", path.display()))?;
    let figures = report::load_figures(run).unwrap_or_default();
    let figures = figures.into_iter().filter_map(|(figure, value)| Some((figure.short_name(), value?)));
    let failures = load.events.iter().filter(|entry| !entry.event.is_benign());
    let negotiated = load.events.iter().filter(|entry| matches!(entry.event, LoadEvent::Negotiated(..)));
    Ok(LoadRecording {
        began_us: run.began_realtime_us(),
        measured_from_us,
        measured_us: run.load_record().map_or(0, |record| record.measured_us),
        answered,
        figures: figures.collect(),
        response_curve: response_curve(run),
        negotiated: negotiated.filter_map(|entry| parse_negotiated(&entry.example)).collect(),
        late_share: load.requests.late_share(),
        failures: failures.map(|entry| format!("{} ({})", entry.event, entry.count)).collect(),
        is_rate_achieved: load.rate_per_s.is_achieved,
    })
}

/// Parses the load's description of a handshake, such as `TLSv1.3 TLS_AES_128_GCM_SHA256 X25519, ALPN h2`.
fn parse_negotiated(text: &str) -> Option<NegotiatedParameters> {
    let (words, alpn) = text.split_once(", ALPN ")?;
    let mut words = words.splitn(3, ' ').map(str::to_owned);
    let (version, cipher, group) = (words.next()?, words.next()?, words.next()?);
    let group = if group == "no group" { String::new() } else { group };
    let alpn = if alpn == "none" { String::new() } else { alpn.to_owned() };
    Some(NegotiatedParameters { version, cipher, group, alpn })
}

/// Percentiles of the response time, closer together towards the end, as far as there are samples.
fn response_curve(run: &Run) -> Vec<(f64, u64)> {
    let Some(histogram) = run.load().map(|series| &series.whole()[LoadLatency::Response]) else {
        return Vec::new();
    };
    let steps = (0..=NINES_MAX * POINTS_PER_NINE)
        .map(|step| 1.0 - 10_f64.powf(-f64::from(step) / f64::from(POINTS_PER_NINE)));
    let mut shares: Vec<f64> = steps.chain(Percentile::LISTED.map(|listed| listed.q)).collect();
    shares.retain(|share| histogram.count() as f64 * (1.0 - share) >= 1.0);
    shares.push(1.0);
    shares.sort_by(f64::total_cmp);
    // 1 − 0.1 is not exactly 0.9.
    shares.dedup_by(|later, earlier| *later - *earlier < 1e-9);
    let point = |share: f64| Some((share * 100.0, histogram.quantile_ns(share)? / 1_000));
    shares.into_iter().filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negotiated_parameters_are_read_from_the_loads_events() {
        let negotiated = |text: &str| parse_negotiated(text).map(|found| found.to_string());
        let full = "TLSv1.3 TLS_AES_128_GCM_SHA256 X25519, ALPN h2";
        assert_eq!(negotiated(full).as_deref(), Some("TLSv1.3 TLS_AES_128_GCM_SHA256 X25519 h2"));
        let resumed = "TLSv1.2 TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 no group, ALPN none";
        let words = "TLSv1.2 TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
        assert_eq!(negotiated(resumed).as_deref(), Some(words));
        assert_eq!(negotiated("nonsense"), None);
    }
}
