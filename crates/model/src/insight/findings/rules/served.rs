//! Findings about the certificates that are served: faulty chains, renewals that are not loaded, missing stapled responses,
//! and chains that cost a round trip.

use super::rule::{FindingContext, Rule};
use crate::runs::Run;
use crate::runs::findings::{FindingText, Severity};
use records::kinds::CertificateRecord;
use records::metrics::TlsLatency;
use records::text::quantity::{counted, moment};

/// A chain from which on the server's flight exceeds the initial congestion window of ten segments of 1,460 bytes (RFC
/// 6928): the rest of the flight takes up to 1,800 bytes.
const CHAIN_BYTES_MAX: u64 = 12_800;
/// An order takes minutes: it waits for the lock of another process, for commands, for the authority.
const RENEWAL_LATE_S: u64 = 3_600;

pub(super) const CHAIN: Rule = Rule {
    id: "certificate-chain",
    judge: |context| found(context, is_faulty, Severity::Warning),
    text: chain_text,
};
pub(super) const NOT_LOADED: Rule = Rule {
    id: "certificate-not-loaded",
    judge: |context| found(context, is_not_loaded, Severity::Warning),
    text: not_loaded_text,
};
pub(super) const RENEWAL: Rule = Rule { id: "certificate-renewal-fails", judge: renewal, text: renewal_text };
pub(super) const STAPLE_MISSING: Rule = Rule {
    id: "staple-missing",
    judge: |context| found(context, lacks_staple, Severity::Warning),
    text: staple_text,
};
pub(super) const CHAIN_SIZE: Rule = Rule {
    id: "certificate-chain-size",
    judge: |context| found(context, is_large, Severity::Info),
    text: chain_size_text,
};

type Is = fn(&CertificateRecord, &Run) -> bool;

fn is_faulty(record: &CertificateRecord, _: &Run) -> bool {
    !record.faults.is_empty()
}

fn is_not_loaded(record: &CertificateRecord, _: &Run) -> bool {
    !record.refusal.is_empty()
}

fn is_not_renewed(record: &CertificateRecord, run: &Run) -> bool {
    let is_late = record.renewal_at > 0
        && run.last_realtime_us() / 1_000_000 > record.renewal_at.saturating_add(RENEWAL_LATE_S);
    is_late || !record.renewal_error.is_empty()
}

fn lacks_staple(record: &CertificateRecord, run: &Run) -> bool {
    record.lacks_staple(run.last_realtime_us() / 1_000_000)
}

fn is_large(record: &CertificateRecord, _: &Run) -> bool {
    record.chain_bytes > CHAIN_BYTES_MAX
}

fn served(run: &Run, is: Is) -> impl Iterator<Item = &CertificateRecord> {
    run.certificates().served().filter(move |record| is(record, run))
}

fn found(context: &FindingContext<'_>, is: Is, severity: Severity) -> Option<Severity> {
    served(context.run, is).next().map(|_| severity)
}

/// A finding about certificates: how many, and of whom.
fn text(
    context: &FindingContext<'_>,
    title: &str,
    is: Is,
    why: fn(&CertificateRecord) -> &str,
) -> FindingText {
    let all = context.run.certificates().served().count();
    let n = served(context.run, is).count();
    let whom = served(context.run, is).map(|one| format!("{}: {}", one.name(), why(one)));
    FindingText::new(format!("{} {title}", counted(n as u64, "certificate")))
        .figure("certificates", format!("{n} of {all}"))
        .about("proxy.certificate")
        .whom(whom)
}

fn chain_text(context: &FindingContext<'_>) -> FindingText {
    text(context, "with a chain that some clients refuse", is_faulty, |one| &one.faults)
        .advise("write the leaf and then each issuer into the file of --cert, without the root; authorities call it the full chain")
}

fn not_loaded_text(context: &FindingContext<'_>) -> FindingText {
    text(context, "with files that are not in use", is_not_loaded, |one| &one.refusal)
        .advise("repair the files; the proxy reads them again by itself")
}

/// Critical without a certificate, and once three quarters of what is left after two thirds of the lifetime, when renewal is
/// due, have passed.
fn renewal(context: &FindingContext<'_>) -> Option<Severity> {
    let now = context.run.last_realtime_us() / 1_000_000;
    let is_urgent = |one: &CertificateRecord| {
        let lifetime = one.not_after.saturating_sub(one.not_before);
        is_not_loaded(one, context.run) || one.not_after.saturating_sub(now) < lifetime / 12
    };
    let failing = served(context.run, is_not_renewed);
    failing.map(|one| if is_urgent(one) { Severity::Critical } else { Severity::Warning }).max()
}

fn renewal_problem(record: &CertificateRecord) -> &str {
    if record.renewal_error.is_empty() {
        "nothing was heard since the next attempt was due"
    } else {
        &record.renewal_error
    }
}

fn renewal_text(context: &FindingContext<'_>) -> FindingText {
    let next = served(context.run, is_not_renewed).map(|one| one.renewal_at).min().unwrap_or(0);
    text(context, "whose order by ACME fails", is_not_renewed, renewal_problem)
        .figure("next attempt", moment(next))
        .advise("read the notices of topic acme; until an order succeeds, the present certificate stays in use, also one that clients do not trust")
}

fn staple_text(context: &FindingContext<'_>) -> FindingText {
    text(context, "without a stapled OCSP response, which must have one", lacks_staple, |one| &one.issuer)
        .advise("write a response to the file of --cert with .ocsp appended, or have the certificate issued without must-staple")
}

fn chain_size_text(context: &FindingContext<'_>) -> FindingText {
    let run = context.run;
    let largest = served(run, is_large).map(|one| one.chain_bytes).max().unwrap_or(0);
    let handshakes = served(run, is_large).fold(0_u64, |sum, one| sum.saturating_add(one.handshakes));
    let mut text =
        text(context, "with a chain beyond the initial congestion window", is_large, |one| &one.issuer)
            .figure("bytes of the largest chain", largest)
            .figure("full handshakes with such a chain", handshakes);
    let times = run.tls().map(crate::runs::MetricSeries::whole);
    let classes = [
        ("waiting for the client in full handshakes, median", TlsLatency::ClientFull),
        ("waiting for the client in resumed handshakes, median", TlsLatency::ClientResumed),
    ];
    for (figure, class) in classes {
        let times = times.map(|times| &times[class]).filter(|times| times.count() > 0);
        if let Some((times, ns)) = times.and_then(|times| Some((times, times.quantile_ns(0.5)?))) {
            text = text.figure(figure, format!("{:.2} ms (n = {})", ns as f64 / 1e6, times.count()));
        }
    }
    text.advise("omit the root and unneeded certificates, or take a chain of ECDSA keys: a full handshake then saves a round trip")
}
