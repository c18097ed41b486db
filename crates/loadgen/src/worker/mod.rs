//! A thread of the load: one event loop over its part of the connections.

mod ending;
mod exchange;
mod opening;
mod requests;
mod slot;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use mio::{Events, Poll, Token};
use telemetry::{LoadDelta, Reporter};

use crate::client::Client;
use crate::clock::{Timer, now_ns};
use crate::control::Control;
use crate::course::{Course, Obeyed};
use crate::ledger::{Ledger, Span};
use crate::pacer::Part;
use crate::plan::{KeepAlive, Share};
use crate::socket::Address;
use crate::transport::Scratch;
pub(crate) use requests::Requests;
use slot::{Phase, Slot};

/// Wakes the loop for changes and hand-overs.
pub(crate) const WAKER: Token = Token(usize::MAX);
/// Wakes the loop when a request falls due, or the load ends.
pub(crate) const TIMER: Token = Token(usize::MAX - 1);
/// How often deadlines are looked at.
pub(crate) const TICK_NS: u64 = 10_000_000;
pub(crate) const EVENTS_MAX: usize = 1024;

/// What all threads have in common.
#[derive(Debug)]
pub(crate) struct Setup {
    /// The server's addresses, at least one.
    pub(crate) addresses: Vec<Address>,
    /// The order in which the requests are sent, by their numbers.
    pub(crate) sequence: Box<[u16]>,
    pub(crate) timeout_ns: u64,
    /// How long a connection is used.
    pub(crate) lifetime_ns: Option<u64>,
    /// Connections that resume send their first request as early data.
    pub(crate) early_data: bool,
    pub(crate) control: Control,
}

impl Setup {
    /// Hands over the last that a thread has counted.
    pub(crate) fn finish(
        &self,
        clients: &[Client],
        course: &Course,
        ledger: Ledger,
        reporter: Reporter<LoadDelta>,
    ) {
        for client in clients {
            if let Some(address) = client.address {
                self.control.account(address, client.totals);
            }
        }
        self.control.note_span(Span { ran: course.ran(), ..ledger.span });
        self.control.thread_ended();
        reporter.finish(ledger.delta, |_| {});
    }
}

/// What a thread begins with.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) setup: Arc<Setup>,
    pub(crate) course: Course,
    pub(crate) clients: Vec<Client>,
    pub(crate) part: Part,
    pub(crate) reporter: Reporter<LoadDelta>,
}

/// The thread's own state; nothing in it is shared but `setup`.
#[derive(Debug)]
pub(crate) struct Worker {
    setup: Arc<Setup>,
    course: Course,
    poll: Poll,
    timer: Timer,
    resume: Share,
    keepalive: KeepAlive,
    requests: Requests,
    part: Part,
    clients: Vec<Client>,
    /// The client that makes the next connection.
    next_client: usize,
    /// The server's address that worked last.
    address: usize,
    /// At least `active`; more while connections that are not wanted any more end.
    slots: Vec<Slot>,
    /// Slots that may take requests: the first ones.
    active: usize,
    /// Slots that can take a request, each once, the longest free first.
    free: VecDeque<usize>,
    /// Slots with more to read than their turn allowed.
    unread: Vec<usize>,
    next_tick_ns: u64,
    scratch: Scratch,
    ledger: Ledger,
    reporter: Reporter<LoadDelta>,
}

impl Worker {
    pub(crate) fn new(start: Start, poll: Poll, timer: Timer) -> Self {
        let wanted = start.setup.control.wanted();
        let connections = start.part.of(wanted.connections.into()) as usize;
        Self {
            course: start.course,
            poll,
            timer,
            resume: wanted.resume,
            keepalive: wanted.keepalive,
            requests: Requests::new(wanted.requests, start.part.thread as usize % start.setup.sequence.len()),
            part: start.part,
            clients: start.clients,
            next_client: 0,
            address: 0,
            slots: (0..connections).map(|_| Slot::new()).collect(),
            active: connections,
            free: VecDeque::with_capacity(connections),
            unread: Vec::new(),
            next_tick_ns: 0,
            scratch: Scratch::default(),
            ledger: Ledger::default(),
            reporter: start.reporter,
            setup: start.setup,
        }
    }

    /// Runs until the load ends.
    pub(crate) fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS_MAX);
        while !self.course.has_ended() {
            self.turn(now_ns());
            let (at_ns, patience) = (self.next_moment_ns(), self.patience());
            if self.timer.wait(&mut self.poll, &mut events, at_ns, patience).is_err() {
                // Without its poll a thread can do nothing but say what became of its requests.
                break;
            }
            for event in &events {
                match event.token() {
                    WAKER | TIMER => {}
                    Token(index) => {
                        self.on_event(index, event);
                        self.dispatch(now_ns());
                    }
                }
            }
            for index in std::mem::take(&mut self.unread) {
                self.read(index);
            }
            self.report();
        }
        self.finish();
    }

    /// The moment at which something is to be done that cannot wait for the next tick.
    fn next_moment_ns(&self) -> Option<u64> {
        // Without a free slot a request that falls due waits for one, and that comes with an event.
        let due_ns = self.course.next_due_ns().filter(|_| !self.free.is_empty());
        due_ns.into_iter().chain(self.course.next_change_ns()).min()
    }

    /// How long the poll may wait; without a limit while no slot has a deadline.
    fn patience(&self) -> Option<Duration> {
        if !self.unread.is_empty() || self.course.has_ended() {
            return Some(Duration::ZERO);
        }
        let is_quiet = self.free.len() == self.slots.len() || self.course.is_paused();
        (!is_quiet).then(|| Duration::from_nanos(self.next_tick_ns.saturating_sub(now_ns())))
    }

    /// What is done once a turn, whatever the events are.
    fn turn(&mut self, now_ns: u64) {
        self.obey(now_ns);
        self.course.advance(&mut self.ledger, now_ns);
        self.dispatch(now_ns);
        if now_ns >= self.next_tick_ns {
            self.next_tick_ns = now_ns + TICK_NS;
            for index in 0..self.slots.len() {
                if self.slots[index].deadline_ns <= now_ns {
                    self.expire(index);
                }
            }
            self.dispatch(now_ns);
            self.setup.control.note_rate(self.course.rate_at(now_ns));
        }
        while self.slots.len() > self.active && self.slots.last().is_some_and(Slot::is_at_rest) {
            self.slots.pop();
        }
        self.settle(now_ns);
    }

    /// Gives requests that are due to slots that are free.
    fn dispatch(&mut self, now_ns: u64) {
        if self.course.is_late(now_ns) {
            let throttled = self.throttled();
            self.course.give_up_backlog(&mut self.ledger, throttled, now_ns);
        }
        while let Some(&index) = self.free.front() {
            let Some(due) = self.course.take(&mut self.ledger) else { break };
            self.free.pop_front();
            self.course.note_late(due, self.slots[index].free_ns, &mut self.ledger, now_ns);
            self.begin(index, due, now_ns);
        }
        if self.course.is_draining() && !self.course.has_backlog() {
            while let Some(index) = self.free.pop_front() {
                if self.slots[index].phase == Phase::Ready {
                    self.close(index);
                }
            }
        }
    }

    /// Follows a change of what is wanted.
    fn obey(&mut self, now_ns: u64) {
        let setup = Arc::clone(&self.setup);
        match self.course.obey(&setup.control, &mut self.ledger, now_ns) {
            Obeyed::Nothing => {}
            Obeyed::Abandoned => self.give_up(now_ns),
            Obeyed::Changed(wanted, has_begun) => {
                self.resume = wanted.resume;
                self.keepalive = wanted.keepalive;
                self.requests.renew(wanted.requests, self.slots.iter().filter_map(Slot::template));
                self.resize(self.part.of(wanted.connections.into()) as usize);
                if has_begun {
                    let slots = &self.slots;
                    self.free = (0..self.active).filter(|index| slots[*index].is_free()).collect();
                }
            }
        }
    }

    /// Uses more connections, or fewer: those that are not wanted any more end after the request that they have.
    fn resize(&mut self, connections: usize) {
        let before = std::mem::replace(&mut self.active, connections);
        if connections > self.slots.len() {
            self.slots.resize_with(connections, Slot::new);
        }
        if self.course.is_running() {
            let slots = &self.slots;
            self.free.extend((before..connections).filter(|index| slots[*index].is_free()));
        }
        self.free.retain(|index| *index < connections);
        for index in connections..self.slots.len() {
            if self.slots[index].phase == Phase::Ready {
                self.close(index);
            }
        }
    }

    /// Ends a drain that is complete, or has lasted long enough.
    fn settle(&mut self, now_ns: u64) {
        if !self.course.is_draining() {
            return;
        }
        if self.course.is_overdue(now_ns) {
            self.cut(now_ns);
        }
        if self.course.has_backlog() || !self.slots.iter().all(Slot::is_at_rest) {
            return;
        }
        for slot in &mut self.slots {
            slot.enter(Phase::Vacant, u64::MAX);
        }
        self.course.settle();
    }

    /// Accounts for what has no answer yet, and drops its connections.
    fn cut(&mut self, now_ns: u64) {
        let throttled = self.throttled();
        self.course.give_up_backlog(&mut self.ledger, throttled, now_ns);
        for index in 0..self.slots.len() {
            if let Some(request) = self.slots[index].request.take() {
                self.ledger.ended(&request, now_ns);
                self.drop_connection(index);
                self.slots[index].enter(Phase::Vacant, u64::MAX);
            }
        }
    }

    fn give_up(&mut self, now_ns: u64) {
        let throttled = self.throttled();
        self.course.end(&mut self.ledger, throttled, now_ns);
        self.cut(now_ns);
    }

    /// Share of the connections that wait to be tried again after one that came to nothing.
    fn throttled(&self) -> f64 {
        let waiting = self.slots.iter().filter(|slot| slot.phase == Phase::BackingOff).count();
        waiting as f64 / self.slots.len().max(1) as f64
    }

    fn report(&mut self) {
        if !self.ledger.report(&self.reporter, &self.setup.control, &self.course) {
            self.give_up(now_ns());
        }
    }

    fn finish(mut self) {
        self.give_up(now_ns());
        for index in 0..self.slots.len() {
            self.drop_connection(index);
        }
        self.setup.finish(&self.clients, &self.course, self.ledger, self.reporter);
    }
}
