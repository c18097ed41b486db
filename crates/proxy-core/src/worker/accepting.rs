//! Accepting connections, and the bounds that stop a worker from it.

use std::io;
use std::time::Duration;

use records::metrics::ProxyCounter;

use super::Worker;
use crate::accept::listeners::Listeners;
use crate::connection::Connection;
use crate::connection::handler::Handler;
use crate::notices::shortage_text;

/// How long to wait before accepting again when the process or the system is out of descriptors or memory.
const ACCEPT_BACK_OFF: Duration = Duration::from_millis(100);
/// How soon to retry at the limit: a connection of another worker may end.
const FULL_BACK_OFF: Duration = Duration::from_millis(10);

impl<H: Handler> Worker<H> {
    /// Accepts connections while there are places and descriptors for them.
    pub(super) fn accept(&mut self) {
        self.takes_last |= self.listeners.is_last_call(self.context.now);
        if self.accept_at.is_some_and(|at| self.context.now < at) {
            return;
        }
        self.accept_at = None;
        let open_before = self.connections.len();
        let mut left = self.ready.room();
        for i in 0..self.listeners.len() {
            while self.listeners.is_ready(i) && self.accept_at.is_none() && left > 0 {
                if let Some(max) = self.handshake_limit_reached() {
                    self.notices.report_handshake_limit(max, self.context.now);
                    left = 0;
                } else {
                    self.accept_one(i);
                    left -= 1;
                }
            }
        }
        if self.connections.len() > open_before {
            self.listeners.rotate();
        }
        if self.takes_last {
            // An empty backlog is closed. Any other stays open until there are places.
            self.listeners.close_empty();
        }
    }

    fn accept_one(&mut self, listener: usize) {
        if !self.has_place() {
            self.accept_at = Some(self.context.now + FULL_BACK_OFF);
            return;
        }
        let accepted = self.listeners.accept(listener).and_then(|(socket, peer)| {
            // This worker may not have seen the drain yet, while another one that shares the socket has.
            if self.control.is_draining() {
                Listeners::admit(&socket, peer)?;
            }
            let entry = self.connections.vacant_entry();
            let key = entry.key();
            let connection = Connection::accept(socket, peer, key, &mut self.context, &mut self.resources)?;
            let is_closed = connection.is_closed();
            entry.insert(Box::new(connection));
            Ok(is_closed.then_some(key))
        });
        let error = match accepted {
            Ok(over) => {
                if let Some(key) = over {
                    self.close(key);
                }
                return;
            }
            Err(error) => error,
        };
        self.control.limiter.leave();
        match error.kind() {
            // The backlog is empty, or the client has left it.
            io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted => {}
            // Out of descriptors or memory: trying again at once would spin, since the backlog stays as it is.
            _ => {
                self.context.stats.count(ProxyCounter::AcceptErrors, 1);
                let error = shortage_text(&error);
                let what = || format!("connections cannot be accepted: {error}; they wait in the backlog");
                self.notices.report_shortage(what, self.context.now);
                self.accept_at = Some(self.context.now + ACCEPT_BACK_OFF);
            }
        }
    }

    /// The limit on handshakes, if this worker has reached its share. The worker need not check again after a time:
    /// the end of a handshake and a change of the limit both wake it.
    pub(super) fn handshake_limit_reached(&self) -> Option<usize> {
        let bound = self.context.limits.handshakes_max;
        bound.filter(|&max| self.context.handshaking >= self.control.share(max))
    }

    /// Takes a place for a connection, if there is one.
    fn has_place(&self) -> bool {
        let has_place = self.control.limiter.enter();
        if !has_place {
            self.notices.report_connection_limit(self.control.limiter.max(), self.context.now);
        }
        has_place
    }
}
