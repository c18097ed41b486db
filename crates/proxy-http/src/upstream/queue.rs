//! Requests that wait for a connection to an upstream, first come, first served.

use std::collections::VecDeque;
use std::io;
use std::task::Waker;
use std::time::Instant;

/// A place in the queue of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueTicket(u64);

/// The requests that wait for one upstream.
#[derive(Debug, Default)]
pub(super) struct RequestQueue {
    waiting: VecDeque<(QueueTicket, Waker)>,
    next: u64,
    /// When a full backlog is tried again.
    pub(super) retry_at: Option<Instant>,
    /// The last request that waits for a connection that has failed, and how that has.
    failed: Option<(u64, io::ErrorKind)>,
}

impl RequestQueue {
    /// Whether a request with this place may try: it is the first, or the queue is empty.
    pub(super) fn is_next(&self, place: Option<QueueTicket>) -> bool {
        self.waiting.front().map(|(ticket, _)| *ticket) == place
    }

    pub(super) fn join(&mut self, waker: &Waker) -> QueueTicket {
        self.next += 1;
        let ticket = QueueTicket(self.next);
        self.waiting.push_back((ticket, waker.clone()));
        ticket
    }

    pub(super) fn set_waker(&mut self, ticket: QueueTicket, waker: &Waker) {
        if let Some(at) = self.position(ticket) {
            self.waiting[at].1.clone_from(waker);
        }
    }

    /// Fails all requests that wait now.
    pub(super) fn fail(&mut self, kind: io::ErrorKind) {
        self.failed = Some((self.next, kind));
        self.wake_all();
    }

    /// How the connection has failed that a request waits for, if it has.
    pub(super) fn failure(&self, QueueTicket(ticket): QueueTicket) -> Option<io::ErrorKind> {
        self.failed.filter(|(last, _)| ticket <= *last).map(|(_, kind)| kind)
    }

    /// Lets all requests try, one after another.
    pub(super) fn wake_all(&self) {
        self.waiting.iter().for_each(|(_, waker)| waker.wake_by_ref());
    }

    /// Gives up a place, and lets the next request try.
    pub(super) fn leave(&mut self, ticket: QueueTicket) {
        if let Some(at) = self.position(ticket) {
            self.waiting.remove(at);
        }
        self.wake_first();
    }

    fn position(&self, QueueTicket(ticket): QueueTicket) -> Option<usize> {
        self.waiting.binary_search_by_key(&ticket, |(QueueTicket(other), _)| *other).ok()
    }

    /// Lets the first request try, unless the backlog is known to be full.
    pub(super) fn wake_first(&self) {
        if self.retry_at.is_none()
            && let Some((_, waker)) = self.waiting.front()
        {
            waker.wake_by_ref();
        }
    }

    /// Tries a full backlog again, if it is time.
    pub(super) fn expire(&mut self, now: Instant) {
        if self.retry_at.take_if(|at| *at <= now).is_some() {
            self.wake_first();
        }
    }
}
