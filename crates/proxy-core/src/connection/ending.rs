//! How a connection ends, and what is told of it.

use std::fmt::Display;
use std::io;
use std::time::Duration;

use telemetry::{ConnectionRecord, Outcome, ProxyCounter, clean};

use super::{Connection, LINGER_TIMEOUT, Phase, READ_BYTES_MAX};
use crate::io::socket::IoResult;
use crate::tls::EngineError;
use crate::worker::context::Context;
use crate::worker::timers::Kind;

impl Connection {
    pub(super) fn engine_failed(&mut self, error: &EngineError, context: &mut Context) {
        let outcome = match self.phase {
            Phase::Handshake => error.handshake_outcome(self.engine.has_answered()),
            _ => Outcome::ClientBroken,
        };
        self.begin_closing(outcome, error, context);
    }

    pub(super) fn client_broke(&mut self, error: &io::Error, context: &mut Context) {
        // A client that has said or been told that this is the end, and has all it was owed, may leave as it likes.
        let has_sent_all = self.inward.ended && self.inward.pending.is_empty();
        let is_over = !self.owes_client && (has_sent_all || self.outward.ended);
        let outcome = match self.phase {
            Phase::Handshake => Outcome::HandshakeEof,
            _ if is_over => Outcome::Ended,
            _ => Outcome::ClientBroken,
        };
        self.end(outcome, error, context);
        self.phase = Phase::Done;
    }

    /// Ends it now, whatever it is doing; [`Connection::write`] and [`Connection::close`] must follow.
    pub(crate) fn cut(&mut self, context: &mut Context) {
        if self.is_unused() {
            self.release_ticket(context);
            self.notify_close();
            self.begin_closing(Outcome::Ended, "", context);
        } else {
            self.end(Outcome::DrainTimeout, "cut when the proxy ended", context);
            self.phase = Phase::Done;
        }
    }

    /// Decides how it ends, unless that is decided already, and counts it if it is an error.
    pub(super) fn end(&mut self, outcome: Outcome, detail: impl Display, context: &mut Context) {
        if self.ending.is_none() {
            let in_handshake = self.phase == Phase::Handshake;
            context.handshaking -= usize::from(in_handshake);
            if self.awaits_header() {
                // It ends before anybody was named: it was the peer's own.
                self.header = None;
                context.account.clients.open(self.slot);
            }
            if outcome.is_error() {
                context.account.error(self.slot, outcome, in_handshake);
            }
            self.ending = Some((outcome, clean::text(&detail.to_string())));
        }
    }

    /// Ends it, after what waits for the client has been sent.
    pub(super) fn begin_closing(&mut self, outcome: Outcome, detail: impl Display, context: &mut Context) {
        self.end(outcome, detail, context);
        self.release_ticket(context);
        self.unlink(context);
        self.inward.pending.clear();
        self.phase = Phase::Closing;
        let at = context.now + LINGER_TIMEOUT;
        context.timers.arm(&mut self.deadline, self.key, Kind::Phase, at);
    }

    /// Reads and drops what the client still sends, so that closing does not reset the connection.
    pub(super) fn drop_input(&mut self, context: &mut Context) {
        if !self.client.is_readable() {
            return;
        }
        match self.client.read(&mut context.scratch[..READ_BYTES_MAX]) {
            Ok(IoResult::Bytes(n)) => context.account.count(ProxyCounter::WireIn, n as u64),
            Ok(IoResult::Blocked) => {}
            Ok(IoResult::End) => self.inward.ended = true,
            Err(_) => self.phase = Phase::Done,
        }
    }

    /// Counts its end and closes its sockets.
    pub(crate) fn close(mut self, context: &mut Context) {
        context.timers.disarm(&mut self.deadline, self.key, Kind::Phase);
        context.timers.disarm(&mut self.ticket, self.key, Kind::Ticket);
        self.drop_pending(context);
        self.unlink(context);
        if self.is_bounded {
            context.control.per_client.leave(self.client_id);
        }
        let lifetime = context.now.saturating_duration_since(self.accepted_at);
        context.account.closed(self.slot, self.bytes_in > 0, lifetime);
        let (outcome, detail) = self.ending.take().unwrap_or((Outcome::Ended, String::new()));
        let now = context.now;
        context.account.record(outcome, now, || self.record(outcome, detail, lifetime));
    }

    fn record(&self, outcome: Outcome, detail: String, lifetime: Duration) -> ConnectionRecord {
        let session = self.engine.session();
        ConnectionRecord {
            conn: self.id,
            client: self.client_id,
            outcome,
            detail,
            tls_version: session.version_name().to_owned(),
            cipher: session.cipher_name(),
            group: session.group_name().to_owned(),
            sni: session.server_name(),
            alpn: session.alpn(),
            client_name: session.client_name(),
            resumed: session.is_resumed(),
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
            lifetime_us: u64::try_from(lifetime.as_micros()).unwrap_or(u64::MAX),
        }
    }
}
