//! Counters of the clients with most bytes.

use model::runs::{ClientStats, Run};
use records::metrics::{ClientCounter, Counters, Metric};

use super::counters::label;
use super::family::Family;

/// Counters of a client with a separate metric.
const CLIENT: &[(&str, ClientCounter)] = &[
    ("client_connections", ClientCounter::Connections),
    ("client_plaintext_in_bytes", ClientCounter::BytesIn),
    ("client_plaintext_out_bytes", ClientCounter::BytesOut),
    ("client_exchanges", ClientCounter::Exchanges),
    ("client_errors", ClientCounter::Errors),
];
/// Handshakes by their kind.
const HANDSHAKES: [(&str, ClientCounter); 2] =
    [("full", ClientCounter::HandshakesFull), ("resumed", ClientCounter::HandshakesResumed)];

/// Counters of the `clients_max` clients with most bytes.
pub(super) fn of_clients(run: &Run, clients_max: usize) -> Vec<Family> {
    if clients_max == 0 {
        return Vec::new();
    }
    let mut clients = run.clients_by_bytes();
    clients.truncate(clients_max);
    let name = |client: &ClientStats| label("client", &client.id.to_string());
    let of_each = |counter: ClientCounter| {
        let sample = move |(client, totals): &(&ClientStats, Counters<ClientCounter>)| {
            (vec![name(client)], totals[counter] as f64)
        };
        clients.iter().map(sample)
    };
    let handshakes = clients.iter().flat_map(|(client, totals)| {
        HANDSHAKES.map(|(kind, counter)| (vec![name(client), label("kind", kind)], totals[counter] as f64))
    });
    let each = CLIENT
        .iter()
        .map(|(name, counter)| Family::counter(name, &counter.field().meaning, of_each(*counter)));
    each.chain([Family::counter("client_handshakes", "TLS handshakes completed by this client", handshakes)])
        .collect()
}
