//! State that the connections of a worker share.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use proxy_core::handler::WorkerContext;
use proxy_core::{
    ClientRates, LiveOptions, Networks, UpstreamTlsError, Upstreams, count_connection, count_failed_attempt,
};
use records::delta::{FinishedRequest, HttpDelta, ProxyDelta, UpstreamDelta, UpstreamDeltas};
use records::histogram::Histogram;
use records::kinds::HttpGauges;
use records::metrics::{ProxyCounter, ProxyLatency, RequestFailure, UpstreamCounter};

use crate::client::RequestEvent;
use crate::config::header_rules::HeaderRules;
use crate::config::limits::HttpLimits;
use crate::guard::frame_tap::BlockFields;
use crate::request::RequestState;
use crate::route::destination::Routing;
use crate::runtime::tasks::{SpareTasks, WokenConnections};
use crate::runtime::timers::Timers;
use crate::runtime::written::WrittenBytes;
use crate::upstream::http1::connection::PooledConn;
use crate::upstream::http2::connection::ConnNews;
use crate::upstream::pool::UpstreamPool;

/// The number of request heads whose memory is reused, and the largest such memory, in bytes.
const SPARE_HEADS_MAX: usize = 256;
const SPARE_HEAD_BYTES_MAX: usize = 1 << 10;

#[derive(Debug)]
pub(crate) struct HttpShared {
    pub(crate) routing: Routing,
    pub(crate) limits: Arc<LiveOptions<HttpLimits>>,
    pub(crate) request_rates: ClientRates,
    /// Peers whose `X-Forwarded-*` fields are believed.
    pub(crate) trusted_forwarders: Networks,
    pub(crate) sends_tls_fields: bool,
    pub(crate) request_rules: HeaderRules,
    pub(crate) response_rules: HeaderRules,
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
    upstream_counts: RefCell<UpstreamDeltas>,
    /// Open and idle connections of each upstream at the last hand-over.
    handed_over_conns: RefCell<Vec<(i64, i64)>>,
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
    pub(crate) spare_events: RefCell<Vec<RequestEvent>>,
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
            upstream_counts: RefCell::default(),
            handed_over_conns: RefCell::default(),
            connects: RefCell::default(),
            connects_failed: Cell::default(),
            requests: Cell::new(0),
            handed_over: Cell::default(),
            spare_heads: RefCell::default(),
            spare_written: RefCell::default(),
            spare_framed: RefCell::default(),
            spare_events: RefCell::default(),
            spare_fields: RefCell::default(),
        };
        worker.apply_settings();
        Rc::new(worker)
    }

    /// Stores what only a connection's context provides.
    pub(crate) fn begin(&self, context: &WorkerContext) {
        self.pool.borrow_mut().set_up(&context.registry, &context.upstream_tls);
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

    /// Counts a new connection to an upstream.
    pub(crate) fn count_connect(&self, upstream: usize, connection: &PooledConn) {
        let took = connection.connect_time();
        self.connects.borrow_mut().record(took);
        self.count_upstream(upstream, |upstream| count_connection(upstream, took, connection.handshake()));
    }

    /// Counts a connection to an upstream that could not be established.
    pub(crate) fn count_connect_failed(&self, upstream: usize, error: &io::Error) {
        self.connects_failed.set(self.connects_failed.get() + 1);
        self.count_upstream(upstream, |upstream| count_failed_attempt(upstream, error));
    }

    /// Counts and tells that TLS has failed before an answer, if it has: with TLS 1.3 an upstream refuses the proxy's
    /// certificate when the handshake is over.
    #[cold]
    pub(crate) fn count_tls_failure(&self, upstream: usize, error: &io::Error) {
        if UpstreamTlsError::of(error).is_some() {
            self.upstreams.failed(upstream, error, self.now());
            self.count_upstream(upstream, |upstream| count_failed_attempt(upstream, error));
        }
    }

    /// Polls the HTTP/2 connections to upstreams that have something to do.
    pub(crate) fn run_http2(&self) {
        if !self.pool.borrow().has_http2 {
            return;
        }
        let news = self.pool.borrow_mut().run_http2();
        for news in news {
            match news {
                ConnNews::Begun(upstream) => self.upstreams.succeeded(upstream, self.now()),
                ConnNews::Failed { upstream, error, has_others } => {
                    self.count_connect_failed(upstream, &error);
                    if !has_others {
                        self.upstreams.failed(upstream, &error, self.now());
                    }
                }
            }
        }
    }

    /// Counts a request that was sent to an upstream and is over. `body_out` is what the client got of the upstream's response.
    pub(crate) fn count_exchange(&self, upstream: usize, request: &FinishedRequest<'_>, body_out: u64) {
        use RequestFailure as F;
        self.count_upstream(upstream, |upstream| {
            upstream.count(UpstreamCounter::Exchanges, 1);
            upstream.count(UpstreamCounter::BytesIn, request.body_in.unwrap_or(0));
            upstream.count(UpstreamCounter::BytesOut, body_out);
            match request.failure {
                Some(F::UpstreamClosed | F::UpstreamInvalid | F::UpstreamCut) => {
                    upstream.count(UpstreamCounter::Broken, 1);
                }
                Some(F::UpstreamTimeout) => upstream.count(UpstreamCounter::Late, 1),
                Some(_) => {}
                None => {
                    let is_5xx = request.status.is_some_and(|status| status >= 500);
                    upstream.count(UpstreamCounter::Status5xx, u64::from(is_5xx));
                }
            }
        });
    }

    fn count_upstream(&self, upstream: usize, add: impl FnOnce(&mut UpstreamDelta)) {
        add(self.upstream_counts.borrow_mut().at(upstream));
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
        delta.counters[ProxyCounter::UpstreamConnectsFailed] += self.connects_failed.take();
        delta.latencies[ProxyLatency::Connect].add(&connects);
        connects.clear();
        let http = delta.http.get_or_insert_default();
        // The target is empty, so swapping is enough and no histograms are added.
        std::mem::swap(&mut **http, &mut *self.delta.borrow_mut());
        let pool = self.pool.borrow();
        let conns = pool.conns();
        let gauges = HttpGauges {
            requests: self.requests.get(),
            queued: pool.queued() as i64,
            upstream_open: conns.iter().map(|(open, _)| open).sum(),
            upstream_idle: conns.iter().map(|(_, idle)| idle).sum(),
        };
        http.gauges.add(gauges.since(self.handed_over.replace(gauges)));
        let mut counts = self.upstream_counts.borrow_mut();
        delta.upstreams.add(&counts);
        counts.clear();
        let mut before = self.handed_over_conns.borrow_mut();
        before.resize(conns.len(), (0, 0));
        for (index, ((open, idle), before)) in conns.into_iter().zip(&mut *before).enumerate() {
            let upstream = delta.upstreams.at(index);
            upstream.open_change += open - before.0;
            upstream.idle_change += idle - before.1;
            *before = (open, idle);
        }
    }
}
