//! From what workers counted to records: totals, budget, turns, and what happens when the journal refuses.
//!
//! Two things wait for the journal, and the first goes before the second:
//!
//! - *events*, which happened once (`run`, `setting`, `mark`, `experiment`, `notice`): kept as they are, with their
//!   stamps, up to a bound;
//! - the *turn*: what is still to be written of the interval that ended last. When the next interval ends before the
//!   journal has taken it, it is made anew from the totals: counters go with the later record, and nothing but
//!   resolution is lost.
//!
//! Both are offered again by [`Publisher::retry`], in order, and numbers are given as the journal takes records: so
//! they have no hole, and what is written is in their order.

mod budget;
mod clients;
mod events;
mod side;
mod sink;

use std::collections::VecDeque;

use journal::Timestamps;

use crate::connection::ConnectionRecord;
use crate::delta::{CLIENTS_MAX, LoadDelta, ProxyDelta};
use crate::families::{LoadCounter, LoadLatency, ProxyCounter, ProxyLatency};
use crate::ids::RunId;
use crate::metric::Metric;
use crate::record::{
    Body, ExperimentRecord, HealthRecord, HostRecord, MarkRecord, NoticeRecord, Phase, Record, RunRecord,
    SettingRecord, Stamp,
};
use crate::tally::Tally;

use budget::Budget;
pub use budget::{RECORDS_PER_SECOND_OWN, RECORDS_PER_SECOND_SYSTEM};
use clients::{ClientTable, Due};
use events::Events;
pub use side::LoadState;
use side::Side;
pub use sink::{Refusal, Sink};

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
/// How long intervals may be put off for lack of budget, in microseconds: somebody who holds down a key that makes
/// records must not blind the screen.
const PUT_OFF_US_MAX: u64 = 2_000_000;

/// A record that is still to be written of the interval that ended last, or of the end; made when its turn comes.
#[derive(Debug)]
enum Turn {
    Health,
    Proxy { clients_deferred: u64 },
    Load,
    Host,
    Client(Due),
    Connection(Box<ConnectionRecord>),
    Stop(Box<RunRecord>),
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
    host: Option<HostRecord>,
    host_sent_us: u64,
    clients: ClientTable,
    connections: VecDeque<ConnectionRecord>,
    marks: u64,
    events: Events,
    turn: VecDeque<Turn>,
    /// When intervals had a turn last, `CLOCK_MONOTONIC` in microseconds.
    planned_us: u64,
    /// Why the journal takes nothing at the moment.
    refusal: Option<String>,
    health: HealthRecord,
    stalled: Option<String>,
    health_sent: HealthRecord,
    /// When it was sent, `CLOCK_MONOTONIC` in microseconds.
    health_sent_us: Option<u64>,
    started_us: u64,
    ticked: Timestamps,
}

impl<S: Sink> Publisher<S> {
    /// A publisher for one run, which writes `records_per_second` on average. Only events, and what a run writes at
    /// its end, may exceed that; intervals then wait until it is paid for. With an interval so short that its own
    /// records would take more than half of it, several intervals go into one record.
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
            host: None,
            host_sent_us: now.monotonic_us,
            clients: ClientTable::new(CLIENTS_MAX),
            connections: VecDeque::new(),
            marks: 0,
            events: Events::default(),
            turn: VecDeque::new(),
            planned_us: now.monotonic_us,
            refusal: None,
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
        self.planned_us = now.monotonic_us;
        self.host_sent_us = now.monotonic_us;
        self.ticked = now;
        self.event(Body::Run(Box::new(RunRecord { phase: Phase::Start, ..run })), now);
    }

    /// Records a change of a setting.
    pub fn setting(&mut self, change: SettingRecord, now: Timestamps) {
        self.event(Body::Setting(change), now);
    }

    /// Records a note, cleaned, and numbers it.
    pub fn mark(&mut self, text: &str, now: Timestamps) {
        self.marks += 1;
        let mark = MarkRecord { number: self.marks, text: crate::clean::text(text) };
        self.event(Body::Mark(mark), now);
    }

    /// Records what a person should know. Whoever says it bounds how often.
    pub fn notice(&mut self, notice: NoticeRecord, now: Timestamps) {
        self.event(Body::Notice(notice), now);
    }

    /// Records a step of an experiment.
    pub fn experiment(&mut self, step: ExperimentRecord, now: Timestamps) {
        self.event(Body::Experiment(Box::new(step)), now);
    }

    /// Records the interval that ends now.
    pub fn interval(
        &mut self,
        proxy: Option<&ProxyDelta>,
        load: Option<(&LoadDelta, LoadState)>,
        host: Option<HostRecord>,
        now: Timestamps,
    ) {
        self.tick(proxy, load, host, now);
        // What is left after them is for clients and connections: half of the budget at least.
        let is_affordable = self.budget.left() >= 2 * self.sides();
        if is_affordable || now.monotonic_us - self.planned_us >= PUT_OFF_US_MAX {
            self.plan_interval();
        }
        self.retry();
    }

    /// Closes the run: the last interval, every client's last record, and the totals with whole-run histograms.
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
        self.tick(proxy, load, host, now);
        self.plan_sides(0);
        self.plan_connections(self.budget.left());
        let finals = self.clients.finish(now.monotonic_us, self.budget.burst());
        self.turn.extend(finals.into_iter().map(Turn::Client));
        self.turn.push_back(Turn::Health);
        self.turn.push_back(Turn::Stop(Box::new(RunRecord {
            phase: Phase::Stop,
            proxy: self.proxy.as_ref().map(Side::<ProxyCounter, _>::final_record),
            load: self.load.as_ref().map(|side| side.final_record(self.load_state, &self.load_tally)),
            ..run
        })));
        self.retry();
    }

    /// Offers to the journal what it has not taken yet, until it refuses.
    pub fn retry(&mut self) {
        self.write_events();
        if self.events.len() == 0 {
            self.write_turn();
        }
        // What was accepted is not refused by this: it waits, and the next flush tries again.
        self.stalled = self.sink.flush().err();
        if let Some(reason) = &self.stalled {
            self.health.error.clone_from(reason);
        }
    }

    /// Records that the journal has not taken yet.
    pub fn pending(&self) -> usize {
        self.events.len() + self.turn.len()
    }

    /// Tells how many messages of this service journald has dropped by its rate limit, as far as was read from it.
    pub fn note_suppressed(&mut self, total: u64) {
        self.health.suppressed_total = self.health.suppressed_total.max(total);
    }

    /// What is known of losses on the way to the journal.
    pub fn health(&self) -> &HealthRecord {
        &self.health
    }

    /// Why records that were accepted cannot be read yet, if the last flush failed.
    pub fn stalled(&self) -> Option<&str> {
        self.stalled.as_deref()
    }

    /// Why the journal took no further record when one was offered last; `None` if it took all.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Records that the sink has accepted.
    pub fn made(&self) -> u64 {
        self.seq
    }

    /// Where records go.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Gives the sink back.
    pub fn into_sink(self) -> S {
        self.sink
    }

    /// Takes in what was counted in the interval that ends now.
    fn tick(
        &mut self,
        proxy: Option<&ProxyDelta>,
        load: Option<(&LoadDelta, LoadState)>,
        host: Option<HostRecord>,
        now: Timestamps,
    ) {
        self.budget.refill(now.monotonic_us);
        self.note_clock(now);
        self.take_turn_back();
        let start_us = self.ticked.monotonic_us;
        self.ticked = now;
        self.host = host;
        if let Some(delta) = proxy {
            let side = self.proxy.get_or_insert_with(|| Side::new(self.started_us));
            side.add(&delta.counters, &delta.latencies);
            let leaving_max = self.budget.left() / 2;
            self.clients.add(&delta.clients, start_us, now.monotonic_us, leaving_max);
            self.queue_connections(&delta.connections);
        }
        if let Some((delta, state)) = load {
            let side = self.load.get_or_insert_with(|| Side::new(self.started_us));
            side.add(&delta.counters, &delta.latencies);
            self.load_tally.add(&delta.tally);
            self.load_state = state;
        }
    }

    /// What the journal has not taken of the interval before goes with the one that ends now.
    fn take_turn_back(&mut self) {
        for turn in std::mem::take(&mut self.turn) {
            match turn {
                Turn::Connection(record) => {
                    self.connections.push_back(*record);
                    continue;
                }
                Turn::Client(due) => self.clients.refused(due),
                Turn::Proxy { .. } | Turn::Load => self.health.merged_total += 1,
                Turn::Health | Turn::Host | Turn::Stop(_) => {}
            }
            self.health.refused_total += 1;
        }
        if let Some(reason) = &self.refusal {
            self.health.error.clone_from(reason);
        }
    }

    /// Records that every interval has.
    fn sides(&self) -> usize {
        [self.proxy.is_some(), self.load.is_some(), self.host.is_some()].iter().filter(|is| **is).count()
    }

    /// Decides what is written of the interval, within the budget.
    fn plan_interval(&mut self) {
        // One is for health, which is written in any case.
        let spare = self.budget.left().saturating_sub(self.sides() + 1);
        let errors = self.connections.iter().filter(|record| record.outcome.is_error()).count();
        let for_errors = errors.min(ERRORS_RESERVED).min(spare / 2);
        let span_us = self.ticked.monotonic_us - self.planned_us;
        let due = self.clients.due(spare - for_errors, self.ticked.monotonic_us, span_us);
        let present = due.iter().filter(|due| !due.record.last).count();
        let deferred = self.clients.deferred().saturating_sub(present);
        let spare = spare.saturating_sub(due.len());
        self.plan_sides(deferred as u64);
        self.turn.extend(due.into_iter().map(Turn::Client));
        self.plan_connections(spare);
        if self.is_health_due() {
            self.turn.push_front(Turn::Health);
        }
        self.planned_us = self.ticked.monotonic_us;
    }

    fn plan_sides(&mut self, clients_deferred: u64) {
        self.turn.extend(self.proxy.is_some().then_some(Turn::Proxy { clients_deferred }));
        self.turn.extend(self.load.is_some().then_some(Turn::Load));
        self.turn.extend(self.host.is_some().then_some(Turn::Host));
    }

    fn plan_connections(&mut self, room: usize) {
        let mut waiting = std::mem::take(&mut self.connections).into_iter();
        self.turn.extend(waiting.by_ref().take(room).map(|record| Turn::Connection(Box::new(record))));
        waiting.for_each(|record| self.drop_connection(&record));
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

    /// True if there is something new to tell. A wait is none, and a budget that is short for long not each interval.
    fn is_health_due(&self) -> bool {
        let sent = &self.health_sent;
        let but_waits = HealthRecord { waits_total: sent.waits_total, ..self.health.clone() };
        let but_budget = HealthRecord { over_budget_total: sent.over_budget_total, ..but_waits.clone() };
        let told_lately = self
            .health_sent_us
            .is_some_and(|sent_us| self.ticked.monotonic_us - sent_us < OVER_BUDGET_TOLD_US_MIN);
        but_budget != *sent || (but_waits != *sent && !told_lately)
    }

    fn note_clock(&mut self, now: Timestamps) {
        let offset_us = |at: Timestamps| at.realtime_us as i64 - at.monotonic_us as i64;
        let step_us = offset_us(now) - offset_us(self.ticked);
        if step_us.abs() >= CLOCK_STEP_US_MIN {
            self.health.clock_step_us += step_us;
        }
    }

    fn event(&mut self, body: Body, now: Timestamps) {
        let record = self.stamped(body, 0, now);
        if !self.events.push(record) {
            self.health.dropped_total += 1;
            "too many events waited for the journal".clone_into(&mut self.health.error);
        }
        self.retry();
    }

    /// A record without its number, which it gets when it is offered.
    fn stamped(&self, body: Body, interval_us: u64, at: Timestamps) -> Record {
        let Timestamps { realtime_us, monotonic_us: mono_us } = at;
        Record { stamp: Stamp { run: self.run, seq: 0, mono_us, realtime_us, interval_us }, body }
    }

    fn write_events(&mut self) {
        while let Some(mut record) = self.events.pop() {
            if !self.offer(&mut record) {
                return self.events.put_back(record);
            }
        }
    }

    fn write_turn(&mut self) {
        while let Some(turn) = self.turn.pop_front() {
            let Some(mut record) = self.record_of(&turn) else { continue };
            if !self.offer(&mut record) {
                return self.turn.push_front(turn);
            }
            self.settle(turn, record);
        }
    }

    /// The record whose turn it is; `None` if there is nothing to say.
    fn record_of(&self, turn: &Turn) -> Option<Record> {
        let now_us = self.ticked.monotonic_us;
        let (body, since_us) = match turn {
            Turn::Health if self.health == self.health_sent => return None,
            Turn::Health => (Body::Health(self.health.clone()), now_us),
            Turn::Proxy { clients_deferred } => {
                let side = self.proxy.as_ref()?;
                (Body::Proxy(Box::new(side.record(*clients_deferred))), side.sent_us)
            }
            Turn::Load => {
                let side = self.load.as_ref()?;
                (
                    Body::Load(Box::new(side.record(self.load_classes(), self.load_state, &self.load_tally))),
                    side.sent_us,
                )
            }
            Turn::Host => (Body::Host(self.host.clone()?), self.host_sent_us),
            Turn::Client(due) => (Body::Client(due.record.clone()), due.since_us),
            Turn::Connection(record) => (Body::Connection(record.clone()), now_us),
            Turn::Stop(run) => (Body::Run(run.clone()), self.started_us),
        };
        Some(self.stamped(body, now_us.saturating_sub(since_us), self.ticked))
    }

    /// The classes of the load's latencies that its next record carries.
    fn load_classes(&self) -> &'static [LoadLatency] {
        if self.load_records % PHASES_EVERY == PHASES_EVERY - 1 { LoadLatency::ALL } else { EACH_INTERVAL }
    }

    /// Notes that a record is in the journal, or never will be: its counters are cumulative, and the next carries them.
    fn settle(&mut self, turn: Turn, record: Record) {
        let now_us = self.ticked.monotonic_us;
        match (turn, record.body) {
            (_, Body::Health(health)) => {
                self.health_sent = health;
                self.health_sent_us = Some(now_us);
            }
            (Turn::Proxy { .. }, _) => {
                self.proxy.iter_mut().for_each(|side| side.sent(ProxyLatency::ALL, now_us));
            }
            (Turn::Load, _) => {
                let classes = self.load_classes();
                self.load_records += 1;
                self.load.iter_mut().for_each(|side| side.sent(classes, now_us));
            }
            (Turn::Host, _) => self.host_sent_us = now_us,
            (Turn::Client(due), _) => self.clients.sent(&due.record, now_us),
            _ => {}
        }
    }

    /// Numbers a record and offers it; false if it is to be offered again, in which case its number is not used up.
    fn offer(&mut self, record: &mut Record) -> bool {
        record.stamp.seq = self.seq + 1;
        match self.sink.accept(record) {
            Ok(()) => {
                self.budget.spend();
                self.seq += 1;
                self.refusal = None;
                true
            }
            Err(Refusal::Never(reason)) => {
                self.health.dropped_total += 1;
                self.health.error = reason;
                true
            }
            Err(Refusal::Later(reason)) => {
                self.health.waits_total += u64::from(self.refusal.is_none());
                self.refusal = Some(reason);
                false
            }
        }
    }
}

#[cfg(test)]
mod budget_tests;
#[cfg(test)]
mod refusal_tests;
#[cfg(test)]
mod tests;
