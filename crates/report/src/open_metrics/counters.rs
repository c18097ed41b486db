//! Counters: totals of the run.

use model::runs::{MetricSeries, Run};
use records::metrics::{
    Counters, HttpCounter, LoadCounter, Metric, ProxyCounter, RequestFailure, RouteCounter, TlsCounter,
    labels,
};

use super::family::{Family, Label};

/// Counters of the proxy with a separate metric.
pub(super) const PROXY: &[(&str, ProxyCounter)] = &[
    ("connections_accepted", ProxyCounter::Accepted),
    ("connections_closed", ProxyCounter::Closed),
    ("connections_failed", ProxyCounter::Failed),
    ("accept_errors", ProxyCounter::AcceptErrors),
    ("handshakes_hello_retry", ProxyCounter::HandshakesRetried),
    ("plaintext_in_bytes", ProxyCounter::BytesIn),
    ("plaintext_out_bytes", ProxyCounter::BytesOut),
    ("tls_in_bytes", ProxyCounter::WireIn),
    ("tls_out_bytes", ProxyCounter::WireOut),
    ("exchanges", ProxyCounter::Exchanges),
    ("upstream_connects", ProxyCounter::UpstreamConnects),
    ("upstream_connects_failed", ProxyCounter::UpstreamConnectsFailed),
    ("connection_errors_unrecorded", ProxyCounter::EventsUnrecorded),
    ("log_lines", ProxyCounter::LinesRead),
    ("log_lines_unreadable", ProxyCounter::LinesUnreadable),
    ("log_lines_out_of_order", ProxyCounter::LinesOutOfOrder),
    ("log_lines_lost", ProxyCounter::LinesLost),
];
/// Why established connections are cut.
pub(super) const CUTS: [(&str, ProxyCounter); 5] = [
    ("upstream broken", ProxyCounter::UpstreamBroken),
    ("client broken", ProxyCounter::ClientBroken),
    ("idle timeout", ProxyCounter::IdleTimeouts),
    ("send timeout", ProxyCounter::SendTimeouts),
    ("pending bytes", ProxyCounter::PendingCuts),
];
/// Counters of TLS with a separate metric.
pub(super) const TLS: &[(&str, TlsCounter)] = &[
    ("resumptions_offered", TlsCounter::OffersToResume),
    ("handshakes_tls12_only", TlsCounter::Tls12Only),
    ("handshakes_mlkem_offered", TlsCounter::MlkemOffered),
    ("handshakes_retransmitted", TlsCounter::HandshakesRetransmitted),
    ("handshake_retransmits", TlsCounter::Retransmits),
];
/// How many other connections of a client's address were open when it offered no ticket.
pub(super) const BESIDE: [(&str, TlsCounter); 5] = [
    ("0", TlsCounter::NoTicketAlone),
    ("1", TlsCounter::NoTicketBeside1),
    ("2-3", TlsCounter::NoTicketBeside3),
    ("4-7", TlsCounter::NoTicketBeside7),
    ("8+", TlsCounter::NoTicketBesideMore),
];
/// Counters of HTTP mode with a separate metric.
pub(super) const HTTP: &[(&str, HttpCounter)] = &[
    ("http_requests_unrecorded", HttpCounter::Unrecorded),
    ("http_requests_retried", HttpCounter::Retried),
    ("http_upstream_reused", HttpCounter::Reused),
    ("http_requests_queued", HttpCounter::Queued),
    ("http_body_in_bytes", HttpCounter::BodyIn),
    ("http_body_out_bytes", HttpCounter::BodyOut),
    ("http2_connections", HttpCounter::Connections2),
    ("http2_streams", HttpCounter::Streams2),
    ("http2_resets_in", HttpCounter::ResetsIn),
    ("http2_resets_out", HttpCounter::ResetsOut),
    ("http2_goaways_in", HttpCounter::GoawaysIn),
    ("http2_goaways_out", HttpCounter::GoawaysOut),
    ("http2_headers_in_bytes", HttpCounter::HeaderBytesIn),
    ("http2_headers_out_bytes", HttpCounter::HeaderBytesOut),
    ("http2_headers_plain_in_bytes", HttpCounter::PlainHeaderBytesIn),
    ("http2_headers_plain_out_bytes", HttpCounter::PlainHeaderBytesOut),
];
/// Requests by protocol.
pub(super) const PROTOCOLS: [(&str, HttpCounter); 2] =
    [("HTTP/1", HttpCounter::Requests11), ("HTTP/2", HttpCounter::Requests2)];
/// Counters of a route with a separate metric.
const ROUTE: &[(&str, RouteCounter)] = &[
    ("route_requests", RouteCounter::Requests),
    ("route_requests_failed", RouteCounter::Failed),
    ("route_requests_retried", RouteCounter::Retried),
    ("route_body_in_bytes", RouteCounter::BodyIn),
    ("route_body_out_bytes", RouteCounter::BodyOut),
];
const ROUTE_STATUSES: [(&str, RouteCounter); 4] = [
    ("2xx", RouteCounter::Status2xx),
    ("3xx", RouteCounter::Status3xx),
    ("4xx", RouteCounter::Status4xx),
    ("5xx", RouteCounter::Status5xx),
];
/// Counters of the load with a separate metric.
pub(super) const LOAD: &[(&str, LoadCounter)] = &[
    ("load_requests_scheduled", LoadCounter::Scheduled),
    ("load_requests_sent", LoadCounter::Sent),
    ("load_requests_ok", LoadCounter::Ok),
    ("load_requests_late", LoadCounter::Late),
    ("load_requests_never_sent", LoadCounter::NeverSent),
    ("load_requests_throttled", LoadCounter::Throttled),
    ("load_requests_unfinished", LoadCounter::Unfinished),
    ("load_requests_warmup", LoadCounter::Warmup),
    ("load_requests_reused", LoadCounter::Reused),
    ("load_requests_retried", LoadCounter::Retried),
    ("load_connections_opened", LoadCounter::Opened),
    ("load_connections_closed", LoadCounter::Closed),
    ("load_handshakes_failed", LoadCounter::HandshakesFailed),
    ("load_resumptions_wanted", LoadCounter::ResumptionsWanted),
    ("load_resumptions_offered", LoadCounter::ResumptionsOffered),
    ("load_early_data_wanted", LoadCounter::EarlyWanted),
    ("load_early_data_offered", LoadCounter::EarlyOffered),
    ("load_early_data_accepted", LoadCounter::EarlyAccepted),
    ("load_sent_bytes", LoadCounter::BytesIn),
    ("load_received_bytes", LoadCounter::BytesOut),
    ("load_body_sent_bytes", LoadCounter::BodyIn),
    ("load_body_received_bytes", LoadCounter::BodyOut),
    ("load_head_received_bytes", LoadCounter::HeadOut),
    ("load_head_plain_bytes", LoadCounter::HeadPlain),
];
/// Answers to the load by status.
pub(super) const LOAD_STATUSES: [(&str, LoadCounter); 4] = [
    ("2xx", LoadCounter::Status2xx),
    ("3xx", LoadCounter::Status3xx),
    ("4xx", LoadCounter::Status4xx),
    ("5xx", LoadCounter::Status5xx),
];

/// Counters of connections, handshakes and bytes.
pub(super) fn of_proxy(run: &Run) -> Vec<Family> {
    let Some(proxy) = run.proxy().map(MetricSeries::totals) else { return Vec::new() };
    let kinds = ["full", "resumed"];
    let by_version = labels::VERSIONS.iter().flat_map(|(version, counters)| {
        let of_kind = move |(kind, counter): (&str, &ProxyCounter)| {
            (vec![label("kind", kind), label("version", version)], proxy[*counter] as f64)
        };
        kinds.into_iter().zip(counters).map(of_kind)
    });
    let mut all = vec![Family::counter("handshakes", "TLS handshakes completed", by_version)];
    all.push(by_label(
        "handshakes_by_group",
        "TLS handshakes completed, by key exchange group",
        "group",
        &labels::GROUPS,
        proxy,
    ));
    all.push(by_label(
        "handshakes_by_cipher",
        "TLS handshakes completed, by cipher",
        "cipher",
        &labels::CIPHERS,
        proxy,
    ));
    all.push(by_label(
        "handshakes_failed",
        "Connections that ended before their handshake was complete, by cause",
        "cause",
        &labels::HANDSHAKE_FAILURES,
        proxy,
    ));
    all.push(by_label(
        "connections_cut",
        "Established connections that were cut, by cause",
        "cause",
        &CUTS,
        proxy,
    ));
    all.extend(each(PROXY, proxy));
    if let Some(tls) = run.tls().map(MetricSeries::totals) {
        all.push(by_label(
            "handshakes_full",
            "Full TLS handshakes, by the reason why they were not resumed",
            "reason",
            &labels::FULL_REASONS,
            tls,
        ));
        all.push(by_label("handshakes_no_ticket", "Full handshakes without a ticket of an address that was seen before, by its other open connections", "connections", &BESIDE, tls));
        all.extend(each(TLS, tls));
    }
    all
}

/// Counters of HTTP mode over all routes.
pub(super) fn of_http(run: &Run) -> Vec<Family> {
    let Some(http) = run.http().map(MetricSeries::totals) else { return Vec::new() };
    let failures = RequestFailure::ALL
        .iter()
        .map(|(_, counter, cause)| (vec![label("cause", cause)], http[*counter] as f64));
    let mut all = vec![
        by_label("http_requests", "Requests that are over, by protocol", "protocol", &PROTOCOLS, http),
        by_label(
            "http_responses",
            "Requests that are over, by the class of the status",
            "status",
            &labels::STATUS_CLASSES,
            http,
        ),
        by_label("http_methods", "Requests that are over, by method", "method", &labels::METHODS, http),
        Family::counter("http_requests_failed", "Requests that failed in the proxy, by cause", failures),
        by_label(
            "http2_floods",
            "Connections ended for a flood of HTTP/2 frames",
            "kind",
            &labels::FLOODS,
            http,
        ),
    ];
    all.extend(each(HTTP, http));
    all
}

/// Counters of each route.
pub(super) fn of_routes(run: &Run) -> Vec<Family> {
    let of_each = |counter: RouteCounter| {
        run.routes()
            .iter()
            .map(move |route| (vec![label("route", route.name())], route.totals()[counter] as f64))
    };
    let each = ROUTE
        .iter()
        .map(|(name, counter)| Family::counter(name, &counter.field().meaning, of_each(*counter)));
    let statuses = run.routes().iter().flat_map(|route| {
        ROUTE_STATUSES.iter().map(|(status, counter)| {
            (vec![label("route", route.name()), label("status", status)], route.totals()[*counter] as f64)
        })
    });
    each.chain([Family::counter(
        "route_responses",
        "Requests of this route, by the class of the status",
        statuses,
    )])
    .collect()
}

/// Counters of the load.
pub(super) fn of_load(run: &Run) -> Vec<Family> {
    let Some(load) = run.load().map(MetricSeries::totals) else { return Vec::new() };
    let kinds = [("full", LoadCounter::HandshakesFull), ("resumed", LoadCounter::HandshakesResumed)];
    let failures = labels::REQUEST_FAILURES
        .iter()
        .map(|(cause, _, counter)| (vec![label("cause", cause)], load[*counter] as f64));
    let mut all = vec![
        Family::counter("load_requests_failed", "Requests of the load that failed, by cause", failures),
        by_label(
            "load_responses",
            "Answers to the load, by the class of the status",
            "status",
            &LOAD_STATUSES,
            load,
        ),
        by_label("load_handshakes", "TLS handshakes completed, as the client saw them", "kind", &kinds, load),
    ];
    all.extend(each(LOAD, load));
    all
}

/// A family for each counter.
fn each<M: Metric>(named: &[(&'static str, M)], totals: &Counters<M>) -> impl Iterator<Item = Family> {
    named.iter().map(|(name, counter)| {
        Family::counter(name, &counter.field().meaning, [(Vec::new(), totals[*counter] as f64)])
    })
}

/// One family, whose samples have this label.
fn by_label<M: Metric>(
    name: &'static str,
    help: &str,
    label_name: &'static str,
    labelled: &[(&str, M)],
    totals: &Counters<M>,
) -> Family {
    let samples =
        labelled.iter().map(|(value, counter)| (vec![label(label_name, value)], totals[*counter] as f64));
    Family::counter(name, help, samples)
}

pub(super) fn label(name: &'static str, value: &str) -> Label {
    (name, value.to_owned())
}
