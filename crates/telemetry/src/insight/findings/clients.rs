//! Findings about clients that a stricter setting would refuse.

use std::cmp::Reverse;

use super::context::FindingContext;
use super::handshakes::DONE;
use super::{FindingText, Rule, Severity};
use crate::collect::tls::{Dimension, OTHER_VALUE};
use crate::insight::{counted, percent, share};
use crate::metrics::{ClientCounter, Counters, TlsCounter, UsageCounter};
use crate::record::ids::ClientId;

pub(super) const TLS12_ONLY: Rule = Rule { id: "tls12-only", judge: tls12_only, text: tls12_only_text };
pub(super) const ONLY_CHOICE: Rule = Rule { id: "only-choice", judge: only_choice, text: only_choice_text };

/// The clients that use less than TLS 1.3, with their totals.
pub(super) struct OldClients(pub(super) Vec<(ClientId, Counters<ClientCounter>)>);

impl OldClients {
    /// The clients of a run, sorted by a counter, highest first.
    pub(super) fn by(counter: ClientCounter, context: &FindingContext<'_>) -> Self {
        let clients = context.run.clients().iter().map(|client| (client.id, client.totals()));
        let mut old: Vec<_> = clients.filter(|(_, totals)| totals[ClientCounter::Tls12Only] > 0).collect();
        old.sort_by_key(|(id, totals)| (Reverse(totals[counter]), *id));
        Self(old)
    }

    /// Their number in words; `None` without any.
    pub(super) fn counted(&self) -> Option<String> {
        // All clients beyond the bounded table are one row.
        let at_least = if self.0.iter().any(|(id, _)| *id == ClientId::Other) { "at least " } else { "" };
        (!self.0.is_empty()).then(|| format!("{at_least}{}", counted(self.0.len() as u64, "client")))
    }
}

fn tls12_only(context: &FindingContext<'_>) -> Option<Severity> {
    let is_refused = context.is("proxy.tls-min", "1.3");
    (!is_refused && context.ten_minutes().tls[TlsCounter::Tls12Only] > 0).then_some(Severity::Info)
}

fn tls12_only_text(context: &FindingContext<'_>) -> FindingText {
    let old = OldClients::by(ClientCounter::Exchanges, context);
    let add = |sum: u64, n: u64| sum.saturating_add(n);
    let all = context.run.clients().iter().map(|client| client.totals()[ClientCounter::Exchanges]);
    let exchanges = all.fold(0, add);
    let theirs = old.0.iter().map(|(_, totals)| totals[ClientCounter::Exchanges]).fold(0, add);
    let what = context.requests_word();
    let title = if let Some(clients) = old.counted() {
        format!("TLS 1.3 only would refuse {clients}, with {} of {what}", percent(share(theirs, exchanges)))
    } else {
        // Clients have their records later than the proxy, or have lost them.
        let lately = context.ten_minutes();
        let (n, whole) = (lately.tls[TlsCounter::Tls12Only], lately.proxy.sum(&DONE));
        format!("TLS 1.3 only would refuse the clients of {} of handshakes", percent(share(n, whole)))
    };
    let totals = context.run.tls().map(|series| series.totals()[TlsCounter::Tls12Only]).unwrap_or_default();
    FindingText::new(title)
        .figure("handshakes without an offer of TLS 1.3", totals)
        .figure(format!("{what} of these clients"), format!("{theirs} of {exchanges}"))
        .advise("update these clients before you start with --tls-min 1.3")
        .about("proxy.tls-min")
        .whom(old.0.iter().map(|(id, totals)| {
            let handshakes = counted(totals[ClientCounter::Tls12Only], "handshake");
            format!("{id}: {handshakes}, {} {what}", totals[ClientCounter::Exchanges])
        }))
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
        text.figure(*value, format!("only choice in {only} of {whole} handshakes"))
    });
    let text = text.advise("keep these in --groups and --ciphers, or update the clients first");
    match all.first() {
        Some((Dimension::Cipher, ..)) => text.about("proxy.ciphers"),
        Some(_) | None => text.about("proxy.groups"),
    }
}
