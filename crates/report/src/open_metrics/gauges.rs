//! Gauges of the run and the process, and the CPU time and losses of the run.

use model::insight::Severity;
use model::runs::{Run, UpstreamStats};
use records::kinds::{CertificateRecord, UpstreamRecord, UpstreamState};
use records::metrics::{CpuGroup, HostCounter, Metric, Unit};

use super::counters::{label, named};
use super::family::{Family, Label};

/// The version, and open connections and requests.
pub(super) fn of_run(run: &Run, version: &str) -> Vec<Family> {
    let id = run.id().to_string();
    let facts = vec![label("version", version), label("run", &id), label("host", run.hostname())];
    let mut all = vec![
        Family::gauge(
            "run_info",
            "1; the labels are the program's version, the run's id (TLSDASH_RUN) and its host",
            [(facts, 1.0)],
        ),
        one(
            "start_time_seconds",
            "When the run began, in seconds since 1970",
            run.began_realtime_us() as f64 / 1e6,
        ),
        one(
            "last_record_seconds",
            "When the latest record was made, in seconds since 1970",
            run.last_realtime_us() as f64 / 1e6,
        ),
    ];
    if run.proxy().is_some() {
        all.push(one("connections_open", "Connections accepted and not yet closed", run.proxy_open() as f64));
    }
    if let Some(http) = run.http_record() {
        all.push(one("http_requests_open", "Requests in flight", http.requests as f64));
        all.push(one(
            "http_requests_waiting",
            "Requests that wait for an upstream connection",
            http.queued as f64,
        ));
        let busy = http.upstream_open.saturating_sub(http.upstream_idle);
        let states = [("idle", http.upstream_idle), ("busy", busy)];
        let samples = states.map(|(state, connections)| (vec![label("state", state)], connections as f64));
        all.push(Family::gauge("http_upstream_connections", "Upstream connections, by state", samples));
    }
    all.push(Family::gauge(
        "findings_open",
        "What is about to break, or is broken, by severity",
        findings(run),
    ));
    let now_us = run.last_us();
    let firing = run.alerts().filter(|episode| episode.is_firing_at(now_us)).count();
    all.push(one("alerts_firing", "Alerts of --alert that fire", firing as f64));
    all
}

fn findings(run: &Run) -> Vec<(Vec<Label>, f64)> {
    let open: Vec<Severity> = run
        .findings()
        .iter()
        .filter(|finding| finding.closed_us.is_none())
        .map(|finding| finding.severity)
        .collect();
    let severities =
        [("critical", Severity::Critical), ("warning", Severity::Warning), ("info", Severity::Info)];
    let count = |wanted: Severity| open.iter().filter(|severity| **severity == wanted).count() as f64;
    severities.map(|(name, severity)| (vec![label("severity", name)], count(severity))).into()
}

/// State and connections of each upstream.
pub(super) fn of_upstreams(run: &Run) -> Vec<Family> {
    let samples = |of: fn(&UpstreamRecord) -> Option<f64>| {
        let sample = move |upstream: &UpstreamStats| {
            Some((vec![label("upstream", upstream.name())], of(upstream.record())?))
        };
        run.upstreams().iter().filter_map(sample).collect::<Vec<_>>()
    };
    let is_up = |record: &UpstreamRecord| match record.state {
        UpstreamState::Gone => None,
        state => Some(f64::from(u8::from(state == UpstreamState::Up))),
    };
    vec![
        Family::gauge(
            "upstream_up",
            "1 if this upstream is up, 0 if not; absent once a reload has removed it",
            samples(is_up),
        ),
        Family::gauge(
            "upstream_connections_open",
            "Connections to this upstream, idle ones included",
            samples(|record| Some(record.open as f64)),
        ),
        Family::gauge(
            "upstream_connections_idle",
            "Connections to this upstream without a request",
            samples(|record| Some(record.idle as f64)),
        ),
    ]
}

/// The end of each certificate in use, and how often it was presented.
pub(super) fn of_certificates(run: &Run) -> Vec<Family> {
    let sample = |of: fn(&CertificateRecord) -> u64| {
        let sample = move |one: &CertificateRecord| {
            let labels = [
                ("name", one.name()),
                ("serial", &one.serial),
                ("issuer", &one.issuer),
                ("file", &one.file),
                ("default", if one.is_default { "1" } else { "0" }),
            ];
            (labels.map(|(name, value)| label(name, value)).into(), of(one) as f64)
        };
        run.certificates().served().map(sample).collect::<Vec<_>>()
    };
    vec![
        Family::gauge(
            "certificate_not_after_seconds",
            "When this certificate ends, in seconds since 1970; absent once it is replaced",
            sample(|one| one.not_after),
        ),
        Family::gauge(
            "certificate_renewal_seconds",
            "When this certificate is ordered next by ACME, in seconds since 1970; 0 if it is not",
            sample(|one| one.renewal_at),
        ),
        Family::gauge(
            "certificate_renewal_failed",
            "Whether the last order of this certificate by ACME has failed",
            sample(|one| u64::from(!one.renewal_error.is_empty())),
        ),
        Family::counter(
            "certificate_handshakes",
            "Full handshakes in which this certificate was presented; some seconds late",
            sample(|one| one.handshakes),
        ),
    ]
}

/// Resources of the process.
pub(super) fn of_process(run: &Run) -> Vec<Family> {
    let Some(host) = run.host() else { return Vec::new() };
    let cpu = |group: CpuGroup, labels: &[Label], samples: &mut Vec<_>| {
        samples.push((labels.to_vec(), host.cpu[group] as f64 / 1e6));
    };
    let withheld = |counter: HostCounter, labels: &[Label], samples: &mut Vec<_>| {
        let total = host.withheld[counter] as f64;
        let is_time = counter.field().unit == Unit::Micros;
        samples.push((labels.to_vec(), if is_time { total / 1e6 } else { total }));
    };
    let mut all = named(cpu, Family::counter);
    all.extend(named(withheld, Family::counter));
    all.extend([
        one("memory_resident_bytes", "Resident memory of the process", host.memory_bytes as f64),
        one("descriptors_open", "Open file descriptors", host.descriptors as f64),
        one("threads", "Threads of the process", host.threads as f64),
    ]);
    if host.descriptors_max > 0 {
        all.push(one("descriptors_max", "The bound on open file descriptors", host.descriptors_max as f64));
    }
    if host.observed_pid > 0 {
        all.push(total(
            "observed_cpu_seconds",
            "CPU time of the processes of --observe-pid",
            host.observed_cpu_us as f64 / 1e6,
        ));
        all.push(one(
            "observed_memory_bytes",
            "Resident memory of the processes of --observe-pid",
            host.observed_memory_bytes as f64,
        ));
        all.push(one(
            "observed_threads",
            "Threads of the processes of --observe-pid",
            host.observed_threads as f64,
        ));
    }
    all
}

/// The outcome of the records that these figures come from.
pub(super) fn of_journal(run: &Run) -> Vec<Family> {
    let (reading, health) = (run.reading(), run.health());
    vec![
        total("records", "Records made", reading.made() as f64),
        total(
            "records_lost",
            "Records missing after the first one read: the totals of the next one make up for it, latencies and clients do not",
            reading.lost() as f64,
        ),
        total("records_refused", "Records that the journal took too late", health.refused_total as f64),
        total("records_dropped", "Records given up", health.dropped_total as f64),
        total(
            "intervals_merged",
            "Intervals merged into a later record because the journal did not accept theirs in time",
            health.merged_total as f64,
        ),
        total(
            "messages_suppressed",
            "Messages that journald's rate limit dropped",
            health.suppressed_total.max(reading.suppressed()) as f64,
        ),
        one(
            "upload_waiting",
            "Records that wait for a receiver of uploads that fails, or catches up",
            health.upload_waiting as f64,
        ),
        total(
            "upload_records_lost",
            "Records that left the archives before a receiver of uploads had confirmed them, or were too large for it",
            health.upload_lost_total as f64,
        ),
    ]
}

fn one(name: &'static str, help: &str, value: f64) -> Family {
    Family::gauge(name, help, [(Vec::new(), value)])
}

fn total(name: &'static str, help: &str, value: f64) -> Family {
    Family::counter(name, help, [(Vec::new(), value)])
}
