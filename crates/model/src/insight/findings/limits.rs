//! The finding about clients that go beyond the limits for each client.

use super::context::FindingContext;
use super::handshakes::failing_clients;
use super::{FindingText, Rule, Severity};
use records::metrics::{HttpCounter, ProxyCounter};
use records::text::quantity::counted;

pub(super) const BEYOND_LIMIT: Rule = Rule { id: "clients-beyond-limit", judge, text };

/// Refused connections, each with the limit that refused them.
const CONNECTIONS: [(ProxyCounter, &str); 3] = [
    (ProxyCounter::RefusedConnections, "beyond --connections-per-client"),
    (ProxyCounter::RefusedConnectionRate, "beyond --connection-rate"),
    (ProxyCounter::RefusedHandshakeRate, "beyond --handshake-rate"),
];

/// Connections and requests that were refused in the last minute.
fn refused(context: &FindingContext<'_>) -> (u64, u64) {
    let lately = context.minute();
    let connections = lately.proxy.sum(&CONNECTIONS.map(|(counter, _)| counter));
    (connections, lately.http[HttpCounter::FailedRequestRate])
}

fn judge(context: &FindingContext<'_>) -> Option<Severity> {
    (refused(context) != (0, 0)).then_some(Severity::Warning)
}

fn text(context: &FindingContext<'_>) -> FindingText {
    let lately = context.minute();
    let (connections, requests) = refused(context);
    let what = match (connections, requests) {
        (0, _) => counted(requests, "request"),
        (_, 0) => counted(connections, "connection"),
        _ => format!("{} and {}", counted(connections, "connection"), counted(requests, "request")),
    };
    let text = FindingText::new(format!("Clients go beyond their limits: {what} refused in the last minute"));
    let of_connections = CONNECTIONS.map(|(counter, limit)| (limit, lately.proxy[counter]));
    let all = of_connections.into_iter().chain([("requests beyond --request-rate", requests)]);
    all.filter(|(_, n)| *n > 0)
        .fold(text, |text, (limit, n)| text.figure(limit, n))
        .advise("look at the clients below: raise the limit if they are good ones that share an address")
        .whom(failing_clients(context))
}
