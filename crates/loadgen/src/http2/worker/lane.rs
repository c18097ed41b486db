//! A lane: a place for so many requests at a time, which share a connection.

use std::collections::VecDeque;

use crate::ledger::Request;

/// First wait after a connection that came to nothing; it doubles with each further one.
const BACKOFF_NS_MIN: u64 = 10_000_000;
/// Longest such wait.
const BACKOFF_NS_MAX: u64 = 1_000_000_000;

#[derive(Debug)]
pub(super) struct Lane {
    /// The connection that is made, or carries what is begun next. Others may still end what they carry.
    pub(super) connection: Option<usize>,
    /// Requests that wait for the connection.
    pub(super) waiting: VecDeque<Request>,
    /// Requests that were taken on, those that wait included.
    pub(super) under_way: usize,
    /// It is among the lanes that are free.
    pub(super) is_free: bool,
    /// Since when.
    pub(super) free_ns: u64,
    /// Until when it makes no connection.
    pub(super) backs_off_until_ns: Option<u64>,
    backoff_ns: u64,
}

impl Lane {
    pub(super) fn new() -> Self {
        Self {
            connection: None,
            waiting: VecDeque::new(),
            under_way: 0,
            is_free: false,
            free_ns: 0,
            backs_off_until_ns: None,
            backoff_ns: BACKOFF_NS_MIN,
        }
    }

    /// Lets go of a connection, if that is the one that it has.
    pub(super) fn part_from(&mut self, key: usize) {
        self.connection.take_if(|own| *own == key);
    }

    /// The wait after a connection that came to nothing.
    pub(super) fn back_off(&mut self, now_ns: u64) {
        self.backs_off_until_ns = Some(now_ns + self.backoff_ns);
        self.backoff_ns = (self.backoff_ns * 2).min(BACKOFF_NS_MAX);
    }

    /// A connection has come to something.
    pub(super) fn note_success(&mut self) {
        self.backoff_ns = BACKOFF_NS_MIN;
    }
}
