//! The records of HTTP mode: totals, routes, and single requests.

use crate::ids::{ClientId, ConnId};
use crate::kinds::named::named_record;
use crate::metrics::{Counters, Field, HttpCounter, HttpLatency, RequestFailure, RouteCounter, RouteLatency};
use crate::text::keywords::keyword_enum;
use crate::values::{Latencies, StatusCounts};
use crate::wire::{DecodeError, FAMILY, FieldSource, WireField, field, malformed, wire};
use journal::EntryBuf;

wire! {
    /// HTTP over all routes, once per interval: cumulative counters, and the interval's latencies.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct HttpRecord {
        /// Requests in flight at the end of the interval.
        pub requests: u64 = &field::HTTP_REQUESTS_OPEN,
        /// The part of these that waits for an upstream connection.
        pub queued: u64 = &field::HTTP_REQUESTS_QUEUED,
        /// Upstream connections, idle ones included.
        pub upstream_open: u64 = &field::HTTP_UPSTREAM_OPEN,
        pub upstream_idle: u64 = &field::HTTP_UPSTREAM_IDLE,
        /// Changed routes of this interval whose record was deferred.
        pub routes_deferred: u64 = &field::HTTP_ROUTES_DEFERRED,
        /// Responses of the run, by exact status.
        pub statuses: StatusCounts = &field::HTTP_STATUSES,
        /// Calls of gRPC of the run, by the status that upstreams gave.
        pub grpc_statuses: StatusCounts = &field::GRPC_STATUSES,
        /// Totals of the run.
        pub counters: Counters<HttpCounter> = &FAMILY,
        /// Latencies of the interval.
        pub latencies: Latencies<HttpLatency> = &FAMILY,
    }
}

wire! {
    /// One route: cumulative counters, and the latencies since its last record.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct RouteRecord {
        /// Its host and path prefix, such as `shop.example/static`; `other` for all routes beyond the bound.
        pub route: String = &field::ROUTE,
        /// True for its last record, at the end of the run: its latencies are those of the whole run.
        pub last: bool = &field::ROUTE_LAST,
        /// Totals of the run.
        pub counters: Counters<RouteCounter> = &FAMILY,
        /// Latencies of the time that the record covers.
        pub latencies: Latencies<RouteLatency> = &FAMILY,
    }
}

named_record! { RouteRecord { route, RouteCounter, RouteLatency } }

keyword_enum! {
    HttpVersion {
        /// HTTP/1.1 or HTTP/1.0.
        #[default]
        Http1 = "HTTP/1.1",
        /// HTTP/2.
        Http2 = "HTTP/2",
    }
}

wire! {
    /// One finished request: a failed one, one of the slowest, or a sample. Times are in microseconds.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct RequestRecord {
        /// The name of its route; empty if none serves it.
        pub route: String = &field::REQUEST_ROUTE,
        pub conn: ConnId = &field::CONNECTION,
        pub client: ClientId = &field::CLIENT,
        pub version: HttpVersion = &field::REQUEST_VERSION,
        /// Its method, cleaned.
        pub method: String = &field::REQUEST_METHOD,
        /// Its path without the query, cleaned; empty if paths are not recorded.
        pub path: String = &field::REQUEST_PATH,
        /// Where it was sent last; empty if nowhere.
        pub upstream: String = &field::REQUEST_UPSTREAM,
        /// The status that was sent; 0 if it was over before one was.
        pub status: u64 = &field::REQUEST_STATUS,
        /// Why it failed; `None` if it was answered whole by an upstream.
        pub failure: Option<RequestFailure> = &field::REQUEST_FAILURE,
        /// How long it waited for an upstream connection; 0 if it did not.
        pub queue_us: u64 = &field::REQUEST_QUEUE,
        /// Head sent to the upstream to response head received; 0 without a response.
        pub upstream_us: u64 = &field::REQUEST_UPSTREAM_TIME,
        /// Head received to the first byte of the response handed to the client; 0 without a response.
        pub first_byte_us: u64 = &field::REQUEST_FIRST_BYTE,
        /// First byte to the end.
        pub duration_us: u64 = &field::REQUEST_DURATION,
        /// Bytes of its body.
        pub body_in: u64 = &field::REQUEST_BODY_IN,
        /// Bytes of its response's body.
        pub body_out: u64 = &field::REQUEST_BODY_OUT,
        /// True if it was sent on a kept upstream connection.
        pub reused: bool = &field::REQUEST_REUSED,
        pub retried: bool = &field::REQUEST_RETRIED,
    }
}

/// Gauges of HTTP mode; in a delta, their changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HttpGauges {
    /// Requests in flight.
    pub requests: i64,
    /// Requests that wait for an upstream connection.
    pub queued: i64,
    /// Upstream connections, idle ones included.
    pub upstream_open: i64,
    pub upstream_idle: i64,
}

impl HttpGauges {
    /// Adds how they have changed.
    pub fn add(&mut self, change: Self) {
        let Self { requests, queued, upstream_open, upstream_idle } = change;
        self.requests += requests;
        self.queued += queued;
        self.upstream_open += upstream_open;
        self.upstream_idle += upstream_idle;
    }

    pub fn since(self, earlier: Self) -> Self {
        Self {
            requests: self.requests - earlier.requests,
            queued: self.queued - earlier.queued,
            upstream_open: self.upstream_open - earlier.upstream_open,
            upstream_idle: self.upstream_idle - earlier.upstream_idle,
        }
    }
}

impl HttpRecord {
    /// A record with these gauges, and nothing counted.
    pub fn of_gauges(gauges: HttpGauges) -> Self {
        let count = |gauge: i64| u64::try_from(gauge).unwrap_or(0);
        let HttpGauges { requests, queued, upstream_open, upstream_idle } = gauges;
        Self {
            requests: count(requests),
            queued: count(queued),
            upstream_open: count(upstream_open),
            upstream_idle: count(upstream_idle),
            ..Self::default()
        }
    }

    pub fn gauges(&self) -> HttpGauges {
        let count = |gauge: u64| i64::try_from(gauge).unwrap_or(i64::MAX);
        HttpGauges {
            requests: count(self.requests),
            queued: count(self.queued),
            upstream_open: count(self.upstream_open),
            upstream_idle: count(self.upstream_idle),
        }
    }
}

impl RouteRecord {
    /// The name of all routes beyond the limit.
    pub const OTHER: &str = "other";
}

impl RequestRecord {
    /// True if it failed, or was answered with a status of 500 or above.
    pub fn is_error(&self) -> bool {
        self.failure.is_some() || self.status >= 500
    }

    /// True for a failure caused by the client: there may be many such requests, and the operator need not act.
    pub fn is_of_client(&self) -> bool {
        let is_of_others = self.failure.is_some_and(|failure| {
            use RequestFailure as F;
            matches!(failure, F::UpstreamCut | F::DrainTimeout | F::IdleTimeout | F::PendingBound)
        });
        self.status < 500 && !is_of_others
    }

    /// The request in a sentence, without its client.
    pub fn sentence(&self) -> String {
        let Self { method, path, upstream, status, failure, duration_us, .. } = self;
        let status = if *status > 0 { status.to_string() } else { "no status".to_owned() };
        let failure = failure.map(|failure| format!(", {failure}")).unwrap_or_default();
        let to = if upstream.is_empty() { String::new() } else { format!(" by {upstream}") };
        let path = if path.is_empty() { "(path not recorded)" } else { path };
        format!("{method} {path}: {status}{failure}{to} in {:.3} ms", *duration_us as f64 / 1e3)
    }
}

impl WireField for Option<RequestFailure> {
    fn put(&self, field: &'static Field, out: &mut EntryBuf) {
        if let Some(failure) = self {
            out.push_display(&field.name, failure);
        }
    }

    fn get(field: &'static Field, from: &dyn FieldSource) -> Result<Self, DecodeError> {
        let text = from.text(&field.name);
        text.map(|text| text.parse().map_err(|_| malformed(field.name.clone()))).transpose()
    }
}
