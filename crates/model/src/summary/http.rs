//! HTTP mode in a summary.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{ByteCounts, Percentiles};
use crate::runs::{RouteStats, Run};
use records::kinds::RouteRecord;
use records::metrics::{
    HttpCounter, HttpLatency, LatencyClass, Metric as _, RequestFailure, RouteCounter, RouteLatency,
    TimeResolution, labels,
};
use records::values::{StatusCounts, grpc_status_name};

/// HTTP mode, over all routes.
#[derive(Clone, Debug, Serialize)]
pub struct HttpSummary {
    pub requests: HttpRequestCounts,
    pub methods: BTreeMap<&'static str, u64>,
    /// Responses by exact status, and `other` for all beyond 64 statuses.
    pub statuses: BTreeMap<String, u64>,
    /// Calls of gRPC by the name of the status that upstreams gave.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub grpc_statuses: BTreeMap<String, u64>,
    /// Failed requests by cause; they add up to `requests.failed`.
    pub failures: BTreeMap<&'static str, u64>,
    pub body_bytes: ByteCounts,
    /// The gauges at the end.
    pub now: HttpNow,
    pub http2: Http2Summary,
    /// Latencies by class, in microseconds.
    pub latency_us: BTreeMap<&'static str, Percentiles>,
    /// The routes that served requests, those with the most requests first.
    pub routes: Vec<RouteSummary>,
}

/// Requests, as the proxy counts them.
#[derive(Clone, Debug, Serialize)]
pub struct HttpRequestCounts {
    /// Finished requests: answered or aborted.
    pub total: u64,
    /// Requests over HTTP/1.1 or HTTP/1.0.
    pub http1: u64,
    /// Requests over HTTP/2.
    pub http2: u64,
    /// Requests that ended before any status was sent.
    pub unanswered: u64,
    /// Failed requests, whatever status was sent.
    pub failed: u64,
    /// Requests that were sent once more on a new upstream connection.
    pub retried: u64,
    /// Requests that were sent on a kept upstream connection.
    pub reused: u64,
    /// Requests that waited for an upstream connection.
    pub queued: u64,
}

/// The gauges of HTTP mode when the last record was made.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct HttpNow {
    /// Requests in flight.
    pub requests: u64,
    /// The part of these that waits for an upstream connection.
    pub queued: u64,
    /// Upstream connections, idle ones included.
    pub upstream_open: u64,
    pub upstream_idle: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct Http2Summary {
    pub connections: u64,
    /// Streams that clients opened.
    pub streams: u64,
    /// `RST_STREAM` frames.
    pub resets: ByDirection,
    /// `GOAWAY` frames.
    pub goaways: ByDirection,
    /// Bytes of compressed header blocks.
    pub header_bytes: ByDirection,
    /// Bytes of these header blocks before compression.
    pub plain_header_bytes: ByDirection,
    /// Their compression in both directions, in percent; `null` without header blocks.
    pub savings_percent: Option<f64>,
    /// Connections that were ended for a flood of frames, by kind.
    pub floods: BTreeMap<&'static str, u64>,
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct ByDirection {
    /// From clients.
    pub r#in: u64,
    /// To clients.
    pub out: u64,
}

#[derive(Clone, Debug, Serialize)]
pub struct RouteSummary {
    /// Its host and path prefix; `other` for all routes beyond the bound.
    pub route: String,
    /// Finished requests.
    pub requests: u64,
    /// Requests answered with 200 to 299.
    pub status_2xx: u64,
    /// Requests answered with 300 to 399.
    pub status_3xx: u64,
    /// Requests answered with 400 to 499.
    pub status_4xx: u64,
    /// Requests answered with 500 or above.
    pub status_5xx: u64,
    /// Failed requests, whatever status was sent.
    pub failed: u64,
    /// Requests that were sent once more.
    pub retried: u64,
    pub body_bytes: ByteCounts,
    /// Latencies by class, in microseconds.
    pub latency_us: BTreeMap<&'static str, Percentiles>,
}

impl HttpSummary {
    pub(super) fn of(run: &Run) -> Option<Self> {
        let series = run.http()?;
        let totals = series.totals();
        let record = run.http_record().cloned().unwrap_or_default();
        let failures: BTreeMap<&'static str, u64> = RequestFailure::ALL
            .iter()
            .map(|&(_, counter)| (counter.names().label, totals[counter]))
            .collect();
        let latency = |&class: &HttpLatency| {
            (short(class), Percentiles::known(&series.whole()[class], run.log_resolution()))
        };
        Some(Self {
            requests: HttpRequestCounts {
                total: totals[HttpCounter::Requests],
                http1: totals[HttpCounter::Requests11],
                http2: totals[HttpCounter::Requests2],
                unanswered: totals[HttpCounter::Unanswered],
                failed: failures.values().fold(0, |sum: u64, n| sum.saturating_add(*n)),
                retried: totals[HttpCounter::Retried],
                reused: totals[HttpCounter::Reused],
                queued: totals[HttpCounter::Queued],
            },
            methods: labels::methods().map(|(name, counter)| (name, totals[counter])).collect(),
            statuses: statuses(&record.statuses, |status| status.to_string()),
            grpc_statuses: statuses(&record.grpc_statuses, grpc_status_name),
            failures,
            body_bytes: ByteCounts { r#in: totals[HttpCounter::BodyIn], out: totals[HttpCounter::BodyOut] },
            now: HttpNow {
                requests: record.requests,
                queued: record.queued,
                upstream_open: record.upstream_open,
                upstream_idle: record.upstream_idle,
            },
            http2: Http2Summary::of(totals),
            latency_us: HttpLatency::ALL.iter().map(latency).collect(),
            routes: routes(run),
        })
    }
}

/// The name of a class within `proxy.http`.
fn short(class: HttpLatency) -> &'static str {
    LatencyClass::from(class).key().trim_start_matches("http.")
}

fn statuses(counts: &StatusCounts, name: impl Fn(u16) -> String) -> BTreeMap<String, u64> {
    let other = counts.other();
    let known = counts.iter().map(|(status, n)| (name(status), n));
    known.chain((other > 0).then(|| ("other".to_owned(), other))).collect()
}

fn routes(run: &Run) -> Vec<RouteSummary> {
    let mut all: Vec<RouteSummary> =
        run.routes().iter().map(|route| RouteSummary::of(route, run.log_resolution())).collect();
    let is_other = |route: &RouteSummary| route.route == RouteRecord::OTHER;
    all.sort_by_key(|route| (is_other(route), std::cmp::Reverse(route.requests)));
    all
}

impl Http2Summary {
    fn of(totals: &records::metrics::Counters<HttpCounter>) -> Self {
        let both = |r#in, out| ByDirection { r#in: totals[r#in], out: totals[out] };
        let header_bytes = both(HttpCounter::HeaderBytesIn, HttpCounter::HeaderBytesOut);
        let plain_header_bytes = both(HttpCounter::PlainHeaderBytesIn, HttpCounter::PlainHeaderBytesOut);
        let sum = |bytes: ByDirection| bytes.r#in as f64 + bytes.out as f64;
        let (sent, plain) = (sum(header_bytes), sum(plain_header_bytes));
        Self {
            connections: totals[HttpCounter::Connections2],
            streams: totals[HttpCounter::Streams2],
            resets: both(HttpCounter::ResetsIn, HttpCounter::ResetsOut),
            goaways: both(HttpCounter::GoawaysIn, HttpCounter::GoawaysOut),
            header_bytes,
            plain_header_bytes,
            savings_percent: (plain > 0.0).then(|| (plain - sent) / plain * 100.0),
            floods: labels::floods().map(|(kind, counter)| (kind, totals[counter])).collect(),
        }
    }
}

impl RouteSummary {
    fn of(route: &RouteStats, resolution: TimeResolution) -> Self {
        let (totals, whole) = (route.totals(), route.series().whole());
        let latency =
            |&class: &RouteLatency| (class.names().figure, Percentiles::known(&whole[class], resolution));
        Self {
            route: route.name().to_owned(),
            requests: totals[RouteCounter::Requests],
            status_2xx: totals[RouteCounter::Status2xx],
            status_3xx: totals[RouteCounter::Status3xx],
            status_4xx: totals[RouteCounter::Status4xx],
            status_5xx: totals[RouteCounter::Status5xx],
            failed: totals[RouteCounter::Failed],
            retried: totals[RouteCounter::Retried],
            body_bytes: ByteCounts { r#in: totals[RouteCounter::BodyIn], out: totals[RouteCounter::BodyOut] },
            latency_us: RouteLatency::ALL.iter().map(latency).collect(),
        }
    }
}
