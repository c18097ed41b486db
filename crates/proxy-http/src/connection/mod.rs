//! One client after its handshake: hyper's connection, polled by the worker.

mod deadline;
mod serving;

use records::kinds::HttpVersion;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use mio::event::Event;
use proxy_core::handler::{ClientSession, ConnEnd, Handler, NextStep, WorkerContext};
use proxy_core::proxy_protocol::Endpoints;
use records::delta::ProxyDelta;
use records::kinds::ConnectionOutcome;
use records::metrics::{Counters, HttpCounter, RequestFailure};

use self::serving::HttpConnEnd;
use crate::client::{ClientConn, RequestEvent};
use crate::guard::frame_tap::FrameTap;
use crate::runtime::io::{WireBuffers, WireIo};
use crate::runtime::tasks::Tasks;
use crate::worker::HttpWorker;

/// Polls of a connection's woken tasks in a turn, before other connections have theirs.
const ROUNDS_MAX: usize = 8;
/// Writes to a client in a turn, before other connections have theirs.
const WRITES_MAX: usize = 16;

#[derive(Debug)]
pub(crate) struct HttpConnection {
    client: Rc<ClientConn>,
    wire: Rc<RefCell<WireBuffers>>,
    tasks: Tasks,
    /// How hyper's connection has ended, once it has.
    ended: Rc<RefCell<Option<HttpConnEnd>>>,
    /// The frame tap of an HTTP/2 connection.
    frames: Option<RefCell<FrameTap>>,
}

impl Handler for HttpConnection {
    type Resources = Rc<HttpWorker>;

    fn start(
        session: &mut ClientSession,
        _: Option<Endpoints>,
        context: &mut WorkerContext,
        worker: &mut Rc<HttpWorker>,
    ) -> Self {
        worker.set_now(context.now);
        worker.begin(context);
        let client = ClientConn::new(worker, session, context.now);
        let wire =
            Rc::new(RefCell::new(WireBuffers::new(client.held.long_pieces.clone(), client.http1.clone())));
        let tasks = Tasks::new(session.key(), worker.woken.clone(), worker.spare_tasks.clone());
        let ended = serving::spawn(&client, WireIo(Rc::clone(&wire)), &tasks);
        let frames = (client.version == HttpVersion::Http2)
            .then(|| FrameTap::new(&worker.limits(), context.now).into());
        let connection = Self { client, wire, tasks, ended, frames };
        connection.begin_drain(context);
        connection.arm_deadline(session, context);
        connection
    }

    fn note(&mut self, _: &Event) {}

    fn wake(&mut self) {}

    fn read(&mut self, session: &mut ClientSession, context: &mut WorkerContext) -> Result<(), ConnEnd> {
        session.read(context)?;
        self.receive(session, context);
        Ok(())
    }

    fn write(
        &mut self,
        session: &mut ClientSession,
        context: &mut WorkerContext,
        worker: &mut Rc<HttpWorker>,
    ) -> Result<NextStep, ConnEnd> {
        worker.set_now(context.now);
        worker.is_short_of_memory.set(context.is_short_of_memory());
        self.wire.borrow_mut().lend(&worker.spare_written);
        let is_again = self.serve(session, context)?;
        self.wire.borrow_mut().reclaim(&worker.spare_written);
        let has_flushed = !session.owes_client() && self.wire.borrow().written.is_empty();
        if has_flushed {
            let failed = self.client.count_framed(None);
            let ended = self.ended.borrow_mut().take();
            // A response that its upstream breaks ends HTTP/1.1's connection, which counts as the error of both.
            let is_broken = ended.as_ref().is_some_and(HttpConnEnd::is_of_upstream);
            let failed = failed.saturating_sub(is_broken.into());
            if failed > 0 {
                session.count_failed_requests(failed, context);
            }
            if let Some(ending) = ended {
                return Err(self.end(&ending, session, context));
            }
        }
        // It may have come with the request before.
        if self.client.is_idle() && self.wire.borrow().is_within_head() {
            self.client.begin_head(context.now);
        }
        let held = &self.client.held;
        held.update_stall(context.now);
        session.set_handler_bytes(held.total(), held.stalled_since());
        self.arm_deadline(session, context);
        Ok(if is_again || session.wants_read() { NextStep::Again } else { NextStep::Wait })
    }

    fn expired(&mut self, session: &mut ClientSession, context: &mut WorkerContext) -> Result<(), ConnEnd> {
        self.check_deadline(session, context)
    }

    fn limits_changed(&mut self, session: &mut ClientSession, context: &mut WorkerContext) {
        self.client.worker.connect_timeout.set(context.limits.connect_timeout);
        self.begin_drain(context);
        self.arm_deadline(session, context);
    }

    fn is_unused(&self, session: &ClientSession) -> bool {
        self.client.is_idle() && self.client.head_began_at().is_none() && !session.owes_client()
    }

    fn idle_since(&self, session: &ClientSession) -> Option<Instant> {
        let is_idle = self.is_unused(session) && !self.client.is_ending();
        is_idle.then(|| self.client.idle_since().max(session.active_at()))
    }

    fn close_idle(
        &mut self,
        session: &mut ClientSession,
        context: &mut WorkerContext,
    ) -> Result<(), ConnEnd> {
        self.end_idle(session, context)
    }

    fn stop(
        &mut self,
        outcome: ConnectionOutcome,
        _: &ClientSession,
        _: &mut WorkerContext,
        _: &mut Rc<HttpWorker>,
    ) {
        self.tasks.clear();
        self.client.count_framed(Some(cut_by(outcome)));
    }

    fn take_woken(worker: &mut Rc<HttpWorker>) -> Vec<usize> {
        worker.run_http2();
        worker.woken.take()
    }

    fn note_resources(worker: &mut Rc<HttpWorker>, key: usize, event: &Event) {
        worker.pool.borrow_mut().note(key, event);
    }

    fn settings_changed(worker: &mut Rc<HttpWorker>) {
        worker.apply_settings();
    }

    fn hand_over(worker: &mut Rc<HttpWorker>, delta: &mut ProxyDelta) {
        worker.hand_over(delta);
    }

    fn end_resources(worker: &mut Rc<HttpWorker>) {
        worker.pool.borrow_mut().close_idle();
    }

    fn close_idle_resources(worker: &mut Rc<HttpWorker>, until: Instant) {
        worker.pool.borrow_mut().close_unused_since(until);
    }

    fn expire_resources(worker: &mut Rc<HttpWorker>, now: Instant) {
        worker.set_now(now);
        worker.timers.expire();
        worker.pool.borrow_mut().expire(now);
    }

    fn next_deadline(worker: &Rc<HttpWorker>) -> Option<Instant> {
        worker.timers.next().into_iter().chain(worker.pool.borrow().next_deadline()).min()
    }
}

/// Why requests are cut that are under way when their connection ends.
fn cut_by(outcome: ConnectionOutcome) -> RequestFailure {
    match outcome {
        ConnectionOutcome::DrainTimeout => RequestFailure::DrainTimeout,
        ConnectionOutcome::IdleTimeout => RequestFailure::IdleTimeout,
        ConnectionOutcome::SendTimeout => RequestFailure::SendTimeout,
        ConnectionOutcome::PendingBound => RequestFailure::PendingBound,
        ConnectionOutcome::Ended
        | ConnectionOutcome::HandshakeTimeout
        | ConnectionOutcome::HandshakeEof
        | ConnectionOutcome::HandshakeAlert
        | ConnectionOutcome::NotTls
        | ConnectionOutcome::Incompatible
        | ConnectionOutcome::UnrecognizedName
        | ConnectionOutcome::Certificate(_)
        | ConnectionOutcome::HandshakeOther
        | ConnectionOutcome::AddressRefused
        | ConnectionOutcome::ConnectionsPerClient
        | ConnectionOutcome::ConnectionRate
        | ConnectionOutcome::HandshakeRate
        | ConnectionOutcome::MemoryMax
        | ConnectionOutcome::UpstreamConnect
        | ConnectionOutcome::UpstreamBroken
        | ConnectionOutcome::ClientBroken => RequestFailure::ClientGone,
    }
}

impl HttpConnection {
    /// Passes received bytes to hyper as far as there is room; true if there were any.
    fn receive(&self, session: &mut ClientSession, context: &mut WorkerContext) -> bool {
        let mut wire = self.wire.borrow_mut();
        let mut n = session.received().len().min(wire.room());
        if n > 0 {
            self.client.note_received(context.now);
            let (bytes, worker) = (&session.received()[..n], &self.client.worker);
            match &self.frames {
                Some(frames) => worker.count(|delta| {
                    let (mut tap, mut fields) = (frames.borrow_mut(), worker.spare_fields.borrow_mut());
                    n = tap.receive(bytes, &mut wire.received, context.now, &mut delta.counters, &mut fields);
                }),
                None => wire.received.extend_from_slice(bytes),
            }
            session.consume(n, context);
            wire.wake_reader();
        }
        let has_ended = session.has_client_ended() && session.received().is_empty();
        if has_ended && !wire.has_client_ended {
            wire.has_client_ended = true;
            wire.wake_reader();
        }
        n > 0
    }

    /// Polls hyper, and sends what it writes; true if there is more to do.
    fn serve(&self, session: &mut ClientSession, context: &mut WorkerContext) -> Result<bool, ConnEnd> {
        self.check_floods(session, context)?;
        for _ in 0..WRITES_MAX {
            let is_again = self.tasks.run(ROUNDS_MAX);
            self.client.take_events(|event| match event {
                RequestEvent::BegunAt(at) => session.count_request(at, context),
                RequestEvent::Answered(upstream, took) => session.count_exchange(upstream, took, context),
            });
            let has_sent = self.send(session, context)?;
            let has_received = self.receive(session, context);
            self.check_floods(session, context)?;
            if has_received || has_sent && self.tasks.are_woken() {
                continue;
            }
            let is_stuck = !is_again && !session.owes_client();
            if !is_again && !self.wire.borrow().is_blocked() {
                self.client.held.release_heads();
            }
            if !is_stuck || !self.client.held.call_next() {
                return Ok(is_again);
            }
        }
        Ok(true)
    }

    /// Sends what hyper has written; true if there were bytes and the client took all of them.
    fn send(&self, session: &mut ClientSession, context: &mut WorkerContext) -> Result<bool, ConnEnd> {
        let mut wire = self.wire.borrow_mut();
        let has_written = !wire.written.is_empty();
        if has_written {
            for part in wire.written.parts() {
                let resets = self.tap(|tap, counters| tap.note_sent(part, context.now, counters));
                let mut from = 0;
                for at in resets.into_iter().flatten() {
                    session.send(&part[from..at], context)?;
                    from = at;
                }
                session.send(&part[from..], context)?;
            }
            wire.written.clear();
        }
        if let Some(frames) = self.tap(FrameTap::take_own).flatten() {
            session.send(&frames, context)?;
        }
        session.flush(context)?;
        wire.set_unsent(session.unsent_bytes());
        Ok(has_written && !session.owes_client())
    }

    fn tap<T>(&self, look: impl FnOnce(&mut FrameTap, &mut Counters<HttpCounter>) -> T) -> Option<T> {
        let mut tap = self.frames.as_ref()?.borrow_mut();
        Some(self.client.worker.count(|delta| look(&mut tap, &mut delta.counters)))
    }

    /// Ends the connection if its frames are a flood.
    fn check_floods(&self, session: &mut ClientSession, context: &mut WorkerContext) -> Result<(), ConnEnd> {
        self.tap(|tap, counters| tap.check(session, context, counters)).unwrap_or(Ok(()))
    }

    /// In a drain, lets every request in flight finish, and begins to end the connection.
    fn begin_drain(&self, context: &WorkerContext) {
        if !context.is_draining || self.client.is_ending() {
            return;
        }
        self.client.set_ending();
        if self.client.version == HttpVersion::Http2 {
            self.client.shut_down();
        }
    }

    /// How the connection ends, after everything was sent.
    fn end(&self, ending: &HttpConnEnd, session: &mut ClientSession, context: &mut WorkerContext) -> ConnEnd {
        if let Some((failure, status)) = ending.refused {
            self.client.count_refused(failure, status, context.now);
        }
        // Without a close_notify the client can tell that an answer is cut.
        if !ending.is_of_upstream() {
            session.close_notify(context);
        }
        ConnEnd::after_sending(ending.outcome, &ending.detail)
    }
}
