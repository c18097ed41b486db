//! A request in a slot, and its outcome.

use std::{fmt, io};

use records::values::LoadEvent;

/// A request that a slot has taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    /// The number of its template.
    pub(crate) template: usize,
    /// When the schedule intended to send it; `None` in a closed loop.
    pub(crate) intended_ns: Option<u64>,
    /// When a slot took it.
    pub(crate) begun_ns: u64,
    /// When its first byte was sent; on a retry, the first time.
    pub(crate) sent_ns: Option<u64>,
    pub(crate) deadline_ns: u64,
    pub(crate) retried: bool,
    pub(crate) warmup: bool,
}

impl Request {
    /// A request that a slot takes at `now_ns`.
    pub(crate) fn new(
        template: usize,
        intended_ns: Option<u64>,
        now_ns: u64,
        timeout_ns: u64,
        warmup: bool,
    ) -> Self {
        Self {
            template,
            intended_ns,
            begun_ns: now_ns,
            sent_ns: None,
            deadline_ns: now_ns.saturating_add(timeout_ns),
            retried: false,
            warmup,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ResponseTimes {
    /// When the first byte arrived.
    pub(crate) first_ns: u64,
    /// When the last byte arrived.
    pub(crate) done_ns: u64,
}

/// Why a request failed, with an example that describes the first failure of its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) event: LoadEvent,
    pub(crate) example: String,
}

impl Failure {
    /// No connection could be made to an address.
    pub(crate) fn connect(to: impl fmt::Display, error: &io::Error) -> Self {
        let event = match error.kind() {
            io::ErrorKind::ConnectionRefused => LoadEvent::ConnectRefused,
            io::ErrorKind::TimedOut => LoadEvent::ConnectTimeout,
            _ => LoadEvent::ConnectFailed,
        };
        Self::new(event, format!("{to}: {error}"))
    }

    pub(crate) fn new(event: LoadEvent, example: impl Into<String>) -> Self {
        Self { event, example: example.into() }
    }
}
