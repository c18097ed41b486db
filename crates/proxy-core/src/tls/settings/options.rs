//! The settings of TLS as words that a configuration, a command line and a running proxy share.

use records::setting::{Applies, Setting, Value};
use records::text::clean;
use records::values::TlsVersion;
use rustls::{CipherSuite, SupportedCipherSuite};

use crate::config::options::{
    AllowedValues, DeclaredOptions, OptionError, OptionKind, OptionSpec, option_names,
};

use crate::tls::settings::{
    CIPHERS, CipherOrder, ClientAuthPolicy, CrlExpired, GROUPS, Resumption, ServerNames, TicketSend,
    TlsSettings,
};

/// TLS 1.3 tickets sent after a handshake at most; clients keep about as many.
const TICKETS_MAX: f64 = 8.0;
/// Sessions of the cache at most, some 400 bytes each.
const SESSIONS_MAX: f64 = 1e6;
/// In seconds; RFC 8446, 4.6.1: at most a week.
const TICKET_TIME_RANGE: (f64, f64) = (60.0, 604_800.0);
/// Bytes of an application protocol's name at most (RFC 7301, 3.1).
const ALPN_BYTES_MAX: usize = 255;

const VERSIONS: &[(TlsVersion, &str)] = &[(TlsVersion::V12, "1.2"), (TlsVersion::V13, "1.3")];
const CIPHER_ORDERS: &[(CipherOrder, &str)] =
    &[(CipherOrder::Proxy, "proxy"), (CipherOrder::Client, "client")];
const RESUMPTIONS: &[(Resumption, &str)] =
    &[(Resumption::Tickets, "tickets"), (Resumption::Cache, "cache"), (Resumption::Off, "off")];
const TICKET_SENDS: &[(TicketSend, &str)] =
    &[(TicketSend::WithAnswer, "answer"), (TicketSend::AtOnce, "at-once")];
const SERVER_NAMES: &[(ServerNames, &str)] = &[(ServerNames::Any, "any"), (ServerNames::Strict, "strict")];
const CRL_EXPIRED: &[(CrlExpired, &str)] = &[(CrlExpired::Refuse, "refuse"), (CrlExpired::Accept, "accept")];

/// The settings. A new one is a field of [`TlsSettings`] and an entry here.
const SETTINGS: [OptionSpec<TlsSettings>; 15] = [
    text(
        ("tls-min", "VERSION"),
        |s| word(VERSIONS, s.min),
        |s, text| choose(VERSIONS, text).map(|min| s.min = min),
        AllowedValues::OneOf(|| words(VERSIONS)),
        "Oldest version of TLS: 1.2 or 1.3",
    ),
    text(
        ("tls-max", "VERSION"),
        |s| word(VERSIONS, s.max),
        |s, text| choose(VERSIONS, text).map(|max| s.max = max),
        AllowedValues::OneOf(|| words(VERSIONS)),
        "Newest version of TLS: 1.2 or 1.3",
    ),
    text(
        ("ciphers", "LIST"),
        cipher_names,
        set_ciphers,
        AllowedValues::ListOf(known_ciphers),
        "Cipher suites, most preferred first; by IANA name",
    )
    .absent("all, AES-128 first", "TLS_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"),
    text(
        ("cipher-order", "WHOSE"),
        |s| word(CIPHER_ORDERS, s.cipher_order),
        |s, text| choose(CIPHER_ORDERS, text).map(|order| s.cipher_order = order),
        AllowedValues::OneOf(|| words(CIPHER_ORDERS)),
        "Whose preference selects the cipher suite: proxy or client",
    ),
    text(
        ("groups", "LIST"),
        group_names,
        set_groups,
        AllowedValues::ListOf(known_groups),
        "Key exchange groups that clients may choose",
    ),
    text(
        ("alpn", "LIST"),
        |s| s.alpn.join(","),
        set_alpn,
        AllowedValues::Any,
        "Application protocols of the upstream; most preferred first, such as h2,http/1.1",
    )
    .absent("ALPN is left out; h2,http/1.1 in HTTP mode", "h2,http/1.1"),
    text(
        ("sni", "WHICH"),
        |s| word(SERVER_NAMES, s.server_names),
        |s, text| choose(SERVER_NAMES, text).map(|names| s.server_names = names),
        AllowedValues::OneOf(|| words(SERVER_NAMES)),
        "Server names that are served: any, or strict, which refuses clients that ask for no name of a certificate",
    ),
    text(
        ("resumption", "HOW"),
        |s| word(RESUMPTIONS, s.resumption),
        |s, text| choose(RESUMPTIONS, text).map(|resumption| s.resumption = resumption),
        AllowedValues::OneOf(|| words(RESUMPTIONS)),
        "How sessions are resumed: tickets, cache (sessions in memory) or off",
    ),
    number(
        ("tickets", "N"),
        OptionKind::Count { range: (0.0, TICKETS_MAX), at: |s| &mut s.tickets },
        "TLS 1.3 tickets after each handshake",
    ),
    text(
        ("ticket-send", "WHEN"),
        |s| word(TICKET_SENDS, s.ticket_send),
        |s, text| choose(TICKET_SENDS, text).map(|send| s.ticket_send = send),
        AllowedValues::OneOf(|| words(TICKET_SENDS)),
        "When tickets are sent: with the first answer, or at-once",
    ),
    number(
        ("ticket-lifetime", "TIME"),
        OptionKind::Time { range: TICKET_TIME_RANGE, at: |s| &mut s.ticket_lifetime },
        "Lifetime of a session; from its first handshake on",
    ),
    number(
        ("ticket-rotation", "TIME"),
        OptionKind::Time { range: TICKET_TIME_RANGE, at: |s| &mut s.ticket_rotation },
        "Time until tickets have a new key; without --ticket-keys",
    ),
    number(
        ("session-cache", "N"),
        OptionKind::Count { range: (1.0, SESSIONS_MAX), at: |s| &mut s.session_cache },
        "Sessions kept with --resumption cache",
    ),
    text(
        ("client-auth", "WHICH"),
        |s| s.client_auth.to_string(),
        |s, text| ClientAuthPolicy::parse(text).map(|policy| s.client_auth = policy),
        AllowedValues::Any,
        "Whether a client needs a certificate: off, optional or required; other rules for server names may follow",
    )
    .absent("required with --client-ca", "off,admin.example=required"),
    text(
        ("client-crl-expired", "WHAT"),
        |s| word(CRL_EXPIRED, s.crl_expired),
        |s, text| choose(CRL_EXPIRED, text).map(|what| s.crl_expired = what),
        AllowedValues::OneOf(|| words(CRL_EXPIRED)),
        "What an expired --client-crl does to clients: refuse or accept",
    )
    .absent("refuse with --client-crl", "refuse"),
];

type Names = (&'static str, &'static str);

const fn text(
    names: Names,
    get: fn(&TlsSettings) -> String,
    set: fn(&mut TlsSettings, &str) -> Result<(), OptionError>,
    known: AllowedValues,
    help: &'static str,
) -> OptionSpec<TlsSettings> {
    OptionSpec::new(names, Applies::NewConnections, OptionKind::Text { get, set, known }, help)
}

const fn number(names: Names, kind: OptionKind<TlsSettings>, help: &'static str) -> OptionSpec<TlsSettings> {
    OptionSpec::new(names, Applies::NewConnections, kind, help)
}

impl DeclaredOptions for TlsSettings {
    const OPTIONS: &'static [OptionSpec<Self>] = &SETTINGS;
    const NAMES: &'static [&'static str] = &option_names(&SETTINGS);
}

impl TlsSettings {
    /// Changes the option `name`, such as `tls-min`. Conflicts between options are found when they are used.
    ///
    /// # Errors
    /// If there is no such option, or it does not accept the value.
    pub fn set(&mut self, name: &str, value: &Value) -> Result<(), OptionError> {
        Self::option(name).ok_or(OptionError::Unknown)?.set(self, value)
    }

    /// All of it, with the names that [`TlsSettings::set`] takes.
    pub fn list(&self) -> impl Iterator<Item = Setting> {
        SETTINGS.iter().map(|option| option.setting(self))
    }
}

pub(super) fn word<T: Copy + PartialEq>(words: &[(T, &str)], value: T) -> String {
    words.iter().find(|(known, _)| *known == value).map_or_else(String::new, |(_, word)| (*word).to_owned())
}

fn words<T>(words: &[(T, &str)]) -> Vec<String> {
    words.iter().map(|(_, word)| (*word).to_owned()).collect()
}

pub(super) fn choose<T: Copy>(known: &[(T, &str)], text: &str) -> Result<T, OptionError> {
    let found = known.iter().find(|(_, word)| *word == text).map(|(value, _)| *value);
    found.ok_or_else(|| not_known(text, &words(known)))
}

fn not_known(given: &str, known: &[String]) -> OptionError {
    OptionError::NotKnown { given: given.to_owned(), known: known.join(", ") }
}

/// A suite's IANA name.
pub(in crate::tls) fn suite_name(suite: CipherSuite) -> String {
    hello::suite_name(suite.into()).into_owned()
}

fn known_ciphers() -> Vec<String> {
    CIPHERS.iter().map(|suite| suite_name(suite.suite())).collect()
}

fn known_groups() -> Vec<String> {
    GROUPS.iter().map(|(name, _)| (*name).to_owned()).collect()
}

fn cipher_names(settings: &TlsSettings) -> String {
    let names: Vec<_> = settings.ciphers.iter().map(|suite| suite_name(suite.suite())).collect();
    names.join(",")
}

fn set_ciphers(settings: &mut TlsSettings, text: &str) -> Result<(), OptionError> {
    let name_of = |suite: &SupportedCipherSuite| suite_name(suite.suite());
    settings.ciphers = some_listed(text, |name| {
        let found = CIPHERS.iter().find(|suite| hello::is_name(name, &name_of(suite))).copied();
        found.ok_or_else(|| not_known(name, &known_ciphers()))
    })?;
    Ok(())
}

fn group_names(settings: &TlsSettings) -> String {
    let is_in = |name| settings.groups.iter().any(|group| group.name() == name);
    let names: Vec<_> =
        GROUPS.iter().filter(|(_, group)| is_in(group.name())).map(|(name, _)| *name).collect();
    names.join(",")
}

fn set_groups(settings: &mut TlsSettings, text: &str) -> Result<(), OptionError> {
    settings.groups = some_listed(text, |name| {
        let found = GROUPS.iter().find(|(known, _)| hello::is_name(name, known)).map(|(_, group)| *group);
        found.ok_or_else(|| not_known(name, &known_groups()))
    })?;
    Ok(())
}

fn set_alpn(settings: &mut TlsSettings, text: &str) -> Result<(), OptionError> {
    settings.alpn = listed(text, |name| {
        let fits = (1..=ALPN_BYTES_MAX).contains(&name.len()) && clean::text(name) == name;
        if fits { Ok(name.to_owned()) } else { Err(OptionError::Protocol) }
    })?;
    Ok(())
}

/// The items of a list that is separated by commas; none if it is empty.
fn listed<T>(text: &str, item: impl Fn(&str) -> Result<T, OptionError>) -> Result<Vec<T>, OptionError> {
    let names: Vec<&str> = text.split(',').map(str::trim).collect();
    if names == [""] {
        return Ok(Vec::new());
    }
    for (i, name) in names.iter().enumerate() {
        if names[..i].contains(name) {
            return Err(OptionError::Twice((*name).to_owned()));
        }
    }
    names.into_iter().map(item).collect()
}

/// Parses such a list, which must not be empty.
fn some_listed<T>(text: &str, item: impl Fn(&str) -> Result<T, OptionError>) -> Result<Vec<T>, OptionError> {
    if text.trim().is_empty() { item("").map(|one| vec![one]) } else { listed(text, item) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    fn value(settings: &TlsSettings, name: &str) -> String {
        settings.list().find(|setting| setting.name == name).unwrap().value.to_string()
    }

    #[test]
    fn every_word_takes_back_what_it_shows() {
        let mut settings = TlsSettings::default();
        for setting in TlsSettings::default().list() {
            settings.set(&setting.name, &setting.value).unwrap();
        }
        assert!(settings.list().eq(TlsSettings::default().list()));
    }

    #[test]
    fn lists_are_taken_as_they_are_given() {
        let mut settings = TlsSettings::default();
        for (name, given) in [
            ("ciphers", "TLS_CHACHA20_POLY1305_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
            ("groups", "secp256r1"),
            ("alpn", "h2,http/1.1"),
            ("alpn", ""),
        ] {
            settings.set(name, &text(given)).unwrap();
            assert_eq!(value(&settings, name), given, "{name}");
        }
        settings.set("groups", &text("secp384r1, x25519")).unwrap();
        assert_eq!(settings.groups.len(), 2);
    }

    #[test]
    fn what_is_not_known_is_told_with_what_is() {
        let mut settings = TlsSettings::default();
        for (name, given, part) in [
            ("tls-min", "1.1", "1.1 is not known; known: 1.2, 1.3"),
            ("ciphers", "RC4-SHA", "TLS_AES_128_GCM_SHA256, "),
            (
                "groups",
                "x25519,x448",
                "x448 is not known; known: x25519, secp256r1, secp384r1, x25519mlkem768",
            ),
            ("groups", "", "known: x25519"),
            ("ciphers", "", "known: TLS_AES_128_GCM_SHA256, "),
            ("cipher-order", "server", "known: proxy, client"),
            ("groups", "x25519,x25519", "x25519 is given twice"),
            ("alpn", "h2,,http/1.1", "1 to 255 bytes"),
            ("alpn", "h2,\u{1b}[2J", "printable"),
            ("resumption", "on", "known: tickets, cache, off"),
            ("ticket-send", "late", "answer, at-once"),
            ("client-auth", "no", "off, optional, required"),
            ("client-crl-expired", "warn", "refuse, accept"),
            ("tickets", "9", "from 0 to 8"),
            ("nothing", "1", "no such setting"),
        ] {
            let error = settings.set(name, &text(given)).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        for number in [9.0, 1.5, -1.0, f64::NAN] {
            assert!(settings.set("tickets", &Value::Number(number)).is_err(), "{number}");
        }
        assert!(settings.set("ticket-lifetime", &Value::Number(604_801.0)).is_err());
        assert!(settings.list().eq(TlsSettings::default().list()), "nothing has changed");
    }
}
