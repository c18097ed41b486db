//! The settings of TLS as words that a configuration, a command line and a running proxy share.

use std::num::NonZeroUsize;
use std::time::Duration;

use rustls::{CipherSuite, SupportedCipherSuite};
use telemetry::{Applies, Setting, Value, clean};

use super::settings::{
    CIPHERS, CipherOrder, ClientAuth, GROUPS, Resumption, TicketSend, TlsSettings, TlsVersion,
};

/// TLS 1.3 tickets sent after a handshake at most; clients keep about as many.
const TICKETS_MAX: f64 = 8.0;
/// Sessions of the cache at most, some 300 bytes each.
const SESSIONS_MAX: f64 = 1e6;
/// In seconds; RFC 8446, 4.6.1: at most a week.
const TICKET_TIME_RANGE: (f64, f64) = (60.0, 604_800.0);
/// Bytes of an application protocol's name at most (RFC 7301, 3.1).
const ALPN_BYTES_MAX: usize = 255;

const VERSIONS: &[(TlsVersion, &str)] = &[(TlsVersion::Tls12, "1.2"), (TlsVersion::Tls13, "1.3")];
const CIPHER_ORDERS: &[(CipherOrder, &str)] =
    &[(CipherOrder::Proxy, "proxy"), (CipherOrder::Client, "client")];
const RESUMPTIONS: &[(Resumption, &str)] =
    &[(Resumption::Tickets, "tickets"), (Resumption::Cache, "cache"), (Resumption::Off, "off")];
const TICKET_SENDS: &[(TicketSend, &str)] =
    &[(TicketSend::WithAnswer, "answer"), (TicketSend::AtOnce, "at-once")];
const CLIENT_AUTHS: &[(ClientAuth, &str)] =
    &[(ClientAuth::Optional, "optional"), (ClientAuth::Required, "required")];

/// Why a setting of TLS cannot be what it was asked to be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsWordError {
    /// There is no setting of this name.
    #[error("there is no such setting of TLS")]
    Unknown,
    /// A value is none of those that there are.
    #[error("{} is not known; known: {known}", clean::text(given))]
    NotKnown {
        /// What was given.
        given: String,
        /// What could be given.
        known: String,
    },
    /// A list names something twice.
    #[error("{} stands there twice", clean::text(.0))]
    Twice(String),
    /// A number is none, or out of its range.
    #[error("expected a number from {0} to {1}")]
    OutOfRange(String, String),
    /// The name of a protocol is empty, too long or not printable.
    #[error("expected printable names of 1 to {ALPN_BYTES_MAX} bytes, separated by commas")]
    NoProtocol,
}

/// A setting that has a name.
struct Word {
    name: &'static str,
    kind: Kind,
}

enum Kind {
    Text {
        value: fn(&TlsSettings) -> String,
        set: fn(&mut TlsSettings, &str) -> Result<(), TlsWordError>,
    },
    Number {
        unit: &'static str,
        range: (f64, f64),
        value: fn(&TlsSettings) -> f64,
        set: fn(&mut TlsSettings, f64),
    },
}

const WORDS: &[Word] = &[
    Word {
        name: "tls-min",
        kind: Kind::Text {
            value: |s| word(VERSIONS, s.min),
            set: |s, text| choose(VERSIONS, text).map(|min| s.min = min),
        },
    },
    Word {
        name: "tls-max",
        kind: Kind::Text {
            value: |s| word(VERSIONS, s.max),
            set: |s, text| choose(VERSIONS, text).map(|max| s.max = max),
        },
    },
    Word { name: "ciphers", kind: Kind::Text { value: cipher_names, set: set_ciphers } },
    Word {
        name: "cipher-order",
        kind: Kind::Text {
            value: |s| word(CIPHER_ORDERS, s.cipher_order),
            set: |s, text| choose(CIPHER_ORDERS, text).map(|order| s.cipher_order = order),
        },
    },
    Word { name: "groups", kind: Kind::Text { value: group_names, set: set_groups } },
    Word { name: "alpn", kind: Kind::Text { value: |s| s.alpn.join(","), set: set_alpn } },
    Word {
        name: "resumption",
        kind: Kind::Text {
            value: |s| word(RESUMPTIONS, s.resumption),
            set: |s, text| choose(RESUMPTIONS, text).map(|resumption| s.resumption = resumption),
        },
    },
    Word {
        name: "tickets",
        kind: Kind::Number {
            unit: "",
            range: (0.0, TICKETS_MAX),
            value: |s| s.tickets as f64,
            set: |s, number| s.tickets = number as usize,
        },
    },
    Word {
        name: "ticket-send",
        kind: Kind::Text {
            value: |s| word(TICKET_SENDS, s.ticket_send),
            set: |s, text| choose(TICKET_SENDS, text).map(|send| s.ticket_send = send),
        },
    },
    Word {
        name: "ticket-lifetime",
        kind: Kind::Number {
            unit: "s",
            range: TICKET_TIME_RANGE,
            value: |s| s.ticket_lifetime.as_secs_f64(),
            set: |s, number| s.ticket_lifetime = Duration::from_secs_f64(number),
        },
    },
    Word {
        name: "ticket-rotation",
        kind: Kind::Number {
            unit: "s",
            range: TICKET_TIME_RANGE,
            value: |s| s.ticket_rotation.as_secs_f64(),
            set: |s, number| s.ticket_rotation = Duration::from_secs_f64(number),
        },
    },
    Word {
        name: "session-cache",
        kind: Kind::Number {
            unit: "",
            range: (1.0, SESSIONS_MAX),
            value: |s| s.session_cache.get() as f64,
            set: |s, number| {
                s.session_cache = NonZeroUsize::new(number as usize).unwrap_or(NonZeroUsize::MIN);
            },
        },
    },
    Word {
        name: "client-auth",
        kind: Kind::Text {
            value: |s| word(CLIENT_AUTHS, s.client_auth),
            set: |s, text| choose(CLIENT_AUTHS, text).map(|auth| s.client_auth = auth),
        },
    },
];

impl TlsSettings {
    /// Changes what has the name `name`, such as `tls-min`. Whether all of it fits together shows when it is used.
    ///
    /// # Errors
    /// When there is nothing of that name, or the value is not one that it can have.
    pub fn set(&mut self, name: &str, value: &Value) -> Result<(), TlsWordError> {
        let word = WORDS.iter().find(|word| word.name == name).ok_or(TlsWordError::Unknown)?;
        match &word.kind {
            Kind::Text { set, .. } => set(self, &value.to_string()),
            Kind::Number { range: (low, high), set, unit, .. } => match *value {
                Value::Number(number)
                    if (*low..=*high).contains(&number) && (!unit.is_empty() || number.fract() == 0.0) =>
                {
                    set(self, number);
                    Ok(())
                }
                _ => Err(TlsWordError::OutOfRange(low.to_string(), high.to_string())),
            },
        }
    }

    /// All of it, with the names that [`TlsSettings::set`] takes.
    pub fn list(&self) -> impl Iterator<Item = Setting> {
        WORDS.iter().map(|word| {
            let (value, unit, range) = match word.kind {
                Kind::Text { value, .. } => (Value::Text(value(self)), "", None),
                Kind::Number { unit, range, value, .. } => (Value::Number(value(self)), unit, Some(range)),
            };
            let applies = Applies::NewConnections;
            Setting { name: word.name.to_owned(), value, unit: unit.to_owned(), applies, range }
        })
    }
}

fn word<T: Copy + PartialEq>(words: &[(T, &str)], value: T) -> String {
    words.iter().find(|(known, _)| *known == value).map_or_else(String::new, |(_, word)| (*word).to_owned())
}

fn choose<T: Copy>(words: &[(T, &str)], text: &str) -> Result<T, TlsWordError> {
    let found = words.iter().find(|(_, word)| *word == text).map(|(value, _)| *value);
    found.ok_or_else(|| not_known(text, words.iter().map(|(_, word)| (*word).to_owned())))
}

fn not_known(given: &str, known: impl Iterator<Item = String>) -> TlsWordError {
    TlsWordError::NotKnown { given: given.to_owned(), known: known.collect::<Vec<_>>().join(", ") }
}

/// A suite's IANA name; rustls' own has a 13 in those of TLS 1.3.
pub(super) fn suite_name(suite: CipherSuite) -> String {
    let name = suite.as_str().unwrap_or_default();
    name.strip_prefix("TLS13_").map_or_else(|| name.to_owned(), |rest| format!("TLS_{rest}"))
}

fn cipher_names(settings: &TlsSettings) -> String {
    let names: Vec<_> = settings.ciphers.iter().map(|suite| suite_name(suite.suite())).collect();
    names.join(",")
}

fn set_ciphers(settings: &mut TlsSettings, text: &str) -> Result<(), TlsWordError> {
    let name_of = |suite: &SupportedCipherSuite| suite_name(suite.suite());
    settings.ciphers = some_listed(text, |name| {
        let found = CIPHERS.iter().find(|suite| name_of(suite) == name).copied();
        found.ok_or_else(|| not_known(name, CIPHERS.iter().map(name_of)))
    })?;
    Ok(())
}

fn group_names(settings: &TlsSettings) -> String {
    let is_in = |name| settings.groups.iter().any(|group| group.name() == name);
    let names: Vec<_> =
        GROUPS.iter().filter(|(_, group)| is_in(group.name())).map(|(name, _)| *name).collect();
    names.join(",")
}

fn set_groups(settings: &mut TlsSettings, text: &str) -> Result<(), TlsWordError> {
    settings.groups = some_listed(text, |name| {
        let found = GROUPS.iter().find(|(known, _)| *known == name).map(|(_, group)| *group);
        found.ok_or_else(|| not_known(name, GROUPS.iter().map(|(known, _)| (*known).to_owned())))
    })?;
    Ok(())
}

fn set_alpn(settings: &mut TlsSettings, text: &str) -> Result<(), TlsWordError> {
    settings.alpn = listed(text, |name| {
        let fits = (1..=ALPN_BYTES_MAX).contains(&name.len()) && clean::text(name) == name;
        if fits { Ok(name.to_owned()) } else { Err(TlsWordError::NoProtocol) }
    })?;
    Ok(())
}

/// The items of a list that is separated by commas; none if it is empty.
fn listed<T>(text: &str, item: impl Fn(&str) -> Result<T, TlsWordError>) -> Result<Vec<T>, TlsWordError> {
    let names: Vec<&str> = text.split(',').map(str::trim).collect();
    if names == [""] {
        return Ok(Vec::new());
    }
    for (i, name) in names.iter().enumerate() {
        if names[..i].contains(name) {
            return Err(TlsWordError::Twice((*name).to_owned()));
        }
    }
    names.into_iter().map(item).collect()
}

/// The same, of a list that must not be empty.
fn some_listed<T>(
    text: &str,
    item: impl Fn(&str) -> Result<T, TlsWordError>,
) -> Result<Vec<T>, TlsWordError> {
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
            ("groups", "x25519,x25519", "x25519 stands there twice"),
            ("alpn", "h2,,http/1.1", "1 to 255 bytes"),
            ("alpn", "h2,\u{1b}[2J", "printable"),
            ("resumption", "on", "known: tickets, cache, off"),
            ("ticket-send", "late", "answer, at-once"),
            ("client-auth", "no", "optional, required"),
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
