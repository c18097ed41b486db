//! Counters: totals of the run, under the names of their declaration.

use model::figures::FigurePart;
use model::runs::{ClientStats, MetricSeries, Run};
use records::metrics::{Counters, Metric};

use super::family::{Family, Label};

/// Metrics that several counters or latencies share: the name of their label, and the help.
const SHARED: [(&str, &str, &str); 29] = [
    ("handshakes", "version", "TLS handshakes completed"),
    ("handshakes_by_group", "group", "TLS handshakes completed, by key exchange group"),
    ("handshakes_by_cipher", "cipher", "TLS handshakes completed, by cipher"),
    ("handshakes_failed", "cause", "Connections that ended before their handshake was complete, by cause"),
    ("handshakes_full", "reason", "Full TLS handshakes, by the reason why they were not resumed"),
    (
        "handshakes_no_ticket",
        "connections",
        "Full handshakes without a ticket of an address that was seen before, by its other open connections",
    ),
    ("handshake_seconds", "", "From the ClientHello to the handshake's end, round trips included"),
    ("handshake_compute_seconds", "", "Time spent inside the TLS library during a handshake"),
    ("handshake_wait_seconds", "part", "Where the wall time of handshakes goes besides computing"),
    ("connections_cut", "cause", "Established connections that were cut, by cause"),
    (
        "connections_closed_first",
        "end",
        "Connections by the end that closed first, and how; of packets alone",
    ),
    ("windows_full", "end", "Times that an end stopped reading, by end; of packets alone"),
    ("http_requests", "protocol", "Requests that are over, by protocol"),
    ("http_responses", "status", "Requests that are over, by the class of the status"),
    ("http_methods", "method", "Requests that are over, by method"),
    ("http_requests_failed", "cause", "Requests that failed in the proxy, by cause"),
    ("http2_floods", "kind", "Connections ended for a flood of HTTP/2 frames"),
    (
        "http_first_byte_seconds",
        "protocol",
        "From the request head to the first byte of the response handed to the client",
    ),
    (
        "http_request_seconds",
        "protocol",
        "From the first byte of the request (HTTP/2: its complete header) to the last byte of the response taken by the kernel",
    ),
    ("upstream_handshakes", "", "TLS handshakes with this upstream"),
    (
        "upstream_handshake_seconds",
        "",
        "TLS handshakes with this upstream: connected to handshake done, round trips included",
    ),
    ("upstream_attempts_failed", "cause", "Attempts to connect to this upstream that failed, by cause"),
    ("route_responses", "status", "Requests of this route, by the class of the status"),
    ("client_handshakes", "", "TLS handshakes completed by this client"),
    ("client_handshakes_full", "reason", "Full TLS handshakes of this client but for its first, by reason"),
    ("load_requests_failed", "cause", "Requests of the load that failed, by cause"),
    ("load_responses", "status", "Answers to the load, by the class of the status"),
    ("load_handshakes", "", "TLS handshakes completed, as the client saw them"),
    ("cpu_seconds", "threads", "CPU time of the process, by what its threads do"),
];

/// Counters of connections, handshakes and bytes.
pub(super) fn of_proxy(run: &Run) -> Vec<Family> {
    let proxy = run.proxy().map(|series| totals(series.totals()));
    let tls = run.tls().map(|series| totals(series.totals()));
    proxy.into_iter().chain(tls).flatten().collect()
}

/// Counters of HTTP mode over all routes.
pub(super) fn of_http(run: &Run) -> Vec<Family> {
    run.http().map(MetricSeries::totals).map(totals).unwrap_or_default()
}

/// Counters of the load.
pub(super) fn of_load(run: &Run) -> Vec<Family> {
    run.load().map(MetricSeries::totals).map(totals).unwrap_or_default()
}

/// Counters of each route or upstream.
pub(super) fn of_named<R: FigurePart>(run: &Run) -> Vec<Family> {
    let parts = R::table(run).iter().map(|part| (label(R::NOUN, part.name()), *part.totals()));
    of_each(&parts.collect::<Vec<_>>())
}

/// Counters of the `clients_max` clients with most bytes.
pub(super) fn of_clients(run: &Run, clients_max: usize) -> Vec<Family> {
    if clients_max == 0 {
        return Vec::new();
    }
    let name = |client: &ClientStats| label("client", &client.id.to_string());
    let clients = run.clients_by_bytes().into_iter().take(clients_max);
    of_each(&clients.map(|(client, totals)| (name(client), totals)).collect::<Vec<_>>())
}

fn totals<M: Metric>(totals: &Counters<M>) -> Vec<Family> {
    named(
        |counter: M, labels, samples| samples.push((labels.to_vec(), totals[counter] as f64)),
        Family::counter,
    )
}

fn of_each<M: Metric>(labelled: &[(Label, Counters<M>)]) -> Vec<Family> {
    let add = |counter: M, labels: &[Label], samples: &mut Vec<(Vec<Label>, f64)>| {
        samples.extend(labelled.iter().map(|(of, totals)| {
            ([of.clone()].into_iter().chain(labels.iter().cloned()).collect(), totals[counter] as f64)
        }));
    };
    named(add, Family::counter)
}

/// The metrics of a family, in its order. `add` adds the samples of a member, which has these labels among others of its
/// metric.
pub(super) fn named<M: Metric, S>(
    add: impl Fn(M, &[Label], &mut Vec<S>),
    family: impl Fn(&'static str, &str, Vec<S>) -> Family,
) -> Vec<Family> {
    let mut metrics: Vec<(&'static str, M, Vec<S>)> = Vec::new();
    for &member in M::ALL.iter().filter(|member| !member.names().metric.is_empty()) {
        let names = member.names();
        let shared = SHARED.iter().find(|(metric, ..)| *metric == names.metric);
        let by = shared.map_or("", |(_, by, _)| by);
        let labels = [("kind", names.kind), (by, names.label)];
        let labels: Vec<Label> = labels
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| label(name, value))
            .collect();
        let at = metrics.iter().position(|(metric, ..)| *metric == names.metric);
        let at = at.unwrap_or_else(|| {
            metrics.push((names.metric, member, Vec::new()));
            metrics.len() - 1
        });
        add(member, &labels, &mut metrics[at].2);
    }
    let help = |metric: &str, member: M| {
        let shared = SHARED.iter().find(|(shared, ..)| *shared == metric);
        shared.map_or_else(|| &*member.field().meaning, |(.., help)| help)
    };
    metrics
        .into_iter()
        .map(|(metric, member, samples)| family(metric, help(metric, member), samples))
        .collect()
}

pub(super) fn label(name: &'static str, value: &str) -> Label {
    (name, value.to_owned())
}
