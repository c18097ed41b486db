//! Findings about tickets with unknown keys, and rare resumption.

use std::time::Duration;

use super::rule::{FindingContext, HysteresisLimit, Rule};
use crate::insight::resumption::advice;
use crate::insight::resumption::full_on_purpose;
use crate::insight::shares::{out_of, percent, share};
use crate::runs::findings::{FindingText, Severity};
use records::metrics::{ClientCounter, Counters, FullReason, ProxyCounter, TlsCounter};
use records::setting::Value;
use records::text::quantity;
use records::text::quantity::{counted, grouped};

pub(in crate::insight::findings) const KEYS_UNKNOWN: Rule =
    Rule { id: "ticket-keys-unknown", judge: keys_unknown, text: keys_unknown_text };
pub(super) const RESUMPTION_LOW: Rule =
    Rule { id: "resumption-low", judge: resumption_low, text: resumption_low_text };

/// Share of the offers to resume with an unknown key.
const UNKNOWN: &[(Severity, HysteresisLimit)] = &[(Severity::Warning, HysteresisLimit::at(0.1))];
const UNKNOWN_MIN: f64 = 20.0;
/// Share of full handshakes among those that could have been resumed.
const FULL: &[(Severity, HysteresisLimit)] =
    &[(Severity::Warning, HysteresisLimit { open: 0.8, close: 0.7 })];
const FULL_MIN: f64 = 100.0;
const REASONS_SHOWN: usize = 4;

/// Tickets with a key that is not known, or refused for a reason that packets do not tell, and all offers.
pub(in crate::insight::findings) fn refused(tls: &Counters<TlsCounter>) -> (u64, u64) {
    let refused = tls.sum(&[TlsCounter::FullUnknownKey, TlsCounter::FullRefused]);
    (refused, tls[TlsCounter::OffersToResume])
}

fn keys_unknown(context: &FindingContext<'_>) -> Option<Severity> {
    context.graded(refused(&context.ten_minutes().tls), UNKNOWN_MIN, UNKNOWN)
}

fn keys_unknown_text(context: &FindingContext<'_>) -> FindingText {
    let run = context.run;
    let (unknown, offers) = refused(&context.ten_minutes().tls);
    if run.other_terminator().is_some() {
        return FindingText::new(format!("{} of the tickets offered are refused", percent(share(unknown, offers))))
            .figure("tickets refused, last 10 minutes", out_of(unknown, offers))
            .advise(
                "keep the terminator's keys over restarts and reloads, and share them among hosts: ssl_session_ticket_key \
                 FILE (nginx), tls-ticket-keys FILE (HAProxy)",
            );
    }
    let mut clients: Vec<_> = run.clients().iter().map(|client| (client.id, client.totals())).collect();
    clients.retain(|(_, totals)| totals[ClientCounter::FullUnknownKey] > 0);
    clients.sort_by_key(|(id, totals)| (std::cmp::Reverse(totals[ClientCounter::FullUnknownKey]), *id));
    let lifetime = run.setting("proxy.ticket-lifetime").and_then(|setting| match setting.value {
        Value::Number(seconds) => Duration::try_from_secs_f64(seconds).ok(),
        Value::Flag(_) | Value::Text(_) => None,
    });
    let age = Duration::from_micros(run.before_us().saturating_add(run.duration_us()));
    let shown = |time: Duration| quantity::shown(time.as_secs() as f64, "s");
    let (cause, what) = if run.setting("proxy.ticket-keys").is_some() {
        let what = "compare the key files of all hosts (setting proxy.ticket-keys names the keys), and append a new key \
                    everywhere before it is moved to the front";
        ("other hosts seal tickets with keys that the file of this one lacks", what)
    } else if lifetime.is_some_and(|lifetime| age < lifetime) {
        let what = "keep keys over restarts, and share them among hosts: --ticket-keys FILE";
        (
            "this process has keys of its own and is younger than the tickets: they are of another host, or from before its start",
            what,
        )
    } else {
        (
            "this process has keys of its own: the tickets are of another host, or so old that their key is forgotten",
            "with several hosts: share keys, --ticket-keys FILE; with one, these tickets are older than --ticket-lifetime",
        )
    };
    let title = format!(
        "{} of the tickets offered have a key that is not known here",
        percent(share(unknown, offers))
    );
    FindingText::new(title)
        .figure("offers with an unknown key, last 10 minutes", out_of(unknown, offers))
        .figure("client addresses with such tickets", clients.len())
        .figure("the process has run for", shown(age))
        .figure("cause", cause)
        .advise(what)
        .about("proxy.ticket-keys")
        .whom(clients.iter().map(|(id, totals)| {
            format!("{id}: {}", counted(totals[ClientCounter::FullUnknownKey], "ticket"))
        }))
}

/// Full handshakes that might have been resumed, and those with resumed ones. A first visit cannot be, nor a handshake
/// that the run's own load made without a session on purpose.
fn could_resume(context: &FindingContext<'_>) -> (u64, u64) {
    let lately = context.ten_minutes();
    let first = lately.tls[TlsCounter::FullFirstVisit];
    let full = lately.tls.sum(&FullReason::ALL.map(|(_, counter, _)| counter)).saturating_sub(first);
    let full = full.saturating_sub(full_on_purpose(&lately.load));
    (full, full.saturating_add(lately.proxy[ProxyCounter::HandshakesResumed]))
}

fn resumption_low(context: &FindingContext<'_>) -> Option<Severity> {
    // A log does not tell first visits from clients that return.
    if context.run.counted_log().is_some() {
        return None;
    }
    context.graded(could_resume(context), FULL_MIN, FULL)
}

fn resumption_low_text(context: &FindingContext<'_>) -> FindingText {
    let (full, whole) = could_resume(context);
    let tls = &context.ten_minutes().tls;
    let mut reasons: Vec<_> = FullReason::ALL
        .into_iter()
        .filter(|(reason, ..)| *reason != FullReason::FirstVisit)
        .map(|(_, counter, word)| (tls[counter], word.replace('_', " ")))
        .filter(|(n, _)| *n > 0)
        .collect();
    reasons.sort_by_key(|(n, _)| std::cmp::Reverse(*n));
    let main = reasons.first().map_or_else(|| "unknown".to_owned(), |(_, word)| word.clone());
    let resumed = match whole - full {
        0 => "None".to_owned(),
        n => format!("Only {}", percent(share(n, whole))),
    };
    let title = format!("{resumed} of the handshakes of returning clients were resumed; main reason: {main}");
    let text = FindingText::new(title)
        .figure("resumed, of returning clients, last 10 minutes", out_of(whole - full, whole));
    let all_full = reasons.iter().map(|(n, _)| *n).fold(0, u64::saturating_add);
    let text = reasons.iter().take(REASONS_SHOWN).fold(text, |text, (n, word)| {
        text.figure(
            word.as_str(),
            format!("{}, {} of these full handshakes", grouped(n), percent(share(*n, all_full))),
        )
    });
    let text = match full_on_purpose(&context.ten_minutes().load) {
        0 => text,
        n => text.figure("of these, asked for by the run's own load", n),
    };
    if context.run.other_terminator().is_some() {
        return text.advise(
            "see whether the clients keep sessions, or keep connections open; the terminator must share its ticket keys \
             with its peers, and keep them over a restart",
        );
    }
    let text = text.about("proxy.resumption");
    let all = advice(context.run);
    if all.is_empty() {
        return text.advise(
            "no setting of the proxy would change much: see whether the clients keep their connections open, and keep \
             tickets",
        );
    }
    all.iter().fold(text, |text, advice| text.advise(format!("{}: {}", advice.flag, advice.sentence)))
}
