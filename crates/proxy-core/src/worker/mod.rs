//! One worker: a thread with its own event loop, listening sockets and connections.

mod accepting;
pub(crate) mod context;
pub(crate) mod control;
mod memory;
pub(crate) mod pending;
pub(crate) mod pool;
mod ready;
pub(crate) mod setup;
pub(crate) mod timers;
mod turn;

use std::cmp::Reverse;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token};
use records::delta::{ProxyDelta, Reporter};
use records::kinds::Level;
use records::text::Cpus;
use slab::Slab;

use self::ready::ReadyQueue;
use self::setup::PreparedWorker;
use crate::accept::listeners::Listeners;
use crate::connection::handler::Handler;
use crate::connection::{Connection, SCRATCH_BYTES, SocketRole, parse_token};
use crate::io::buffer::BufferPool;
use crate::memory::{MemoryLevel, SAMPLE_INTERVAL};
use crate::notices::{NoticeLog, Subject};
use crate::stats::proxy_stats::ProxyStats;
use crate::upstream::stream::WorkerTls;
use crate::worker::context::WorkerContext;
use crate::worker::control::ProxyControl;
use crate::worker::pending::PendingBytes;
use crate::worker::pool::{CommandQueue, WorkerCommand};
use crate::worker::timers::ConnTimers;

/// Events taken from the kernel in one turn.
const EVENTS_MAX: usize = 256;

/// Memory of a connection up to which it is one among others: two peers that do not read cost less.
const FAIR_BYTES: usize = 256 << 10;

const WAKER: Token = Token(usize::MAX);

pub(crate) struct Worker<H: Handler> {
    index: usize,
    cpus: Option<Cpus>,
    poll: Poll,
    control: Arc<ProxyControl>,
    commands: Arc<CommandQueue>,
    notices: Arc<NoticeLog>,
    listeners: Listeners,
    /// No connection is accepted before this moment, unless one is closed.
    accept_at: Option<Instant>,
    connections: Slab<Box<Connection<H>>>,
    context: WorkerContext,
    resources: H::Resources,
    /// Connections to serve in this turn, and those to serve in the next one without waiting for an event.
    ready: ReadyQueue,
    again: Vec<usize>,
    /// The last sample of memory that it has noticed.
    memory_sample: u32,
    /// Its pending bytes, as it last reported them.
    reported_pending: usize,
    /// The generation of limits, address lists and TLS in use.
    generation: u64,
    /// When the drain began, if one has.
    draining_since: Option<Instant>,
    /// Whether it accepts no more and ends with its last connection.
    is_retired: bool,
    /// Whether the backlogs are being emptied and closed, at the end of a drain's first half second.
    takes_last: bool,
}

impl<H: Handler> Worker<H> {
    /// Begins on its thread; `resources` are what its handlers share.
    pub(crate) fn new(prepared: PreparedWorker, resources: H::Resources) -> Self {
        let PreparedWorker { index, poll, registry, listeners, commands, shared } = prepared;
        // Read before what it is of, so no change is missed.
        let generation = shared.control.generation();
        let now = Instant::now();
        let tls = shared.control.tls().for_worker();
        let upstream_tls = Rc::new(WorkerTls::default());
        upstream_tls.update(tls.upstream());
        let context = WorkerContext {
            awaits_hello: shared.routes.has_passed() || tls.has_challenges(),
            registry: Rc::new(registry),
            tls,
            upstream_tls,
            limits: shared.control.limits(),
            access: shared.control.access(),
            sends_header: shared.sends_header,
            trusted: shared.trusted,
            routes: shared.routes,
            timers: ConnTimers::default(),
            pool: BufferPool::default(),
            pending: PendingBytes::default(),
            memory: MemoryLevel::default(),
            pending_bytes_left: usize::MAX,
            stats: ProxyStats::new(index, shared.clients_max, shared.records_names, shared.seen),
            scratch: vec![0; SCRATCH_BYTES].into_boxed_slice(),
            is_draining: false,
            handshaking: 0,
            control: Arc::clone(&shared.control),
            notices: Arc::clone(&shared.notices),
            ready_at: now,
            now,
        };
        Self {
            index,
            cpus: shared.cpus,
            poll,
            control: shared.control,
            commands,
            notices: shared.notices,
            listeners,
            accept_at: None,
            connections: Slab::new(),
            context,
            resources,
            ready: ReadyQueue::default(),
            again: Vec::new(),
            memory_sample: 0,
            reported_pending: 0,
            generation,
            draining_since: None,
            is_retired: false,
            takes_last: false,
        }
    }

    /// Serves until a drain has ended, and sends its counters whenever the collector asks.
    ///
    /// # Errors
    /// If the kernel delivers no more events. Open connections are cut then.
    pub(crate) fn run(mut self, reporter: Reporter<ProxyDelta>) -> io::Result<()> {
        if let Some(Err(error)) = self.cpus.as_ref().map(|cpus| cpus.pin(self.index)) {
            let text = format!("cannot keep the proxy's worker {} on its core: {error}", self.index);
            self.notices.say(Subject::Worker(self.index), Level::Warning, &text, self.context.now);
        }
        let served = self.serve_until_over(&reporter);
        self.cut();
        self.report_pending();
        let ProxyStats { delta, mut clients, mut usage, mut worker, .. } = self.context.stats;
        let resources = &mut self.resources;
        H::end_resources(resources);
        reporter.finish(delta, |delta| {
            clients.hand_over(delta);
            usage.hand_over(&mut delta.tls.usage);
            worker.hand_over(delta);
            H::hand_over(resources, delta);
            delta.sum_upstreams();
        });
        served
    }

    fn serve_until_over(&mut self, reporter: &Reporter<ProxyDelta>) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS_MAX);
        while !self.is_over() {
            let timeout = self.timeout();
            if self.wait(&mut events, timeout)? {
                self.run_commands();
                let stats = &mut self.context.stats;
                let (clients, usage, worker) = (&mut stats.clients, &mut stats.usage, &mut stats.worker);
                let resources = &mut self.resources;
                reporter.answer(&mut stats.delta, |delta| {
                    clients.hand_over(delta);
                    usage.hand_over(&mut delta.tls.usage);
                    worker.hand_over(delta);
                    H::hand_over(resources, delta);
                    delta.sum_upstreams();
                });
            }
            self.serve();
        }
        Ok(())
    }

    /// Waits for events and notes them; true if the handle or the collector has a request.
    fn wait(&mut self, events: &mut Events, timeout: Option<Duration>) -> io::Result<bool> {
        let polled = self.poll.poll(events, timeout);
        self.context.now = Instant::now();
        match polled {
            Ok(()) => Ok(self.note(events)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            // Trying again would fail at once, again and again.
            Err(error) => Err(error),
        }
    }

    fn is_over(&self) -> bool {
        if self.control.is_stopping() {
            return true;
        }
        let has_served = self.connections.is_empty() && self.listeners.is_empty();
        (self.is_retired && has_served)
            || self.drain_until().is_some_and(|until| has_served || until <= self.context.now)
    }

    fn timeout(&self) -> Option<Duration> {
        if !self.again.is_empty() || self.ready.handshakes() > 0 {
            return Some(Duration::ZERO);
        }
        let may_accept = self.listeners.is_any_ready() && self.handshake_limit_reached().is_none();
        let accept_at = may_accept.then(|| self.accept_at.unwrap_or(self.context.now));
        let mut next = earlier(self.context.timers.next(), accept_at);
        next = earlier(next, earlier(self.listeners.next(), self.drain_until()));
        next = earlier(next, H::next_deadline(&self.resources));
        if !self.context.pending.is_empty() {
            next = earlier(next, self.context.next_send_timeout().map(|(at, _)| at));
        }
        if self.context.memory > MemoryLevel::Enough {
            next = earlier(next, Some(self.context.now + SAMPLE_INTERVAL));
        }
        // Counted from the last connection served, which saves a clock read per turn. A deadline is noticed later by
        // the time of the work since.
        Some(next?.saturating_duration_since(self.context.now))
    }

    /// Notes the events; true if the handle or the collector has a request.
    fn note(&mut self, events: &Events) -> bool {
        let mut is_woken = false;
        for event in events {
            let token = event.token();
            if token == WAKER {
                is_woken = true;
            } else if !self.listeners.note(token) {
                let (key, which) = parse_token(token);
                if which == SocketRole::Resources {
                    H::note_resources(&mut self.resources, key, event);
                    continue;
                }
                // The connection may have been closed earlier in this turn.
                if let Some(connection) = self.connections.get_mut(key) {
                    connection.note(which, event);
                    self.ready.push(connection, key, self.context.now);
                }
            }
        }
        is_woken
    }

    /// Executes commands, and applies changed limits, TLS and the beginning of a drain.
    fn run_commands(&mut self) {
        for command in self.commands.take() {
            self.run_command(command);
        }
        self.report_pending();
        let generation = self.control.generation();
        let begins_drain = self.control.is_draining() && self.draining_since.is_none();
        if generation == self.generation && !begins_drain {
            return;
        }
        self.generation = generation;
        self.context.limits = self.control.limits();
        self.context.access = self.control.access();
        self.context.update_tls();
        if begins_drain {
            self.context.is_draining = true;
            self.draining_since = Some(self.context.now);
            // The next process serves the waiting connections of the backlog.
            self.listeners.give_up_at(|addr| self.control.is_kept_open(addr));
            if let Err(error) = self.listeners.begin_last_call(self.context.now) {
                let text = format!(
                    "a drain cannot turn new connections away: {error}; those that begin at its end may be reset"
                );
                self.notices.say(Subject::Worker(self.index), Level::Warning, &text, self.context.now);
            }
        }
        H::settings_changed(&mut self.resources);
        for (_, connection) in &mut self.connections {
            connection.limits_changed(&mut self.context);
        }
        self.accept_at = None;
    }

    /// When a drain ends at the latest. Its timeout may be changed meanwhile.
    fn drain_until(&self) -> Option<Instant> {
        self.draining_since.map(|since| since + self.context.limits.drain_timeout)
    }

    fn run_command(&mut self, command: WorkerCommand) {
        match command {
            WorkerCommand::ShareListeners(set, sockets) => {
                for socket in sockets {
                    if let Err(error) = self.listeners.add(set, socket) {
                        let text = format!("a worker cannot take over a listening socket: {error}");
                        let subject = Subject::Worker(self.index);
                        self.notices.say(subject, Level::Warning, &text, self.context.now);
                    }
                }
            }
            WorkerCommand::ReleaseListeners(set) => self.listeners.give_up(set),
            WorkerCommand::Retire => {
                self.listeners.give_up_all();
                self.is_retired = true;
            }
            #[cfg(test)]
            WorkerCommand::Panic => panic!("told to panic"),
        }
    }

    fn expire(&mut self) {
        while let Some((key, kind)) = self.context.timers.expired(self.context.now) {
            if let Some(connection) = self.connections.get_mut(key) {
                connection.expired(kind, &mut self.context, &mut self.resources);
                self.ready.push(connection, key, self.context.now);
            }
        }
        if !self.context.pending.is_empty() {
            self.expire_sends();
        }
        H::expire_resources(&mut self.resources, self.context.now);
    }

    #[cold]
    fn expire_sends(&mut self) {
        while let Some((_, key)) = self.context.next_send_timeout().filter(|&(at, _)| at <= self.context.now)
        {
            let connection = &mut self.connections[key];
            connection.send_timed_out(&mut self.context, &mut self.resources);
            self.ready.push(connection, key, self.context.now);
        }
    }

    /// Cuts connections until the memory of the others is within the bound.
    #[cold]
    fn bound_pending(&mut self) {
        while self.context.has_too_much_pending() {
            let Some(key) = self.heaviest() else { return };
            let max = self.control.memory.pending_bytes_max(self.context.limits.pending_bytes_max);
            self.notices.report_pending_limit(max, self.context.now);
            self.connections[key].cut_for_room(&mut self.context, &mut self.resources);
            self.again.push(key);
        }
    }

    /// The connection to cut first: one that holds far more than others, else the one whose peer has taken nothing for
    /// longest, else the one that holds most.
    fn heaviest(&self) -> Option<usize> {
        let weight = |connection: &Connection<H>| {
            let (held_bytes, stalled_since) = connection.pending_memory();
            (held_bytes.max(FAIR_BYTES).ilog2(), stalled_since.map(Reverse), held_bytes)
        };
        let holders = self.connections.iter().filter(|(_, connection)| connection.pending_memory().0 > 0);
        holders.max_by_key(|(_, connection)| weight(connection)).map(|(key, _)| key)
    }

    fn close(&mut self, key: usize) {
        self.connections.remove(key).close(&mut self.context, &mut self.resources);
        self.control.limiter.leave();
        self.accept_at = None;
    }

    /// Ends the connections that are still open.
    fn cut(&mut self) {
        self.context.now = Instant::now();
        for mut connection in std::mem::take(&mut self.connections).drain() {
            connection.cut(&mut self.context, &mut self.resources);
            connection.write(&mut self.context, &mut self.resources);
            connection.close(&mut self.context, &mut self.resources);
            self.control.limiter.leave();
        }
    }
}

/// The earlier of two optional moments.
fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    a.map_or(b, |a| Some(b.map_or(a, |b| a.min(b))))
}

#[cfg(test)]
mod tests;
