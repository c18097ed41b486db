//! State that the connections of a worker share.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use proxy_core::handler::WorkerContext;
use proxy_core::proxy_protocol::TrustedPeers;
use proxy_core::{LiveOptions, Upstreams};
use records::delta::{FinishedRequest, HttpDelta, ProxyDelta};
use records::histogram::Histogram;
use records::kinds::HttpGauges;
use records::metrics::{ProxyCounter, ProxyLatency};

use crate::config::Routing;
use crate::guard::frame_tap::BlockFields;
use crate::limits::HttpLimits;
use crate::request::RequestState;
use crate::runtime::tasks::{SpareTasks, WokenConnections};
use crate::runtime::timers::Timers;
use crate::runtime::written::WrittenBytes;
use crate::upstream::pool::UpstreamPool;

/// The number of request heads whose memory is reused, and the largest such memory, in bytes.
const SPARE_HEADS_MAX: usize = 256;
const SPARE_HEAD_BYTES_MAX: usize = 1 << 10;

#[derive(Debug)]
pub(crate) struct HttpShared {
    pub(crate) routing: Routing,
    pub(crate) limits: Arc<LiveOptions<HttpLimits>>,
    /// Peers whose `X-Forwarded-*` fields are believed.
    pub(crate) trusted_forwarders: TrustedPeers,
    pub(crate) sends_tls_fields: bool,
    pub(crate) records_paths: bool,
    /// The present number of workers.
    pub(crate) workers: Arc<AtomicUsize>,
}

/// The state of one worker: its connection pool, its timers and its counters. It never leaves the worker's thread.
#[derive(Debug)]
pub(crate) struct HttpWorker {
    pub(crate) shared: Arc<HttpShared>,
    pub(crate) upstreams: Arc<Upstreams>,
    pub(crate) pool: RefCell<UpstreamPool>,
    pub(crate) timers: Timers,
    /// The time of the timers, readable without their lock.
    now: Cell<Instant>,
    pub(crate) woken: WokenConnections,
    pub(crate) spare_tasks: SpareTasks,
    /// True if connections should buffer little because memory is scarce.
    pub(crate) is_short_of_memory: Rc<Cell<bool>>,
    /// The timeout for connecting to an upstream, from proxy-core's limits.
    pub(crate) connect_timeout: Cell<Duration>,
    /// The index at which the next choice among equally loaded upstreams begins.
    pub(crate) turn: Cell<usize>,
    limits: RefCell<Rc<HttpLimits>>,
    number: usize,
    delta: RefCell<HttpDelta>,
    /// How long connecting to an upstream took.
    connects: RefCell<Histogram>,
    connects_failed: Cell<u64>,
    /// Requests in flight.
    requests: Cell<i64>,
    handed_over: Cell<HttpGauges>,
    /// Memory for heads of requests.
    spare_heads: RefCell<Vec<Vec<u8>>>,
    /// Empty buffers whose memory connections reuse in each turn.
    pub(crate) spare_written: RefCell<WrittenBytes>,
    pub(crate) spare_framed: RefCell<Vec<Rc<RequestState>>>,
    pub(crate) spare_exchanges: RefCell<Vec<Duration>>,
    pub(crate) spare_fields: RefCell<BlockFields>,
}

impl HttpWorker {
    pub(crate) fn new(shared: Arc<HttpShared>, upstreams: Arc<Upstreams>, number: usize) -> Rc<Self> {
        let timers = Timers::default();
        let worker = Self {
            pool: RefCell::new(UpstreamPool::new(Arc::clone(&upstreams))),
            limits: RefCell::new(Rc::new((*shared.limits.current()).clone())),
            now: Cell::new(timers.now()),
            shared,
            upstreams,
            timers,
            woken: WokenConnections::default(),
            spare_tasks: SpareTasks::default(),
            is_short_of_memory: Rc::default(),
            connect_timeout: Cell::new(Duration::ZERO),
            turn: Cell::new(number),
            number,
            delta: RefCell::default(),
            connects: RefCell::default(),
            connects_failed: Cell::default(),
            requests: Cell::new(0),
            handed_over: Cell::default(),
            spare_heads: RefCell::default(),
            spare_written: RefCell::default(),
            spare_framed: RefCell::default(),
            spare_exchanges: RefCell::default(),
            spare_fields: RefCell::default(),
        };
        worker.apply_settings();
        Rc::new(worker)
    }

    /// Stores what only a connection's context provides.
    pub(crate) fn begin(&self, context: &WorkerContext) {
        // If this fails, every request fails with an error of its own.
        let _ = self.pool.borrow_mut().set_up(&context.registry, &context.upstream_tls);
        self.connect_timeout.set(context.limits.connect_timeout);
    }

    pub(crate) fn limits(&self) -> Rc<HttpLimits> {
        Rc::clone(&self.limits.borrow())
    }

    /// Applies the changed limits.
    pub(crate) fn apply_settings(&self) {
        let limits = self.shared.limits.current();
        let workers = self.shared.workers.load(Ordering::Relaxed).max(1);
        let all = limits.upstream_connections_max;
        let share = all / workers + usize::from(self.number < all % workers);
        self.pool.borrow_mut().set_limits(&limits, share.max(1));
        *self.limits.borrow_mut() = Rc::new((*limits).clone());
    }

    /// The time at which the worker last read the clock.
    pub(crate) fn now(&self) -> Instant {
        self.now.get()
    }

    pub(crate) fn set_now(&self, now: Instant) {
        self.now.set(now);
        self.timers.set_now(now);
    }

    pub(crate) fn count_begun(&self) {
        self.requests.set(self.requests.get() + 1);
    }

    /// Counts the end of a request whose beginning was counted.
    pub(crate) fn count_end(&self, request: &FinishedRequest<'_>) {
        self.requests.set(self.requests.get() - 1);
        self.count_refused(request);
    }

    /// Counts a request that was over before its beginning could be counted.
    pub(crate) fn count_refused(&self, request: &FinishedRequest<'_>) {
        self.delta.borrow_mut().finish(request);
    }

    /// Counts a connection to an upstream, and how long it took to establish.
    pub(crate) fn count_connect(&self, took: Duration) {
        self.connects.borrow_mut().record(took);
    }

    /// Counts a connection to an upstream that could not be established.
    pub(crate) fn count_connect_failed(&self) {
        self.connects_failed.set(self.connects_failed.get() + 1);
    }

    /// Changes the other counters.
    pub(crate) fn count<T>(&self, add: impl FnOnce(&mut HttpDelta) -> T) -> T {
        add(&mut self.delta.borrow_mut())
    }

    /// Memory for the head of a request, reused if possible.
    pub(crate) fn spare_head(&self) -> Vec<u8> {
        self.spare_heads.borrow_mut().pop().unwrap_or_default()
    }

    /// Keeps the memory of a sent head for later requests.
    pub(crate) fn keep_head(&self, mut head: Vec<u8>) {
        let mut spare = self.spare_heads.borrow_mut();
        if spare.len() < SPARE_HEADS_MAX && head.capacity() <= SPARE_HEAD_BYTES_MAX {
            head.clear();
            spare.push(head);
        }
    }

    /// Moves the counts since the last call into `delta`.
    pub(crate) fn hand_over(&self, delta: &mut ProxyDelta) {
        let mut connects = self.connects.borrow_mut();
        delta.counters[ProxyCounter::UpstreamConnects] += connects.count();
        delta.counters[ProxyCounter::UpstreamConnectsFailed] += self.connects_failed.take();
        delta.latencies[ProxyLatency::Connect].add(&connects);
        connects.clear();
        let http = delta.http.get_or_insert_default();
        // The target is empty, so swapping is enough and no histograms are added.
        std::mem::swap(&mut **http, &mut *self.delta.borrow_mut());
        let pool = self.pool.borrow();
        let gauges = HttpGauges {
            requests: self.requests.get(),
            queued: pool.queued() as i64,
            upstream_open: pool.open() as i64,
            upstream_idle: pool.idle() as i64,
        };
        http.gauges.add(gauges.since(self.handed_over.replace(gauges)));
    }
}
