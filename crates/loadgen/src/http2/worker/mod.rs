//! A thread of the load: one event loop over its part of the connections.

mod ending;
mod exchange;
mod lane;
mod opening;

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use mio::{Events, Poll, Token};
use slab::Slab;
use telemetry::{LoadDelta, Reporter};

use super::session::{Ended, Session};
use crate::client::Client;
use crate::clock::{Timer, now_ns};
use crate::course::{Course, Obeyed};
use crate::ledger::{Ledger, Over};
use crate::pacer::Part;
use crate::plan::{KeepAlive, Share};
use crate::transport::{Scratch, Transport};
use crate::worker::{EVENTS_MAX, Requests, Setup, Start, TICK_NS, TIMER, WAKER};
use lane::Lane;

/// How often the deadlines of requests are looked at: so often in the time that one has, within bounds.
const LOOKS: u64 = 100;
const LOOK_NS_MAX: u64 = 500_000_000;

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
    /// Most requests of a lane at a time.
    streams: usize,
    /// At least `active`; more while those that are not wanted any more end what they have.
    lanes: Vec<Lane>,
    /// Lanes that may take requests: the first ones.
    active: usize,
    /// Lanes that can take a request, each once.
    free: VecDeque<usize>,
    /// Requests that lanes have taken on.
    under_way: usize,
    /// Those of all lanes, by the tokens that they have at the poll.
    connections: Slab<Connection>,
    /// Connections with more to read than their turn allowed.
    unread: Vec<usize>,
    /// Connections that may have something to send.
    touched: Vec<usize>,
    next_tick_ns: u64,
    next_look_ns: u64,
    scratch: Scratch,
    /// Requests that a connection is done with, while it is read.
    ended: Ended,
    ledger: Ledger,
    reporter: Reporter<LoadDelta>,
}

/// A connection of a lane.
#[derive(Debug)]
struct Connection {
    transport: Transport,
    session: Session,
    phase: Phase,
    lane: usize,
    /// Whose it is, as an index.
    client: usize,
    /// Addresses of the server that were tried for it.
    addresses_tried: usize,
    /// When the phase is over if nothing happens; `u64::MAX` for never.
    deadline_ns: u64,
    /// How it was made.
    over: Over,
    /// When it could carry its first request.
    ready_ns: u64,
    /// It is among those that may have something to send.
    is_touched: bool,
}

impl Connection {
    /// True if nothing came of it. A server that never answers is not to be hammered, one that did may have the next
    /// connection at once.
    fn was_futile(&self) -> bool {
        self.session.carried() > 0 && self.session.answers() == 0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Connecting,
    Handshaking,
    /// It carries requests.
    Open,
    /// We have closed; what the server still says is read up to its end.
    Closing,
}

impl Worker {
    pub(crate) fn new(start: Start, poll: Poll, timer: Timer, streams: u32) -> Self {
        let wanted = start.setup.control.wanted();
        let lanes = start.part.of(wanted.connections.into()) as usize;
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
            streams: streams as usize,
            lanes: (0..lanes).map(|_| Lane::new()).collect(),
            active: lanes,
            free: VecDeque::with_capacity(lanes),
            under_way: 0,
            connections: Slab::with_capacity(lanes),
            unread: Vec::new(),
            touched: Vec::new(),
            next_tick_ns: 0,
            next_look_ns: 0,
            scratch: Scratch::default(),
            ended: Vec::new(),
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

    /// The moment at which something is to be done that cannot wait for the next tick.
    fn next_moment_ns(&self) -> Option<u64> {
        // Without a free lane a request that falls due waits for one, and that comes with an event.
        let due_ns = self.course.next_due_ns().filter(|_| !self.free.is_empty());
        due_ns.into_iter().chain(self.course.next_change_ns()).min()
    }

    /// How long the poll may wait; without a limit while nothing has a deadline.
    fn patience(&self) -> Option<Duration> {
        if !self.unread.is_empty() || self.course.has_ended() {
            return Some(Duration::ZERO);
        }
        let is_quiet = self.free.len() == self.lanes.len() && self.under_way == 0;
        let is_quiet = (is_quiet && !self.course.is_draining()) || self.course.is_paused();
        (!is_quiet).then(|| Duration::from_nanos(self.next_tick_ns.saturating_sub(now_ns())))
    }

    /// What is done once a turn, whatever the events are.
    fn turn(&mut self, now_ns: u64) {
        self.obey(now_ns);
        self.course.advance(&mut self.ledger, now_ns);
        self.dispatch(now_ns);
        if now_ns >= self.next_tick_ns {
            self.next_tick_ns = now_ns + TICK_NS;
            self.expire(now_ns);
            self.dispatch(now_ns);
            self.setup.control.note_rate(self.course.rate_at(now_ns));
        }
        while self.lanes.len() > self.active
            && self.lanes.last().is_some_and(|lane| lane.under_way == 0 && lane.connection.is_none())
        {
            self.lanes.pop();
        }
        self.settle(now_ns);
    }

    /// Gives requests that are due to lanes that are free, and sends what there is to send.
    fn dispatch(&mut self, now_ns: u64) {
        if self.course.is_late(now_ns) {
            let throttled = self.throttled();
            self.course.give_up_backlog(&mut self.ledger, throttled, now_ns);
        }
        while let Some(&index) = self.free.front() {
            let Some(due) = self.course.take(&mut self.ledger) else { break };
            self.free.pop_front();
            self.course.note_late(due, self.lanes[index].free_ns, &mut self.ledger, now_ns);
            self.lanes[index].is_free = false;
            self.take_on(index, due, now_ns);
            if self.has_room(index) {
                self.lanes[index].is_free = true;
                self.free.push_back(index);
            }
        }
        let mut touched = mem::take(&mut self.touched);
        for key in touched.drain(..) {
            self.flush(key);
        }
        self.touched = touched;
    }

    /// Lets a lane take requests, unless there are to be fewer lanes.
    fn offer(&mut self, index: usize, now_ns: u64) {
        if index >= self.active {
            self.close_idle(index);
        } else if !self.lanes[index].is_free && self.has_room(index) {
            let lane = &mut self.lanes[index];
            (lane.is_free, lane.free_ns) = (true, now_ns);
            self.free.push_back(index);
        }
    }

    fn has_room(&self, index: usize) -> bool {
        let lane = &self.lanes[index];
        let connection = lane.connection.and_then(|key| self.connections.get(key));
        let is_full = connection.is_some_and(|Connection { phase, session, .. }| {
            *phase == Phase::Open && !session.is_spent() && !session.has_room()
        });
        lane.under_way < self.streams && lane.backs_off_until_ns.is_none() && !is_full
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
                let under_way =
                    self.connections.iter().flat_map(|(_, connection)| connection.session.templates());
                let waiting =
                    self.lanes.iter().flat_map(|lane| lane.waiting.iter().map(|request| request.template));
                self.requests.renew(wanted.requests, under_way.chain(waiting));
                self.resize(self.part.of(wanted.connections.into()) as usize, now_ns);
                if has_begun {
                    (0..self.active).for_each(|index| self.offer(index, now_ns));
                }
            }
        }
    }

    /// Uses more lanes, or fewer: those that are not wanted any more end after the requests that they have.
    fn resize(&mut self, lanes: usize, now_ns: u64) {
        self.active = lanes;
        if lanes > self.lanes.len() {
            self.lanes.resize_with(lanes, Lane::new);
        }
        self.free.retain(|index| *index < lanes);
        for index in lanes..self.lanes.len() {
            self.lanes[index].is_free = false;
            self.close_idle(index);
        }
        if self.course.is_running() {
            (0..lanes).for_each(|index| self.offer(index, now_ns));
        }
    }

    /// Ends a drain that is complete, or has lasted long enough.
    fn settle(&mut self, now_ns: u64) {
        if !self.course.is_draining() {
            return;
        }
        if self.course.is_overdue(now_ns) {
            let throttled = self.throttled();
            self.course.give_up_backlog(&mut self.ledger, throttled, now_ns);
            self.cut(now_ns);
        }
        if !self.course.has_backlog() {
            (0..self.lanes.len()).for_each(|index| self.close_idle(index));
        }
        if !self.course.has_backlog() && self.under_way == 0 && self.connections.is_empty() {
            self.course.settle();
        }
    }

    fn give_up(&mut self, now_ns: u64) {
        let throttled = self.throttled();
        self.course.end(&mut self.ledger, throttled, now_ns);
        self.cut(now_ns);
    }

    /// Share of the connections that wait to be tried again after one that came to nothing.
    fn throttled(&self) -> f64 {
        let waiting = self.lanes.iter().filter(|lane| lane.backs_off_until_ns.is_some()).count();
        waiting as f64 / self.lanes.len().max(1) as f64
    }

    fn report(&mut self) {
        if !self.ledger.report(&self.reporter, &self.setup.control, &self.course) {
            self.give_up(now_ns());
        }
    }

    fn finish(mut self) {
        self.give_up(now_ns());
        self.setup.finish(&self.clients, &self.course, self.ledger, self.reporter);
    }
}
