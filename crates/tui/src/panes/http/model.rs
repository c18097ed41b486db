//! HTTP over all routes.

use model::runs::Run;
use records::kinds::HttpGauges;
use records::metrics::{Counters, HttpCounter, HttpLatency, Metric as _, RequestFailure, labels};

use crate::panes::handshakes::model::{NamedCount, seen};
use crate::panes::tables::routes::model::RequestTimes;
use crate::view_model::span::{Count, HttpSpanData};

/// What the proxy did of HTTP over the span, and since the beginning.
#[derive(Clone, Debug, Default)]
pub(crate) struct HttpFigures {
    /// Requests that were over since the beginning.
    pub(crate) requests: u64,
    /// Requests by class of status over the span, those without one last; all classes.
    pub(crate) statuses: Vec<NamedCount<'static>>,
    /// Requests by protocol over the span.
    pub(crate) protocols: [NamedCount<'static>; 2],
    /// Times of requests by protocol over the span; only if both protocols were spoken since the beginning.
    pub(crate) times: Vec<ProtocolTimes>,
    /// Requests that failed, whatever status was sent.
    pub(crate) failed: Count,
    /// Their causes over the span.
    pub(crate) recent_causes: Vec<NamedCount<'static>>,
    /// Their causes since the beginning.
    pub(crate) causes: Vec<NamedCount<'static>>,
    pub(crate) retried: Count,
    /// Calls of gRPC that gave a status, and those whose status was not OK; `None` without any since the beginning.
    pub(crate) calls: Option<(Count, Count)>,
    /// What was under way at the moment; `None` if that is not kept.
    pub(crate) gauges: Option<HttpGauges>,
}

/// The times of one protocol's requests; `None` without requests in the span.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProtocolTimes {
    pub(crate) protocol: &'static str,
    pub(crate) first_byte: Option<RequestTimes>,
    pub(crate) request: Option<RequestTimes>,
}

impl HttpFigures {
    pub(crate) fn of(
        run: &Run,
        totals: &Counters<HttpCounter>,
        taken: &HttpSpanData<'_>,
        gauges: Option<HttpGauges>,
    ) -> Self {
        let counters = &taken.counters;
        let causes = || RequestFailure::ALL.into_iter().map(|(_, counter)| (counter.names().label, counter));
        Self {
            requests: totals[HttpCounter::Requests],
            statuses: labels::status_classes().map(|(name, counter)| (name, counters[counter])).collect(),
            protocols: PROTOCOLS.map(|(name, counter, ..)| (name, counters[counter])),
            times: times(run, totals, taken),
            failed: Count::of(totals, taken, &RequestFailure::ALL.map(|(_, counter)| counter)),
            recent_causes: seen(causes(), counters),
            causes: seen(causes(), totals),
            retried: Count::of(totals, taken, &[HttpCounter::Retried]),
            calls: (totals[HttpCounter::GrpcCalls] > 0).then(|| {
                [HttpCounter::GrpcCalls, HttpCounter::GrpcFailed]
                    .map(|counter| Count::of(totals, taken, &[counter]))
                    .into()
            }),
            gauges,
        }
    }
}

/// The protocols, each with its requests and their times to the first byte and to the end.
const PROTOCOLS: [(&str, HttpCounter, HttpLatency, HttpLatency); 2] = [
    ("HTTP/2", HttpCounter::Requests2, HttpLatency::FirstByte2, HttpLatency::Request2),
    ("HTTP/1.1", HttpCounter::Requests11, HttpLatency::FirstByte1, HttpLatency::Request1),
];

/// With one protocol, its times equal those of all requests.
fn times(run: &Run, totals: &Counters<HttpCounter>, taken: &HttpSpanData<'_>) -> Vec<ProtocolTimes> {
    if PROTOCOLS.iter().any(|(_, counter, ..)| totals[*counter] == 0) {
        return Vec::new();
    }
    let of = |class| RequestTimes::of(taken.samples(class), run.resolution(class.into()));
    let of_protocol = |(protocol, _, first_byte, request)| ProtocolTimes {
        protocol,
        first_byte: of(first_byte),
        request: of(request),
    };
    PROTOCOLS.map(of_protocol).to_vec()
}
