//! Counts events of the load's requests and handshakes by kind, each with its first example.

use crate::metrics::Field;
use crate::wire::{DecodeError, FieldSource, WireField, json};
use journal::EntryBuf;
use std::fmt;

use serde::{Deserialize, Serialize};

/// The most kinds that are counted separately; the statuses and alerts in use are fewer.
pub(crate) const EVENTS_MAX: usize = 256;

/// Something that happened to a request or a connection of the load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "event", content = "of", rename_all = "kebab-case")]
pub enum LoadEvent {
    /// A whole answer with this status.
    Status(u16),
    /// A handshake settled on this version, cipher suite and group, by their numbers in TLS. The example names them,
    /// and the application protocol.
    Negotiated(u16, u16, u16),
    /// A request was sent again, since the server had closed the kept-alive connection it went over.
    Retried,
    ConnectRefused,
    /// TCP did not connect in time.
    ConnectTimeout,
    /// There was no way to the server, or nothing left to go out from: no route, no port, no descriptor.
    ConnectFailed,
    /// The server ended TLS with this alert (RFC 8446, section 6).
    AlertReceived(u8),
    /// The server's certificate was not accepted.
    Certificate,
    /// TLS failed in another way.
    Tls,
    /// The handshake was not done in time.
    HandshakeTimeout,
    /// The connection ended during the handshake.
    HandshakeCut,
    /// No byte of an answer came in time.
    AnswerTimeout,
    /// An answer began and was not whole in time.
    BodyTimeout,
    /// The connection was reset or closed before an answer began.
    Reset,
    /// The connection ended within an answer.
    Short,
    /// The answer broke the protocol.
    Protocol,
    /// The answer's body was not the expected one.
    Body,
}

impl LoadEvent {
    /// True unless it is a failure of a request.
    pub fn is_benign(self) -> bool {
        matches!(self, Self::Status(..400) | Self::Negotiated(..) | Self::Retried)
    }
}

impl fmt::Display for LoadEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(code) => write!(f, "status {code}"),
            Self::Negotiated(..) => f.write_str("handshake"),
            Self::Retried => f.write_str("closed keep-alive, retried"),
            Self::ConnectRefused => f.write_str("connect: refused"),
            Self::ConnectTimeout => f.write_str("connect: timeout"),
            Self::ConnectFailed => f.write_str("connect: failed"),
            Self::AlertReceived(code) => write!(f, "tls: alert {}", alert_name(*code)),
            Self::Certificate => f.write_str("tls: certificate"),
            Self::Tls => f.write_str("tls: error"),
            Self::HandshakeTimeout => f.write_str("tls: timeout"),
            Self::HandshakeCut => f.write_str("tls: cut off"),
            Self::AnswerTimeout => f.write_str("timeout: no answer"),
            Self::BodyTimeout => f.write_str("timeout: answer not whole"),
            Self::Reset => f.write_str("reset"),
            Self::Short => f.write_str("short body"),
            Self::Protocol => f.write_str("protocol"),
            Self::Body => f.write_str("wrong body"),
        }
    }
}

/// The name of a TLS alert (RFC 8446, section 6, and the IANA registry), its number where it has none.
fn alert_name(code: u8) -> String {
    const NAMES: &[(u8, &str)] = &[
        (0, "close_notify"),
        (10, "unexpected_message"),
        (20, "bad_record_mac"),
        (22, "record_overflow"),
        (40, "handshake_failure"),
        (42, "bad_certificate"),
        (43, "unsupported_certificate"),
        (44, "certificate_revoked"),
        (45, "certificate_expired"),
        (46, "certificate_unknown"),
        (47, "illegal_parameter"),
        (48, "unknown_ca"),
        (49, "access_denied"),
        (50, "decode_error"),
        (51, "decrypt_error"),
        (70, "protocol_version"),
        (71, "insufficient_security"),
        (80, "internal_error"),
        (86, "inappropriate_fallback"),
        (90, "user_canceled"),
        (109, "missing_extension"),
        (110, "unsupported_extension"),
        (112, "unrecognized_name"),
        (115, "unknown_psk_identity"),
        (116, "certificate_required"),
        (120, "no_application_protocol"),
    ];
    NAMES
        .iter()
        .find(|(known, _)| *known == code)
        .map_or_else(|| code.to_string(), |(_, name)| (*name).to_owned())
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventCount {
    #[serde(flatten)]
    pub event: LoadEvent,
    pub count: u64,
    /// The first one in words, cleaned; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub example: String,
}

/// Events counted by kind, in the order in which they were first seen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventCounts {
    entries: Vec<EventCount>,
}

impl EventCounts {
    /// Counts an event; `example` is only asked for the first of its kind.
    pub fn count(&mut self, event: LoadEvent, example: impl FnOnce() -> String) {
        self.add_one(event, 1, example);
    }

    fn add_one(&mut self, event: LoadEvent, count: u64, example: impl FnOnce() -> String) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.event == event) {
            entry.count = entry.count.saturating_add(count);
        } else if self.entries.len() < EVENTS_MAX {
            self.entries.push(EventCount { event, count, example: crate::text::clean::text(&example()) });
        }
    }

    pub fn add(&mut self, other: &Self) {
        for entry in &other.entries {
            self.add_one(entry.event, entry.count, || entry.example.clone());
        }
    }

    /// The counts since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let since = |entry: &EventCount| {
            let count = entry.count.saturating_sub(earlier.of(entry.event));
            (count > 0).then(|| EventCount { count, ..entry.clone() })
        };
        Self { entries: self.entries.iter().filter_map(since).collect() }
    }

    pub fn clear(&mut self) {
        self.entries.clear();
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The counts, in the order in which the events first occurred.
    pub fn iter(&self) -> impl Iterator<Item = &EventCount> {
        self.entries.iter()
    }

    /// How often an event happened.
    pub fn of(&self, event: LoadEvent) -> u64 {
        self.entries.iter().find(|entry| entry.event == event).map_or(0, |entry| entry.count)
    }

    /// Cleans the names of the events: input from a journal is no more trusted than input from a peer.
    pub(crate) fn cleaned(mut self) -> Self {
        self.entries.truncate(EVENTS_MAX);
        for entry in &mut self.entries {
            entry.example = crate::text::clean::text(&entry.example);
        }
        self
    }
}

impl WireField for EventCounts {
    fn put(&self, field: &'static Field, out: &mut EntryBuf) {
        if !self.is_empty() {
            out.push_display(&field.name, serde_json::json!(self));
        }
    }

    fn get(field: &'static Field, from: &dyn FieldSource) -> Result<Self, DecodeError> {
        from.text(&field.name)
            .map_or_else(|| Ok(Self::default()), |text| json(field, text))
            .map(Self::cleaned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_example_of_each_event_is_kept() {
        let mut counts = EventCounts::default();
        counts.count(LoadEvent::Status(503), || "GET /a".to_owned());
        counts.count(LoadEvent::Status(503), || unreachable!("there is an example"));
        let mut other = EventCounts::default();
        other.count(LoadEvent::AlertReceived(48), || "a\u{1b}[2J".to_owned());
        counts.add(&other);
        assert_eq!((counts.of(LoadEvent::Status(503)), counts.of(LoadEvent::Reset)), (2, 0));
        let examples: Vec<&str> = counts.iter().map(|entry| entry.example.as_str()).collect();
        assert_eq!(examples, ["GET /a", "a\\u{1b}[2J"]);
        let written = serde_json::to_string(&counts).unwrap();
        assert!(written.contains(r#"{"event":"status","of":503,"count":2,"example":"GET /a"}"#), "{written}");
        assert_eq!(serde_json::from_str::<EventCounts>(&written).unwrap(), counts);
    }

    #[test]
    fn alerts_have_names() {
        assert_eq!(LoadEvent::AlertReceived(48).to_string(), "tls: alert unknown_ca");
        assert_eq!(LoadEvent::AlertReceived(200).to_string(), "tls: alert 200");
    }
}
