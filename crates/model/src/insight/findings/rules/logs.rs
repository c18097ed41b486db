//! Findings on counts from the log of another terminator.

use std::cmp::Reverse;

use super::clients::OldClients;
use super::handshakes::DONE;
use super::rule::{FindingContext, Rule};
use crate::insight::shares::{out_of, percent, share};
use crate::runs::findings::{FindingText, Severity};
use records::ids::ClientId;
use records::metrics::{ClientCounter, ProxyCounter};
use records::text::quantity::counted;

pub(super) const NEVER_RESUMES: Rule =
    Rule { id: "never-resumes", judge: never_resumes, text: never_resumes_text };
pub(super) const OLD_VERSIONS: Rule =
    Rule { id: "old-versions", judge: old_versions, text: old_versions_text };

pub(super) const LINES_LOST: Rule = Rule { id: "lines-lost", judge: lines_lost, text: lines_lost_text };

pub(super) const PACKETS_LOST: Rule =
    Rule { id: "packets-lost", judge: packets_lost, text: packets_lost_text };

/// Full handshakes in ten minutes from which clients are evaluated.
const FULL_MIN: u64 = 100;
/// Full handshakes from which on a client that never resumed is found.
const CLIENT_FULL_MIN: u64 = 20;
const TLS13: [ProxyCounter; 2] = [ProxyCounter::Tls13Full, ProxyCounter::Tls13Resumed];

fn lines_lost(context: &FindingContext<'_>) -> Option<Severity> {
    (context.minute().proxy[ProxyCounter::LinesLost] > 0).then_some(Severity::Warning)
}

fn packets_lost(context: &FindingContext<'_>) -> Option<Severity> {
    (context.minute().proxy[ProxyCounter::PacketsLost] > 0).then_some(Severity::Warning)
}

fn packets_lost_text(context: &FindingContext<'_>) -> FindingText {
    let lately = &context.minute().proxy;
    let (lost, read) = (lately[ProxyCounter::PacketsLost], lately[ProxyCounter::Packets]);
    let share = percent(share(lost, lost.saturating_add(read)));
    FindingText::new(format!(
        "{share} of the packets were lost on their way to us: counts are too low by them"
    ))
    .figure("packets lost, last minute", lost)
    .figure("handshakes not judged, last minute", lately[ProxyCounter::Unjudged])
    .advise("--port and --interface leave other packets in the kernel")
}

fn lines_lost_text(context: &FindingContext<'_>) -> FindingText {
    let lately = &context.minute().proxy;
    let (lost, read) = (lately[ProxyCounter::LinesLost], lately[ProxyCounter::LinesRead]);
    let all = context.run.proxy().map_or(0, |proxy| proxy.totals()[ProxyCounter::LinesLost]);
    let share = percent(share(lost, lost.saturating_add(read)));
    FindingText::new(format!(
        "{share} of the log's lines were lost in the last minute: counts are too low by them"
    ))
    .figure("lines lost, last minute", lost)
    .figure("lines read, last minute", read)
    .figure("lines lost so far", all)
    .advise("the notice about lost lines says what helps here; a log file that is followed loses none")
}

/// The clients that came often and never resumed, with their full handshakes.
fn never_resumed<'a>(context: &FindingContext<'a>) -> impl Iterator<Item = (ClientId, u64)> + use<'a> {
    context.run.clients().iter().filter(|client| client.id != ClientId::Other).filter_map(|client| {
        let totals = client.totals();
        let full = totals[ClientCounter::HandshakesFull];
        let is_found = full >= CLIENT_FULL_MIN && totals[ClientCounter::HandshakesResumed] == 0;
        is_found.then_some((client.id, full))
    })
}

fn never_resumes(context: &FindingContext<'_>) -> Option<Severity> {
    context.run.counted_log()?;
    let lately = context.ten_minutes().proxy[ProxyCounter::HandshakesFull];
    (lately >= FULL_MIN && never_resumed(context).next().is_some()).then_some(Severity::Info)
}

fn never_resumes_text(context: &FindingContext<'_>) -> FindingText {
    let mut found: Vec<(ClientId, u64)> = never_resumed(context).collect();
    found.sort_by_key(|&(id, full)| (Reverse(full), id));
    let add = |sum: u64, n: u64| sum.saturating_add(n);
    let told_apart = context.run.clients().iter().filter(|client| client.id != ClientId::Other);
    let whole = told_apart.map(|client| client.totals()[ClientCounter::HandshakesFull]).fold(0, add);
    let theirs = found.iter().map(|(_, full)| *full).fold(0, add);
    let verb = if found.len() == 1 { "never resumes" } else { "never resume" };
    let title = format!(
        "{} {verb}, with {} of full handshakes",
        counted(found.len() as u64, "client"),
        percent(share(theirs, whole))
    );
    FindingText::new(title)
        .figure("full handshakes of these clients", out_of(theirs, whole))
        .advise("see whether they keep sessions, or keep connections open; the terminator must share its ticket keys with its peers")
        .whom(found.iter().map(|(id, full)| format!("{id}: {}", counted(*full, "full handshake"))))
}

/// The handshakes of the last ten minutes with less than TLS 1.3, and all of them.
fn old_handshakes(context: &FindingContext<'_>) -> (u64, u64) {
    let lately = &context.ten_minutes().proxy;
    let whole = lately.sum(&DONE);
    (whole.saturating_sub(lately.sum(&TLS13)), whole)
}

fn old_versions(context: &FindingContext<'_>) -> Option<Severity> {
    context.run.counted_log()?;
    // If no client negotiates TLS 1.3, the terminator may not allow it.
    let has_new = context.run.proxy()?.totals().sum(&TLS13) > 0;
    (has_new && old_handshakes(context).0 > 0).then_some(Severity::Info)
}

fn old_versions_text(context: &FindingContext<'_>) -> FindingText {
    let (old, whole) = old_handshakes(context);
    let users = OldClients::of(context);
    FindingText::new(users.title((old, whole)))
        .figure("handshakes with less than TLS 1.3, last ten minutes", out_of(old, whole))
        .advise("update these clients before the terminator allows TLS 1.3 only")
        .whom(users.list())
}
