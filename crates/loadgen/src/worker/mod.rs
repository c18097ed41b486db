//! A thread of the load: one event loop over its part of the connections.

mod exchange;
mod requests;
mod slot;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use mio::{Events, Poll, Token};
use telemetry::{Asked, LoadCounter, LoadDelta, Reporter};

use crate::client::Client;
use crate::clock::{Timer, now_ns};
use crate::connection::Scratch;
use crate::control::Control;
use crate::ledger::Ledger;
use crate::pacer::{Due, Pacer, Part, Segment};
use crate::plan::{KeepAlive, Share};
use crate::socket::Address;
use requests::Requests;
use slot::{Phase, Slot};

/// Wakes the loop for changes and hand-overs.
pub(crate) const WAKER: Token = Token(usize::MAX);
/// Wakes the loop when a request falls due, or the load ends.
pub(crate) const TIMER: Token = Token(usize::MAX - 1);
/// How often deadlines are looked at.
const TICK_NS: u64 = 10_000_000;
/// How long requests may still be answered once the load is to end or to pause.
const GRACE_NS: u64 = 2_000_000_000;
/// The last part of the grace, in which nothing more is sent: a backlog must not cut what is under way.
const GRACE_TO_ANSWER_NS: u64 = GRACE_NS / 2;
/// From when on a request that could be taken on counts as late.
const LATE_NS: u64 = 1_000_000;
const EVENTS_MAX: usize = 1024;

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
    pub(crate) control: Control,
}

/// What a thread begins with.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) setup: Arc<Setup>,
    pub(crate) poll: Poll,
    pub(crate) timer: Timer,
    pub(crate) pacer: Pacer,
    /// How long it runs, in all.
    pub(crate) duration_ns: Option<u64>,
    /// How long of that is warm-up.
    pub(crate) warmup_ns: u64,
    pub(crate) clients: Vec<Client>,
    pub(crate) part: Part,
    pub(crate) reporter: Reporter<LoadDelta>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Running,
    /// Nothing more falls due. What has is sent and answered until `until_ns`.
    Draining {
        then: Goal,
        until_ns: u64,
    },
    Paused,
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goal {
    Pause,
    End,
}

/// The thread's own state; nothing in it is shared but `setup`.
#[derive(Debug)]
pub(crate) struct Worker {
    setup: Arc<Setup>,
    /// The version of the control's wishes that was last obeyed.
    obeyed: Option<u64>,
    state: State,
    poll: Poll,
    timer: Timer,
    pacer: Pacer,
    /// While running, when that ends.
    ends_ns: Option<u64>,
    /// While not running, how long it is to run yet.
    duration_left_ns: Option<u64>,
    /// How long the warm-up is to be, before it begins.
    warmup_left_ns: Option<u64>,
    /// When the warm-up is over.
    warm_ns: u64,
    resume: Share,
    keepalive: KeepAlive,
    requests: Requests,
    part: Part,
    clients: Vec<Client>,
    /// The client that makes the next connection.
    next_client: usize,
    /// The server's address that worked last.
    address: usize,
    /// The place in the sequence of requests.
    next_place: usize,
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
    reporter: Option<Reporter<LoadDelta>>,
}

impl Worker {
    pub(crate) fn new(start: Start) -> Self {
        let wanted = start.setup.control.wanted();
        let connections = start.part.of(wanted.connections.into()) as usize;
        Self {
            obeyed: None,
            state: State::Paused,
            poll: start.poll,
            timer: start.timer,
            pacer: start.pacer,
            ends_ns: None,
            duration_left_ns: start.duration_ns,
            warmup_left_ns: Some(start.warmup_ns),
            warm_ns: 0,
            resume: wanted.resume,
            keepalive: wanted.keepalive,
            requests: Requests::new(wanted.requests),
            part: start.part,
            clients: start.clients,
            next_client: 0,
            address: 0,
            next_place: start.part.thread as usize % start.setup.sequence.len(),
            slots: (0..connections).map(|_| Slot::new()).collect(),
            active: connections,
            free: VecDeque::with_capacity(connections),
            unread: Vec::new(),
            next_tick_ns: 0,
            scratch: Scratch::default(),
            ledger: Ledger::default(),
            reporter: Some(start.reporter),
            setup: start.setup,
        }
    }

    /// Runs until the load ends.
    pub(crate) fn run(mut self) {
        let mut events = Events::with_capacity(EVENTS_MAX);
        while self.state != State::Ended {
            self.turn(now_ns());
            if self.wait(&mut events).is_err() {
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

    fn wait(&mut self, events: &mut Events) -> io::Result<()> {
        if let Some(at_ns) = self.next_moment_ns() {
            self.timer.set(at_ns)?;
        }
        match self.poll.poll(events, self.patience()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                events.clear();
                Ok(())
            }
            other => other,
        }
    }

    /// The moment at which something is to be done that cannot wait for the next tick.
    fn next_moment_ns(&self) -> Option<u64> {
        // Without a free slot a request that falls due waits for one, and that comes with an event.
        let due_ns = self.pacer.next_due_ns().filter(|_| !self.free.is_empty());
        let until_ns = match self.state {
            State::Running => self.ends_ns,
            State::Draining { until_ns, .. } => Some(until_ns),
            State::Paused | State::Ended => None,
        };
        due_ns.into_iter().chain(until_ns).min()
    }

    /// How long the poll may wait; without a limit while no slot has a deadline.
    fn patience(&self) -> Option<Duration> {
        if !self.unread.is_empty() || self.state == State::Ended {
            return Some(Duration::ZERO);
        }
        let is_quiet = self.free.len() == self.slots.len() || self.state == State::Paused;
        (!is_quiet).then(|| Duration::from_nanos(self.next_tick_ns.saturating_sub(now_ns())))
    }

    /// What is done once a turn, whatever the events are.
    fn turn(&mut self, now_ns: u64) {
        self.obey(now_ns);
        self.advance(now_ns);
        self.dispatch(now_ns);
        if now_ns >= self.next_tick_ns {
            self.next_tick_ns = now_ns + TICK_NS;
            for index in 0..self.slots.len() {
                if self.slots[index].deadline_ns <= now_ns {
                    self.expire(index);
                }
            }
            self.dispatch(now_ns);
            self.setup.control.note_rate(self.pacer.rate_at(now_ns));
        }
        while self.slots.len() > self.active && self.slots.last().is_some_and(Slot::is_at_rest) {
            self.slots.pop();
        }
        self.settle(now_ns);
    }

    /// Lets requests fall due, and notices when the last one has.
    fn advance(&mut self, now_ns: u64) {
        // The end itself is not part of the duration: two seconds at 500/s are 1,000 requests and not 1,001.
        let until_ns = self.ends_ns.map_or(now_ns, |ends_ns| now_ns.min(ends_ns.saturating_sub(1)));
        let fell_due = self.pacer.advance(until_ns);
        self.ledger.add(LoadCounter::Scheduled, fell_due);
        if self.state != State::Running {
            return;
        }
        if self.ends_ns.is_some_and(|ends_ns| now_ns >= ends_ns) {
            self.drain(Goal::End, now_ns.saturating_add(GRACE_NS), now_ns);
        } else if self.pacer.is_exhausted() {
            // Nothing presses: each request is answered or runs into its own timeout, unless the duration is over.
            let until_ns = self.ends_ns.map_or(u64::MAX, |ends_ns| ends_ns.saturating_add(GRACE_NS));
            self.drain(Goal::End, until_ns, now_ns);
        }
    }

    /// Gives requests that are due to slots that are free.
    fn dispatch(&mut self, now_ns: u64) {
        if let State::Draining { until_ns, .. } = self.state
            && now_ns >= until_ns.saturating_sub(GRACE_TO_ANSWER_NS)
        {
            self.give_up_backlog(now_ns);
        }
        while let Some(&index) = self.free.front() {
            let Some(due) = self.pacer.take() else { break };
            if due.intended_ns.is_none() {
                self.ledger.count(LoadCounter::Scheduled);
            }
            self.free.pop_front();
            self.note_late(index, due, now_ns);
            self.begin(index, due, now_ns);
        }
        if matches!(self.state, State::Draining { .. }) && !self.pacer.has_backlog() {
            while let Some(index) = self.free.pop_front() {
                if self.slots[index].phase == Phase::Ready {
                    self.close(index);
                }
            }
        }
    }

    /// Follows a change of what is wanted.
    fn obey(&mut self, now_ns: u64) {
        let control = &self.setup.control;
        if control.is_abandoned() {
            return self.give_up(now_ns);
        }
        let version = Some(control.version());
        if self.obeyed == version {
            return;
        }
        let wanted = control.wanted();
        self.obeyed = version;
        self.advance(now_ns);
        self.resume = wanted.resume;
        self.keepalive = wanted.keepalive;
        self.requests.renew(wanted.requests, self.slots.iter().filter_map(Slot::template));
        self.resize(self.part.of(wanted.connections.into()) as usize);
        if let Some(rate) = wanted.rate {
            let given_up = self.pacer.set_rate(now_ns, rate);
            self.never_sent(given_up, now_ns);
        }
        let grace_ends_ns = now_ns.saturating_add(GRACE_NS);
        match self.state {
            _ if wanted.stopped => self.drain(Goal::End, grace_ends_ns, now_ns),
            State::Running if !wanted.running => self.drain(Goal::Pause, grace_ends_ns, now_ns),
            State::Paused | State::Draining { then: Goal::Pause, .. } if wanted.running => {
                self.go_on(now_ns);
            }
            _ => {}
        }
    }

    /// Lets requests fall due, at first or after a pause.
    fn go_on(&mut self, now_ns: u64) {
        self.state = State::Running;
        self.ends_ns = self.duration_left_ns.take().map(|left_ns| now_ns.saturating_add(left_ns));
        if let Some(left_ns) = self.warmup_left_ns.take() {
            self.warm_ns = now_ns.saturating_add(left_ns);
        }
        let given_up = self.pacer.run(now_ns);
        self.never_sent(given_up, now_ns);
        self.free = (0..self.active).filter(|index| self.slots[*index].is_free()).collect();
    }

    /// Uses more connections, or fewer: those that are not wanted any more end after the request that they have.
    fn resize(&mut self, connections: usize) {
        let before = std::mem::replace(&mut self.active, connections);
        if connections > self.slots.len() {
            self.slots.resize_with(connections, Slot::new);
        }
        if self.state == State::Running {
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

    fn next_template(&mut self) -> usize {
        let template = self.setup.sequence[self.next_place];
        self.next_place = (self.next_place + 1) % self.setup.sequence.len();
        self.requests.newest(template.into())
    }

    /// Counts a request that the generator itself takes on too late: there was a connection for it.
    fn note_late(&mut self, index: usize, due: Due, now_ns: u64) {
        let Some(intended_ns) = due.intended_ns.filter(|intended_ns| *intended_ns >= self.warm_ns) else {
            return;
        };
        let could_ns = intended_ns.max(self.slots[index].free_ns);
        self.ledger.add(LoadCounter::Late, u64::from(now_ns.saturating_sub(could_ns) > LATE_NS));
    }

    /// True if a request that is due then is of the warm-up.
    fn is_warmup(&self, due: Due, now_ns: u64) -> bool {
        due.intended_ns.unwrap_or(now_ns) < self.warm_ns
    }

    /// Lets nothing more fall due, and goes towards a pause or the end.
    fn drain(&mut self, goal: Goal, until_ns: u64, now_ns: u64) {
        self.pacer.pause();
        if let Some(ends_ns) = self.ends_ns.take() {
            self.duration_left_ns = Some(ends_ns.saturating_sub(now_ns));
        }
        self.state = match self.state {
            State::Ended => State::Ended,
            State::Draining { until_ns: earlier_ns, .. } => {
                State::Draining { then: goal, until_ns: until_ns.min(earlier_ns) }
            }
            State::Running | State::Paused => State::Draining { then: goal, until_ns },
        };
    }

    /// Ends a drain that is complete, or has lasted long enough.
    fn settle(&mut self, now_ns: u64) {
        let State::Draining { then, until_ns } = self.state else { return };
        if now_ns >= until_ns {
            self.cut(now_ns);
        }
        if self.pacer.has_backlog() || !self.slots.iter().all(Slot::is_at_rest) {
            return;
        }
        for slot in &mut self.slots {
            slot.enter(Phase::Vacant, u64::MAX);
        }
        self.state = match then {
            Goal::Pause => State::Paused,
            Goal::End => State::Ended,
        };
    }

    /// Accounts for what is due and will not be sent.
    fn give_up_backlog(&mut self, now_ns: u64) {
        while let Some(due) = self.pacer.take() {
            let warmup = self.is_warmup(due, now_ns);
            self.ledger.never_sent(due.intended_ns, warmup, now_ns);
        }
    }

    /// Accounts for what has no answer yet, and drops its connections.
    fn cut(&mut self, now_ns: u64) {
        self.give_up_backlog(now_ns);
        for index in 0..self.slots.len() {
            if let Some(request) = self.slots[index].request.take() {
                self.ledger.ended(&request, now_ns);
                self.drop_connection(index);
                self.slots[index].enter(Phase::Vacant, u64::MAX);
            }
        }
    }

    fn give_up(&mut self, now_ns: u64) {
        self.pacer.pause();
        self.cut(now_ns);
        self.state = State::Ended;
    }

    fn never_sent(&mut self, given_up: Option<Segment>, now_ns: u64) {
        if let Some(mut segment) = given_up {
            while let Some(intended_ns) = segment.take() {
                let warmup = intended_ns < self.warm_ns;
                self.ledger.never_sent(Some(intended_ns), warmup, now_ns);
            }
        }
    }

    fn report(&mut self) {
        let Some(reporter) = &self.reporter else { return };
        match reporter.answer(&mut self.ledger.delta, |_| {}) {
            Asked::Yes => self.setup.control.note_span(self.ledger.span),
            Asked::No => {}
            Asked::Gone => self.give_up(now_ns()),
        }
    }

    fn finish(mut self) {
        self.give_up(now_ns());
        for index in 0..self.slots.len() {
            self.drop_connection(index);
        }
        for client in &self.clients {
            if let Some(address) = client.address {
                self.setup.control.account(address, client.totals);
            }
        }
        self.setup.control.note_span(self.ledger.span);
        self.setup.control.thread_ended();
        if let Some(reporter) = self.reporter.take() {
            reporter.finish(self.ledger.delta, |_| {});
        }
    }
}
