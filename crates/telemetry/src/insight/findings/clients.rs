//! Findings about clients that a stricter setting would refuse.

use std::cmp::Reverse;

use super::context::FindingContext;
use super::handshakes::DONE;
use super::{FindingText, Rule, Severity};
use crate::collect::tls::{Dimension, OTHER_VALUE};
use crate::insight::{counted, percent, share};
use crate::metrics::{ClientCounter, TlsCounter, UsageCounter};
use crate::record::ids::ClientId;

pub(super) const TLS12_ONLY: Rule = Rule { id: "tls12-only", judge: tls12_only, tell: tell_tls12_only };
pub(super) const ONLY_CHOICE: Rule = Rule { id: "only-choice", judge: only_choice, tell: tell_only_choice };

fn tls12_only(context: &FindingContext<'_>) -> Option<Severity> {
    let is_refused = context.is("proxy.tls-min", "1.3");
    (!is_refused && context.ten_minutes().tls[TlsCounter::Tls12Only] > 0).then_some(Severity::Info)
}

fn tell_tls12_only(context: &FindingContext<'_>) -> FindingText {
    let mut old = Vec::new();
    let mut exchanges = 0_u64;
    for client in context.run.clients().iter() {
        let totals = client.totals();
        exchanges = exchanges.saturating_add(totals[ClientCounter::Exchanges]);
        if totals[ClientCounter::Tls12Only] > 0 {
            old.push((client.id, totals[ClientCounter::Exchanges], totals[ClientCounter::Tls12Only]));
        }
    }
    old.sort_by_key(|&(id, exchanges, _)| (Reverse(exchanges), id));
    let what = context.requests_word();
    let theirs = old.iter().fold(0, |sum: u64, (_, exchanges, _)| sum.saturating_add(*exchanges));
    // All clients beyond the bounded table are one row.
    let at_least = if old.iter().any(|(id, ..)| *id == ClientId::Other) { "at least " } else { "" };
    let title = if old.is_empty() {
        // Clients have their records later than the proxy, or have lost them.
        let lately = context.ten_minutes();
        let (n, whole) = (lately.tls[TlsCounter::Tls12Only], lately.proxy.sum(&DONE));
        format!("TLS 1.3 only would refuse the clients of {} of handshakes", percent(share(n, whole)))
    } else {
        format!(
            "TLS 1.3 only would refuse {at_least}{}, with {} of {what}",
            counted(old.len() as u64, "client"),
            percent(share(theirs, exchanges))
        )
    };
    let totals = context.run.tls().map(|series| series.totals()[TlsCounter::Tls12Only]).unwrap_or_default();
    FindingText::new(title)
        .figure("handshakes without an offer of TLS 1.3", totals)
        .figure(format!("{what} of these clients"), format!("{theirs} of {exchanges}"))
        .advise("update these clients before you start with --tls-min 1.3")
        .about("proxy.tls-min")
        .whom(
            old.iter()
                .map(|(id, exchanges, n)| format!("{id}: {}, {exchanges} {what}", counted(*n, "handshake"))),
        )
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

fn tell_only_choice(context: &FindingContext<'_>) -> FindingText {
    let all = indispensable(context);
    let what = match &*all {
        [(dimension, value, ..)] => format!("the {dimension} {value}"),
        [(_, first, ..), (_, second, ..)] => format!("{first} or {second}"),
        [(_, first, ..), .., (_, last, ..)] => format!("{first}, {} others or {last}", all.len() - 2),
        [] => "a group or cipher".to_owned(),
    };
    let told = FindingText::new(format!("Without {what} some clients could not connect"));
    let told = all.iter().fold(told, |told, (_, value, only, whole)| {
        told.figure(*value, format!("only choice in {only} of {whole} handshakes"))
    });
    let told = told.advise("keep these in --groups and --ciphers, or update the clients first");
    match all.first() {
        Some((Dimension::Cipher, ..)) => told.about("proxy.ciphers"),
        Some(_) | None => told.about("proxy.groups"),
    }
}
