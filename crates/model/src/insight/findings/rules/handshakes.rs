//! Findings about handshakes that fail, and upstreams that cannot be reached.

use std::cmp::Reverse;

use super::rule::{FindingContext, HysteresisLimit, MINUTE_US, Rule};
use crate::insight::shares::{out_of, percent, share};
use crate::runs::ClientStats;
use crate::runs::findings::{FindingText, Severity};
use records::metrics::{CertificateRefusal, ClientCounter, ProxyCounter};
use records::text::quantity::grouped;

pub(super) const REFUSED: Rule = Rule { id: "handshakes-refused", judge: refused, text: refused_text };
pub(super) const UPSTREAM_UNREACHABLE: Rule =
    Rule { id: "upstream-unreachable", judge: unreachable, text: unreachable_text };

/// Handshakes that server and client began but did not complete. Clients that only check whether the port is open, or
/// do not speak TLS, are not included.
const REFUSALS: [(ProxyCounter, &str); 4] = [
    (ProxyCounter::FailedIncompatible, "no version, group or cipher in common"),
    (ProxyCounter::FailedAlert, "the client sent an alert"),
    (ProxyCounter::FailedTimeout, "not complete at the deadline"),
    (ProxyCounter::FailedOther, "other reasons"),
];
/// Others, as evidence. The figure of failed handshakes elsewhere includes them.
const NO_HANDSHAKE: [(ProxyCounter, &str); 3] = [
    (ProxyCounter::FailedEof, "not among these: the client went away"),
    (ProxyCounter::FailedNotTls, "not among these: the first bytes were not TLS"),
    (ProxyCounter::FailedName, "not among these: the server name is not served"),
];

/// The causes of [`REFUSALS`], and why certificates of clients are refused.
fn refusals() -> impl Iterator<Item = (ProxyCounter, &'static str)> {
    let certificates = CertificateRefusal::ALL.into_iter().map(|(_, counter, words)| (counter, words));
    REFUSALS.into_iter().chain(certificates)
}

const SHARES: &[(Severity, HysteresisLimit)] =
    &[(Severity::Warning, HysteresisLimit::at(0.02)), (Severity::Critical, HysteresisLimit::at(0.5))];
const N_MIN: f64 = 10.0;
pub(super) const DONE: [ProxyCounter; 2] = [ProxyCounter::HandshakesFull, ProxyCounter::HandshakesResumed];

/// Refused in the last minute, and all handshakes.
fn refused_of(context: &FindingContext<'_>) -> (u64, u64) {
    let lately = &context.minute().proxy;
    let refused = refusals().fold(0_u64, |sum, (counter, _)| sum.saturating_add(lately[counter]));
    (refused, refused.saturating_add(lately.sum(&DONE)))
}

fn refused(context: &FindingContext<'_>) -> Option<Severity> {
    context.graded(refused_of(context), N_MIN, SHARES)
}

fn refused_text(context: &FindingContext<'_>) -> FindingText {
    let lately = &context.minute().proxy;
    let (n, whole) = refused_of(context);
    let causes = refusals().max_by_key(|(counter, _)| lately[*counter]);
    let main = causes.map_or("", |(_, words)| words);
    let text =
        FindingText::new(format!("{} of handshakes fail; main cause: {main}", percent(share(n, whole))));
    let text = text.figure("failed of begun handshakes, last minute", out_of(n, whole));
    let counted = refusals().chain(NO_HANDSHAKE).filter(|(counter, _)| lately[*counter] > 0);
    let text = counted.fold(text, |text, (counter, words)| text.figure(words, lately[counter]));
    let text = match main {
        _ if context.run.other_terminator().is_some() => {
            text.advise("the details below name the causes, in the terminator's words")
        }
        "no version, group or cipher in common" => text
            .advise("the details below name what is not in common: allow it with --tls-min, --tls-max, --ciphers, --groups or --alpn, or add an RSA certificate")
            .about("proxy.ciphers"),
        "the client sent an alert" => text
            .advise("the details below name the alerts: UnknownCA and BadCertificate are about --cert, whose file must hold the whole chain")
            .about("proxy.certificate"),
        "not complete at the deadline" => {
            text.advise("clients are slow or attack: see --handshake-timeout").about("proxy.handshake-timeout")
        }
        _ if CertificateRefusal::ALL.iter().any(|(.., words)| *words == main) => {
            text.advise("the clients below need another certificate, or --client-ca another authority").about("proxy.client-ca")
        }
        _ => text.advise("the details below name the reasons"),
    };
    let clients = failing_clients(context);
    if !clients.is_empty() {
        return text.whom(clients);
    }
    let details = context.run.failures().by_frequency();
    text.whom(details.iter().map(|(kind, detail, n)| format!("{} × {kind}: {detail}", grouped(n))))
}

/// The clients whose connections failed in the last minute, those with the most first, each with the reason of its latest
/// failure that has a record.
pub(super) fn failing_clients(context: &FindingContext<'_>) -> Vec<String> {
    let lately = context.run.last_us().saturating_sub(MINUTE_US) + 1..;
    let clients = context.run.clients().iter();
    let counted = clients.map(|client| (client.count_within(ClientCounter::Errors, &lately), client));
    let mut counted: Vec<_> = counted.filter(|(failed, _)| *failed > 0).collect();
    counted.sort_by_key(|(failed, client)| (Reverse(*failed), client.id));
    let named = |(failed, client): (u64, &ClientStats)| {
        let why = client.failed_connection().map(|(_, connection)| connection);
        let why = why.map_or_else(String::new, |why| format!(", the latest {}: {}", why.outcome, why.detail));
        format!("{}: {} failed{}", client.id, grouped(failed), why.trim_end_matches(": "))
    };
    counted.into_iter().map(named).collect()
}

fn unreachable_of(context: &FindingContext<'_>) -> (u64, u64) {
    let lately = &context.minute().proxy;
    let failed = lately[ProxyCounter::UpstreamConnectsFailed];
    (failed, failed.saturating_add(lately[ProxyCounter::UpstreamConnects]))
}

fn unreachable(context: &FindingContext<'_>) -> Option<Severity> {
    context.graded(unreachable_of(context), N_MIN, SHARES)
}

fn unreachable_text(context: &FindingContext<'_>) -> FindingText {
    let (n, whole) = unreachable_of(context);
    // TCP mode counts a connection once every upstream has failed it, HTTP mode and logs each attempt.
    let is_tcp_mode = context.run.http().is_none() && context.run.other_terminator().is_none();
    let what = if is_tcp_mode {
        "of client connections reach no upstream"
    } else {
        "of connections to upstreams cannot be established"
    };
    FindingText::new(format!("{} {what}", percent(share(n, whole))))
        .figure("failed connects, last minute", out_of(n, whole))
        .advise("see whether the upstream runs and accepts: the notices name it and the error")
        .about("proxy.upstream")
}
