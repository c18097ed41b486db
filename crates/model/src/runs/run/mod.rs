//! One run, built from its records.
//!
//! [`Run`] is a list of parts, and each part has a file here. The file says how the part is updated by a record
//! (`apply`), and how it is merged with the same part of other runs (`merged`). Every operation of [`Run`] names every
//! part, so the compiler shows where a new part is missing. `apply.rs` gives each record to its part, and `merged.rs`
//! makes one run of several.
//!
//! The file of a part also says what `history` does with its records. `rebase` subtracts the counts before a slice;
//! `records/slice` matches every kind of record, so a new kind does not compile without an arm there. `downsample`
//! merges two records; `history/downsample` lists every kind, too.
//!
//! A new counter or latency of the proxy or the load needs no part: declare it in `metrics/families.rs`, or for HTTP
//! mode in `metrics/http.rs`.

mod absent;
mod accessors;
mod aligned;
mod apply;
pub(crate) mod events;
mod header;
mod health;
mod hosts;
mod merged;
pub(in crate::runs) mod reading;
pub(in crate::runs) mod retention;
pub(in crate::runs) mod traffic;

use events::alerts::RunAlerts;
use events::experiment::Experiments;
use events::log::RunLog;
use events::settings::RunSettings;
use events::timeline::Markers;
use header::RunHeader;
use hosts::HostSamples;
use reading::Reading;
use retention::SeriesRetention;
use traffic::certificates::Certificates;
use traffic::clients::Clients;
use traffic::failures::Failures;
use traffic::http_gauges::GaugeHistory;
use traffic::measured::MeasuredPart;
use traffic::named::NamedTable;
use traffic::proxy::ProxyPart;
use traffic::requests::Requests;
use traffic::usage::Usage;

use crate::runs::findings::FindingTracker;
use crate::runs::series::BRIEF_INTERVALS_MAX;
use records::codec::Writer;
use records::ids::RunId;
use records::kinds::heap_size::HeapSize as _;
use records::kinds::{
    HandshakeCosts, HealthRecord, HttpRecord, LoadRecord, RouteRecord, Stamp, TlsRecord, UpstreamRecord,
};

pub use events::log::LogLine;
pub use hosts::{CpuUse, WorkerActivity};

/// How long an upstream, a route or a steady client keeps its last rate while its record is deferred or lost, in
/// microseconds; a client in a longer window for as long as that.
pub const DEFERRED_US_MAX: u64 = 10_000_000;

/// One run, built from the records read.
#[derive(Debug)]
pub struct Run {
    header: RunHeader,
    settings: RunSettings,
    proxy: ProxyPart,
    tls: MeasuredPart<TlsRecord>,
    usage: Usage,
    certificates: Certificates,
    http: MeasuredPart<HttpRecord>,
    http_gauges: GaugeHistory,
    routes: NamedTable<RouteRecord>,
    upstreams: NamedTable<UpstreamRecord>,
    requests: Requests,
    load: MeasuredPart<LoadRecord>,
    clients: Clients,
    hosts: HostSamples,
    experiments: Experiments,
    health: HealthRecord,
    log: RunLog,
    markers: Markers,
    /// The latest calibration, and when it was.
    calibration: Option<(Stamp, Box<HandshakeCosts>)>,
    alerts: RunAlerts,
    failures: Failures,
    pub(crate) findings: FindingTracker,
    reading: Reading,
    retention: SeriesRetention,
}

impl Run {
    pub(super) fn new(id: RunId, writer: Writer, history: usize) -> Self {
        Self {
            header: RunHeader::new(id, writer),
            settings: RunSettings::default(),
            proxy: ProxyPart::default(),
            tls: MeasuredPart::default(),
            usage: Usage::default(),
            certificates: Certificates::default(),
            http: MeasuredPart::default(),
            http_gauges: GaugeHistory::default(),
            routes: NamedTable::default(),
            upstreams: NamedTable::default(),
            requests: Requests::default(),
            load: MeasuredPart::default(),
            clients: Clients::new(history),
            hosts: HostSamples::default(),
            experiments: Experiments::default(),
            health: HealthRecord::default(),
            log: RunLog::default(),
            markers: Markers::default(),
            calibration: None,
            alerts: RunAlerts::default(),
            failures: Failures::default(),
            findings: FindingTracker::default(),
            reading: Reading::default(),
            retention: SeriesRetention { history, is_joined: false, is_brief: false },
        }
    }

    /// The state at `us` (`CLOCK_MONOTONIC`) that later records do not repeat: the start for reading the run again from
    /// there.
    pub(super) fn joined_at(&self, us: u64, history: usize) -> Self {
        let Self {
            header,
            settings,
            proxy,
            tls,
            usage,
            certificates,
            http,
            http_gauges: _,
            routes,
            upstreams,
            requests: _,
            load,
            clients,
            hosts: _,
            experiments: _,
            health: _,
            log,
            markers,
            calibration,
            alerts,
            failures: _,
            findings,
            reading: _,
            retention: _,
        } = self;
        let initial = self.began().map(|run| &*run.settings).unwrap_or_default();
        Self {
            header: header.resumed(),
            settings: settings.resumed_at(us, initial, markers),
            proxy: proxy.resumed(history),
            tls: tls.resumed(history),
            usage: usage.idle_at(us),
            certificates: certificates.clone(),
            http: http.resumed(history),
            http_gauges: GaugeHistory::default(),
            routes: routes.joined_at(us, history),
            upstreams: upstreams.joined_at(us, history),
            load: load.resumed(history),
            clients: clients.idle_at(us, history),
            log: log.until(us),
            markers: markers.until(us),
            calibration: calibration.clone().filter(|(stamp, _)| stamp.mono_us <= us),
            alerts: alerts.until(us),
            findings: findings.frozen(),
            // Built again from the records after `us`.
            requests: Requests::default(),
            hosts: HostSamples::default(),
            experiments: Experiments::default(),
            health: HealthRecord::default(),
            failures: Failures::default(),
            reading: Reading::default(),
            retention: SeriesRetention { history, is_joined: true, is_brief: false },
        }
    }

    /// Keeps the run in less memory: all figures of it, but only the last minute interval by interval, what was before merged
    /// to `period_us` each, and of clients and named parts only the latest figures.
    pub(super) fn condense(&mut self, period_us: u64) {
        let Self {
            header: _,
            settings: _,
            proxy,
            tls,
            usage: _,
            certificates: _,
            http,
            http_gauges,
            routes,
            upstreams,
            requests: _,
            load,
            clients,
            hosts,
            experiments: _,
            health: _,
            log: _,
            markers: _,
            calibration: _,
            alerts: _,
            failures: _,
            findings: _,
            reading: _,
            retention: _,
        } = self;
        proxy.condense(period_us);
        tls.condense(period_us);
        http.condense(period_us);
        *http_gauges = GaugeHistory::default();
        routes.condense(period_us);
        upstreams.condense(period_us);
        load.condense(period_us);
        clients.condense();
        hosts.condense();
    }

    /// Drops everything except the columns of a list of runs or hosts: totals and the last ten seconds. Later records
    /// are abridged too.
    pub(super) fn abridge(&mut self) {
        let Self {
            header: _,
            settings: _,
            proxy,
            tls,
            usage,
            certificates: _,
            http,
            http_gauges,
            routes,
            upstreams,
            requests,
            load,
            clients,
            hosts,
            experiments,
            health: _,
            log,
            markers,
            calibration,
            alerts,
            failures,
            findings,
            reading: _,
            retention,
        } = self;
        proxy.abridge();
        tls.abridge();
        *usage = Usage::default();
        http.abridge();
        *http_gauges = GaugeHistory::default();
        *routes = NamedTable::default();
        *upstreams = NamedTable::default();
        *requests = Requests::default();
        load.abridge();
        *clients = Clients::new(1);
        hosts.abridge();
        *experiments = Experiments::default();
        *log = RunLog::default();
        *markers = Markers::default();
        *calibration = None;
        *alerts = RunAlerts::default();
        *failures = Failures::default();
        *findings = FindingTracker::default();
        *retention =
            SeriesRetention { history: BRIEF_INTERVALS_MAX, is_joined: retention.is_joined, is_brief: true };
    }

    /// The memory of the run in bytes, without the allocator's overhead.
    pub fn bytes(&self) -> usize {
        let Self {
            header,
            settings,
            proxy,
            tls,
            usage,
            certificates,
            http,
            http_gauges,
            routes,
            upstreams,
            requests,
            load,
            clients,
            hosts,
            experiments,
            health,
            log,
            markers,
            calibration,
            alerts,
            failures,
            findings,
            reading,
            retention: _,
        } = self;
        size_of::<Self>()
            + header.heap_bytes()
            + settings.heap_bytes()
            + proxy.heap_bytes()
            + tls.heap_bytes()
            + usage.heap_bytes()
            + certificates.heap_bytes()
            + http.heap_bytes()
            + http_gauges.heap_bytes()
            + routes.heap_bytes()
            + upstreams.heap_bytes()
            + requests.heap_bytes()
            + load.heap_bytes()
            + clients.bytes()
            + hosts.heap_bytes()
            + experiments.bytes()
            + health.error.heap_bytes()
            + log.heap_bytes()
            + markers.bytes()
            + calibration.as_ref().map_or(0, |(_, costs)| costs.heap_bytes())
            + alerts.bytes()
            + failures.bytes()
            + findings.heap_bytes()
            + reading.bytes()
    }
}
