//! A thread of the load: one event loop over its part of the connections.
//!
//! A slot stands for one connection of the plan, and requests are given to free slots. A connection lives in a slab, and
//! its key there is its token at the poll. A slot has at most one connection for new requests; a multiplexed connection
//! that takes no more leaves its slot and finishes what it carries.
//!
//! `opening`, `exchange` and `ending` are a connection's life in this order. What a connection carries and says is its
//! [`ProtocolSession`]'s business, chosen at compile time.

pub(crate) mod client;
mod connection;
mod ending;
mod exchange;
mod opening;
mod slot;
pub(crate) mod socket;
mod start;
pub(crate) mod transport;

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use mio::{Events, Poll, Token};
use slab::Slab;
use telemetry::{HandOver, LoadDelta, Reporter};

use crate::clock::{Timer, now_ns};
use crate::plan::{KeepAlive, Share};
use crate::protocol::{EndedRequests, Fate, PreparedRequests, ProtocolSession};
use crate::schedule::{ControlChange, LoadState, ThreadPart};
use crate::stats::WorkerStats;
use crate::worker::client::Client;
use crate::worker::transport::Scratch;
use connection::{Connection, ConnectionPhase};
use slot::ConnectionSlot;
pub(crate) use start::{SharedSetup, WorkerConfig};

/// Wakes the loop for new settings, and to hand over its counts.
pub(crate) const WAKER: Token = Token(usize::MAX);
/// Wakes the loop when a request falls due, or the load ends.
pub(crate) const TIMER: Token = Token(usize::MAX - 1);
/// How often deadlines are checked.
const TICK_NS: u64 = 10_000_000;
const EVENTS_MAX: usize = 1024;

/// The thread's own state. Only `setup` is shared.
#[derive(Debug)]
pub(crate) struct Worker<S> {
    setup: Arc<SharedSetup>,
    load: LoadState,
    poll: Poll,
    timer: Timer,
    resume: Share,
    keepalive: KeepAlive,
    requests: PreparedRequests,
    part: ThreadPart,
    clients: Vec<Client>,
    /// The client that makes the next connection.
    next_client: usize,
    /// The server's address that worked last.
    address: usize,
    /// Most requests of a slot at a time.
    streams: usize,
    /// At least `active`; more while surplus slots finish their requests.
    slots: Vec<ConnectionSlot>,
    /// Slots that may take requests: the first ones.
    active: usize,
    /// Slots that can take a request, each once, the longest free first.
    free: VecDeque<usize>,
    /// Requests that slots have taken on.
    under_way: usize,
    /// The connections of all slots. The key is the poll's token.
    connections: Slab<Connection<S>>,
    /// Connections with more to read than their turn allowed.
    unread: Vec<usize>,
    /// Connections that may have something to send.
    touched: Vec<usize>,
    next_tick_ns: u64,
    next_look_ns: u64,
    scratch: Scratch,
    /// Requests that have ended, until they are recorded.
    ended: EndedRequests,
    stats: WorkerStats,
    reporter: Reporter<LoadDelta>,
}

impl<S: ProtocolSession> Worker<S> {
    pub(crate) fn new(start: WorkerConfig, poll: Poll, timer: Timer, streams: u32) -> Self {
        let wanted = start.setup.control.wanted();
        let slots = start.part.of(wanted.connections.into()) as usize;
        Self {
            load: start.load,
            poll,
            timer,
            resume: wanted.resume,
            keepalive: wanted.keepalive,
            requests: PreparedRequests::new(
                wanted.requests,
                start.part.thread as usize % start.setup.sequence.len(),
            ),
            part: start.part,
            clients: start.clients,
            next_client: 0,
            address: 0,
            streams: streams as usize,
            slots: (0..slots).map(|_| ConnectionSlot::new()).collect(),
            active: slots,
            free: VecDeque::with_capacity(slots),
            under_way: 0,
            connections: Slab::with_capacity(slots),
            unread: Vec::new(),
            touched: Vec::new(),
            next_tick_ns: 0,
            next_look_ns: 0,
            scratch: Scratch::default(),
            ended: Vec::new(),
            stats: WorkerStats::default(),
            reporter: start.reporter,
            setup: start.setup,
        }
    }

    /// Runs until the load ends.
    pub(crate) fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS_MAX);
        while !self.load.has_ended() {
            self.turn(now_ns());
            let (at_ns, patience) = (self.next_moment_ns(), self.patience());
            if self.timer.wait(&mut self.poll, &mut events, at_ns, patience).is_err() {
                // Without its poll a thread can only account for its requests.
                break;
            }
            for event in &events {
                match event.token() {
                    WAKER | TIMER => {}
                    Token(key) => {
                        self.on_event(key, event);
                        self.dispatch(now_ns());
                    }
                }
            }
            for key in mem::take(&mut self.unread) {
                self.read(key);
            }
            self.report();
        }
        self.finish();
    }

    /// The next moment that cannot wait for a tick.
    fn next_moment_ns(&self) -> Option<u64> {
        // Without a free slot a request waits for one, and an event announces that.
        let due_ns = self.load.next_due_ns().filter(|_| !self.free.is_empty());
        due_ns.into_iter().chain(self.load.next_change_ns()).min()
    }

    /// How long the poll may wait; without a limit while nothing has a deadline.
    fn patience(&self) -> Option<Duration> {
        if !self.unread.is_empty() || self.load.has_ended() {
            return Some(Duration::ZERO);
        }
        let is_quiet = self.free.len() == self.slots.len() && self.under_way == 0;
        let is_quiet = (is_quiet && !self.load.is_draining()) || self.load.is_paused();
        (!is_quiet).then(|| Duration::from_nanos(self.next_tick_ns.saturating_sub(now_ns())))
    }

    /// The work of each turn, whatever the events are.
    fn turn(&mut self, now_ns: u64) {
        self.apply_control(now_ns);
        self.load.advance(&mut self.stats, now_ns);
        self.dispatch(now_ns);
        if now_ns >= self.next_tick_ns {
            self.next_tick_ns = now_ns + TICK_NS;
            self.expire(now_ns);
            self.dispatch(now_ns);
            self.setup.control.note_rate(self.load.rate_at(now_ns));
        }
        while self.slots.len() > self.active && self.slots.last().is_some_and(ConnectionSlot::is_empty) {
            self.slots.pop();
        }
        self.settle(now_ns);
    }

    /// Gives due requests to free slots, and flushes the connections.
    fn dispatch(&mut self, now_ns: u64) {
        if self.load.is_late(now_ns) {
            let throttled = self.throttled();
            self.load.give_up_backlog(&mut self.stats, throttled, now_ns);
        }
        while let Some(&index) = self.free.front() {
            let Some(due) = self.load.take(&mut self.stats) else { break };
            self.free.pop_front();
            self.load.note_late(due, self.slots[index].free_ns, &mut self.stats, now_ns);
            self.slots[index].is_free = false;
            self.take_on(index, due, now_ns);
            if self.has_room(index) {
                self.slots[index].is_free = true;
                self.free.push_back(index);
            }
        }
        let mut touched = mem::take(&mut self.touched);
        for key in touched.drain(..) {
            self.flush(key);
        }
        self.touched = touched;
    }

    /// Queues a slot that has room, or closes a surplus one.
    fn offer(&mut self, index: usize, now_ns: u64) {
        if index >= self.active {
            self.close_idle(index);
        } else if !self.slots[index].is_free && self.has_room(index) {
            let slot = &mut self.slots[index];
            (slot.is_free, slot.free_ns) = (true, now_ns);
            self.free.push_back(index);
        }
    }

    fn has_room(&self, index: usize) -> bool {
        let slot = &self.slots[index];
        let connection = slot.connection.and_then(|key| self.connections.get(key));
        let is_full = connection.is_some_and(|Connection { phase, session, .. }| match phase {
            ConnectionPhase::Connecting | ConnectionPhase::Handshaking => false,
            ConnectionPhase::Open => session.fate() == Fate::Open && !session.has_room(),
            ConnectionPhase::Parting | ConnectionPhase::Closing => true,
        });
        slot.under_way < self.streams && slot.backs_off_until_ns.is_none() && !is_full
    }

    /// Applies changed settings.
    fn apply_control(&mut self, now_ns: u64) {
        let setup = Arc::clone(&self.setup);
        match self.load.apply_control(&setup.control, &mut self.stats, now_ns) {
            ControlChange::None => {}
            ControlChange::Abandoned => self.give_up(now_ns),
            ControlChange::Settings(wanted, has_begun) => {
                self.resume = wanted.resume;
                self.keepalive = wanted.keepalive;
                let under_way =
                    self.connections.iter().flat_map(|(_, connection)| connection.session.templates());
                let waiting =
                    self.slots.iter().flat_map(|slot| slot.waiting.iter().map(|request| request.template));
                self.requests.renew(wanted.requests, under_way.chain(waiting));
                self.resize(self.part.of(wanted.connections.into()) as usize, now_ns);
                if has_begun {
                    (0..self.active).for_each(|index| self.offer(index, now_ns));
                }
            }
        }
    }

    /// Changes the number of slots. Surplus slots finish their requests first.
    fn resize(&mut self, slots: usize, now_ns: u64) {
        self.active = slots;
        if slots > self.slots.len() {
            self.slots.resize_with(slots, ConnectionSlot::new);
        }
        self.free.retain(|index| *index < slots);
        for index in slots..self.slots.len() {
            self.slots[index].is_free = false;
            self.close_idle(index);
        }
        if self.load.is_running() {
            (0..slots).for_each(|index| self.offer(index, now_ns));
        }
    }

    /// Ends a drain that is complete, or has taken too long.
    fn settle(&mut self, now_ns: u64) {
        if !self.load.is_draining() {
            return;
        }
        if self.load.is_overdue(now_ns) {
            let throttled = self.throttled();
            self.load.give_up_backlog(&mut self.stats, throttled, now_ns);
            self.cut(now_ns);
        }
        if self.load.has_backlog() {
            return;
        }
        self.free.clear();
        for index in 0..self.slots.len() {
            self.slots[index].is_free = false;
            self.close_idle(index);
        }
        if self.under_way == 0 && self.connections.is_empty() {
            self.slots.iter_mut().for_each(|slot| slot.backs_off_until_ns = None);
            self.load.settle();
        }
    }

    fn give_up(&mut self, now_ns: u64) {
        let throttled = self.throttled();
        self.load.end(&mut self.stats, throttled, now_ns);
        self.cut(now_ns);
    }

    /// Share of the slots that back off.
    fn throttled(&self) -> f64 {
        let waiting = self.slots.iter().filter(|slot| slot.backs_off_until_ns.is_some()).count();
        waiting as f64 / self.slots.len().max(1) as f64
    }

    /// Hands the counts over if the collector asks; ends the load if the collector is gone.
    fn report(&mut self) {
        match self.reporter.answer(&mut self.stats.delta, |_| {}) {
            HandOver::Done => self.setup.note_span(&self.load, &self.stats),
            HandOver::CollectorGone => self.give_up(now_ns()),
            HandOver::NotRequested => {}
        }
    }

    fn finish(mut self) {
        self.give_up(now_ns());
        self.drop_all_connections();
        self.setup.finish(&self.clients, &self.load, self.stats, self.reporter);
    }
}
