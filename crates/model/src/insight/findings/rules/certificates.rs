//! Findings about certificates that expire or have an RSA key, and server names without a certificate.

use std::borrow::Cow;
use std::cmp::Reverse;

use super::rule::{FindingContext, HysteresisLimit, Rule};
use crate::insight::shares::{out_of, percent, share};
use crate::runs::Run;
use crate::runs::findings::{FindingText, Severity};
use records::delta::OTHER_VALUE;
use records::kinds::CertificateRecord;
use records::metrics::{Counters, Dimension, TlsLatency, UsageCounter};
use records::setting::{Setting, Value, is_certificate};
use records::text::quantity::{counted, day};

/// Days before the last one of a certificate from which on it is critical, and is found; or, if that is later, the part of
/// its lifetime that is left then. What renews itself does so with a third of its lifetime left.
const LEFT: [(i64, i64, Severity); 2] = [(7, 8, Severity::Critical), (21, 4, Severity::Warning)];
/// Handshakes for a name from which on it is found: scanners ask for anything once.
const ASKED_MIN: u64 = 10;
const DAY_US: u64 = 86_400_000_000;
/// Handshakes of each kind whose times are compared.
const TIMED_MIN: u64 = 100;
/// By how much full handshakes take a server longer, in nanoseconds: less than a signature with RSA-2048 costs.
const RSA_NS: HysteresisLimit = HysteresisLimit::at(300_000.0);

pub(super) const EXPIRES: Rule = Rule { id: "certificate-expires", judge: expires, text: expires_text };
pub(super) const NOT_COVERED: Rule =
    Rule { id: "name-not-covered", judge: not_covered, text: not_covered_text };

pub(super) const RSA_KEY: Rule = Rule { id: "rsa-key", judge: rsa_key, text: rsa_key_text };

/// When a certificate ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// Days to its last one; negative after that.
    pub days: i64,
    /// How urgent it is to renew it; `None` if it is not.
    pub severity: Option<Severity>,
}

impl Expiry {
    /// That of a certificate with this lifetime in days; `None`: it is not known.
    fn of(days: i64, lifetime: Option<i64>) -> Self {
        let is_within = |most: i64, part: i64| days <= lifetime.map_or(most, |all| most.min(all / part));
        let found = LEFT.into_iter().find(|(most, part, _)| is_within(*most, *part));
        Self { days, severity: found.map(|(.., severity)| severity) }
    }

    /// That of a certificate at a moment, in seconds since 1970.
    pub fn at(record: &CertificateRecord, now: u64) -> Self {
        let lifetime = record.not_after.saturating_sub(record.not_before) / 86_400;
        Self::of(record.days_left(now), Some(lifetime.cast_signed()))
    }
}

/// A certificate, of its record or parsed from its setting.
struct CertificateDescription<'a> {
    /// Its first name.
    name: &'a str,
    /// The number of further names.
    more: u64,
    last_day: Cow<'a, str>,
    expiry: Expiry,
}

/// The certificates that are served, or, without records of them, those of the settings `proxy.certificate…`, such as
/// `ECDSA P-256 for www.example.org and 1 more until 2027-03-01 sha256:5b1e…`.
fn certificates(run: &Run) -> Vec<CertificateDescription<'_>> {
    let recorded: Vec<_> = run.certificates().served().map(|record| certificate_in(record, run)).collect();
    if recorded.is_empty() {
        return run.settings().iter().filter_map(|setting| certificate_of(setting, run)).collect();
    }
    recorded
}

fn certificate_in<'r>(record: &'r CertificateRecord, run: &Run) -> CertificateDescription<'r> {
    CertificateDescription {
        name: record.name(),
        more: record.further_names(),
        last_day: Cow::Owned(day(record.not_after)),
        expiry: Expiry::at(record, run.last_realtime_us() / 1_000_000),
    }
}

fn certificate_of<'r>(setting: &'r Setting, run: &'r Run) -> Option<CertificateDescription<'r>> {
    let Value::Text(text) = &setting.value else { return None };
    let described = is_certificate(&setting.name).then(|| certificate(text, today(run))).flatten()?;
    let is_of = |record: &&CertificateRecord| text.ends_with(&format!("sha256:{}", record.fingerprint));
    let record = run.certificates().served().find(is_of);
    Some(record.map_or(described, |record| certificate_in(record, run)))
}

fn certificate(text: &str, today: i64) -> Option<CertificateDescription<'_>> {
    let (subject, rest) = text.rsplit_once(" until ")?;
    let (_, names) = subject.split_once(" for ")?;
    let last_day = rest.split(' ').next()?;
    let expiry = Expiry::of(days_to(last_day, today)?, None);
    let several = names.strip_suffix(" more").and_then(|names| names.rsplit_once(" and "));
    let several = several.and_then(|(name, more)| Some((name, more.parse().ok()?)));
    let (name, more) = several.unwrap_or((names, 0));
    Some(CertificateDescription { name, more, last_day: Cow::Borrowed(last_day), expiry })
}

/// The run's day, since 1970.
pub(super) fn today(run: &Run) -> i64 {
    (run.last_realtime_us() / DAY_US) as i64
}

/// Whole days from a day to one such as `2027-03-01`.
pub(super) fn days_to(day: &str, today: i64) -> Option<i64> {
    let end = humantime::parse_rfc3339(&format!("{day}T00:00:00Z")).ok()?;
    let end_day = end.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs() / 86_400;
    Some(end_day as i64 - today)
}

/// A day that so many others precede.
pub(in crate::insight::findings) fn when(days: i64) -> String {
    match days {
        0 => "today".to_owned(),
        1 => "tomorrow".to_owned(),
        days => format!("in {days} days"),
    }
}

/// When the certificate ends that is the most urgent to renew, of several the one that ends first; `None` if none is known.
pub fn first_expiry(run: &Run) -> Option<Expiry> {
    let all = certificates(run).into_iter().map(|certificate| certificate.expiry);
    all.max_by_key(|expiry| (expiry.severity, Reverse(expiry.days)))
}

/// When the certificate of a setting ends.
pub fn expiry_of(setting: &Setting, run: &Run) -> Option<Expiry> {
    certificate_of(setting, run).map(|certificate| certificate.expiry)
}

fn expires(context: &FindingContext<'_>) -> Option<Severity> {
    first_expiry(context.run)?.severity
}

fn expires_text(context: &FindingContext<'_>) -> FindingText {
    let mut all = certificates(context.run);
    let whole = all.len();
    all.retain(|certificate| certificate.expiry.severity.is_some());
    all.sort_by_key(|certificate| (Reverse(certificate.expiry.severity), certificate.expiry.days));
    let first = all.first().map_or(0, |certificate| certificate.expiry.days);
    let title = match first {
        ..0 => "A certificate has expired: clients refuse it".to_owned(),
        days => format!("A certificate expires {}", when(days)),
    };
    let more = |certificate: &CertificateDescription<'_>| match certificate.more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    FindingText::new(title)
        .figure("days left", first)
        .figure("certificates that end soon", format!("{} of {whole}", all.len()))
        .advise(if context.run.other_terminator().is_some() {
            "renew the terminator's certificate and reload it"
        } else {
            "renew the files of --cert and --key; the proxy reads them again by itself"
        })
        .about("proxy.certificate")
        .whom(all.iter().map(|one| format!("{}{} until {}", one.name, more(one), one.last_day)))
}

/// Full handshakes whose cipher suite names an RSA key, and all whose suite names a key: those of TLS 1.2.
fn rsa_handshakes(run: &Run) -> (u64, u64) {
    run.usage().of(Dimension::Cipher).fold((0, 0), |(rsa, all), (suite, counters)| {
        let n = counters[UsageCounter::HandshakesFull];
        let [of_rsa, of_ecdsa] = ["_RSA_WITH_", "_ECDSA_WITH_"].map(|key| u64::from(suite.contains(key)) * n);
        (rsa + of_rsa, all + of_rsa + of_ecdsa)
    })
}

fn has_rsa_certificate(run: &Run) -> bool {
    let mut certificates = run.settings().iter().filter(|setting| is_certificate(&setting.name));
    certificates.any(|setting| matches!(&setting.value, Value::Text(text) if text.starts_with("RSA")))
}

/// The median of the server's time in full and in resumed handshakes, in nanoseconds; `None` if there are too few.
fn server_ns(run: &Run) -> Option<[u64; 2]> {
    let whole = run.tls()?.whole();
    let [full, resumed] = [TlsLatency::ServerFull, TlsLatency::ServerResumed].map(|class| {
        Some(&whole[class])
            .filter(|times| times.count() >= TIMED_MIN)
            .and_then(|times| times.quantile_ns(0.5))
    });
    Some([full?, resumed?])
}

fn rsa_key(context: &FindingContext<'_>) -> Option<Severity> {
    let [full_ns, resumed_ns] = server_ns(context.run)?;
    let longer_ns = full_ns.saturating_sub(resumed_ns) as f64;
    let is_rsa = has_rsa_certificate(context.run) || rsa_handshakes(context.run).0 > 0;
    (is_rsa && context.passes(Severity::Info, longer_ns, RSA_NS)).then_some(Severity::Info)
}

fn rsa_key_text(context: &FindingContext<'_>) -> FindingText {
    let [full_ns, resumed_ns] = server_ns(context.run).unwrap_or_default();
    let ms = |ns: u64| format!("{:.2} ms", ns as f64 / 1e6);
    let title = format!(
        "Full handshakes take the server {} longer than resumed ones, and a certificate has an RSA key",
        ms(full_ns.saturating_sub(resumed_ns))
    );
    let text = FindingText::new(title)
        .figure("server's time in full handshakes, median", ms(full_ns))
        .figure("server's time in resumed handshakes, median", ms(resumed_ns));
    let (rsa, all) = rsa_handshakes(context.run);
    let text =
        if all > 0 { text.figure("full handshakes of TLS 1.2 with RSA", out_of(rsa, all)) } else { text };
    text.advise("add an ECDSA P-256 certificate beside the RSA one, or see why handshakes do not resume: each saves the signature")
}

/// The names that clients asked for often and no certificate has, with their counts, the most frequent first.
fn uncovered(run: &Run) -> Vec<(&str, u64)> {
    let asked = run.usage().of(Dimension::Name).filter(|(name, _)| *name != OTHER_VALUE);
    let counted = asked.map(|(name, counters)| (name, counters[UsageCounter::NotCovered]));
    let mut all: Vec<_> = counted.filter(|(_, n)| *n >= ASKED_MIN).collect();
    all.sort_by_key(|(name, n)| (Reverse(*n), *name));
    all
}

fn handshakes(counters: &Counters<UsageCounter>) -> u64 {
    counters.sum(&[
        UsageCounter::HandshakesFull,
        UsageCounter::HandshakesResumed,
        UsageCounter::HandshakesFailed,
    ])
}

fn not_covered(context: &FindingContext<'_>) -> Option<Severity> {
    let is_asked = context.ten_minutes().not_covered > 0 && !uncovered(context.run).is_empty();
    is_asked.then_some(Severity::Warning)
}

fn not_covered_text(context: &FindingContext<'_>) -> FindingText {
    let all = uncovered(context.run);
    let n: u64 = all.iter().map(|(_, n)| n).sum();
    let whole: u64 = context.run.usage().of(Dimension::Name).map(|(_, counters)| handshakes(counters)).sum();
    let verb = if all.len() == 1 { "is" } else { "are" };
    let title = format!(
        "{} that clients ask for {verb} in no certificate: {} of handshakes",
        counted(all.len() as u64, "server name"),
        percent(share(n, whole))
    );
    FindingText::new(title)
        .figure("handshakes for these names", out_of(n, whole))
        .advise("add a certificate that has the names: --cert FILE --key FILE")
        .about("proxy.certificate")
        .whom(all.iter().map(|(name, n)| format!("{name}: {}", counted(*n, "handshake"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_read_from_its_setting() {
        let today = 20_513; // 2026-03-01
        let text = "ECDSA P-256 for www.example.org and 1 more until 2026-03-11 sha256:5b1e";
        let one = certificate(text, today).unwrap();
        assert_eq!((one.name, one.more, one.expiry.days), ("www.example.org", 1, 10));
        let one = certificate("RSA-2048 for a until 2026-02-28 sha256:5b1e", today).unwrap();
        assert_eq!((one.name, one.more, one.expiry.days), ("a", 0, -1));
        for text in ["", "RSA-2048 for a", "RSA-2048 for a until later", "until 2026-02-28"] {
            assert!(certificate(text, today).is_none(), "{text}");
        }
    }
}
