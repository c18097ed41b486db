//! The load's part of a summary: its settings, its results, and whether the generator kept up.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::figures::load::{self, EarlyData, MeasuredSeconds, Rates, RequestCounts, generator_limits};
use crate::runs::{MetricSeries, Run};
use crate::summary::{ByteCounts, HandshakeCounts, Percentiles, latencies};
use records::metrics::{LoadCounter, LoadLatency, Metric as _, ProxyCounter, TimeResolution, labels};
use records::setting::{INSECURE, RESUME, TRUST, Value};
use records::text::quantity::counted;
use records::values::EventCount;

/// Resumptions requested, offered and observed.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Resumptions {
    /// Connections that were meant to resume.
    pub wanted: u64,
    /// Connections that offered a session.
    pub offered: u64,
    /// Handshakes that the server let resume.
    pub observed: u64,
}

/// Bytes of bodies and header fields in each direction.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct MessageBytes {
    /// Bodies sent.
    pub body_in: u64,
    /// Bodies received.
    pub body_out: u64,
    /// Header fields received as they came.
    pub head_out: u64,
    /// Header fields received, before compression.
    pub head_plain: u64,
}

/// The generator's own load and limits.
#[derive(Clone, Debug, Serialize)]
pub struct GeneratorSummary {
    pub threads: u64,
    /// Share of the measured time that they were busy.
    pub busy: f64,
    /// Why the figures may describe the generator rather than the server; empty if they do not.
    pub limits: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct LoadSummary {
    pub requests: RequestCounts,
    pub spans_s: MeasuredSeconds,
    pub rate_per_s: Rates,
    /// Failed requests by cause; they add up to `requests.failed`.
    pub failures: BTreeMap<&'static str, u64>,
    /// Counts of each status, failure and negotiated value of TLS, with the first example of each.
    pub events: Vec<EventCount>,
    /// Connections that were established.
    pub connections: u64,
    pub handshakes: HandshakeCounts,
    pub resumptions: Resumptions,
    pub early_data: EarlyData,
    pub bytes: ByteCounts,
    pub parts: MessageBytes,
    /// Latencies by class, in microseconds.
    pub latency_us: BTreeMap<&'static str, Percentiles>,
    pub generator: GeneratorSummary,
    /// Notes that a reader of the figures needs; every form of output has them.
    pub notes: Vec<String>,
}

pub(super) fn of(run: &Run, series: &MetricSeries<LoadCounter, LoadLatency>) -> LoadSummary {
    let totals = series.totals();
    let record = run.load_record();
    let spans = MeasuredSeconds::of(record, series.whole());
    let requests = RequestCounts::of(totals);
    let early_data = load::early_data(totals);
    let (rates, generator) = (load::rates(&requests, spans), generator(run, &requests, spans));
    LoadSummary {
        notes: notes(run, &requests, rates, early_data, &generator),
        rate_per_s: rates,
        generator,
        requests,
        spans_s: spans,
        failures: labels::request_failures().map(|(cause, counter)| (cause, totals[counter])).collect(),
        events: record.map(|record| record.events.iter().cloned().collect()).unwrap_or_default(),
        connections: totals[LoadCounter::Opened],
        handshakes: HandshakeCounts {
            full: totals[LoadCounter::HandshakesFull],
            resumed: totals[LoadCounter::HandshakesResumed],
            failed: totals[LoadCounter::HandshakesFailed],
            full_by_reason: BTreeMap::new(),
        },
        resumptions: Resumptions {
            wanted: totals[LoadCounter::ResumptionsWanted],
            offered: totals[LoadCounter::ResumptionsOffered],
            observed: totals[LoadCounter::HandshakesResumed],
        },
        early_data,
        bytes: ByteCounts { r#in: totals[LoadCounter::BytesIn], out: totals[LoadCounter::BytesOut] },
        parts: MessageBytes {
            body_in: totals[LoadCounter::BodyIn],
            body_out: totals[LoadCounter::BodyOut],
            head_out: totals[LoadCounter::HeadOut],
            head_plain: totals[LoadCounter::HeadPlain],
        },
        latency_us: latencies(series, LoadLatency::ALL, TimeResolution::FINE),
    }
}

fn notes(
    run: &Run,
    requests: &RequestCounts,
    rates: Rates,
    early: EarlyData,
    generator: &GeneratorSummary,
) -> Vec<String> {
    let mut notes = Vec::new();
    if run.setting(TRUST).is_some_and(|trust| trust.value == Value::Text(INSECURE.to_owned())) {
        notes.push("insecure: the server's certificate was not verified".to_owned());
    }
    match rates.wanted {
        None => notes.push(
            "closed loop: a stalled server is asked less, so the latencies are not corrected for coordinated omission"
                .to_owned(),
        ),
        Some(wanted) if !rates.is_achieved => notes.push(format!(
            "rate not achieved: {wanted:.1}/s were wanted and {:.1}/s answered; {} requests were never sent, {} had no answer",
            rates.achieved,
            requests.never_sent,
            requests.unanswered()
        )),
        Some(_) => {}
    }
    if requests.throttled > 0 {
        notes.push(format!(
            "throttled: {} requests were not sent, since a retry took their place in the rate or connections came to \
             nothing, each of which was tried again only after a wait of up to 1 s",
            requests.throttled
        ));
    }
    if early.wanted > 0 && early.accepted == 0 {
        notes.push(match early.offered {
            0 => "0-RTT did not take place: the server gave no ticket that allows it".to_owned(),
            offered => format!("0-RTT did not take place: the server rejected all {offered} attempts"),
        });
    }
    notes.extend(few_handshakes(run));
    notes.extend(disagreement(run));
    notes.extend(generator.limits.iter().map(|limit| format!("generator-bound: {limit}")));
    notes
}

/// A load that is to resume, and hardly makes new connections.
fn few_handshakes(run: &Run) -> Option<String> {
    let totals = run.load()?.totals();
    let resumes = matches!(run.setting(RESUME)?.value, Value::Number(percent) if percent > 0.0);
    let handshakes = totals[LoadCounter::HandshakesFull] + totals[LoadCounter::HandshakesResumed];
    let requests = totals[LoadCounter::Sent];
    (resumes && handshakes < requests / 100).then(|| {
        format!(
            "few handshakes: {} for {}, so this is hardly a test of resumption; --keep-alive 10 makes one for every ten",
            counted(handshakes, "handshake"),
            counted(requests, "request")
        )
    })
}

/// A contradiction between the proxy's and the load's counts of the same run. The proxy may have other clients too, so
/// only a higher count of the load is one, and only at the end, when both are complete.
fn disagreement(run: &Run) -> Option<String> {
    let (proxy, load) = (run.proxy()?.totals(), run.load()?.totals());
    let proxy = (proxy[ProxyCounter::HandshakesFull], proxy[ProxyCounter::HandshakesResumed]);
    let load = (load[LoadCounter::HandshakesFull], load[LoadCounter::HandshakesResumed]);
    let contradicts = run.stopped().is_some() && (load.0 > proxy.0 || load.1 > proxy.1);
    contradicts.then(|| {
        format!(
            "both ends disagree: the load saw {} full and {} resumed handshakes, the proxy {} and {}",
            load.0, load.1, proxy.0, proxy.1
        )
    })
}

fn generator(run: &Run, requests: &RequestCounts, spans: MeasuredSeconds) -> GeneratorSummary {
    let threads = run.load_record().map_or(0, |record| record.threads);
    let busy = load::generator_busy(run, spans);
    GeneratorSummary { threads, busy, limits: generator_limits(busy, requests.late_share()) }
}
