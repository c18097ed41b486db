//! A run in one document: the summary that `--format json` prints.

mod alert;
mod certificates;
mod clients;
mod experiment;
mod http;
mod load;
mod log;
mod tls;
mod tls_cost;
mod upstreams;

use std::collections::BTreeMap;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use crate::figures::cpu_percent;
use crate::insight::FindingSummary;
use crate::runs::{MetricSeries, Model, Run};
use records::histogram::Histogram;
use records::metrics::{
    CPU_GROUPS as GROUPS, Counters, KnownValue, LatencyClass, Metric, Percentile, ProxyCounter, ProxyLatency,
    TimeResolution,
};
use records::values::ProcessCpu;

pub use alert::AlertSummary;
pub use certificates::CertificateSummary;
pub use clients::{ClientSummary, RecentClients};
pub use experiment::{ComparedFigureSummary, ExperimentSummary, both_figures};
pub use http::{ByDirection, Http2Summary, HttpNow, HttpRequestCounts, HttpSummary, RouteSummary};
pub use load::{GeneratorSummary, LoadSummary, MessageBytes, Resumptions};
pub use log::{LineCounts, LogSummary, QuicCounts};
pub use tls::{AgeCount, ReasonCounts, TicketAges, TlsSummary, UsageSummary, WallTime, WallTimes};
pub use tls_cost::{FirstRequest, TlsCost};
pub use upstreams::UpstreamSummary;

/// Version of the summary's shape; later versions only add to it.
pub const SUMMARY_SCHEMA: u64 = 1;

/// A run's figures, from its beginning to its last record.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Version of this document's format.
    pub schema: u64,
    /// Id of the run.
    pub run: String,
    /// `_UID` of the process that wrote it; absent if the journal does not have it, or for several runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// `_SYSTEMD_UNIT` of the process; absent if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub unit: String,
    pub duration_s: f64,
    /// True if the run's last record was read; false while it runs, and for a run that was killed.
    pub ended: bool,
    /// The log that was counted; absent in a run of our own proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<LogSummary>,
    /// The proxy's side; absent in a run without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<ProxySummary>,
    /// The load's side; absent in a run without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadSummary>,
    /// What TLS costs.
    pub tls_cost: TlsCost,
    /// Every client, those with the most bytes first.
    pub clients: Vec<ClientSummary>,
    /// Its experiments, oldest first; absent if there were none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub experiments: Vec<ExperimentSummary>,
    /// Alerts that fired, oldest first; absent if none did.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alerts: Vec<AlertSummary>,
    /// Findings: open ones first, by severity; absent without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<FindingSummary>,
    /// The outcome of the records; `null` if none were written.
    pub journal: Option<JournalSummary>,
    /// CPU time by whose threads used it, in seconds.
    pub cpu_s: BTreeMap<&'static str, f64>,
    /// The resources that the process used last; absent without a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessSummary>,
    /// Resources of an observed process and its descendants; absent if none was observed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed: Option<ObservedProcess>,
}

/// Resources of the process that writes the records, at the last reading.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ProcessSummary {
    /// Resident memory, in bytes.
    pub memory_bytes: u64,
    /// Resident memory with each shared page divided among its users (PSS); 0 if unknown.
    pub memory_pss_bytes: u64,
    pub descriptors: u64,
    pub threads: u64,
}

/// Resources of an observed process and its descendants.
#[derive(Clone, Debug, Serialize)]
pub struct ObservedProcess {
    pub pid: u64,
    /// CPU time since observing began, in seconds.
    pub cpu_s: f64,
    /// CPU time in percent of the run's time: 100 is one whole core.
    pub cpu_percent: f64,
    /// The most threads in one sample.
    pub threads_max: u64,
    /// The most resident memory in one sample, in bytes.
    pub memory_max_bytes: u64,
    /// Open descriptors at the last reading; 0 if the kernel hides them.
    pub descriptors: u64,
    /// Listening TCP sockets.
    pub listeners: u64,
    /// Connections that waited there to be accepted.
    pub backlog: u64,
    /// The processes alive at the last reading; if there are many, those with the most CPU time.
    pub processes: Vec<ProcessUsage>,
}

/// Resources of one of several observed processes.
#[derive(Clone, Debug, Serialize)]
pub struct ProcessUsage {
    pub pid: u32,
    /// Its own name.
    pub name: String,
    /// CPU time since observing began, in seconds.
    pub cpu_s: f64,
    /// CPU time in percent of the run's time: 100 is one whole core.
    pub cpu_percent: f64,
}

#[derive(Clone, Debug, Serialize)]
pub struct ConnectionCounts {
    pub accepted: u64,
    /// Open at the end.
    pub open: u64,
    /// Closed without having carried a byte to an upstream.
    pub failed: u64,
}

/// Handshakes, by either side.
#[derive(Clone, Debug, Serialize)]
pub struct HandshakeCounts {
    pub full: u64,
    pub resumed: u64,
    pub failed: u64,
    /// Full handshakes by reason, which add up to `full`; absent without a record.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub full_by_reason: BTreeMap<&'static str, u64>,
}

/// Plaintext bytes; `in` is from the client to the upstream on both sides.
#[derive(Clone, Debug, Serialize)]
pub struct ByteCounts {
    /// From the client to the upstream.
    pub r#in: u64,
    /// From the upstream to the client.
    pub out: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct ProxySummary {
    pub connections: ConnectionCounts,
    pub handshakes: HandshakeCounts,
    pub bytes: ByteCounts,
    /// Latencies by class, in microseconds.
    pub latency_us: BTreeMap<&'static str, Percentiles>,
    /// TLS; absent without a record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsSummary>,
    /// HTTP; absent in TCP mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<HttpSummary>,
    /// The upstreams; absent in a run that has none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub upstreams: Vec<UpstreamSummary>,
    /// The certificates; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub certificates: Vec<CertificateSummary>,
}

/// Each counter under the key of its declaration, in the order of the family.
fn by_figure<M: Metric, S: Serializer>(counters: &Counters<M>, to: S) -> Result<S::Ok, S::Error> {
    let key = |counter: &M| counter.names().figure;
    let part = |counter: &M| key(counter).split_once('.').map(|(part, _)| part);
    let mut object = to.serialize_map(None)?;
    for members in M::ALL.chunk_by(|a, b| part(a).is_some() && part(a) == part(b)) {
        let value = |counter: &M| counters[*counter];
        match part(&members[0]) {
            None => object.serialize_entry(key(&members[0]), &value(&members[0]))?,
            Some(part) => {
                let keys = members.iter().map(|counter| (&key(counter)[part.len() + 1..], value(counter)));
                object.serialize_entry(part, &keys.collect::<BTreeMap<_, _>>())?;
            }
        }
    }
    object.end()
}

/// Counts of records written, read and lost.
#[derive(Clone, Debug, Serialize)]
pub struct JournalSummary {
    /// Where the records were read.
    pub source: String,
    /// Records made.
    pub made: u64,
    pub read: u64,
    /// Records missing after the first one read.
    pub lost: u64,
    /// Records before the first one read: lost, removed, or not requested.
    pub before: u64,
    /// Gaps in the records, and times in which the process did not run.
    pub gaps: u64,
    /// Intervals merged into a later record because the journal did not accept theirs in time, by the writer's count.
    pub merged: u64,
    /// Records that the journal took too late, by the writer's count.
    pub refused: u64,
    /// Records given up, by the writer's count.
    pub dropped: u64,
    /// Messages of the writer's service that journald's rate limit dropped, by the writer's or the reader's count.
    pub suppressed: u64,
    /// Records under this run's id that another process wrote, and that do not count.
    pub foreign: u64,
    /// Journal entries that are marked as records and cannot be decoded.
    pub malformed: u64,
    /// Bytes of the journal that could not be read.
    pub skipped_bytes: u64,
    /// From a record's making to its reading, for those read live on the same host, in microseconds.
    pub lag_us: Percentiles,
}

/// Percentiles of one class, in microseconds, with the number of samples they rest on; `null` without samples. What is at
/// the resolution of a log is a bound.
#[derive(Clone, Debug, Serialize)]
pub struct Percentiles {
    /// Samples.
    pub n: u64,
    /// Smallest, to three digits.
    pub min: Option<KnownValue>,
    /// Exact mean.
    pub mean: Option<KnownValue>,
    /// Standard deviation over all samples.
    pub sd: Option<KnownValue>,
    pub p50: Option<KnownValue>,
    pub p90: Option<KnownValue>,
    pub p95: Option<KnownValue>,
    pub p99: Option<KnownValue>,
    pub p999: Option<KnownValue>,
    /// Exact maximum.
    pub max: Option<KnownValue>,
}

impl Percentiles {
    /// The percentiles of a histogram that tlsdash timed.
    pub fn of(histogram: &Histogram) -> Self {
        Self::known(histogram, TimeResolution::FINE)
    }

    /// The percentiles of a histogram whose samples have this resolution.
    pub fn known(histogram: &Histogram, resolution: TimeResolution) -> Self {
        let time = |ns: u64| resolution.known_us(micros(ns));
        let at = |percentile: Percentile| histogram.quantile_ns(percentile.q).map(time);
        Self {
            n: histogram.count(),
            min: histogram.min_ns().map(time),
            mean: histogram.mean_ns().map(|ns| resolution.known_mean_us(ns / 1e3)),
            sd: histogram.stdev_ns().map(|ns| resolution.known_deviation_us(ns / 1e3)),
            p50: at(Percentile::P50),
            p90: at(Percentile::P90),
            p95: at(Percentile::P95),
            p99: at(Percentile::P99),
            p999: at(Percentile::P999),
            max: (!histogram.is_empty()).then(|| time(histogram.max_ns())),
        }
    }
}

fn micros(ns: u64) -> f64 {
    ns as f64 / 1e3
}

impl Model {
    /// A run's present figures. `source` names the journal they were read from, `None` if there was none.
    pub fn summary(&self, run: &Run, source: Option<&str>) -> Summary {
        Summary { journal: source.map(|source| self.journal_summary(run, source)), ..run.summary() }
    }

    fn journal_summary(&self, run: &Run, source: &str) -> JournalSummary {
        let (reading, health) = (run.reading(), run.health());
        JournalSummary {
            source: source.to_owned(),
            made: reading.made(),
            read: reading.read(),
            lost: reading.lost(),
            before: reading.before(),
            gaps: reading.gaps_total(),
            merged: health.merged_total,
            refused: health.refused_total,
            dropped: health.dropped_total,
            suppressed: health.suppressed_total.max(reading.suppressed()),
            foreign: reading.foreign(),
            malformed: self.malformed(),
            skipped_bytes: self.skipped_bytes(),
            lag_us: Percentiles::of(reading.lag()),
        }
    }
}

impl Run {
    /// Its present figures, without those of the journal.
    pub fn summary(&self) -> Summary {
        Summary {
            schema: SUMMARY_SCHEMA,
            run: self.id().to_string(),
            uid: self.writer().origin.uid,
            unit: self.writer().unit.clone(),
            duration_s: self.duration_us() as f64 / 1e6,
            ended: self.stopped().is_some(),
            log: log::of(self),
            proxy: self.proxy().map(|series| proxy_summary(self, series)),
            load: self.load().map(|series| load::of(self, series)),
            tls_cost: TlsCost::of(self),
            clients: ClientSummary::all(self),
            experiments: self.experiments().map(|it| ExperimentSummary::of(self, it)).collect(),
            alerts: self.alerts().map(|episode| AlertSummary::of(self, episode)).collect(),
            findings: self.findings().into_iter().map(|finding| FindingSummary::of(self, finding)).collect(),
            journal: None,
            cpu_s: self.cpu_seconds(),
            process: self.host().map(|host| ProcessSummary {
                memory_bytes: host.memory_bytes,
                memory_pss_bytes: host.memory_pss_bytes,
                descriptors: host.descriptors,
                threads: host.threads,
            }),
            observed: self.observed(),
        }
    }

    fn observed(&self) -> Option<ObservedProcess> {
        let host = self.host().filter(|host| host.observed_pid > 0)?;
        let cpu = |us: u64| (us as f64 / 1e6, cpu_percent(self, us));
        let usage = |process: &ProcessCpu| {
            let (cpu_s, cpu_percent) = cpu(process.cpu_us);
            ProcessUsage { pid: process.pid, name: process.name.to_string(), cpu_s, cpu_percent }
        };
        let (cpu_s, cpu_percent) = cpu(host.observed_cpu_us);
        Some(ObservedProcess {
            pid: host.observed_pid,
            cpu_s,
            cpu_percent,
            threads_max: host.observed_threads_max,
            memory_max_bytes: host.observed_memory_max_bytes,
            descriptors: host.observed_descriptors,
            listeners: host.observed_listeners,
            backlog: host.observed_backlog,
            processes: host.observed_processes.iter().map(usage).collect(),
        })
    }

    pub(super) fn cpu_seconds(&self) -> BTreeMap<&'static str, f64> {
        let seconds = |group| self.host().map_or(0.0, |host| host.cpu[group] as f64 / 1e6);
        GROUPS.into_iter().map(|(name, group)| (name, seconds(group))).collect()
    }
}

fn proxy_summary(run: &Run, series: &MetricSeries<ProxyCounter, ProxyLatency>) -> ProxySummary {
    let totals = series.totals();
    ProxySummary {
        connections: ConnectionCounts {
            accepted: totals[ProxyCounter::Accepted],
            open: run.proxy_open(),
            failed: totals[ProxyCounter::Failed],
        },
        handshakes: HandshakeCounts {
            full: totals[ProxyCounter::HandshakesFull],
            resumed: totals[ProxyCounter::HandshakesResumed],
            failed: totals[ProxyCounter::HandshakesFailed],
            full_by_reason: tls::full_by_reason(run),
        },
        bytes: ByteCounts { r#in: totals[ProxyCounter::BytesIn], out: totals[ProxyCounter::BytesOut] },
        latency_us: latencies(series, ProxyLatency::ALL, run.log_resolution()),
        tls: TlsSummary::of(run),
        http: HttpSummary::of(run),
        upstreams: UpstreamSummary::all(run),
        certificates: CertificateSummary::all(run),
    }
}

pub(super) fn latencies<C: Metric, L: Metric + Into<LatencyClass>>(
    series: &MetricSeries<C, L>,
    classes: &[L],
    resolution: TimeResolution,
) -> BTreeMap<&'static str, Percentiles> {
    let of = |&class: &L| (class.into().key(), Percentiles::known(&series.whole()[class], resolution));
    classes.iter().map(of).collect()
}
