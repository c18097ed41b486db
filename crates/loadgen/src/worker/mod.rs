//! A worker thread of the load generator: one event loop over its share of the connections.
//!
//! A slot is one of the plan's concurrent connections. The worker assigns each due request to a free slot, which opens
//! a connection if it has none. Connections are in a slab; the key there is the poll token. A slot has at most one
//! connection for new requests. A multiplexed connection that accepts no more requests is detached from its slot, and
//! finishes the requests in flight.
//!
//! `opening`, `exchange` and `ending` cover a connection from start to end. The [`ProtocolSession`] sends requests and
//! parses responses; it is a type parameter, so its calls are static. The bytes of all requests are prepared before
//! the load starts ([`EncodedRequests`]); a request refers to them by number.

pub(crate) mod client;
mod connection;
mod ending;
mod exchange;
mod lanes;
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
use records::delta::{HandoverResult, LoadDelta, Reporter};
use slab::Slab;

use crate::clock::{Timer, now_ns};
use crate::plan::{KeepAlive, Share};
use crate::protocol::{ConnectionReuse, EncodedRequests, EndedRequests, ProtocolSession};
use crate::schedule::{ControlChange, DueRequest, ThreadLoadState, ThreadPart};
use crate::stats::WorkerStats;
use crate::worker::client::LoadClient;
use crate::worker::transport::Scratch;
use connection::{ConnectionPhase, LoadConnection};
use lanes::Lanes;
use slot::ConnectionSlot;
pub(crate) use start::{SharedSetup, WorkerConfig};

/// Wakes the loop to apply changed settings, and to hand its counts to the collector.
pub(crate) const WAKER: Token = Token(usize::MAX);
/// Wakes the loop when a request falls due, or the load ends.
pub(crate) const TIMER: Token = Token(usize::MAX - 1);
/// Interval between checks of deadlines.
const TICK_NS: u64 = 10_000_000;
const EVENTS_MAX: usize = 1024;

/// The state of a worker thread. Only `setup` is shared with other threads.
#[derive(Debug)]
pub(crate) struct LoadWorker<S> {
    setup: Arc<SharedSetup>,
    load: ThreadLoadState,
    poll: Poll,
    timer: Timer,
    /// Share of new connections that resume a TLS session.
    resume: Share,
    keepalive: KeepAlive,
    requests: EncodedRequests,
    part: ThreadPart,
    clients: Vec<LoadClient>,
    /// The index of the client that opens the next connection.
    next_client: usize,
    /// The index of the server's address to try first: the last one that worked.
    address: usize,
    /// Maximum of concurrent requests per slot.
    streams: usize,
    /// The lanes of a script; their slots are never in `free`.
    lanes: Option<Lanes>,
    /// At least `active_slots`; more while surplus slots finish their requests.
    slots: Vec<ConnectionSlot>,
    /// How many slots accept requests: the first ones. Those after them are surplus.
    active_slots: usize,
    /// The indices of slots with room for a request, each once, the one free longest first.
    free: VecDeque<usize>,
    /// Requests assigned to slots that have not ended, whether sent or still waiting for a connection.
    under_way: usize,
    /// All connections, detached ones included. The key is the poll token.
    connections: Slab<LoadConnection<S>>,
    /// Connections to read again without an event: they had more than one read takes, or a write failed.
    unread: Vec<usize>,
    /// Connections that may have something to send.
    touched: Vec<usize>,
    /// When deadlines of connections are checked next.
    next_tick_ns: u64,
    /// When deadlines of requests are checked next, at most once a tick.
    next_request_check_ns: u64,
    scratch: Scratch,
    /// Requests that have ended, until they are recorded.
    ended: EndedRequests,
    stats: WorkerStats,
    reporter: Reporter<LoadDelta>,
}

impl<S: ProtocolSession> LoadWorker<S> {
    pub(crate) fn new(start: WorkerConfig, poll: Poll, timer: Timer, streams: u32) -> Self {
        let wanted = start.setup.control.wanted();
        let script = start.script.as_ref();
        let connections = start.part.of(wanted.connections.into()) as usize;
        // A script takes slots as it needs them.
        let (slots, active_slots) =
            if script.is_some() { (0, usize::MAX) } else { (connections, connections) };
        let lanes = script.map(|script| Lanes::new(script));
        // Handshakes are counted by what else they settled on, of both protocols together.
        let omits_alpn = script.is_some_and(|part| part.script.has_both_protocols());
        Self {
            load: start.load,
            poll,
            timer,
            resume: wanted.resume,
            keepalive: wanted.keepalive,
            requests: EncodedRequests::new(
                wanted.requests,
                start.part.thread as usize % start.setup.sequence.len().max(1),
            ),
            part: start.part,
            clients: start.clients,
            next_client: 0,
            address: 0,
            streams: streams as usize,
            lanes,
            slots: (0..slots).map(|_| ConnectionSlot::new()).collect(),
            active_slots,
            free: VecDeque::with_capacity(slots),
            under_way: 0,
            connections: Slab::with_capacity(slots),
            unread: Vec::new(),
            touched: Vec::new(),
            next_tick_ns: 0,
            next_request_check_ns: 0,
            scratch: Scratch::default(),
            ended: Vec::new(),
            stats: WorkerStats { omits_alpn, ..WorkerStats::default() },
            reporter: start.reporter,
            setup: start.setup,
        }
    }

    pub(crate) fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS_MAX);
        let mut wakes_ns = None;
        while !self.load.has_ended() {
            let turn_ns = now_ns();
            self.load.record_turn(wakes_ns, turn_ns);
            self.run_once(turn_ns);
            let (at_ns, timeout) = (self.next_wakeup_ns(), self.poll_timeout());
            wakes_ns = at_ns.into_iter().chain(timeout.map(|_| self.next_tick_ns)).min();
            if self.timer.wait(&mut self.poll, &mut events, at_ns, timeout).is_err() {
                // Without poll the worker can only record its unfinished requests.
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

    /// When the timer must wake the loop: when a request falls due or the load changes state, which cannot wait for a
    /// tick.
    fn next_wakeup_ns(&self) -> Option<u64> {
        // Without a free slot, a due request must wait for one, and an event wakes the loop then.
        let due_ns = self.load.next_due_ns().filter(|_| self.lanes.is_some() || !self.free.is_empty());
        due_ns.into_iter().chain(self.load.next_change_ns()).min()
    }

    /// The timeout of poll: until the next tick, or `None` while nothing has a deadline.
    fn poll_timeout(&self) -> Option<Duration> {
        if !self.unread.is_empty() || self.load.has_ended() {
            return Some(Duration::ZERO);
        }
        let has_free = if self.lanes.is_some() {
            self.connections.is_empty()
        } else {
            self.free.len() == self.slots.len()
        };
        let is_idle = has_free && self.under_way == 0;
        let needs_no_tick = (is_idle && !self.load.is_draining()) || self.load.is_paused();
        (!needs_no_tick).then(|| Duration::from_nanos(self.next_tick_ns.saturating_sub(now_ns())))
    }

    /// The work of each loop iteration before polling, independent of events.
    fn run_once(&mut self, now_ns: u64) {
        self.apply_control(now_ns);
        self.load.advance(&mut self.stats, now_ns);
        self.dispatch(now_ns);
        if now_ns >= self.next_tick_ns {
            self.next_tick_ns = now_ns + TICK_NS;
            self.expire(now_ns);
            self.dispatch(now_ns);
            self.setup.control.set_rate_now(self.load.rate_at(now_ns));
        }
        while self.slots.len() > self.active_slots && self.slots.last().is_some_and(ConnectionSlot::is_empty)
        {
            self.slots.pop();
        }
        self.finish_drain(now_ns);
    }

    /// Assigns due requests to free slots, and flushes the connections.
    fn dispatch(&mut self, now_ns: u64) {
        if self.load.is_late(now_ns) {
            let throttled = self.throttled_share();
            self.load.give_up_backlog(&mut self.stats, throttled, now_ns);
        }
        while let Some((index, due)) = self.next_assignment(now_ns) {
            if self.lanes.is_none() || self.has_room(index) {
                self.load.count_late(due, self.slots[index].free_ns, &mut self.stats, now_ns);
            }
            self.slots[index].is_free = false;
            self.assign(index, due, now_ns);
            if self.lanes.is_none() && self.has_room(index) {
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

    /// A due request, and the slot for it.
    fn next_assignment(&mut self, now_ns: u64) -> Option<(usize, DueRequest)> {
        if self.lanes.is_none() {
            let index = *self.free.front()?;
            let due = self.load.take(&mut self.stats, now_ns)?;
            self.free.pop_front();
            return Some((index, due));
        }
        let due = self.load.take(&mut self.stats, now_ns)?;
        Some((self.slot_of_lane(due.scripted?.lane)?, due))
    }

    /// Queues the slot as free if it has room for a request. Closes the idle connection of a surplus slot.
    fn offer(&mut self, index: usize, now_ns: u64) {
        if self.lanes.is_some() {
            self.slots[index].free_ns = now_ns;
            self.leave_lane(index);
        } else if index >= self.active_slots {
            self.close_idle(index);
        } else if !self.slots[index].is_free && self.has_room(index) {
            let slot = &mut self.slots[index];
            (slot.is_free, slot.free_ns) = (true, now_ns);
            self.free.push_back(index);
        }
    }

    /// Whether the slot can be assigned another request.
    fn has_room(&self, index: usize) -> bool {
        let slot = &self.slots[index];
        let connection = slot.connection.and_then(|key| self.connections.get(key));
        let is_full = connection.is_some_and(|LoadConnection { phase, session, .. }| match phase {
            ConnectionPhase::Connecting | ConnectionPhase::Handshaking => false,
            ConnectionPhase::Open => session.fate() == ConnectionReuse::Open && !session.has_room(),
            ConnectionPhase::AwaitingClose | ConnectionPhase::Closing => true,
        });
        slot.under_way < self.streams && slot.backs_off_until_ns.is_none() && !is_full
    }

    fn apply_control(&mut self, now_ns: u64) {
        let setup = Arc::clone(&self.setup);
        match self.load.apply_control(&setup.control, &mut self.stats, now_ns) {
            ControlChange::None => {}
            ControlChange::Abandoned => self.abandon(now_ns),
            ControlChange::Settings(wanted, has_begun) => {
                self.resume = wanted.resume;
                self.keepalive = wanted.keepalive;
                let under_way =
                    self.connections.iter().flat_map(|(_, connection)| connection.session.templates());
                let waiting =
                    self.slots.iter().flat_map(|slot| slot.waiting.iter().map(|request| request.template));
                self.requests.renew(wanted.requests, under_way.chain(waiting));
                if self.lanes.is_some() {
                    return;
                }
                self.resize(self.part.of(wanted.connections.into()) as usize, now_ns);
                if has_begun {
                    (0..self.active_slots).for_each(|index| self.offer(index, now_ns));
                }
            }
        }
    }

    /// Changes the number of slots. Surplus slots finish their requests first.
    fn resize(&mut self, slots: usize, now_ns: u64) {
        self.active_slots = slots;
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

    /// Ends a drain that is complete. A drain that is overdue first cuts off its requests.
    fn finish_drain(&mut self, now_ns: u64) {
        if !self.load.is_draining() {
            return;
        }
        if self.load.is_overdue(now_ns) {
            let throttled = self.throttled_share();
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

    /// Ends the load at once, and cuts off the requests that are under way.
    fn abandon(&mut self, now_ns: u64) {
        let throttled = self.throttled_share();
        self.load.end(&mut self.stats, throttled, now_ns);
        self.cut(now_ns);
    }

    /// The share of the slots that back off, from 0 to 1.
    fn throttled_share(&self) -> f64 {
        let throttled = self.slots.iter().filter(|slot| slot.backs_off_until_ns.is_some()).count();
        throttled as f64 / self.slots.len().max(1) as f64
    }

    /// Sends the counts if the collector asks; ends the load if the collector has ended.
    fn report(&mut self) {
        let (setup, load, span) = (&self.setup, &self.load, self.stats.span);
        // The time that the counts cover is read by the receiver at once.
        match self.reporter.answer(&mut self.stats.delta, |_| setup.record_span(load, span)) {
            HandoverResult::CollectorGone => self.abandon(now_ns()),
            HandoverResult::Done | HandoverResult::NotRequested => {}
        }
    }

    /// Ends the thread: drops the connections, and sends the last counts.
    fn finish(mut self) {
        self.abandon(now_ns());
        self.drop_all_connections();
        self.setup.finish(&self.clients, &self.load, self.stats, self.reporter);
    }
}
