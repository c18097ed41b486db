//! Findings about limits: clients that go beyond those for each client, and the bound on memory.

use super::handshakes::failing_clients;
use super::rule::{FindingContext, Rule};
use crate::runs::findings::{FindingText, Severity};
use records::metrics::{HttpCounter, ProxyCounter};
use records::text::quantity::counted;

pub(super) const BEYOND_LIMIT: Rule = Rule { id: "clients-beyond-limit", judge, text };
pub(super) const MEMORY_SHORT: Rule =
    Rule { id: "memory-short", judge: memory_short, text: memory_short_text };

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

fn memory_short(context: &FindingContext<'_>) -> Option<Severity> {
    let lately = &context.minute().proxy;
    if lately[ProxyCounter::RefusedMemory] > 0 {
        return Some(Severity::Critical);
    }
    (lately[ProxyCounter::IdleClosed] > 0).then_some(Severity::Warning)
}

fn memory_short_text(context: &FindingContext<'_>) -> FindingText {
    let lately = &context.minute().proxy;
    let refused = lately[ProxyCounter::RefusedMemory];
    let what = if refused > 0 { "new connections are refused" } else { "idle connections are closed" };
    FindingText::new(format!("Memory is short: {what}"))
        .figure("refused connections, last minute", refused)
        .figure("idle connections closed, last minute", lately[ProxyCounter::IdleClosed])
        .figure("connections cut for pending bytes, last minute", lately[ProxyCounter::PendingCuts])
        .figure("MiB of the process", context.run.host().map_or(0, |host| host.memory_bytes >> 20))
        .figure("open connections", context.run.proxy_open())
        .advise(
            "the notices say what the bound is and how much peers that do not read hold: raise it (--memory-max, or \
             MemoryMax= of the service), or lower --connections-max or --pending-max",
        )
        .about("proxy.memory-max")
}
