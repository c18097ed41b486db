//! Slots: each holds one connection. A thread has its share of the plan's connections.

use std::collections::VecDeque;

use crate::protocol::Request;

/// First wait after a connection without an answer; it doubles with each further one.
const BACKOFF_NS_MIN: u64 = 10_000_000;
/// Longest such wait.
const BACKOFF_NS_MAX: u64 = 1_000_000_000;

#[derive(Debug)]
pub(super) struct ConnectionSlot {
    /// The lane of a script that it serves.
    pub(super) lane: Option<u32>,
    /// The connection for the slot's next request.
    pub(super) connection: Option<usize>,
    /// Requests that wait for the connection.
    pub(super) waiting: VecDeque<Request>,
    /// Accepted requests, including waiting ones.
    pub(super) under_way: usize,
    /// It is in the queue of free slots.
    pub(super) is_free: bool,
    /// Since when it is free.
    pub(super) free_ns: u64,
    /// Until when it makes no connection.
    pub(super) backs_off_until_ns: Option<u64>,
    backoff_ns: u64,
}

impl ConnectionSlot {
    pub(super) fn new() -> Self {
        Self {
            lane: None,
            connection: None,
            waiting: VecDeque::new(),
            under_way: 0,
            is_free: false,
            free_ns: 0,
            backs_off_until_ns: None,
            backoff_ns: BACKOFF_NS_MIN,
        }
    }

    /// True if it has neither a request nor a connection.
    pub(super) fn is_empty(&self) -> bool {
        self.under_way == 0 && self.connection.is_none()
    }

    /// Releases a connection, if it is the slot's own.
    pub(super) fn release(&mut self, key: usize) {
        self.connection.take_if(|own| *own == key);
    }

    /// Waits before the next connection, since the last attempt failed.
    pub(super) fn back_off(&mut self, now_ns: u64) {
        self.backs_off_until_ns = Some(now_ns + self.backoff_ns);
        self.backoff_ns = (self.backoff_ns * 2).min(BACKOFF_NS_MAX);
    }

    /// Resets the wait, since a request was answered.
    pub(super) fn reset_backoff(&mut self) {
        self.backoff_ns = BACKOFF_NS_MIN;
    }
}
