//! HTTP mode in the text.

use std::fmt::Write as _;

use model::summary::{HttpSummary, Percentiles, RouteSummary};
use records::metrics::KnownValue;

use super::figures::{bytes, line, milliseconds};

/// HTTP's latency classes with their names for people, in the order of the table; parts are indented.
const ROWS: &[(&str, &str)] = &[
    ("request", "HTTP request"),
    ("request_http2", "  over HTTP/2"),
    ("request_http1", "  over HTTP/1"),
    ("first_byte", "HTTP first byte"),
    ("first_byte_http2", "  over HTTP/2"),
    ("first_byte_http1", "  over HTTP/1"),
    ("upstream", "HTTP upstream"),
    ("queue", "HTTP queue"),
];

/// Routes that the text lists; the JSON has them all.
const ROUTES_SHOWN: usize = 10;

/// The rows of the table of latencies. With a single protocol, its times equal those of all requests, and are omitted.
pub(super) fn latency_rows(http: &HttpSummary) -> impl Iterator<Item = (&'static str, &Percentiles)> {
    let has_parts = http.requests.http1 > 0 && http.requests.http2 > 0;
    let shown = ROWS.iter().filter(move |(_, words)| has_parts || !words.starts_with(' '));
    shown.filter_map(|(class, words)| Some((*words, http.latency_us.get(class)?)))
}

/// Requests, statuses, failures, upstream connections and HTTP/2.
pub(super) fn lines(http: &HttpSummary, is_log: bool, out: &mut String) {
    let requests = &http.requests;
    let protocols = format!("{} over HTTP/2, {} over HTTP/1", requests.http2, requests.http1);
    line(out, "HTTP", format_args!("{} requests, {protocols}, {} failed", requests.total, requests.failed));
    let statuses: Vec<String> = http.statuses.iter().map(|(status, n)| format!("{n} {status}")).collect();
    list(out, "statuses", &statuses);
    let calls: Vec<String> = http.grpc_statuses.iter().map(|(status, n)| format!("{n} {status}")).collect();
    list(out, "gRPC", &calls);
    let causes = http.failures.iter().filter(|(_, n)| **n > 0);
    let causes: Vec<String> = causes.map(|(cause, n)| format!("{n} {cause}")).collect();
    list(out, "failed by", &causes);
    let (reused, total) = (requests.reused, requests.total.max(1));
    let reused = format!("{reused} on a kept connection ({:.1} %)", reused as f64 * 100.0 / total as f64);
    let (retried, queued) = (requests.retried, requests.queued);
    if !is_log {
        line(out, "upstream", format_args!("{reused}, {retried} retried, {queued} waited for a connection"));
    }
    if let Some(percent) = http.http2.savings_percent {
        let connections = http.http2.connections;
        line(out, "HTTP/2", format_args!("{connections} connections, {percent:.1} % of header bytes saved"));
    }
    routes(&http.routes, out);
}

fn list(out: &mut String, name: &str, parts: &[String]) {
    if !parts.is_empty() {
        line(out, name, format_args!("{}", parts.join(", ")));
    }
}

fn routes(routes: &[RouteSummary], out: &mut String) {
    if routes.is_empty() {
        return;
    }
    let shown = &routes[..routes.len().min(ROUTES_SHOWN)];
    let cells = shown.iter().map(|route| route.route.chars().count()).fold(25, usize::max);
    let _ = writeln!(
        out,
        "\n{:<cells$} {:>9} {:>7} {:>7} {:>7} {:>9} {:>9} {:>10}",
        "route", "requests", "4xx", "5xx", "failed", "p50, ms", "p99, ms", "out"
    );
    for route in shown {
        let upstream = route.latency_us.get("upstream");
        let [p50, p99] = [(0.5, upstream.and_then(|it| it.p50)), (0.99, upstream.and_then(|it| it.p99))]
            .map(|(q, us)| cell(upstream, q, us));
        let _ = writeln!(
            out,
            "{:<cells$} {:>9} {:>7} {:>7} {:>7} {p50:>9} {p99:>9} {:>10}",
            route.route,
            route.requests,
            route.status_4xx,
            route.status_5xx,
            route.failed,
            bytes(route.body_bytes.out)
        );
    }
    let more = routes.len() - shown.len();
    if more > 0 {
        let _ = writeln!(out, "and {more} more");
    }
}

/// A percentile in milliseconds; in brackets if fewer than ten samples lie above it.
fn cell(of: Option<&Percentiles>, q: f64, us: Option<KnownValue>) -> String {
    match (of, us) {
        (Some(of), Some(us)) if records::histogram::quantile_is_thin(of.n, q) => {
            format!("({})", milliseconds(us, false))
        }
        (_, Some(us)) => milliseconds(us, false),
        (_, None) => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use model::runs::Model;
    use recorder::publish::Publisher;
    use records::delta::{FinishedRequest, HttpDelta, ProxyDelta};
    use records::ids::{ClientId, ConnId, RunId};
    use records::kinds::HttpVersion;
    use records::kinds::{RunRecord, Timestamps};
    use records::metrics::RequestFailure;

    #[test]
    fn the_text_has_statuses_failures_and_routes_of_http_mode() {
        let at =
            |second: u64| Timestamps { realtime_us: second * 1_000_000, monotonic_us: second * 1_000_000 };
        let mut http = HttpDelta::default();
        for n in 0..30 {
            http.finish(&FinishedRequest {
                route: Some(n % 2),
                conn: ConnId(1),
                client: ClientId::Other,
                version: if n % 3 > 0 { HttpVersion::Http2 } else { HttpVersion::Http1 },
                method: "GET",
                path: "/",
                upstream: "",
                status: Some(if n == 7 { 502 } else { 200 }),
                grpc_status: None,
                failure: (n == 7).then_some(RequestFailure::Connect),
                queue: None,
                upstream_time: Some(Duration::from_millis(2)),
                first_byte: None,
                duration: Some(Duration::from_millis(3)),
                body_in: Some(0),
                body_out: Some(1_000),
                is_reused: n > 2,
                is_retried: false,
            });
        }
        let mut publisher = Publisher::new(RunId::from_bits(1), Vec::new(), 60, at(0));
        publisher.name_routes(vec!["/".to_owned(), "shop.example/static/with/a/name".to_owned()]);
        publisher.start(RunRecord::default(), at(0));
        let delta = ProxyDelta { http: Some(Box::new(http)), ..ProxyDelta::default() };
        publisher.interval(Some(&delta), None, None, at(1));
        let mut model = Model::default();
        publisher.into_sink().into_iter().for_each(|record| model.apply(record, None));
        let text = super::super::text(&model.current().unwrap().summary());
        for part in [
            "HTTP         30 requests, 20 over HTTP/2, 10 over HTTP/1, 1 failed",
            "statuses     29 200, 1 502",
            "failed by    1 connect",
            "upstream     27 on a kept connection (90.0 %), 0 retried",
            "route                            requests     4xx",
            "/                                      15       0       0       0",
            "shop.example/static/with/a/name        15       0       1       1   (2.00",
            "HTTP upstream",
        ] {
            assert!(text.contains(part), "{part:?} in\n{text}");
        }
    }
}
