//! The end of a session, and its record.

use std::fmt::Write as _;
use std::io;
use std::time::{Duration, Instant};

use records::kinds::{ConnectionOutcome, ConnectionRecord};
use records::metrics::ProxyCounter;

use super::{Account, ClientSession, READ_BYTES_MAX};
use crate::connection::LINGER_TIMEOUT;
use crate::connection::ending::{ConnEnd, NextStep};
use crate::io::socket::IoResult;
use crate::tls::EngineError;
use crate::worker::context::WorkerContext;

impl ClientSession {
    /// The end that an error of the client's socket leads to.
    #[cold]
    pub(crate) fn broken(&self, error: &io::Error) -> ConnEnd {
        // A client may leave as it likes once either side has ended and it has everything it was owed.
        let has_sent_all = self.from_client.source_ended && self.from_client.pending.is_empty();
        let is_over = !self.owes_client && (has_sent_all || self.to_client.source_ended);
        let outcome = if self.is_handshaking() {
            ConnectionOutcome::HandshakeEof
        } else if is_over {
            ConnectionOutcome::Ended
        } else {
            ConnectionOutcome::ClientBroken
        };
        ConnEnd::at_once(outcome, error)
    }

    #[cold]
    pub(crate) fn tls_failed(&self, error: &EngineError) -> ConnEnd {
        let outcome = if self.is_handshaking() {
            error.handshake_outcome(self.tls.has_answered())
        } else {
            ConnectionOutcome::ClientBroken
        };
        ConnEnd::after_sending(outcome, error)
    }

    /// Gives the client a moment to take the last bytes and end its side.
    pub(crate) fn begin_closing(&mut self, context: &mut WorkerContext) {
        self.release_ticket(context);
        self.from_client.pending.clear();
        self.to_client.source_ended = true;
        self.set_deadline(context.now + LINGER_TIMEOUT, context);
    }

    /// Reads and drops further bytes of the client, so closing does not reset the connection.
    pub(crate) fn drop_input(&mut self, context: &mut WorkerContext) -> io::Result<()> {
        if self.socket.is_readable() {
            match self.socket.read(&mut context.scratch[..READ_BYTES_MAX])? {
                IoResult::Bytes(n) => context.stats.count(ProxyCounter::WireIn, n as u64),
                IoResult::Blocked => {}
                IoResult::End => self.from_client.source_ended = true,
            }
        }
        Ok(())
    }

    /// Until when a client that reads its pending bytes may continue, if there are any.
    pub(crate) fn linger_until(&self, context: &WorkerContext) -> Option<Instant> {
        let until = self.active_at + LINGER_TIMEOUT;
        (!self.to_client.pending.is_empty() && until > context.now).then_some(until)
    }

    pub(crate) fn next_closing(&self) -> NextStep {
        if self.from_client.source_ended {
            if self.to_client.sink_closed { NextStep::Close } else { NextStep::Wait }
        } else if self.socket.is_readable() {
            NextStep::Again
        } else {
            NextStep::Wait
        }
    }

    /// Lets the kernel drop its bytes for the client when the socket is closed.
    pub(crate) fn reset(&mut self, context: &mut WorkerContext) {
        self.socket.reset_when_closed();
        self.drop_pending(context);
    }

    /// Counts its end, if that is an error.
    pub(crate) fn count_error(
        &self,
        outcome: ConnectionOutcome,
        in_handshake: bool,
        context: &mut WorkerContext,
    ) {
        if outcome.is_error() {
            context.stats.error(self.account.slot, outcome, in_handshake);
            if in_handshake {
                context.stats.usage.failed(&self.tls.session());
            }
        }
    }

    /// Counts its end, and closes its socket.
    pub(crate) fn close(mut self, outcome: ConnectionOutcome, detail: String, context: &mut WorkerContext) {
        self.clear_deadline(context);
        self.release_ticket(context);
        self.drop_pending(context);
        let Account { client, slot, holds_place, accepted_at, bytes_in, bytes_out, usage, .. } = self.account;
        if holds_place {
            context.control.per_client.leave(client);
        }
        let lifetime = context.now.saturating_duration_since(accepted_at);
        context.stats.closed(slot, outcome.is_error() && bytes_in == 0, lifetime);
        self.account.mix.end([bytes_in, bytes_out], &mut context.stats.delta.mix);
        if let Some(slots) = usage {
            context.stats.usage.closed(slots, bytes_in, bytes_out);
        }
        let records_names = context.stats.usage.records_names;
        context.stats.record(outcome, context.now, || {
            let mut record = self.record(outcome, detail, lifetime);
            if !records_names {
                record.sni.clear();
            } else if let ConnectionOutcome::Certificate(_) = outcome
                && let Some(refused) = self.tls.session().refused_certificate()
            {
                let _ = write!(record.detail, " (of {:?}, by {:?})", refused.subject, refused.issuer);
            }
            record
        });
    }

    fn record(&self, outcome: ConnectionOutcome, detail: String, lifetime: Duration) -> ConnectionRecord {
        let session = self.tls.session();
        ConnectionRecord {
            conn: self.account.id,
            client: self.account.client,
            outcome,
            detail,
            tls_version: session.version_name().to_owned(),
            cipher: session.cipher_name(),
            group: session.group_name().to_owned(),
            sni: session.server_name(),
            alpn: session.alpn(),
            client_name: session.client_name(),
            resumed: session.is_resumed(),
            bytes_in: self.account.bytes_in,
            bytes_out: self.account.bytes_out,
            lifetime_us: u64::try_from(lifetime.as_micros()).unwrap_or(u64::MAX),
        }
    }
}
