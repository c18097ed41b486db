//! HTTP over all routes.

use telemetry::{Counters, HttpCounter, HttpGauges, RequestFailure, labels};

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
    /// What was under way at the moment; `None` if that is not kept.
    pub(crate) gauges: Option<HttpGauges>,
}

impl HttpFigures {
    pub(super) fn of(
        totals: &Counters<HttpCounter>,
        taken: &HttpSpanData<'_>,
        gauges: Option<HttpGauges>,
    ) -> Self {
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
            gauges,
        }
    }
}
