//! A handler beside which the TLS of some names is passed to upstreams unread.

use std::time::Instant;

use mio::event::Event;
use records::delta::ProxyDelta;
use records::kinds::ConnectionOutcome;
use records::metrics::UpstreamCounter;

use super::{Relay, UpstreamConn};
use crate::accept::proxy_protocol::Endpoints;
use crate::connection::handler::{ClientSession, ConnEnd, Handler, NextStep, WorkerContext};
use crate::tls::PassedVerdict;
use crate::upstream::counting::count_handshake;
use crate::upstream::dial::UpstreamDialer;

/// Relays a client whose TLS is passed, and lets `H` serve a client whose TLS is terminated.
pub(crate) enum PassingHandler<H> {
    Passed(PassedRelay),
    Terminated(H),
}

/// Relays a client whose TLS is passed, and counts its handshake with the upstream.
pub(crate) struct PassedRelay {
    relay: Relay,
    is_counted: bool,
}

pub(crate) struct PassingResources<R> {
    pub(crate) dialer: UpstreamDialer,
    pub(crate) terminated: R,
}

impl PassedRelay {
    /// Counts the handshake once its end is known. If no upstream was reached, there was none.
    fn count(&mut self, verdict: Option<PassedVerdict>, context: &mut WorkerContext) {
        let UpstreamConn::Connected { choice, .. } = &self.relay.upstream else { return };
        let Some(verdict) = verdict.filter(|_| !self.is_counted) else { return };
        self.is_counted = true;
        let upstream = context.stats.upstream(choice.index);
        match verdict {
            PassedVerdict::Complete(handshake) => count_handshake(upstream, &handshake),
            PassedVerdict::Failed => upstream.count(UpstreamCounter::TlsFailed, 1),
            PassedVerdict::Unjudged => upstream.count(UpstreamCounter::TlsUnjudged, 1),
        }
    }
}

/// Calls the function of whichever handler it is.
macro_rules! delegate {
    ($handler:expr, $one:ident => $call:expr) => {
        match $handler {
            PassingHandler::Passed(PassedRelay { relay: $one, .. }) => $call,
            PassingHandler::Terminated($one) => $call,
        }
    };
}

impl<H: Handler> Handler for PassingHandler<H> {
    type Resources = PassingResources<H::Resources>;

    fn start(
        session: &mut ClientSession,
        endpoints: Option<Endpoints>,
        context: &mut WorkerContext,
        resources: &mut Self::Resources,
    ) -> Self {
        if session.is_passed() {
            let destination = context.routes.passed(session.tls_server_name());
            let relay = Relay::to(destination, session, endpoints, context, &resources.dialer);
            return Self::Passed(PassedRelay { relay, is_counted: false });
        }
        Self::Terminated(H::start(session, endpoints, context, &mut resources.terminated))
    }

    fn note(&mut self, event: &Event) {
        delegate!(self, handler => handler.note(event));
    }

    fn wake(&mut self) {
        delegate!(self, handler => handler.wake());
    }

    fn read(&mut self, session: &mut ClientSession, context: &mut WorkerContext) -> Result<(), ConnEnd> {
        match self {
            Self::Passed(passed) => {
                let read = passed.relay.read(session, context);
                passed.count(session.passed_verdict(), context);
                read
            }
            Self::Terminated(handler) => handler.read(session, context),
        }
    }

    fn write(
        &mut self,
        session: &mut ClientSession,
        context: &mut WorkerContext,
        resources: &mut Self::Resources,
    ) -> Result<NextStep, ConnEnd> {
        match self {
            Self::Passed(passed) => passed.relay.write(session, context, &mut resources.dialer),
            Self::Terminated(handler) => handler.write(session, context, &mut resources.terminated),
        }
    }

    fn expired(&mut self, session: &mut ClientSession, context: &mut WorkerContext) -> Result<(), ConnEnd> {
        delegate!(self, handler => handler.expired(session, context))
    }

    fn limits_changed(&mut self, session: &mut ClientSession, context: &mut WorkerContext) {
        delegate!(self, handler => handler.limits_changed(session, context));
    }

    fn is_unused(&self, session: &ClientSession) -> bool {
        delegate!(self, handler => handler.is_unused(session))
    }

    fn idle_since(&self, session: &ClientSession) -> Option<Instant> {
        delegate!(self, handler => handler.idle_since(session))
    }

    fn close_idle(
        &mut self,
        session: &mut ClientSession,
        context: &mut WorkerContext,
    ) -> Result<(), ConnEnd> {
        delegate!(self, handler => handler.close_idle(session, context))
    }

    fn stop(
        &mut self,
        outcome: ConnectionOutcome,
        session: &ClientSession,
        context: &mut WorkerContext,
        resources: &mut Self::Resources,
    ) {
        match self {
            Self::Passed(passed) => {
                let verdict = session.passed_verdict().unwrap_or(PassedVerdict::Failed);
                passed.count(Some(verdict), context);
                passed.relay.stop(outcome, session, context, &mut resources.dialer);
            }
            Self::Terminated(handler) => handler.stop(outcome, session, context, &mut resources.terminated),
        }
    }

    fn take_woken(resources: &mut Self::Resources) -> Vec<usize> {
        let mut woken = H::take_woken(&mut resources.terminated);
        woken.append(&mut resources.dialer.take_woken());
        woken
    }

    // The dialer has no sockets, settings, counts or deadlines of its own.

    fn note_resources(resources: &mut Self::Resources, key: usize, event: &Event) {
        H::note_resources(&mut resources.terminated, key, event);
    }

    fn settings_changed(resources: &mut Self::Resources) {
        H::settings_changed(&mut resources.terminated);
    }

    fn hand_over(resources: &mut Self::Resources, delta: &mut ProxyDelta) {
        H::hand_over(&mut resources.terminated, delta);
    }

    fn end_resources(resources: &mut Self::Resources) {
        H::end_resources(&mut resources.terminated);
    }

    fn close_idle_resources(resources: &mut Self::Resources, until: Instant) {
        H::close_idle_resources(&mut resources.terminated, until);
    }

    fn expire_resources(resources: &mut Self::Resources, now: Instant) {
        H::expire_resources(&mut resources.terminated, now);
    }

    fn next_deadline(resources: &Self::Resources) -> Option<Instant> {
        H::next_deadline(&resources.terminated)
    }
}
