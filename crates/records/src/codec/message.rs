//! Writes each record as a sentence, for people who read the journal without tlsdash.

use std::fmt::Write;

use crate::histogram::SparseHistogram;
use crate::kinds::{
    AlertState, Arm, Body, CertificateRecord, ClientRecord, ExperimentRecord, ExperimentStep, HandshakeCosts,
    HealthRecord, HttpRecord, Level, LoadRecord, Phase, ProxyRecord, Record, RouteRecord, RunRecord, Stage,
    TlsRecord, UpstreamRecord, UsageRecord,
};
use crate::metrics::{
    ClientCounter, FullReason, HttpCounter, HttpLatency, LoadCounter, LoadLatency, ProxyCounter,
    ProxyLatency, RouteCounter, RouteLatency, UpstreamCounter, UpstreamLatency, UsageCounter,
};

use crate::text::quantity::{counted, day};

/// The syslog priority of a record.
pub fn priority(body: &Body) -> u8 {
    match body {
        Body::Health(health) if !health.is_healthy() => 4,
        Body::Connection(connection) if connection.outcome.is_error() => 4,
        Body::Request(request) if request.is_error() && !request.is_of_client() => 4,
        Body::Notice(notice) => match notice.level {
            Level::Warning => 4,
            Level::Notice => 5,
            Level::Info => 6,
        },
        Body::Alert(alert) if alert.state == AlertState::Fired => 4,
        Body::Experiment(experiment) if is_told_each_block(experiment) => 6,
        Body::Run(_)
        | Body::Setting(_)
        | Body::Mark(_)
        | Body::Calibration(_)
        | Body::Experiment(_)
        | Body::Alert(_) => 5,
        Body::Connection(_) | Body::Request(_) | Body::Health(_) | Body::Unknown => 6,
        Body::Proxy(_)
        | Body::Tls(_)
        | Body::Usage(_)
        | Body::Certificate(_)
        | Body::Upstream(_)
        | Body::Http(_)
        | Body::Route(_)
        | Body::Client(_)
        | Body::Load(_)
        | Body::Host(_) => 7,
    }
}

/// What stands before the number of a connection, at the end of its sentence.
const OF_CONNECTION: &str = " (connection ";

/// The sentence of a connection without its number; `None` if it is of another record.
pub fn without_connection(sentence: &str) -> Option<&str> {
    sentence.rfind(OF_CONNECTION).map(|at| &sentence[..at])
}

/// The record as one sentence without line breaks.
pub fn sentence(record: &Record) -> String {
    match &record.body {
        Body::Run(run) => run_sentence(run, record.stamp.interval_us),
        Body::Proxy(proxy) => proxy_sentence(proxy),
        Body::Tls(tls) => tls_sentence(tls),
        Body::Usage(usage) => usage_sentence(usage),
        Body::Certificate(certificate) => certificate_sentence(certificate),
        Body::Upstream(upstream) => upstream_sentence(upstream),
        Body::Http(http) => http_sentence(http),
        Body::Route(route) => route_sentence(route),
        Body::Request(request) => format!("{} {}", request.client, request.sentence()),
        Body::Load(load) => load_sentence(load),
        Body::Client(client) => client_sentence(client),
        Body::Connection(c) => {
            let detail = if c.detail.is_empty() { String::new() } else { format!(": {}", c.detail) };
            format!("{} {}{detail}{OF_CONNECTION}{})", c.client, c.outcome, c.conn)
        }
        Body::Setting(setting) => {
            let by = if setting.by.is_empty() { String::new() } else { format!(" by {}", setting.by) };
            match &setting.after {
                Some(after) => {
                    format!("{} changed from {} to {}{by}", setting.name, setting.before, after.value)
                }
                None => format!("{} changed from {}{by}", setting.name, setting.before),
            }
        }
        Body::Calibration(costs) => calibration_sentence(costs),
        Body::Mark(mark) => format!("mark {} {}", mark.number, mark.text).trim_end().to_owned(),
        Body::Unknown => "a record of a later version".to_owned(),
        Body::Experiment(experiment) => experiment_sentence(experiment),
        Body::Host(host) => format!(
            "using {:.1} MB of memory (PSS {:.1} MB), {} descriptors, {} threads",
            host.memory_bytes as f64 / 1e6,
            host.memory_pss_bytes as f64 / 1e6,
            host.descriptors,
            host.threads
        ),
        Body::Health(health) => health_sentence(health),
        Body::Notice(notice) => notice.text.clone(),
        Body::Alert(alert) => alert.sentence.0.clone(),
    }
}

/// Steps of an experiment that need not appear in a log.
fn is_told_each_block(experiment: &ExperimentRecord) -> bool {
    matches!(experiment.step, ExperimentStep::Switch | ExperimentStep::Pair)
}

fn experiment_sentence(record: &ExperimentRecord) -> String {
    let ExperimentRecord { number, stage, setting, a, b, pair, pairs, metric, .. } = record;
    let mut text = format!("experiment {number}, {stage}");
    let _ = match record.step {
        ExperimentStep::Begin => write!(text, ": {setting} {a} against {b}, {pairs} pairs, by {metric}"),
        ExperimentStep::Switch => {
            let value = if record.arm == Arm::A || *stage == Stage::Calibration { a } else { b };
            write!(text, ", pair {pair} of {pairs}: {setting} {value}")
        }
        ExperimentStep::Pair => write!(text, ", pair {pair} of {pairs} done"),
        ExperimentStep::Verdict => {
            let ExperimentRecord { outcome, reason, estimate, .. } = record;
            write!(text, ": {}", record.judged().sentence(*stage, *outcome, reason, estimate.as_ref()))
        }
    };
    if let (ExperimentStep::Pair, Some(estimate)) = (record.step, &record.estimate) {
        let _ = write!(text, "; so far {}", record.judged().difference(estimate));
    }
    text
}

fn health_sentence(health: &HealthRecord) -> String {
    let counts = [
        (health.refused_total, "records refused"),
        (health.merged_total, "intervals merged"),
        (health.dropped_total, "records dropped"),
        (health.suppressed_total, "messages of this service suppressed by journald"),
        (health.over_budget_total, "errors over budget"),
        (health.waits_total, "waits for the journal"),
        (health.upload_lost_total, "records lost to uploads"),
        (health.upload_waiting, "records wait for the upload"),
    ];
    let told = counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}"));
    let mut parts: Vec<String> = told.collect();
    parts.extend(health.clock_steps().map(|steps| format!("wall clock {steps}")));
    if !health.error.is_empty() {
        parts.push(format!("last error: {}", health.error));
    }
    if !health.upload_failure.is_empty() {
        parts.push(format!("upload fails: {}", health.upload_failure));
    }
    if parts.is_empty() {
        "telemetry: nothing lost".to_owned()
    } else {
        format!("telemetry: {}", parts.join(", "))
    }
}

fn run_sentence(run: &RunRecord, interval_us: u64) -> String {
    let version = &run.version;
    let mut text = match (run.phase, interval_us) {
        (Phase::Start, 0) => format!("tlsdash {version} started"),
        (Phase::Start, _) => {
            format!("recording begins {:.1} s after tlsdash {version} started", interval_us as f64 / 1e6)
        }
        (Phase::Stop, _) if run.runs_on => format!("recording ends, tlsdash {version} runs on"),
        (Phase::Stop, _) => format!("tlsdash {version} stopped"),
    };
    if !run.log.is_empty() {
        let _ = write!(text, ", observing {}", run.upstream);
        if !run.listen.is_empty() {
            let _ = write!(text, ", {}", run.listen);
        }
    } else if !run.listen.is_empty() {
        let _ = write!(
            text,
            ", {} > {}, {}, {}",
            run.listen,
            run.upstream,
            run.certificate,
            counted(run.workers, "worker")
        );
    } else if !run.upstream.is_empty() {
        let _ = write!(text, ", load on {}", run.upstream);
    }
    if let Some(proxy) = &run.proxy {
        let _ = write!(text, "; {}", proxy_sentence(proxy));
    }
    if let Some(http) = &run.http {
        let _ = write!(text, "; {}", http_sentence(http));
    }
    if let Some(load) = &run.load {
        let _ = write!(text, "; {}", load_sentence(load));
    }
    text
}

fn proxy_sentence(proxy: &ProxyRecord) -> String {
    let c = &proxy.counters;
    format!(
        "proxy: {} accepted, {} open, {} full, {} resumed, {} failed handshakes, {} bytes in, {} out{}",
        c[ProxyCounter::Accepted],
        proxy.open,
        c[ProxyCounter::HandshakesFull],
        c[ProxyCounter::HandshakesResumed],
        c[ProxyCounter::HandshakesFailed],
        c[ProxyCounter::BytesIn],
        c[ProxyCounter::BytesOut],
        percentiles("exchange", &proxy.latencies[ProxyLatency::Exchange].interval)
    )
}

fn tls_sentence(tls: &TlsRecord) -> String {
    let known = FullReason::ALL.iter().map(|(reason, counter, _)| (reason, tls.counters[*counter]));
    let known = known.filter(|(_, n)| *n > 0).map(|(reason, n)| format!("{n} {reason}"));
    let reasons: Vec<String> = known.collect();
    let reasons = if reasons.is_empty() { "none".to_owned() } else { reasons.join(", ") };
    format!("tls: full handshakes by reason: {reasons}")
}

fn calibration_sentence(costs: &HandshakeCosts) -> String {
    let tables = costs.key_exchange.iter().chain(costs.signature.iter()).chain(costs.rest.iter());
    let costs: Vec<String> =
        tables.map(|(name, cost)| format!("{name} {:.1}", cost.median_ns as f64 / 1e3)).collect();
    format!("costs of handshakes, µs: {}", costs.join(", "))
}

fn usage_sentence(usage: &UsageRecord) -> String {
    let c = &usage.counters;
    format!(
        "{} {}: {} full, {} resumed, {} B in, {} B out",
        usage.dimension,
        usage.value,
        c[UsageCounter::HandshakesFull],
        c[UsageCounter::HandshakesResumed],
        c[UsageCounter::BytesIn],
        c[UsageCounter::BytesOut],
    )
}

fn certificate_sentence(certificate: &CertificateRecord) -> String {
    let CertificateRecord { key, chain, handshakes, .. } = certificate;
    let (name, end) = (certificate.name(), day(certificate.not_after));
    format!("certificate {name}: {key} until {end}, chain of {chain}, {handshakes} handshakes")
}

fn http_sentence(http: &HttpRecord) -> String {
    let c = &http.counters;
    format!(
        "http: {} requests, {} 4xx, {} 5xx, {} retried, {} in flight, {} queued{}",
        c[HttpCounter::Requests],
        c[HttpCounter::Status4xx],
        c[HttpCounter::Status5xx],
        c[HttpCounter::Retried],
        http.requests,
        http.queued,
        percentiles("upstream", &http.latencies[HttpLatency::Upstream].interval)
    )
}

fn route_sentence(route: &RouteRecord) -> String {
    let c = &route.counters;
    format!(
        "route {}: {} requests, {} 4xx, {} 5xx, {} failed{}{}",
        route.route,
        c[RouteCounter::Requests],
        c[RouteCounter::Status4xx],
        c[RouteCounter::Status5xx],
        c[RouteCounter::Failed],
        percentiles("upstream", &route.latencies[RouteLatency::Upstream].interval),
        if route.last { ", final" } else { "" }
    )
}

fn upstream_sentence(upstream: &UpstreamRecord) -> String {
    let UpstreamRecord { upstream: name, last, state, reason, open, counters: c, latencies, .. } = upstream;
    let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
    format!(
        "upstream {name}: {state}{reason}, {open} open, {} connections, {} failed, {} broken, {} exchanges{}{}",
        c[UpstreamCounter::Connections],
        UpstreamRecord::failed(c),
        c[UpstreamCounter::Broken],
        c[UpstreamCounter::Exchanges],
        percentiles("first byte", &latencies[UpstreamLatency::FirstByte].interval),
        if *last { ", final" } else { "" }
    )
}

fn load_sentence(load: &LoadRecord) -> String {
    let c = &load.counters;
    format!(
        "load: {} scheduled, {} sent, {} ok, {} failed{}",
        c[LoadCounter::Scheduled],
        c[LoadCounter::Sent],
        c[LoadCounter::Ok],
        c[LoadCounter::Failed],
        percentiles("service", &load.latencies[LoadLatency::Service].interval)
    )
}

fn client_sentence(client: &ClientRecord) -> String {
    let c = &client.counters;
    format!(
        "client {}: {} connections, {} bytes in, {} out{}",
        client.client,
        c[ClientCounter::Connections],
        c[ClientCounter::BytesIn],
        c[ClientCounter::BytesOut],
        if client.last { ", final" } else { "" }
    )
}

fn percentiles(name: &str, interval: &SparseHistogram) -> String {
    match (interval.quantile_ns(0.5), interval.quantile_ns(0.99)) {
        (Some(p50), Some(p99)) => format!(
            ", {name} p50 {:.3} ms, p99 {:.3} ms, n {}",
            p50 as f64 / 1e6,
            p99 as f64 / 1e6,
            interval.count()
        ),
        _ => String::new(),
    }
}
