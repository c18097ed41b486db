//! One client after its handshake: hyper's connection, polled by the worker.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use mio::event::Event;
use proxy_core::handler::{ClientSession, ConnEnd, Handler, Next, WorkerContext};
use proxy_core::proxy_protocol::Endpoints;
use proxy_core::{LiveOptions, UpstreamTarget, Upstreams};
use telemetry::{HttpCounter, HttpDelta, Outcome, ProxyDelta};

use crate::config::Routing;
use crate::floods::FloodLimits;
use crate::forward::forward;
use crate::frame_tap::FrameTap;
use crate::io::{Wire, WireIo};
use crate::limits::HttpLimits;
use crate::tasks::{Tasks, WokenConnections};
use crate::timers::Timers;
use crate::upstream::pool::{Pool, PoolLimits, UpstreamAddr};

/// How long a client may take for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Polls of a connection's woken tasks in a turn, before other connections have theirs.
const ROUNDS_MAX: usize = 8;

/// What the connections of a worker share.
#[derive(Debug)]
pub(crate) struct HttpResources {
    routing: Arc<Routing>,
    upstreams: Arc<Upstreams>,
    limits: Arc<LiveOptions<HttpLimits>>,
    pool: Rc<RefCell<Pool>>,
    timers: Timers,
    woken: WokenConnections,
    counted: Rc<RefCell<HttpDelta>>,
}

impl HttpResources {
    /// For a worker of this number.
    pub(crate) fn new(
        routing: Arc<Routing>,
        upstreams: Arc<Upstreams>,
        limits: Arc<LiveOptions<HttpLimits>>,
        _worker: usize,
    ) -> Self {
        let addr = |index: usize| match upstreams.target(index) {
            UpstreamTarget::Unix(addr) => UpstreamAddr::Unix(addr.clone()),
            UpstreamTarget::Tcp(addrs) => UpstreamAddr::Tcp(addrs[0]),
        };
        let addrs = (0..upstreams.len()).map(addr).collect();
        let current = limits.current();
        let pool = PoolLimits {
            connections_max: current.upstream_connections_max,
            queued_max: current.queue_max,
            idle_timeout: current.upstream_idle_timeout,
        };
        Self {
            routing,
            upstreams,
            limits,
            pool: Rc::new(RefCell::new(Pool::new(addrs, pool))),
            timers: Timers::default(),
            woken: WokenConnections::default(),
            counted: Rc::default(),
        }
    }
}

/// Serves one client.
#[derive(Debug)]
pub(crate) struct HttpConnection {
    wire: Rc<RefCell<Wire>>,
    tasks: Tasks,
    has_finished: Rc<RefCell<Option<Result<(), hyper::Error>>>>,
    is_again: bool,
    /// Of HTTP/2.
    frames: Option<FrameTap>,
    counted: Rc<RefCell<HttpDelta>>,
}

impl Handler for HttpConnection {
    type Resources = HttpResources;

    fn start(
        session: &mut ClientSession,
        _: Option<Endpoints>,
        context: &mut WorkerContext,
        resources: &mut HttpResources,
    ) -> Self {
        // Without it every request fails, and says so.
        let _ = resources.pool.borrow_mut().set_registry(&context.registry);
        let wire = Rc::new(RefCell::new(Wire::default()));
        let tasks = Tasks::new(session.key(), resources.woken.clone());
        let has_finished = Rc::new(RefCell::new(None));
        let pool = Rc::clone(&resources.pool);
        let service = service_fn(move |request| forward(Rc::clone(&pool), request));
        let io = WireIo(Rc::clone(&wire));
        let finished = Rc::clone(&has_finished);
        let limits = resources.limits.current();
        let counted = Rc::clone(&resources.counted);
        let mut frames = None;
        if session.alpn() == b"h2" {
            let floods =
                FloodLimits { resets_max: limits.resets_max, control_frames_max: limits.control_frames_max };
            frames = Some(FrameTap::new(floods, context.now));
            counted.borrow_mut().counters[HttpCounter::Connections2] += 1;
            let connection = http2::Builder::new(tasks.clone())
                .timer(resources.timers.clone())
                .initial_stream_window_size(64 << 10)
                .initial_connection_window_size(256 << 10)
                .max_send_buf_size(64 << 10)
                .max_concurrent_streams(limits.streams_max as u32)
                .max_header_list_size(limits.header_bytes_max as u32)
                .serve_connection(io, service);
            tasks.spawn(async move { *finished.borrow_mut() = Some(connection.await) });
        } else {
            let connection = http1::Builder::new()
                .timer(resources.timers.clone())
                .header_read_timeout(HEAD_TIMEOUT)
                .serve_connection(io, service);
            tasks.spawn(async move { *finished.borrow_mut() = Some(connection.await) });
        }
        Self { wire, tasks, has_finished, is_again: false, frames, counted }
    }

    fn note(&mut self, _: &Event) {}

    fn wake(&mut self) {}

    fn read(&mut self, session: &mut ClientSession, context: &mut WorkerContext) -> Result<(), ConnEnd> {
        session.read(context)?;
        let received = session.received().len();
        if let Some(frames) = &mut self.frames
            && received > 0
        {
            let counters = &mut self.counted.borrow_mut().counters;
            if let Some(flood) = frames.note_received(session.received(), context.now, counters) {
                return Err(frames.end(flood, session, context, counters));
            }
        }
        let mut wire = self.wire.borrow_mut();
        if received > 0 {
            wire.received.extend_from_slice(session.received());
            session.consume(received, context);
            wire.wake_reader();
        }
        if session.has_client_ended() && !wire.has_client_ended {
            wire.has_client_ended = true;
            wire.wake_reader();
        }
        Ok(())
    }

    fn write(
        &mut self,
        session: &mut ClientSession,
        context: &mut WorkerContext,
        resources: &mut HttpResources,
    ) -> Result<Next, ConnEnd> {
        resources.timers.set_now(context.now);
        loop {
            self.is_again = self.tasks.run(ROUNDS_MAX);
            let mut wire = self.wire.borrow_mut();
            if wire.written.is_empty() {
                break;
            }
            let written = std::mem::take(&mut wire.written);
            session.send(&written, context)?;
            if let Some(frames) = &mut self.frames {
                let counters = &mut self.counted.borrow_mut().counters;
                if let Some(flood) = frames.note_sent(&written, context.now, counters) {
                    return Err(frames.end(flood, session, context, counters));
                }
            }
            session.flush(context)?;
            let unsent = if session.owes_client() { written.len() } else { 0 };
            wire.written = written;
            wire.written.clear();
            wire.set_unsent(unsent);
            if unsent > 0 {
                break;
            }
        }
        session.flush(context)?;
        if !session.owes_client() {
            self.wire.borrow_mut().set_unsent(0);
        }
        if let Some(result) = self.has_finished.borrow_mut().take() {
            session.close_notify(context);
            let detail = result.err().map_or_else(String::new, |error| error.to_string());
            return Err(ConnEnd::after_sending(Outcome::Ended, detail));
        }
        Ok(if self.is_again || session.wants_read() { Next::Again } else { Next::Wait })
    }

    fn expired(&mut self, _: &mut ClientSession, _: &mut WorkerContext) -> Result<(), ConnEnd> {
        Ok(())
    }

    fn limits_changed(&mut self, _: &mut ClientSession, _: &mut WorkerContext) {}

    fn is_unused(&self, session: &ClientSession) -> bool {
        !session.has_moved_bytes()
    }

    fn stop(&mut self, _: &mut HttpResources) {
        self.tasks.clear();
    }

    fn take_woken(resources: &mut HttpResources) -> Vec<usize> {
        resources.woken.take()
    }

    fn next_deadline(resources: &HttpResources) -> Option<Instant> {
        resources.timers.next().into_iter().chain(resources.pool.borrow().next_deadline()).min()
    }

    fn hand_over(resources: &mut HttpResources, delta: &mut ProxyDelta) {
        let mut counted = resources.counted.borrow_mut();
        delta.http.get_or_insert_default().add(&counted);
        counted.clear();
    }

    fn expire_resources(resources: &mut HttpResources, now: Instant) {
        resources.timers.expire(now);
        resources.pool.borrow_mut().expire(now);
    }

    fn note_resources(resources: &mut HttpResources, key: usize, event: &Event) {
        resources.pool.borrow_mut().note(key, event);
    }
}
