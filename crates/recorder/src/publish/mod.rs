//! Makes records from the workers' counts: totals, budget, and retries when the journal refuses a record.
//!
//! Two queues wait for the journal. The first is written before the second:
//!
//! - *events*, which happened once (`run`, `setting`, `mark`, `experiment`, `notice`): kept with their timestamps, up to a
//!   limit;
//! - *pending records* of the interval that ended last. If the next interval ends before the journal has accepted them, they
//!   are built again from the totals: the later record carries their counters, and only resolution is lost.
//!
//! [`Publisher::retry`] offers both again, in order. `seq` is assigned when the journal accepts a record, so it has no
//! gap, and records are written in its order.

mod budget;
mod certificates;
mod clients;
mod events;
mod http;
mod named;
mod plan;
mod rollups;
mod run_totals;
mod services;
mod sink;
mod tls;
mod usage;
mod write;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use journal::Timestamps;

use records::delta::{CLIENTS_MAX, LoadDelta, LoadState, ProxyDelta};
use records::ids::RunId;
use records::kinds::{
    AlertRecord, Body, CertificateRecord, ConnectionRecord, ExperimentRecord, HandshakeCosts, HealthRecord,
    HostRecord, MarkRecord, NoticeRecord, Phase, RequestRecord, RunRecord, SettingRecord, UpstreamRecord,
};
use records::metrics::{LoadCounter, LoadLatency, ProxyCounter, ProxyLatency};
use records::setting::put_setting;
use records::slice::SliceBaseline;
use records::values::{EventCounts, Mix, WorkerList};

use budget::Budget;
pub use budget::{RECORDS_PER_SECOND_OWN, RECORDS_PER_SECOND_SYSTEM};
use certificates::CertificateTable;
use clients::{ClientTable, DueRecord};
use events::Events;
use http::HttpTotals;
use named::PublishedTable;
use plan::Deferred;
use rollups::Rollups;
use run_totals::RunTotals;
use services::ServicePublisher;
pub use sink::{RecordWriter, Refusal, Sink};
use tls::TlsTotals;
use usage::UsageKey;

/// How long intervals may be deferred for lack of budget, in microseconds: a held-down key that makes records must not
/// blind the screen.
const PUT_OFF_US_MAX: u64 = 2_000_000;

/// A record of the interval that ended last, or of the end, that is not written yet. It is made when it is offered.
#[expect(clippy::large_enum_variant, reason = "most of them are clients")]
#[derive(Debug)]
enum PendingRecord {
    Health,
    Proxy {
        clients_deferred: u64,
        upstreams_deferred: u64,
    },
    Tls {
        usage_deferred: u64,
    },
    Http {
        routes_deferred: u64,
    },
    /// By the upstream's index.
    Upstream(usize),
    Load,
    Host,
    /// By dimension and value.
    Usage(UsageKey),
    Certificate(Box<CertificateRecord>),
    /// By the route's index.
    Route(usize),
    Client(DueRecord),
    Connection(Box<ConnectionRecord>),
    Request(Box<RequestRecord>),
    /// The last record of a route, by its index.
    LastRoute(usize),
    /// The last record of an upstream, by its index.
    LastUpstream(usize),
    Stop(Box<RunRecord>),
}

/// Makes records and hands them to a sink.
#[derive(Debug)]
pub struct Publisher<S> {
    run: RunId,
    /// Shared with the publishers of the services. A mutex, since a publisher moves to its thread; nobody else waits for it.
    sink: Arc<Mutex<S>>,
    services: Vec<ServicePublisher<S>>,
    records_per_second: u32,
    seq: u64,
    budget: Budget,
    proxy: Option<RunTotals<ProxyCounter, ProxyLatency>>,
    tls: Option<TlsTotals>,
    /// `None` in TCP mode, and until HTTP mode has counted something.
    http: Option<HttpTotals>,
    route_names: Vec<String>,
    upstreams: PublishedTable<UpstreamRecord>,
    certificates: CertificateTable,
    load: Option<RunTotals<LoadCounter, LoadLatency>>,
    load_state: LoadState,
    load_events: EventCounts,
    /// End of the last gap in measurement, `CLOCK_MONOTONIC` in microseconds; 0 if there was none.
    gap_end_us: u64,
    /// Records of the load, except for its last.
    load_records: u64,
    host: Option<HostRecord>,
    host_sent_us: u64,
    /// Totals of the run.
    workers: WorkerList,
    clients: ClientTable,
    /// What no record has carried yet.
    mix: Mix,
    connections: VecDeque<ConnectionRecord>,
    marks: u64,
    events: Events,
    /// `None` if there are none.
    rollups: Option<Rollups>,
    pending_records: VecDeque<PendingRecord>,
    /// When an interval was planned last, `CLOCK_MONOTONIC` in microseconds.
    planned_us: u64,
    /// Why the journal takes nothing at the moment.
    refusal: Option<String>,
    health: HealthRecord,
    stalled: Option<String>,
    /// The state of the run by the records that the journal has accepted, without its clients.
    written: SliceBaseline,
    /// When it was sent, `CLOCK_MONOTONIC` in microseconds.
    health_sent_us: Option<u64>,
    started_us: u64,
    ticked: Timestamps,
}

impl<S: Sink> Publisher<S> {
    /// A publisher for one run, which writes `records_per_second` on average. Only events, and the last records of a
    /// run, may exceed that; intervals then wait until it is paid for. If an interval's own records would take more
    /// than half of the budget, several intervals are merged into one record.
    ///
    /// Services that the proxy's deltas tell apart are parts of the run, each with an id and records of its own. All of them
    /// together have half of the budget, or six records a second each.
    pub fn new(run: RunId, sink: S, records_per_second: u32, now: Timestamps) -> Self {
        Self::sharing(run, Arc::new(Mutex::new(sink)), records_per_second, now)
    }

    fn sharing(run: RunId, sink: Arc<Mutex<S>>, records_per_second: u32, now: Timestamps) -> Self {
        Self {
            run,
            sink,
            services: Vec::new(),
            records_per_second,
            seq: 0,
            budget: Budget::new(records_per_second, now.monotonic_us),
            proxy: None,
            tls: None,
            http: None,
            route_names: Vec::new(),
            upstreams: PublishedTable::new(&[]),
            certificates: CertificateTable::default(),
            load: None,
            load_state: LoadState::default(),
            load_events: EventCounts::default(),
            gap_end_us: 0,
            load_records: 0,
            host: None,
            host_sent_us: now.monotonic_us,
            workers: WorkerList::default(),
            clients: ClientTable::new(CLIENTS_MAX),
            mix: Mix::default(),
            connections: VecDeque::new(),
            marks: 0,
            events: Events::default(),
            rollups: None,
            pending_records: VecDeque::new(),
            planned_us: now.monotonic_us,
            refusal: None,
            health: HealthRecord::default(),
            stalled: None,
            written: SliceBaseline::default(),
            health_sent_us: None,
            started_us: now.monotonic_us,
            ticked: now,
        }
    }

    /// Has roll-ups written beside the records. They make sense where intervals are short against a minute.
    #[must_use]
    pub fn with_rollups(mut self) -> Self {
        self.rollups = Some(Rollups::new());
        self
    }

    /// Names the routes of HTTP mode, each by its host and path prefix, in the order of their index. Call it before
    /// [`Self::start`].
    pub fn name_routes(&mut self, names: Vec<String>) {
        self.route_names = names;
    }

    /// Names the upstreams, in the order of their index. Call it before [`Self::start`], and when a reload has added some.
    pub fn name_upstreams(&mut self, names: &[String]) {
        self.upstreams.set_names(names);
    }

    /// Begins the run with its description.
    pub fn start(&mut self, run: RunRecord, now: Timestamps) {
        self.started_us = now.monotonic_us;
        self.planned_us = now.monotonic_us;
        self.host_sent_us = now.monotonic_us;
        self.ticked = now;
        let run = Box::new(RunRecord { phase: Phase::Start, ..run });
        self.written.began = Some(run.clone());
        self.written.began_us = now.monotonic_us;
        self.event(Body::Run(run), now);
    }

    pub fn setting(&mut self, change: SettingRecord, now: Timestamps) {
        if let Some((after, began)) = change.after.as_ref().zip(self.written.began.as_mut()) {
            put_setting(&mut began.settings, after.clone());
        }
        for service in &mut self.services {
            service.publisher.setting(change.clone(), now);
        }
        self.event(Body::Setting(change), now);
    }

    /// Records a note, cleaned, and numbers it.
    pub fn mark(&mut self, text: &str, now: Timestamps) {
        self.marks += 1;
        let mark = MarkRecord { number: self.marks, text: records::text::clean::text(text) };
        self.event(Body::Mark(mark), now);
    }

    /// Records the cost of the parts of a handshake.
    pub fn calibration(&mut self, costs: HandshakeCosts, now: Timestamps) {
        self.event(Body::Calibration(Box::new(costs)), now);
    }

    /// Records a notice for the operator. The caller limits how often.
    pub fn notice(&mut self, notice: NoticeRecord, now: Timestamps) {
        self.written.began.iter_mut().for_each(|began| began.absent.extend(&notice.absent));
        self.event(Body::Notice(notice), now);
    }

    pub fn experiment(&mut self, step: ExperimentRecord, now: Timestamps) {
        self.event(Body::Experiment(Box::new(step)), now);
    }

    /// Records that an alert fires, or no longer does.
    pub fn alert(&mut self, alert: AlertRecord, now: Timestamps) {
        self.event(Body::Alert(Box::new(alert)), now);
    }

    /// Notes that nothing was measured up to `end_us` (`CLOCK_MONOTONIC` in microseconds), because the process did not
    /// run. The next record of proxy and load covers only the time after it, so a reader shows a gap; its counters are
    /// complete.
    pub fn note_gap(&mut self, end_us: u64) {
        self.gap_end_us = end_us;
        self.services.iter_mut().for_each(|service| service.publisher.note_gap(end_us));
    }

    /// Records the interval that ends now.
    pub fn interval(
        &mut self,
        proxy: Option<&ProxyDelta>,
        load: Option<(&LoadDelta, LoadState)>,
        host: Option<HostRecord>,
        now: Timestamps,
    ) {
        self.publish_services(proxy, now);
        self.tick(proxy, load, host, now);
        // The rest is for upstreams, routes, clients, connections and requests: at least half of the budget.
        let is_affordable = self.budget.left() >= 2 * self.records_each_interval();
        if is_affordable || now.monotonic_us - self.planned_us >= PUT_OFF_US_MAX {
            self.plan_interval();
        }
        self.retry();
    }

    /// Closes the run: the last interval, the last record of every upstream, route and client, and the totals with whole-run histograms.
    ///
    /// The journal may not take all of that at once: call [`Self::retry`] until nothing is [`Self::pending`], or
    /// patience ends. Nothing may be published after this.
    pub fn stop(
        &mut self,
        run: RunRecord,
        proxy: Option<&ProxyDelta>,
        load: Option<(&LoadDelta, LoadState)>,
        host: Option<HostRecord>,
        now: Timestamps,
    ) {
        self.stop_services(&run, proxy, now);
        self.tick(proxy, load, host, now);
        self.plan_totals(Deferred::default());
        self.plan_last_usage();
        self.plan_last_certificates();
        self.plan_last_named();
        let room = self.budget.left();
        let room = room - self.plan_connections(room);
        self.plan_requests(room);
        let finals = self.clients.finish(now.monotonic_us, self.budget.burst());
        self.pending_records.extend(finals.into_iter().map(PendingRecord::Client));
        self.pending_records.push_back(PendingRecord::Health);
        self.pending_records.push_back(PendingRecord::Stop(Box::new(RunRecord {
            phase: Phase::Stop,
            proxy: self.proxy.as_ref().map(RunTotals::<ProxyCounter, _>::final_record),
            tls: self.tls.as_ref().map(TlsTotals::final_record),
            http: self.http.as_ref().map(HttpTotals::final_record),
            load: self.load.as_ref().map(|totals| totals.final_record(self.load_state, &self.load_events)),
            ..run
        })));
        self.retry();
    }

    /// Offers pending records to the journal, until it refuses.
    pub fn retry(&mut self) {
        self.services.iter_mut().for_each(|service| service.publisher.retry());
        self.write_events();
        if self.events.len() == 0 {
            self.write_pending();
        }
        self.write_rollups();
        // A failed flush refuses no accepted record: the records wait, and the next flush retries.
        let flushed = self.sink().flush();
        self.stalled = flushed.err();
        if let Some(reason) = &self.stalled {
            self.health.error.clone_from(reason);
        }
    }

    /// Records that the journal has not taken yet.
    pub fn pending(&self) -> usize {
        self.events.len() + self.pending_records.len() + self.pending_of_services()
    }

    /// Roll-ups that the journal has not taken yet. Without them it lacks nothing, but is read more slowly.
    pub fn pending_rollups(&self) -> usize {
        let of_services = self.services.iter().map(|service| service.publisher.pending_rollups());
        self.rollups.as_ref().map_or(0, Rollups::waiting) + of_services.sum::<usize>()
    }

    /// Sets the number of messages of this service that journald has dropped by its rate limit, as far as read.
    pub fn set_suppressed(&mut self, total: u64) {
        self.health.suppressed_total = self.health.suppressed_total.max(total);
    }

    /// Records that accepted records were lost.
    pub fn record_lost(&mut self, records: u64, reason: &str) {
        self.health.dropped_total += records;
        reason.clone_into(&mut self.health.error);
    }

    /// Sets how many records wait for an upload, how many were lost to it, and why it fails; empty if it does not.
    pub fn set_upload(&mut self, waiting: u64, lost_total: u64, failure: &str) {
        self.health.upload_waiting = waiting;
        self.health.upload_lost_total = lost_total;
        failure.clone_into(&mut self.health.upload_failure);
    }

    /// The known losses on the way to the journal.
    pub fn health(&self) -> &HealthRecord {
        &self.health
    }

    /// Why records that were accepted cannot be read yet, if the last flush failed.
    pub fn stalled(&self) -> Option<&str> {
        self.stalled.as_deref()
    }

    /// Why the journal took no further record when one was offered last; `None` if it took all.
    pub fn refusal(&self) -> Option<&str> {
        let of_services = || self.services.iter().find_map(|service| service.publisher.refusal());
        self.refusal.as_deref().or_else(of_services)
    }

    /// Records of the whole run that the sink has accepted.
    pub fn made(&self) -> u64 {
        self.seq
    }

    /// The states of the run and its services by the records that the sink has accepted. A recording that begins now counts
    /// from them.
    pub fn baselines(&self) -> Vec<SliceBaseline> {
        let of_services = self.services.iter().map(|service| service.publisher.baseline());
        std::iter::once(self.baseline()).chain(of_services).collect()
    }

    fn baseline(&self) -> SliceBaseline {
        if self.written.last.is_none() {
            return SliceBaseline::default();
        }
        let planned = self.pending_records.iter().filter_map(|pending| match pending {
            PendingRecord::Client(due) => Some(due),
            _ => None,
        });
        SliceBaseline { clients: self.clients.written(planned), ..self.written.clone() }
    }

    pub fn sink(&self) -> MutexGuard<'_, S> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn into_sink(self) -> S {
        let Self { sink, services, .. } = self;
        drop(services);
        let sink = Arc::into_inner(sink).expect("only services share it");
        sink.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
