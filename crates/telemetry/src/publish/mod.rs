//! From what workers counted to records: totals, budget, turns, and what happens when the journal refuses.

mod budget;
mod clients;

use std::collections::VecDeque;

use journal::Timestamps;

use crate::connection::ConnectionRecord;
use crate::delta::{CLIENTS_MAX, LoadDelta, ProxyDelta};
use crate::families::{LoadCounter, LoadLatency, ProxyCounter, ProxyLatency};
use crate::histogram::{Distribution, Histograms};
use crate::ids::RunId;
use crate::metric::{Counters, Metric};
use crate::record::{
    Body, HealthRecord, HostRecord, Latencies, Latency, LoadRecord, MarkRecord, Phase, ProxyRecord, Record,
    RunRecord, SettingRecord, Stamp,
};
use crate::tally::Tally;

use budget::Budget;
pub use budget::RECORDS_PER_SECOND_OWN;
use clients::{ClientTable, Due};

/// Connection records that wait for room in the budget.
const CONNECTIONS_WAITING_MAX: usize = 256;
/// Connection errors for which room is kept each interval, however many clients changed.
const ERRORS_RESERVED: usize = 4;
/// While the budget drops errors, this is said so often at the most, in microseconds.
const OVER_BUDGET_TOLD_US_MIN: u64 = 10_000_000;
/// The load's latencies that travel each interval. Those of the phases of its requests are for the end, where the final
/// record has them all, so they travel seldom: they would take more room than everything else of a load.
const EACH_INTERVAL: &[LoadLatency] = &[LoadLatency::Response, LoadLatency::Service, LoadLatency::Lag];
/// How many of the load's records there are to one that carries the phases.
const PHASES_EVERY: u64 = 60;
/// Jump of the wall clock against the monotonic one that is reported, in microseconds.
const CLOCK_STEP_US_MIN: i64 = 100_000;

/// Where records go.
pub trait Sink {
    /// Takes one record, or says in words why not.
    ///
    /// # Errors
    /// When the record is not, and will not be, in the journal.
    fn accept(&mut self, record: &Record) -> Result<(), String>;

    /// Called at the end of each interval's records.
    ///
    /// # Errors
    /// When records that were accepted may not be readable.
    fn flush(&mut self) -> Result<(), String>;
}

/// How the load stands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadState {
    /// True while requests are being scheduled.
    pub running: bool,
    /// Requests a second that are asked for; 0 in a closed loop.
    pub rate: f64,
    /// Share of new connections that are meant to resume, in percent.
    pub resume_percent: f64,
    /// Connections that are asked for.
    pub connections: u64,
    /// Threads of the generator.
    pub threads: u64,
    /// First to last moment at which a request after the warm-up was due, in microseconds; 0 in a closed loop.
    pub due_us: u64,
    /// From the same beginning to the last request sent.
    pub sending_us: u64,
    /// From the same beginning to the end of the last request.
    pub measured_us: u64,
}

/// What one side of the wire has counted: the run's totals, and the latencies that no record has carried yet.
#[derive(Debug)]
struct Side<C: Metric, L: Metric> {
    totals: Counters<C>,
    samples_total: Counters<L>,
    unsent: Histograms<L>,
    whole: Histograms<L>,
    sent_us: u64,
}

impl<C: Metric, L: Metric> Side<C, L> {
    fn new(start_us: u64) -> Self {
        Self {
            totals: Counters::default(),
            samples_total: Counters::default(),
            unsent: Histograms::default(),
            whole: Histograms::default(),
            sent_us: start_us,
        }
    }

    fn add(&mut self, counters: &Counters<C>, latencies: &Histograms<L>) {
        self.totals.add(counters);
        self.unsent.add(latencies);
        self.whole.add(latencies);
        for (class, histogram) in latencies.iter() {
            self.samples_total[class] += histogram.count();
        }
    }

    /// A record has carried the latencies of these classes.
    fn sent(&mut self, classes: &[L], now_us: u64) {
        for &class in classes {
            self.unsent[class].clear();
        }
        self.sent_us = now_us;
    }

    /// The latencies of these classes that no record has carried yet.
    fn interval(&self, classes: &[L]) -> Latencies<L> {
        let mut latencies = Latencies::new(&self.unsent, &self.samples_total);
        for &class in L::ALL.iter().filter(|class| !classes.contains(class)) {
            let samples_total = self.samples_total[class] - self.unsent[class].count();
            latencies[class] = Latency { samples_total, interval: Distribution::default() };
        }
        latencies
    }

    fn whole_run(&self) -> Latencies<L> {
        Latencies::new(&self.whole, &self.samples_total)
    }
}

/// Makes records and hands them to a sink.
#[derive(Debug)]
pub struct Publisher<S> {
    run: RunId,
    sink: S,
    seq: u64,
    budget: Budget,
    proxy: Option<Side<ProxyCounter, ProxyLatency>>,
    load: Option<Side<LoadCounter, LoadLatency>>,
    load_state: LoadState,
    load_tally: Tally,
    /// Records of the load so far, but for its last.
    load_records: u64,
    clients: ClientTable,
    connections: VecDeque<ConnectionRecord>,
    marks: u64,
    health: HealthRecord,
    stalled: Option<String>,
    health_sent: HealthRecord,
    /// When it was sent, `CLOCK_MONOTONIC` in microseconds.
    health_sent_us: Option<u64>,
    started_us: u64,
    ticked: Timestamps,
}

impl<S: Sink> Publisher<S> {
    /// A publisher for one run, which writes `records_per_second` at the most besides what must be written.
    pub fn new(run: RunId, sink: S, records_per_second: u32, now: Timestamps) -> Self {
        Self {
            run,
            sink,
            seq: 0,
            budget: Budget::new(records_per_second, now.monotonic_us),
            proxy: None,
            load: None,
            load_state: LoadState::default(),
            load_tally: Tally::default(),
            load_records: 0,
            clients: ClientTable::new(CLIENTS_MAX),
            connections: VecDeque::new(),
            marks: 0,
            health: HealthRecord::default(),
            stalled: None,
            health_sent: HealthRecord::default(),
            health_sent_us: None,
            started_us: now.monotonic_us,
            ticked: now,
        }
    }

    /// Opens the run with what it runs with.
    pub fn start(&mut self, run: RunRecord, now: Timestamps) {
        self.started_us = now.monotonic_us;
        self.ticked = now;
        self.necessary(Body::Run(Box::new(RunRecord { phase: Phase::Start, ..run })), 0, now);
        self.flush();
    }

    /// Records a change of a setting.
    pub fn setting(&mut self, change: SettingRecord, now: Timestamps) {
        self.necessary(Body::Setting(change), 0, now);
        self.flush();
    }

    /// Records a note, cleaned, and numbers it.
    pub fn mark(&mut self, text: &str, now: Timestamps) {
        self.marks += 1;
        let mark = MarkRecord { number: self.marks, text: crate::clean::text(text) };
        self.necessary(Body::Mark(mark), 0, now);
        self.flush();
    }

    /// Records the interval that ends now.
    pub fn interval(
        &mut self,
        proxy: Option<&ProxyDelta>,
        load: Option<(&LoadDelta, LoadState)>,
        host: Option<HostRecord>,
        now: Timestamps,
    ) {
        self.budget.refill(now.monotonic_us);
        self.note_clock(now);
        let start_us = self.ticked.monotonic_us;
        self.add(proxy, load, start_us, now.monotonic_us);
        // Reserved for proxy, load, host and health, which are written in any case.
        let errors = self.connections.iter().filter(|record| record.outcome.is_error()).count();
        let room = self.budget.left().saturating_sub(4 + errors.min(ERRORS_RESERVED));
        let due = self.clients.due(room);
        let present = due.iter().filter(|due| !due.record.last).count();
        let deferred = self.clients.deferred().saturating_sub(present);
        self.write_sides(deferred as u64, now);
        if let Some(host) = host {
            self.necessary(Body::Host(host), now.monotonic_us - start_us, now);
        }
        for due in due {
            self.write_client(due, now);
        }
        self.write_connections(now);
        if self.is_health_due(now) {
            self.write_health(now);
        }
        self.flush();
        self.ticked = now;
    }

    /// Closes the run: the last interval, every client's last record, and the totals with whole-run histograms.
    pub fn stop(
        &mut self,
        run: RunRecord,
        proxy: Option<&ProxyDelta>,
        load: Option<(&LoadDelta, LoadState)>,
        host: Option<HostRecord>,
        now: Timestamps,
    ) {
        self.interval(proxy, load, host, now);
        for due in self.clients.finish(now.monotonic_us) {
            self.write_client(due, now);
        }
        let run = RunRecord {
            phase: Phase::Stop,
            proxy: self.proxy.as_ref().map(|side| proxy_record(side, side.whole_run(), 0)),
            load: self.load.as_ref().map(|side| self.load_record(side, side.whole_run())),
            ..run
        };
        self.write_health(now);
        self.necessary(Body::Run(Box::new(run)), now.monotonic_us - self.started_us, now);
        self.flush();
    }

    /// What is known of losses on the way to the journal.
    pub fn health(&self) -> &HealthRecord {
        &self.health
    }

    /// Why records that were accepted cannot be read yet, if the last flush failed.
    pub fn stalled(&self) -> Option<&str> {
        self.stalled.as_deref()
    }

    /// Records that the sink has accepted.
    pub fn made(&self) -> u64 {
        self.seq
    }

    /// Gives the sink back.
    pub fn into_sink(self) -> S {
        self.sink
    }

    fn add(
        &mut self,
        proxy: Option<&ProxyDelta>,
        load: Option<(&LoadDelta, LoadState)>,
        start_us: u64,
        now_us: u64,
    ) {
        if let Some(delta) = proxy {
            let side = self.proxy.get_or_insert_with(|| Side::new(self.started_us));
            side.add(&delta.counters, &delta.latencies);
            let leaving_max = self.budget.left() / 2;
            self.clients.add(&delta.clients, start_us, now_us, leaving_max);
            self.queue_connections(&delta.connections);
        }
        if let Some((delta, state)) = load {
            let side = self.load.get_or_insert_with(|| Side::new(self.started_us));
            side.add(&delta.counters, &delta.latencies);
            self.load_tally.add(&delta.tally);
            self.load_state = state;
        }
    }

    /// Errors wait before samples. Errors that find no room are counted; a sample is none the worse for being smaller.
    fn queue_connections(&mut self, records: &[ConnectionRecord]) {
        let (errors, samples): (Vec<_>, Vec<_>) = records.iter().partition(|r| r.outcome.is_error());
        for record in errors.into_iter().chain(samples) {
            if self.connections.len() < CONNECTIONS_WAITING_MAX {
                self.connections.push_back(record.clone());
            } else {
                self.drop_connection(record);
            }
        }
    }

    fn drop_connection(&mut self, record: &ConnectionRecord) {
        self.health.over_budget_total += u64::from(record.outcome.is_error());
    }

    fn write_sides(&mut self, clients_deferred: u64, now: Timestamps) {
        let now_us = now.monotonic_us;
        if let Some(side) = &self.proxy {
            let latencies = side.interval(ProxyLatency::ALL);
            let body = Body::Proxy(Box::new(proxy_record(side, latencies, clients_deferred)));
            let written = self.necessary(body, now_us - side.sent_us, now);
            self.settle(written, |publisher| {
                publisher.proxy.as_mut().map(|side| side.sent(ProxyLatency::ALL, now_us))
            });
        }
        if let Some(side) = &self.load {
            let is_turn = self.load_records % PHASES_EVERY == PHASES_EVERY - 1;
            let classes = if is_turn { LoadLatency::ALL } else { EACH_INTERVAL };
            let body = Body::Load(Box::new(self.load_record(side, side.interval(classes))));
            let written = self.necessary(body, now_us - side.sent_us, now);
            self.settle(written, |publisher| {
                publisher.load_records += 1;
                publisher.load.as_mut().map(|side| side.sent(classes, now_us))
            });
        }
    }

    /// After a refusal the interval stays unsent and goes with the next record.
    fn settle(&mut self, written: bool, sent: impl FnOnce(&mut Self) -> Option<()>) {
        if written {
            sent(self);
        } else {
            self.health.merged_total += 1;
        }
    }

    fn write_client(&mut self, due: Due, now: Timestamps) {
        let interval_us = now.monotonic_us.saturating_sub(due.since_us);
        if self.necessary(Body::Client(due.record.clone()), interval_us, now) {
            self.clients.sent(&due.record);
        } else {
            self.clients.refused(due);
        }
    }

    fn write_connections(&mut self, now: Timestamps) {
        while self.budget.left() > 1 {
            let Some(record) = self.connections.pop_front() else { return };
            self.necessary(Body::Connection(Box::new(record)), 0, now);
        }
        for record in std::mem::take(&mut self.connections) {
            self.drop_connection(&record);
        }
    }

    /// True if there is something new to tell. A budget that is short for long is not news each interval.
    fn is_health_due(&self, now: Timestamps) -> bool {
        let over_budget_total = self.health_sent.over_budget_total;
        let is_news = HealthRecord { over_budget_total, ..self.health.clone() } != self.health_sent;
        let told_lately =
            self.health_sent_us.is_some_and(|sent_us| now.monotonic_us - sent_us < OVER_BUDGET_TOLD_US_MIN);
        is_news || !told_lately
    }

    fn write_health(&mut self, now: Timestamps) {
        if self.health != self.health_sent {
            let health = self.health.clone();
            if self.necessary(Body::Health(health.clone()), 0, now) {
                self.health_sent = health;
                self.health_sent_us = Some(now.monotonic_us);
            }
        }
    }

    fn note_clock(&mut self, now: Timestamps) {
        let offset_us = |at: Timestamps| at.realtime_us as i64 - at.monotonic_us as i64;
        let step_us = offset_us(now) - offset_us(self.ticked);
        if step_us.abs() >= CLOCK_STEP_US_MIN {
            self.health.clock_step_us += step_us;
        }
    }

    fn load_record(
        &self,
        side: &Side<LoadCounter, LoadLatency>,
        latencies: Latencies<LoadLatency>,
    ) -> LoadRecord {
        let state = self.load_state;
        LoadRecord {
            running: state.running,
            rate: state.rate,
            resume_percent: state.resume_percent,
            connections: state.connections,
            threads: state.threads,
            due_us: state.due_us,
            sending_us: state.sending_us,
            measured_us: state.measured_us,
            tally: self.load_tally.clone(),
            counters: side.totals,
            latencies,
        }
    }

    /// Writes a record; false if the sink refused it, in which case its number is not used up.
    fn necessary(&mut self, body: Body, interval_us: u64, now: Timestamps) -> bool {
        let Timestamps { realtime_us, monotonic_us: mono_us } = now;
        let stamp = Stamp { run: self.run, seq: self.seq + 1, mono_us, realtime_us, interval_us };
        match self.sink.accept(&Record { stamp, body }) {
            Ok(()) => {
                self.budget.spend();
                self.seq += 1;
                true
            }
            Err(reason) => {
                self.health.refused_total += 1;
                self.health.error = reason;
                false
            }
        }
    }

    fn flush(&mut self) {
        // What was accepted is not refused by this: it waits, and the next flush tries again.
        self.stalled = self.sink.flush().err();
        if let Some(reason) = &self.stalled {
            self.health.error.clone_from(reason);
        }
    }
}

fn proxy_record(
    side: &Side<ProxyCounter, ProxyLatency>,
    latencies: Latencies<ProxyLatency>,
    clients_deferred: u64,
) -> ProxyRecord {
    let counters = side.totals;
    let open = counters[ProxyCounter::Accepted].saturating_sub(counters[ProxyCounter::Closed]);
    ProxyRecord { open, clients_deferred, counters, latencies }
}

#[cfg(test)]
mod tests;
