//! HTTP mode of the made-up run: two routes, a few failures.

use std::time::Duration;

use records::histogram::Histograms;
use records::ids::ConnId;
use records::kinds::{Body, HttpRecord, HttpVersion, RequestRecord, RouteRecord};
use records::metrics::{
    Counters, HttpCounter, HttpLatency, Metric, RequestFailure, RouteCounter, RouteLatency,
};
use records::values::{Latencies, StatusCounts};

/// Both routes, with requests a second and how long the upstream takes, in microseconds.
const ROUTES: [(&str, u64, u64); 2] = [("/api", 3_998, 180), ("shop.example/static", 1_000, 60)];

/// What the run counted of HTTP so far.
#[derive(Default)]
pub struct SyntheticHttp {
    counters: Counters<HttpCounter>,
    samples: Counters<HttpLatency>,
    statuses: StatusCounts,
    routes: [(Counters<RouteCounter>, Counters<RouteLatency>); 2],
    /// Requests in flight besides the usual ones.
    pub more_in_flight: u64,
}

impl SyntheticHttp {
    /// The records of a second; of one in which an upstream fails, a request fails too.
    pub fn second(&mut self, second: u64, fails: bool) -> Vec<Body> {
        let mut bodies = vec![self.totals(fails)];
        bodies.extend((0..ROUTES.len()).map(|at| self.route(at, fails && at == 0)));
        bodies.push(request(second, None));
        bodies.extend(fails.then(|| request(second, Some(RequestFailure::Connect))));
        bodies
    }

    fn totals(&mut self, fails: bool) -> Body {
        let (all, failed) = (4_998, u64::from(fails));
        let counts = [
            (HttpCounter::Requests, all),
            (HttpCounter::Requests2, 4_000),
            (HttpCounter::Requests11, 998),
            (HttpCounter::Status2xx, all - 8 - failed),
            (HttpCounter::Status4xx, 8),
            (HttpCounter::Status5xx, failed),
            (HttpCounter::MethodGet, all),
            (HttpCounter::FailedConnect, failed),
            (HttpCounter::Retried, failed),
            (HttpCounter::Reused, all - 20),
            (HttpCounter::Queued, 20),
            (HttpCounter::BodyOut, 40_983_600),
        ];
        for (counter, n) in counts {
            self.counters[counter] += n;
        }
        self.statuses.count(200, all - 8 - failed);
        self.statuses.count(404, 8);
        let mut interval = Histograms::default();
        fill(&mut interval, &mut self.samples, HttpLatency::Queue, 20, 40);
        fill(&mut interval, &mut self.samples, HttpLatency::Upstream, all, 150);
        fill(&mut interval, &mut self.samples, HttpLatency::FirstByte, all, 180);
        fill(&mut interval, &mut self.samples, HttpLatency::Request, all, 210);
        fill(&mut interval, &mut self.samples, HttpLatency::FirstByte1, 998, 150);
        fill(&mut interval, &mut self.samples, HttpLatency::FirstByte2, 4_000, 190);
        fill(&mut interval, &mut self.samples, HttpLatency::Request1, 998, 170);
        fill(&mut interval, &mut self.samples, HttpLatency::Request2, 4_000, 220);
        Body::Http(Box::new(HttpRecord {
            requests: 32 + self.more_in_flight,
            queued: 1,
            upstream_open: 16,
            upstream_idle: 9,
            routes_deferred: 0,
            statuses: self.statuses.clone(),
            grpc_statuses: StatusCounts::default(),
            counters: self.counters,
            latencies: Latencies::new(&interval, &self.samples),
        }))
    }

    fn route(&mut self, at: usize, fails: bool) -> Body {
        let ((name, n, upstream_us), (counters, samples)) = (ROUTES[at], &mut self.routes[at]);
        let (failed, missing) = (u64::from(fails), if at == 0 { 8 } else { 0 });
        let counts = [
            (RouteCounter::Requests, n),
            (RouteCounter::Status2xx, n - missing - failed),
            (RouteCounter::Status4xx, missing),
            (RouteCounter::Status5xx, failed),
            (RouteCounter::Failed, failed),
            (RouteCounter::Retried, failed),
            (RouteCounter::BodyIn, n * 120),
            (RouteCounter::BodyOut, n * 8_200),
        ];
        for (counter, n) in counts {
            counters[counter] += n;
        }
        let mut interval = Histograms::default();
        fill(&mut interval, samples, RouteLatency::Upstream, n, upstream_us);
        fill(&mut interval, samples, RouteLatency::FirstByte, n, upstream_us + 30);
        fill(&mut interval, samples, RouteLatency::Request, n, upstream_us + 60);
        Body::Route(Box::new(RouteRecord {
            route: name.into(),
            last: false,
            counters: *counters,
            latencies: Latencies::new(&interval, samples),
        }))
    }
}

fn request(second: u64, failure: Option<RequestFailure>) -> Body {
    let is_ok = failure.is_none();
    let slow_us = 12_000 + second % 7 * 1_000;
    Body::Request(Box::new(RequestRecord {
        route: "/api".into(),
        conn: ConnId(second * 500),
        client: "10.0.0.23".parse().expect("the address is well formed"),
        version: HttpVersion::Http2,
        method: if is_ok { "GET" } else { "POST" }.into(),
        path: if is_ok { "/api/reports/2026" } else { "/api/orders" }.into(),
        upstream: "unix:/tmp/app.sock".into(),
        status: if is_ok { 200 } else { 502 },
        failure,
        queue_us: 0,
        upstream_us: if is_ok { slow_us } else { 0 },
        first_byte_us: if is_ok { slow_us + 30 } else { 0 },
        duration_us: if is_ok { slow_us + 60 } else { 3_100 },
        body_in: 120,
        body_out: if is_ok { 8_200 } else { 12 },
        reused: is_ok,
        retried: !is_ok,
    }))
}

/// Samples with a tail that only every thousandth sees.
fn fill<L: Metric>(interval: &mut Histograms<L>, samples: &mut Counters<L>, class: L, n: u64, from_us: u64) {
    for i in 0..n {
        let us = from_us + i * i / n.max(1) / 4 + if i % 1000 == 999 { 12_000 } else { 0 };
        interval[class].record(Duration::from_micros(us));
    }
    samples[class] += n;
}
