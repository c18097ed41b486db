//! Counters of a worker in HTTP mode.

use std::time::Duration;

use crate::delta::{NamedDelta, RequestSamples};
use crate::histogram::{CompactHistogram, Histogram, Histograms, SparseHistogram};
use crate::ids::{ClientId, ConnId};
use crate::kinds::{HttpGauges, HttpVersion, RouteRecord};
use crate::metrics::{
    Counters, HttpCounter, HttpLatency, Metric as _, RequestFailure, RouteCounter, RouteLatency,
};
use crate::values::{StatusCounts, ValueCounts};

/// The most routes that are counted separately; further ones are summed.
pub const ROUTES_MAX: usize = 50;

/// The names under which routes are counted, by index: those beyond the bound are one.
pub fn counted_routes(mut names: Vec<String>) -> Vec<String> {
    if names.len() > ROUTES_MAX {
        names.truncate(ROUTES_MAX);
        names.push(RouteRecord::OTHER.to_owned());
    }
    names
}

/// A finished request, as the proxy saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinishedRequest<'a> {
    /// The index of its route; `None` if none serves it.
    pub route: Option<usize>,
    /// The connection that it came over.
    pub conn: ConnId,
    pub client: ClientId,
    pub version: HttpVersion,
    pub method: &'a str,
    /// Its path without the query, as received.
    pub path: &'a str,
    /// Where it was sent last; empty if nowhere.
    pub upstream: &'a str,
    /// The status that was sent; `None` if it was over before one was.
    pub status: Option<u16>,
    /// The status of a call of gRPC, as its upstream gave it; `None` if it is no call, or gave none.
    pub grpc_status: Option<u16>,
    /// Why it failed; `None` if it was answered whole by an upstream.
    pub failure: Option<RequestFailure>,
    /// How long it waited for an upstream connection; `None` if it did not.
    pub queue: Option<Duration>,
    /// Head sent to the upstream to response head received; `None` without a response.
    pub upstream_time: Option<Duration>,
    /// Head received to the first byte of the response handed to the client; `None` without a response.
    pub first_byte: Option<Duration>,
    /// First byte to the end; `None` if it is not known.
    pub duration: Option<Duration>,
    /// Bytes of its body; `None` if they are not known.
    pub body_in: Option<u64>,
    /// Bytes of its response's body; `None` if they are not known.
    pub body_out: Option<u64>,
    /// Whether it was sent on a kept upstream connection.
    pub is_reused: bool,
    /// Whether it was sent twice.
    pub is_retried: bool,
}

/// HTTP counters of one worker over an interval.
#[derive(Clone, Debug, Default)]
pub struct HttpDelta {
    /// Counts since the last hand-over.
    pub counters: Counters<HttpCounter>,
    /// Counters of each route, by its index.
    pub routes: Vec<RouteDelta>,
    /// Times of requests that no route serves.
    unrouted: RequestHistograms,
    /// How long requests waited for an upstream connection. Requests that did not wait are not counted.
    queue: CompactHistogram,
    /// Responses since the last hand-over, by exact status.
    pub statuses: StatusCounts,
    /// Calls of gRPC since the last hand-over, by the status that upstreams gave.
    pub grpc_statuses: StatusCounts,
    /// Bytes of the bodies of requests, and of responses.
    pub sizes: [ValueCounts; 2],
    /// Requests with a record of their own.
    pub requests: RequestSamples,
    /// How the gauges have changed since the last hand-over.
    pub gauges: HttpGauges,
}

/// Counters of one worker for one route over an interval.
#[derive(Clone, Debug, Default)]
pub struct RouteDelta {
    /// Counts since the last hand-over.
    pub counters: Counters<RouteCounter>,
    times: RequestHistograms,
}

/// Times of requests, by protocol and class. Each time is recorded once: figures of all routes and of both protocols
/// are sums.
#[derive(Clone, Debug, Default)]
struct RequestHistograms {
    http1: [CompactHistogram; RouteLatency::ALL.len()],
    http2: [CompactHistogram; RouteLatency::ALL.len()],
}

impl HttpDelta {
    pub fn finish(&mut self, request: &FinishedRequest<'_>) {
        let counters = &mut self.counters;
        counters[HttpCounter::Requests] += 1;
        counters[match request.version {
            HttpVersion::Http1 => HttpCounter::Requests11,
            HttpVersion::Http2 => HttpCounter::Requests2,
        }] += 1;
        counters[status_counter(request.status)] += 1;
        counters[method_counter(request.method)] += 1;
        if let Some(failure) = request.failure {
            counters[failure.counter()] += 1;
        }
        if let Some(status) = request.status {
            self.statuses.count(status, 1);
        }
        if let Some(status) = request.grpc_status {
            self.grpc_statuses.count(status, 1);
            counters[HttpCounter::GrpcCalls] += 1;
            counters[HttpCounter::GrpcFailed] += u64::from(status != 0);
        }
        counters[HttpCounter::Unrecorded] += u64::from(!self.requests.offer(request));
        counters[HttpCounter::Retried] += u64::from(request.is_retried);
        counters[HttpCounter::Reused] += u64::from(request.is_reused);
        counters[HttpCounter::Queued] += u64::from(request.queue.is_some());
        let bodies = [(HttpCounter::BodyIn, request.body_in), (HttpCounter::BodyOut, request.body_out)];
        for ((counter, bytes), sizes) in bodies.into_iter().zip(&mut self.sizes) {
            let Some(bytes) = bytes else { continue };
            counters[counter] += bytes;
            sizes.count(bytes);
        }
        if let Some(took) = request.queue {
            self.queue.record(took);
        }
        let times = match request.route {
            Some(route) => {
                let route = self.route(route);
                route.count(request);
                &mut route.times
            }
            None => &mut self.unrouted,
        };
        times.record(request);
    }

    /// Latencies since the last hand-over, by class.
    pub fn latencies(&self) -> Histograms<HttpLatency> {
        let mut latencies = Histograms::default();
        for &class in HttpLatency::ALL {
            latencies[class] = self.latency(class);
        }
        latencies
    }

    /// Latencies of a class since the last hand-over.
    pub fn latency(&self, class: HttpLatency) -> Histogram {
        let (timed, is_of_http1, is_of_http2) = match class {
            HttpLatency::Queue => {
                let mut queue = Histogram::new();
                queue.add_compact(&self.queue);
                return queue;
            }
            HttpLatency::Upstream => (RouteLatency::Upstream, true, true),
            HttpLatency::FirstByte => (RouteLatency::FirstByte, true, true),
            HttpLatency::FirstByte1 => (RouteLatency::FirstByte, true, false),
            HttpLatency::FirstByte2 => (RouteLatency::FirstByte, false, true),
            HttpLatency::Request => (RouteLatency::Request, true, true),
            HttpLatency::Request1 => (RouteLatency::Request, true, false),
            HttpLatency::Request2 => (RouteLatency::Request, false, true),
        };
        let mut sum = Histogram::new();
        for times in self.routes.iter().map(|route| &route.times).chain([&self.unrouted]) {
            for (is_of, times) in [(is_of_http1, &times.http1), (is_of_http2, &times.http2)] {
                if is_of {
                    sum.add_compact(&times[timed.index()]);
                }
            }
        }
        sum
    }

    fn route(&mut self, index: usize) -> &mut RouteDelta {
        let index = index.min(ROUTES_MAX);
        if self.routes.len() <= index {
            self.routes.resize_with(index + 1, RouteDelta::default);
        }
        &mut self.routes[index]
    }

    /// Adds the counts of another worker, or of the same worker later.
    pub fn add(&mut self, other: &Self) {
        self.counters.add(&other.counters);
        for (index, route) in other.routes.iter().enumerate() {
            let own = self.route(index);
            own.counters.add(&route.counters);
            own.times.add(&route.times);
        }
        self.unrouted.add(&other.unrouted);
        self.queue.add(&other.queue);
        self.statuses.add(&other.statuses);
        self.grpc_statuses.add(&other.grpc_statuses);
        self.sizes.iter_mut().zip(&other.sizes).for_each(|(own, more)| own.add(more));
        self.requests.add(&other.requests);
        self.gauges.add(other.gauges);
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.counters = Counters::default();
        for route in &mut self.routes {
            route.counters = Counters::default();
            route.times.clear();
        }
        self.unrouted.clear();
        self.queue.clear();
        self.statuses.clear();
        self.grpc_statuses.clear();
        self.sizes.iter_mut().for_each(ValueCounts::clear);
        self.requests.clear();
        self.gauges = HttpGauges::default();
    }
}

impl NamedDelta for RouteDelta {
    type Record = RouteRecord;

    fn add_to(&self, totals: &mut RouteRecord) -> bool {
        totals.counters.add(&self.counters);
        !self.counters.is_zero()
    }

    fn latency(&self, class: RouteLatency) -> SparseHistogram {
        let RequestHistograms { http1, http2 } = &self.times;
        let [http1, http2] = [http1, http2].map(|times| &times[class.index()]);
        match (http1.is_empty(), http2.is_empty()) {
            (_, true) => http1.to_sparse(),
            (true, false) => http2.to_sparse(),
            (false, false) => SparseHistogram::merged([&http1.to_sparse(), &http2.to_sparse()]),
        }
    }
}

impl RouteDelta {
    fn count(&mut self, request: &FinishedRequest<'_>) {
        let counters = &mut self.counters;
        counters[RouteCounter::Requests] += 1;
        let class = match request.status {
            Some(200..=299) => Some(RouteCounter::Status2xx),
            Some(300..=399) => Some(RouteCounter::Status3xx),
            Some(400..=499) => Some(RouteCounter::Status4xx),
            Some(500..) => Some(RouteCounter::Status5xx),
            _ => None,
        };
        if let Some(class) = class {
            counters[class] += 1;
        }
        counters[RouteCounter::Failed] += u64::from(request.failure.is_some());
        counters[RouteCounter::Retried] += u64::from(request.is_retried);
        counters[RouteCounter::BodyIn] += request.body_in.unwrap_or(0);
        counters[RouteCounter::BodyOut] += request.body_out.unwrap_or(0);
    }
}

impl RequestHistograms {
    fn record(&mut self, request: &FinishedRequest<'_>) {
        let times = match request.version {
            HttpVersion::Http1 => &mut self.http1,
            HttpVersion::Http2 => &mut self.http2,
        };
        let of = |class| match class {
            RouteLatency::Upstream => request.upstream_time,
            RouteLatency::FirstByte => request.first_byte,
            RouteLatency::Request => request.duration,
        };
        for (&class, times) in RouteLatency::ALL.iter().zip(times) {
            if let Some(took) = of(class) {
                times.record(took);
            }
        }
    }

    fn add(&mut self, other: &Self) {
        let Self { http1, http2 } = other;
        self.http1.iter_mut().zip(http1).for_each(|(own, more)| own.add(more));
        self.http2.iter_mut().zip(http2).for_each(|(own, more)| own.add(more));
    }

    fn clear(&mut self) {
        let Self { http1, http2 } = self;
        http1.iter_mut().chain(http2).for_each(CompactHistogram::clear);
    }
}

fn status_counter(status: Option<u16>) -> HttpCounter {
    match status {
        None => HttpCounter::Unanswered,
        Some(..=199) => HttpCounter::Status1xx,
        Some(200..=299) => HttpCounter::Status2xx,
        Some(300..=399) => HttpCounter::Status3xx,
        Some(400..=499) => HttpCounter::Status4xx,
        Some(500..) => HttpCounter::Status5xx,
    }
}

fn method_counter(method: &str) -> HttpCounter {
    match method {
        "GET" => HttpCounter::MethodGet,
        "HEAD" => HttpCounter::MethodHead,
        "POST" => HttpCounter::MethodPost,
        "PUT" => HttpCounter::MethodPut,
        "DELETE" => HttpCounter::MethodDelete,
        _ => HttpCounter::MethodOther,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::finished as request;

    fn version(is_http2: bool) -> HttpVersion {
        if is_http2 { HttpVersion::Http2 } else { HttpVersion::Http1 }
    }

    #[test]
    fn every_request_has_one_status_class_one_method_and_one_protocol() {
        let mut delta = HttpDelta::default();
        let statuses = [None, Some(101), Some(200), Some(304), Some(404), Some(502)];
        let methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "BREW"];
        for (status, method) in statuses.into_iter().zip(methods) {
            delta.finish(&FinishedRequest { status, method, version: version(method == "GET"), ..request() });
        }
        let sum = |prefix: &str| {
            let of = |(counter, n): (HttpCounter, u64)| counter.field().name.contains(prefix).then_some(n);
            delta.counters.iter().filter_map(of).sum::<u64>()
        };
        assert_eq!(delta.counters[HttpCounter::Requests], 6);
        assert_eq!(sum("HTTP_STATUS_") + delta.counters[HttpCounter::Unanswered], 6);
        assert_eq!(sum("HTTP_METHOD_"), 6);
        assert_eq!(delta.statuses.to_string(), "101:1 200:1 304:1 404:1 502:1");
        assert_eq!(sum("HTTP1_REQUESTS") + sum("HTTP2_REQUESTS"), 6);
    }

    #[test]
    fn the_times_of_each_protocol_add_up_to_those_of_all_requests() {
        let mut delta = HttpDelta::default();
        for (n, first_byte) in
            [(3, Some(Duration::from_millis(1))), (4, None), (5, Some(Duration::from_millis(9)))]
        {
            for i in 0..n {
                delta.finish(&FinishedRequest { version: version(i % 2 == 0), first_byte, ..request() });
            }
        }
        for (all, parts) in [
            (HttpLatency::FirstByte, [HttpLatency::FirstByte1, HttpLatency::FirstByte2]),
            (HttpLatency::Request, [HttpLatency::Request1, HttpLatency::Request2]),
        ] {
            let latencies = delta.latencies();
            let [mut sum, of_http2] = parts.map(|part| latencies[part].clone());
            assert!(!sum.is_empty() && sum.count() < of_http2.count());
            sum.add(&of_http2);
            assert_eq!(sum.to_sparse(), latencies[all].to_sparse());
        }
    }

    #[test]
    fn every_failure_has_a_counter_and_a_word_of_its_own() {
        let failures =
            HttpCounter::ALL.iter().filter(|counter| counter.field().name.contains("HTTP_FAILED_"));
        assert_eq!(failures.count(), RequestFailure::ALL.len());
        for (place, (failure, counter)) in RequestFailure::ALL.into_iter().enumerate() {
            let mut delta = HttpDelta::default();
            delta.finish(&FinishedRequest { failure: Some(failure), ..request() });
            assert_eq!((delta.counters[counter], failure as usize), (1, place), "{failure}");
            assert_eq!(failure.to_string().parse(), Ok(failure), "a word of its own");
        }
    }

    #[test]
    fn routes_beyond_the_bound_are_summed() {
        let mut delta = HttpDelta::default();
        for route in [0, 1, ROUTES_MAX, ROUTES_MAX + 7] {
            delta.finish(&FinishedRequest { route: Some(route), ..request() });
        }
        let mut sum = HttpDelta::default();
        sum.add(&delta);
        sum.add(&delta);
        let of = |route: usize| sum.routes[route].counters[RouteCounter::Requests];
        assert_eq!((of(0), of(1), of(ROUTES_MAX)), (2, 2, 4));
        assert_eq!(sum.routes.len(), ROUTES_MAX + 1);
        assert_eq!(sum.routes[0].latency(RouteLatency::Request).count(), 2);
    }
}
