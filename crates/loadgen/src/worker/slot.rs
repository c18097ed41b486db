//! A slot: a place for one connection at a time, of which a thread has as many as the plan gives it.

use crate::connection::Connection;
use crate::ledger::Request;

/// First wait after a connection that came to nothing; it doubles with each further one.
const BACKOFF_NS_MIN: u64 = 10_000_000;
/// Longest such wait.
const BACKOFF_NS_MAX: u64 = 1_000_000_000;

/// What a slot is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It has no connection.
    Vacant,
    /// It has no connection and makes none before its deadline.
    BackingOff,
    /// TCP is being set up, for a request.
    Connecting,
    /// TLS is being set up, for a request.
    Handshaking,
    /// Its connection waits for a request.
    Ready,
    /// A request is being sent, or its answer received.
    Exchanging,
    /// The last answer is whole, and it is the server's turn to close.
    Parting,
    /// We have closed; what the server still says is read up to its end.
    Closing,
}

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) phase: Phase,
    pub(super) connection: Option<Box<Connection>>,
    /// Whose connection it is, as an index.
    pub(super) client: usize,
    /// The request, in the phases that have one.
    pub(super) request: Option<Request>,
    /// Bytes of the request that the connection has taken.
    pub(super) handed: usize,
    /// Bytes of the request that went as early data, while the handshake lasts.
    pub(super) early_bytes: usize,
    /// When the answer began, if it did not come in one piece.
    pub(super) first_byte_ns: Option<u64>,
    /// When it became free last.
    pub(super) free_ns: u64,
    /// The request asks the server to close.
    pub(super) is_last: bool,
    /// Addresses of the server that were tried for this connection.
    pub(super) addresses_tried: usize,
    /// When the phase is over if nothing happens; `u64::MAX` for never.
    pub(super) deadline_ns: u64,
    backoff_ns: u64,
}

impl Slot {
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::Vacant,
            connection: None,
            client: 0,
            request: None,
            handed: 0,
            early_bytes: 0,
            first_byte_ns: None,
            free_ns: 0,
            is_last: false,
            addresses_tried: 0,
            deadline_ns: u64::MAX,
            backoff_ns: BACKOFF_NS_MIN,
        }
    }

    pub(super) fn enter(&mut self, phase: Phase, deadline_ns: u64) {
        self.phase = phase;
        self.deadline_ns = deadline_ns;
    }

    /// Which template the request that it has is made from.
    pub(super) fn template(&self) -> Option<usize> {
        self.request.as_ref().map(|request| request.template)
    }

    /// True if it can take a request.
    pub(super) fn is_free(&self) -> bool {
        matches!(self.phase, Phase::Vacant | Phase::Ready)
    }

    /// True if there is nothing to wait for.
    pub(super) fn is_at_rest(&self) -> bool {
        matches!(self.phase, Phase::Vacant | Phase::BackingOff)
    }

    /// The wait after a connection that came to nothing.
    pub(super) fn back_off(&mut self, now_ns: u64) {
        self.enter(Phase::BackingOff, now_ns + self.backoff_ns);
        self.backoff_ns = (self.backoff_ns * 2).min(BACKOFF_NS_MAX);
    }

    /// A connection has come to something.
    pub(super) fn note_success(&mut self) {
        self.backoff_ns = BACKOFF_NS_MIN;
    }
}
