//! A connection of a slot: its transport and its protocol.

use crate::protocol::{ProtocolSession, Request};
use crate::stats::ConnectionOrigin;
use crate::worker::transport::Transport;

#[derive(Debug)]
pub(super) struct LoadConnection<S> {
    pub(super) transport: Transport,
    pub(super) session: S,
    pub(super) phase: ConnectionPhase,
    pub(super) slot: usize,
    /// The client that makes it, as an index.
    pub(super) client: usize,
    /// Addresses of the server that were tried for it.
    pub(super) addresses_tried: usize,
    /// The end of the phase if nothing happens; `u64::MAX` for never.
    pub(super) deadline_ns: u64,
    /// All its requests are of the warm-up, and that which it was made for.
    pub(super) is_warmup: bool,
    pub(super) origin: ConnectionOrigin,
    /// When it could carry its first request.
    pub(super) ready_ns: u64,
    /// Bytes that were sent as early data, until the handshake is done.
    pub(super) early_bytes: usize,
    /// It is in the queue of connections that may have something to send.
    pub(super) is_touched: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionPhase {
    /// TCP is being set up.
    Connecting,
    /// TLS is being set up.
    Handshaking,
    /// It carries requests, or waits for them.
    Open,
    /// The last response is complete, and the server closes first.
    AwaitingClose,
    /// We have closed, and read up to the server's end.
    Closing,
}

impl<S: ProtocolSession> LoadConnection<S> {
    /// A connection that has begun to be made for a request.
    pub(super) fn new(transport: Transport, slot: usize, client: usize, request: Option<&Request>) -> Self {
        Self {
            transport,
            session: S::new(),
            phase: ConnectionPhase::Connecting,
            slot,
            client,
            addresses_tried: 0,
            deadline_ns: request.map_or(u64::MAX, |request| request.deadline_ns),
            is_warmup: request.is_none_or(|request| request.warmup),
            origin: ConnectionOrigin::Plain,
            ready_ns: 0,
            early_bytes: 0,
            is_touched: false,
        }
    }

    pub(super) fn enter(&mut self, phase: ConnectionPhase, deadline_ns: u64) {
        self.phase = phase;
        self.deadline_ns = deadline_ns;
    }

    /// True if none of its requests was answered.
    pub(super) fn has_no_responses(&self) -> bool {
        self.session.carried() > 0 && self.session.answers() == 0
    }

    /// The origin of a request's connection: a connection that it waited for, or an open one.
    pub(super) fn origin_for(&self, request: &Request) -> ConnectionOrigin {
        if request.begun_ns <= self.ready_ns { self.origin } else { ConnectionOrigin::Reused }
    }
}
