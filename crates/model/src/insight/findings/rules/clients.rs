//! Findings about clients that a stricter setting would refuse, and about one that takes most of the work.

use std::cmp::Reverse;

use super::handshakes::DONE;
use super::rule::{FindingContext, HysteresisLimit, MINUTE_US, Rule};
use crate::insight::shares::{out_of, percent, share};
use crate::runs::findings::{FindingText, Severity};
use records::delta::OTHER_VALUE;
use records::ids::ClientId;
use records::metrics::{
    ClientCounter, Counters, Dimension, LoadCounter, ProxyCounter, TlsCounter, UsageCounter,
};
use records::text::quantity::{counted, grouped};

pub(super) const TLS12_ONLY: Rule = Rule { id: "tls12-only", judge: tls12_only, text: tls12_only_text };
pub(super) const ONLY_CHOICE: Rule = Rule { id: "only-choice", judge: only_choice, text: only_choice_text };

pub(super) const BUSY_CLIENT: Rule = Rule { id: "busy-client", judge: busy_client, text: busy_client_text };

/// The fewest clients that are compared. One or two may be balancers.
const COMPARED_MIN: usize = 3;
/// Full handshakes of a client in the last minute, about 2 % of a core, and its share of all.
const BUSY_FULL_MIN: f64 = 6_000.0;
const BUSY: &[(Severity, HysteresisLimit)] =
    &[(Severity::Warning, HysteresisLimit { open: 0.8, close: 0.5 })];

/// The clients that use less than TLS 1.3, with their totals.
pub(super) struct OldClients(Vec<(ClientId, Counters<ClientCounter>)>);

impl OldClients {
    /// The clients of a run, those with the most such handshakes first.
    pub(super) fn of(context: &FindingContext<'_>) -> Self {
        let clients = context.run.clients().iter().map(|client| (client.id, client.totals()));
        let mut old: Vec<_> = clients.filter(|(_, totals)| totals[ClientCounter::Tls12Only] > 0).collect();
        old.sort_by_key(|(id, totals)| (Reverse(totals[ClientCounter::Tls12Only]), *id));
        Self(old)
    }

    /// What would be refused: these clients, and `n` of `whole` handshakes. An address may have other clients too, so what
    /// else comes from it says nothing.
    pub(super) fn title(&self, (n, whole): (u64, u64)) -> String {
        let handshakes = format!("{} of handshakes", percent(share(n, whole)));
        // Clients have their records later than the proxy, or have lost them.
        if self.0.is_empty() {
            return format!("TLS 1.3 only would refuse {handshakes}");
        }
        // All clients beyond the bounded table are one row.
        let at_least = if self.0.iter().any(|(id, _)| *id == ClientId::Other) { "at least " } else { "" };
        let clients = counted(self.0.len() as u64, "client");
        format!("TLS 1.3 only would refuse {at_least}{clients}, with {handshakes}")
    }

    /// Each client with its handshakes.
    pub(super) fn list(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(id, totals)| {
            let all = totals.sum(&[ClientCounter::HandshakesFull, ClientCounter::HandshakesResumed]);
            format!("{id}: {} of {}", grouped(totals[ClientCounter::Tls12Only]), counted(all, "handshake"))
        })
    }
}

fn tls12_only(context: &FindingContext<'_>) -> Option<Severity> {
    let is_refused = context.is("proxy.tls-min", "1.3");
    (!is_refused && context.ten_minutes().tls[TlsCounter::Tls12Only] > 0).then_some(Severity::Info)
}

fn tls12_only_text(context: &FindingContext<'_>) -> FindingText {
    let old = OldClients::of(context);
    let n = context.run.tls().map(|series| series.totals()[TlsCounter::Tls12Only]).unwrap_or_default();
    let whole = context.run.proxy().map(|series| series.totals().sum(&DONE)).unwrap_or_default();
    FindingText::new(old.title((n, whole)))
        .figure("handshakes without an offer of TLS 1.3", out_of(n, whole))
        .advise("update these clients before you start with --tls-min 1.3")
        .about("proxy.tls-min")
        .whom(old.list())
}

/// Groups and ciphers without which some handshakes would have failed, though the proxy allows others: dimension, value,
/// such handshakes, all handshakes.
fn indispensable<'a>(context: &FindingContext<'a>) -> Vec<(Dimension, &'a str, u64, u64)> {
    let mut all = Vec::new();
    for (dimension, setting) in [(Dimension::Group, "proxy.groups"), (Dimension::Cipher, "proxy.ciphers")] {
        // With one value allowed it is the only choice of everybody.
        if !context.word(setting).is_some_and(|list| list.contains(',')) {
            continue;
        }
        for (value, counters) in context.run.usage().of(dimension).filter(|(value, _)| *value != OTHER_VALUE)
        {
            let whole = counters.sum(&[UsageCounter::HandshakesFull, UsageCounter::HandshakesResumed]);
            let only = counters[UsageCounter::OnlyChoice];
            if only > 0 {
                all.push((dimension, value, only, whole));
            }
        }
    }
    all.sort_by_key(|&(_, value, only, _)| (Reverse(only), value));
    all
}

fn only_choice(context: &FindingContext<'_>) -> Option<Severity> {
    (!indispensable(context).is_empty()).then_some(Severity::Info)
}

fn only_choice_text(context: &FindingContext<'_>) -> FindingText {
    let all = indispensable(context);
    let what = match &*all {
        [(dimension, value, ..)] => format!("the {dimension} {value}"),
        [(_, first, ..), (_, second, ..)] => format!("{first} or {second}"),
        [(_, first, ..), .., (_, last, ..)] => format!("{first}, {} others or {last}", all.len() - 2),
        [] => "a group or cipher".to_owned(),
    };
    let text = FindingText::new(format!("Without {what} some clients could not connect"));
    let text = all.iter().fold(text, |text, (_, value, only, whole)| {
        text.figure(*value, format!("only choice in {} handshakes", out_of(*only, *whole)))
    });
    let text = text.advise("keep these in --groups and --ciphers, or update the clients first");
    match all.first() {
        Some((Dimension::Cipher, ..)) => text.about("proxy.ciphers"),
        Some(_) | None => text.about("proxy.groups"),
    }
}

/// The client with the most full handshakes in the last minute, how many, and how many all made in the same intervals.
fn busiest(context: &FindingContext<'_>) -> Option<(ClientId, u64, u64)> {
    let proxy = context.run.proxy()?;
    let until_us = proxy.last_us();
    let lately = until_us.saturating_sub(MINUTE_US) + 1..=until_us;
    let intervals = proxy.intervals().rev().take_while(|interval| lately.contains(&interval.end_us));
    let whole = intervals.map(|interval| interval.counters[ProxyCounter::HandshakesFull]);
    let whole = whole.fold(0, u64::saturating_add);
    // Most runs have no work with the clients then.
    if (whole as f64) < BUSY_FULL_MIN / 2.0 {
        return None;
    }
    let clients = context.run.clients().iter().filter(|client| client.id != ClientId::Other);
    let full_of =
        clients.map(|client| (client.id, client.count_within(ClientCounter::HandshakesFull, &lately)));
    full_of.max_by_key(|(_, full)| *full).map(|(client, full)| (client, full, whole))
}

fn busy_client(context: &FindingContext<'_>) -> Option<Severity> {
    let (_, full, whole) = busiest(context)?;
    // A load that is asked for is no finding.
    let is_own_load = share(context.minute().load[LoadCounter::HandshakesFull], whole) > 0.5;
    if is_own_load || context.run.clients().len() < COMPARED_MIN {
        return None;
    }
    context.graded((full, whole), BUSY_FULL_MIN, BUSY)
}

fn busy_client_text(context: &FindingContext<'_>) -> FindingText {
    let (client, full, whole) = busiest(context).unwrap_or((ClientId::Other, 0, 0));
    FindingText::new(format!("One client made {} of the last minute's full handshakes", percent(share(full, whole))))
        .figure("full handshakes of this client, last minute", out_of(full, whole))
        .advise(
            "see what it does: it should keep its connections open, or resume its sessions; --handshake-rate bounds each \
             client",
        )
        .about("proxy.handshake-rate")
        .whom([format!("{client}: {}", counted(full, "full handshake"))])
}
