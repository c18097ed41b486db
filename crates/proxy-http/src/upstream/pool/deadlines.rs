//! What a turn of the pool begins with: connections that are unused or withdrawn end, and what has waited is woken.

use std::task::Waker;
use std::time::Instant;

use super::http2::Opening;
use super::{UpstreamConns, UpstreamPool};

impl UpstreamPool {
    /// When [`UpstreamPool::expire`] is due.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let of = |of: &UpstreamConns| {
            let idle = of.idle.front().map(|(_, since)| *since + self.idle_timeout);
            let put_off = if let Opening::PutOff(until) = of.opening { Some(until) } else { None };
            [of.queue.retry_at, idle, put_off].into_iter().flatten().min()
        };
        let of_http2 = || self.http2.next_deadline(self.idle_timeout, self.now);
        let of_http2 = self.has_http2.then(of_http2).flatten();
        self.of_upstream.iter().filter_map(of).chain(self.next_wake).chain(of_http2).min()
    }

    /// Begins a turn: closes connections that were idle for too long, wakes exchanges whose time is up, and tries full
    /// backlogs again.
    pub(crate) fn expire(&mut self, now: Instant) {
        (self.now, self.ahead_bytes) = (now, 0);
        if self.next_wake.is_some_and(|next| next <= now) {
            self.wake_late(now);
        }
        let generation = self.upstreams.address_generation();
        if generation != self.address_generation {
            self.address_generation = generation;
            self.close_vanished();
        }
        for of in &mut self.of_upstream {
            of.queue.expire(now);
        }
        if self.has_http2 {
            self.http2.expire(now);
            self.end_put_off(now);
        }
        if let Some(until) = now.checked_sub(self.idle_timeout) {
            self.close_unused_since(until);
        }
    }

    /// Closes the connections that no request has used since `until`.
    pub(crate) fn close_unused_since(&mut self, until: Instant) {
        if self.has_http2 {
            self.http2.close_unused_since(until);
        }
        for upstream in 0..self.of_upstream.len() {
            while let Some(&(key, since)) = self.of_upstream[upstream].idle.front()
                && since <= until
            {
                self.close(key);
            }
        }
    }

    fn wake_late(&mut self, now: Instant) {
        for (_, connection) in &mut self.connections {
            if connection.wake_at.take_if(|at| *at <= now).is_some() {
                connection.wake();
            }
        }
        self.next_wake = self.connections.iter().filter_map(|(_, connection)| connection.wake_at).min();
    }

    /// Wakes the exchange of a connection at this moment, if it still waits then.
    pub(crate) fn wake_at(&mut self, key: usize, at: Instant, waker: &Waker) {
        let connection = &mut self.connections[key];
        connection.set_waker(waker);
        connection.wake_at = Some(at);
        self.next_wake = Some(self.next_wake.map_or(at, |next| next.min(at)));
    }

    /// Closes the idle connections to upstreams that are gone, and to addresses that they no longer have. Those in use are
    /// not kept.
    #[cold]
    fn close_vanished(&mut self) {
        self.grow();
        for (_, connection) in &mut self.connections {
            connection.is_withdrawn =
                connection.has_address_vanished() || self.upstreams.is_gone(connection.upstream);
        }
        let vanished =
            self.connections.iter().filter(|(_, connection)| connection.is_idle && connection.is_withdrawn);
        for key in vanished.map(|(key, _)| key).collect::<Vec<_>>() {
            self.close(key);
        }
        self.http2.end_vanished(&self.upstreams);
    }
}
