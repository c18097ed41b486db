//! HTTP over all routes.

use telemetry::model::Run;
use telemetry::{Counters, HttpCounter, RequestFailure, labels};

use super::handshakes::{Named, seen};
use super::span::{Count, HttpSpanData};

/// What the proxy did of HTTP over the span, and since the beginning.
#[derive(Clone, Debug)]
pub(crate) struct HttpFigures {
    /// Requests that were over since the beginning.
    pub(crate) requests: u64,
    /// Requests by class of status over the span, those without one last; all classes.
    pub(crate) statuses: Vec<Named>,
    /// Requests by protocol over the span.
    pub(crate) protocols: [Named; 2],
    /// Requests that failed, whatever status was sent.
    pub(crate) failed: Count,
    /// Their causes over the span.
    pub(crate) recent_causes: Vec<Named>,
    /// Their causes since the beginning.
    pub(crate) causes: Vec<Named>,
    /// Requests that were sent once more.
    pub(crate) retried: Count,
    /// The present; `None` at an earlier moment, of which it is not kept.
    pub(crate) now: Option<HttpNow>,
}

/// What is under way at the last record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HttpNow {
    /// Requests under way.
    pub(crate) in_flight: u64,
    /// Of these, requests that wait for an upstream connection.
    pub(crate) queued: u64,
    /// Upstream connections, idle ones included.
    pub(crate) upstream_open: u64,
    /// Idle upstream connections.
    pub(crate) upstream_idle: u64,
}

impl HttpFigures {
    pub(super) fn of(totals: &Counters<HttpCounter>, taken: &HttpSpanData<'_>, now: Option<HttpNow>) -> Self {
        let counters = &taken.counters;
        let causes = || RequestFailure::ALL.into_iter().map(|(_, counter, word)| (word, counter));
        Self {
            requests: totals[HttpCounter::Requests],
            statuses: labels::STATUS_CLASSES.map(|(name, counter)| (name, counters[counter])).to_vec(),
            protocols: [
                ("HTTP/2", counters[HttpCounter::Requests2]),
                ("HTTP/1.1", counters[HttpCounter::Requests11]),
            ],
            failed: Count::of(totals, taken, &RequestFailure::ALL.map(|(_, counter, _)| counter)),
            recent_causes: seen(causes(), counters),
            causes: seen(causes(), totals),
            retried: Count::of(totals, taken, &[HttpCounter::Retried]),
            now,
        }
    }
}

impl HttpNow {
    /// At the last record of a run.
    pub(super) fn of(run: &Run) -> Option<Self> {
        run.http_record().map(|record| Self {
            in_flight: record.requests,
            queued: record.queued,
            upstream_open: record.upstream_open,
            upstream_idle: record.upstream_idle,
        })
    }
}
