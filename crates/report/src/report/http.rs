//! The tables of HTTP mode, for the page and for Markdown.

use model::summary::{HttpSummary, Percentiles, RouteSummary};
use records::histogram::quantile_is_thin;
use records::metrics::{KnownValue, labels};

use crate::numbers::{DASH, bound_ms, fixed, grouped, ms};
use crate::report::Report;
use crate::table::Heading::{Number, Words};
use crate::table::ReportTable;

impl Report<'_> {
    pub(crate) fn http(&self) -> Option<&HttpSummary> {
        self.summary.proxy.as_ref()?.http.as_ref()
    }

    /// Requests by protocol and fate, methods, HTTP/2; counts of 0 are left out.
    pub(crate) fn http_rows(&self) -> ReportTable {
        let rows = self.http().map(http_counts).unwrap_or_default();
        let rows = rows.into_iter().filter(|(.., n)| *n > 0);
        let rows = rows.map(|(of, what, n)| vec![of.to_owned(), what.to_owned(), grouped(n)]);
        ReportTable::new("HTTP requests", [Words("of"), Words("which"), Number("count")], rows)
    }

    /// Responses by exact status, and calls of gRPC by theirs.
    pub(crate) fn http_status_rows(&self) -> ReportTable {
        let of_http = self.http().map(|http| &http.statuses).into_iter().flatten();
        let of_grpc = self.http().map(|http| &http.grpc_statuses).into_iter().flatten();
        let of_grpc = of_grpc.map(|(status, n)| (format!("gRPC {status}"), n));
        let statuses = of_http.map(|(status, n)| (status.clone(), n)).chain(of_grpc);
        let rows = statuses.map(|(status, n)| vec![status, grouped(*n)]);
        ReportTable::new("HTTP statuses", [Words("status"), Number("responses")], rows)
    }

    /// The routes, those with the most requests first.
    pub(crate) fn route_rows(&self) -> ReportTable {
        let seconds = self.summary.duration_s;
        let row = |route: &RouteSummary| {
            let rate =
                if seconds > 0.0 { fixed(route.requests as f64 / seconds, 1) } else { DASH.to_owned() };
            let upstream = route.latency_us.get("upstream");
            let request = route.latency_us.get("request");
            vec![
                route.route.clone(),
                grouped(route.requests),
                rate,
                quantile(upstream, 0.5, |it| it.p50),
                quantile(upstream, 0.99, |it| it.p99),
                quantile(request, 0.99, |it| it.p99),
                grouped(route.status_4xx),
                grouped(route.status_5xx),
                grouped(route.failed),
                grouped(route.retried),
                fixed(route.body_bytes.r#in as f64 / 1e6, 3),
                fixed(route.body_bytes.out as f64 / 1e6, 3),
            ]
        };
        let columns = [
            Words("route"),
            Number("requests"),
            Number("1/s"),
            Number("upstream p50, ms"),
            Number("upstream p99, ms"),
            Number("request p99, ms"),
            Number("4xx"),
            Number("5xx"),
            Number("failed"),
            Number("retried"),
            Number("MB in"),
            Number("MB out"),
        ];
        ReportTable::new(
            "Routes",
            columns,
            self.http().map(|http| &http.routes).into_iter().flatten().map(row),
        )
    }
}

fn http_counts(http: &HttpSummary) -> Vec<(&'static str, &'static str, u64)> {
    let (requests, http2) = (&http.requests, &http.http2);
    let methods = labels::methods().map(|(name, _)| ("method", name, http.methods[name]));
    let all = [
        ("requests", "HTTP/2", requests.http2),
        ("requests", "HTTP/1.1 and HTTP/1.0", requests.http1),
        ("requests", "failed", requests.failed),
        ("requests", "over before a status was sent", requests.unanswered),
        ("requests", "on a kept upstream connection", requests.reused),
        ("requests", "retried", requests.retried),
        ("requests", "waited for an upstream connection", requests.queued),
    ];
    let of_http2 = [
        ("HTTP/2", "connections", http2.connections),
        ("HTTP/2", "streams", http2.streams),
        ("HTTP/2", "RST_STREAM frames from clients", http2.resets.r#in),
        ("HTTP/2", "RST_STREAM frames to clients", http2.resets.out),
        ("HTTP/2", "header bytes, both ways", http2.header_bytes.r#in + http2.header_bytes.out),
        (
            "HTTP/2",
            "header bytes before compression",
            http2.plain_header_bytes.r#in + http2.plain_header_bytes.out,
        ),
    ];
    let floods = labels::floods().map(|(kind, _)| ("HTTP/2 flood", kind, http2.floods[kind]));
    all.into_iter().chain(methods).chain(of_http2).chain(floods).collect()
}

/// A percentile in milliseconds; in brackets if fewer than ten samples lie above it.
pub(crate) fn quantile(
    of: Option<&Percentiles>,
    q: f64,
    us: fn(&Percentiles) -> Option<KnownValue>,
) -> String {
    let Some((of, us)) = of.and_then(|of| Some((of, us(of)?))) else { return DASH.to_owned() };
    let shown = if us.is_bound() { bound_ms(us.number() / 1e3) } else { ms(us.number() / 1e3) };
    if quantile_is_thin(of.n, q) { format!("({shown})") } else { shown }
}
