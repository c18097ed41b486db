//! The record of one connection: a failed one, or a sample of the others.

use crate::text::ParseIdError;
use crate::text::keywords::Keyword;
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use crate::ids::{ClientId, ConnId};
use crate::metrics::{CertificateRefusal, ProxyCounter};

/// Why a connection was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConnectionOutcome {
    /// It ended well and was taken as a sample.
    Ended,
    /// Its handshake was not done at the deadline.
    HandshakeTimeout,
    /// The client went away during the handshake.
    HandshakeEof,
    /// The client ended the handshake with an alert.
    HandshakeAlert,
    NotTls,
    /// No version, group or cipher in common.
    Incompatible,
    /// The client asked for a server name that is not served, or for none.
    UnrecognizedName,
    /// The client was refused for its certificate.
    Certificate(CertificateRefusal),
    /// The handshake failed for another reason.
    HandshakeOther,
    /// Its client's address may not connect.
    AddressRefused,
    /// Its client had as many connections as it may have.
    ConnectionsPerClient,
    /// Its client opens connections at more than its rate.
    ConnectionRate,
    /// Its client begins handshakes at more than its rate.
    HandshakeRate,
    /// The process had hardly any memory left.
    MemoryMax,
    /// No upstream could be reached.
    UpstreamConnect,
    /// The upstream broke in mid-stream.
    UpstreamBroken,
    /// The client broke after the handshake.
    ClientBroken,
    /// Nothing moved for the idle timeout.
    IdleTimeout,
    /// It was cut at the end of the drain.
    DrainTimeout,
    /// The client read nothing for the send timeout, although bytes were pending.
    SendTimeout,
    /// All connections together held too much memory, and it far more than others, or for the longest time.
    PendingBound,
}

impl ConnectionOutcome {
    /// Every outcome with its word in the journal.
    pub const WORDS: &'static [(Self, &'static str)] = &[
        (Self::Ended, "ended"),
        (Self::HandshakeTimeout, "handshake-timeout"),
        (Self::HandshakeEof, "handshake-eof"),
        (Self::HandshakeAlert, "handshake-alert"),
        (Self::NotTls, "not-tls"),
        (Self::Incompatible, "incompatible"),
        (Self::UnrecognizedName, "unrecognized-name"),
        (Self::Certificate(CertificateRefusal::NotSent), "certificate-not-sent"),
        (Self::Certificate(CertificateRefusal::UnknownCa), "certificate-unknown-ca"),
        (Self::Certificate(CertificateRefusal::Expired), "certificate-expired"),
        (Self::Certificate(CertificateRefusal::NotYetValid), "certificate-not-yet-valid"),
        (Self::Certificate(CertificateRefusal::Revoked), "certificate-revoked"),
        (Self::Certificate(CertificateRefusal::RevocationUnknown), "certificate-revocation-unknown"),
        (Self::Certificate(CertificateRefusal::WrongUsage), "certificate-wrong-usage"),
        (Self::Certificate(CertificateRefusal::BadSignature), "certificate-bad-signature"),
        (Self::Certificate(CertificateRefusal::ChainTooDeep), "certificate-chain-too-deep"),
        (Self::Certificate(CertificateRefusal::Other), "certificate-other"),
        (Self::HandshakeOther, "handshake-other"),
        (Self::AddressRefused, "address-refused"),
        (Self::ConnectionsPerClient, "connections-per-client"),
        (Self::ConnectionRate, "connection-rate"),
        (Self::HandshakeRate, "handshake-rate"),
        (Self::MemoryMax, "memory-max"),
        (Self::UpstreamConnect, "upstream-connect"),
        (Self::UpstreamBroken, "upstream-broken"),
        (Self::ClientBroken, "client-broken"),
        (Self::IdleTimeout, "idle-timeout"),
        (Self::DrainTimeout, "drain-timeout"),
        (Self::SendTimeout, "send-timeout"),
        (Self::PendingBound, "pending-bound"),
    ];

    /// True unless the connection ended well.
    pub fn is_error(self) -> bool {
        self != Self::Ended
    }

    /// True if the connection ended before its handshake was complete.
    pub fn is_of_handshake(self) -> bool {
        match self {
            Self::HandshakeTimeout
            | Self::HandshakeEof
            | Self::HandshakeAlert
            | Self::NotTls
            | Self::Incompatible
            | Self::UnrecognizedName
            | Self::Certificate(_)
            | Self::HandshakeOther
            | Self::AddressRefused
            | Self::ConnectionsPerClient
            | Self::ConnectionRate
            | Self::HandshakeRate
            | Self::MemoryMax => true,
            Self::Ended
            | Self::UpstreamConnect
            | Self::UpstreamBroken
            | Self::ClientBroken
            | Self::IdleTimeout
            | Self::DrainTimeout
            | Self::SendTimeout
            | Self::PendingBound => false,
        }
    }

    /// The counter of this failure; `None` for ends that are none.
    pub fn counter(self) -> Option<ProxyCounter> {
        Some(match self {
            Self::HandshakeTimeout => ProxyCounter::FailedTimeout,
            Self::HandshakeEof => ProxyCounter::FailedEof,
            Self::HandshakeAlert => ProxyCounter::FailedAlert,
            Self::NotTls => ProxyCounter::FailedNotTls,
            Self::Incompatible => ProxyCounter::FailedIncompatible,
            Self::UnrecognizedName => ProxyCounter::FailedName,
            Self::Certificate(refusal) => refusal.counter(),
            Self::HandshakeOther => ProxyCounter::FailedOther,
            Self::AddressRefused => ProxyCounter::RefusedAddress,
            Self::ConnectionsPerClient => ProxyCounter::RefusedConnections,
            Self::ConnectionRate => ProxyCounter::RefusedConnectionRate,
            Self::HandshakeRate => ProxyCounter::RefusedHandshakeRate,
            Self::MemoryMax => ProxyCounter::RefusedMemory,
            Self::UpstreamConnect => ProxyCounter::UpstreamConnectsFailed,
            Self::UpstreamBroken => ProxyCounter::UpstreamBroken,
            Self::ClientBroken => ProxyCounter::ClientBroken,
            Self::IdleTimeout => ProxyCounter::IdleTimeouts,
            Self::SendTimeout => ProxyCounter::SendTimeouts,
            Self::PendingBound => ProxyCounter::PendingCuts,
            Self::Ended | Self::DrainTimeout => return None,
        })
    }
}

impl fmt::Display for ConnectionOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word =
            Self::WORDS.iter().find(|(outcome, _)| outcome == self).map_or("unknown", |(_, word)| word);
        f.pad(word)
    }
}

impl FromStr for ConnectionOutcome {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        Self::WORDS.iter().find(|(_, word)| *word == text).map(|(outcome, _)| *outcome).ok_or(ParseIdError)
    }
}

/// The detail of a handshake whose client offers no version of TLS that is enabled.
pub const NO_COMMON_VERSION: &str = "the client offers no version of TLS that is enabled";

/// One connection, at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionRecord {
    /// Its number within the run.
    pub conn: ConnId,
    /// Its source address.
    pub client: ClientId,
    pub outcome: ConnectionOutcome,
    /// The error, in words; empty without one.
    pub detail: String,
    /// The negotiated protocol version, such as `TLSv1.3`; empty before that.
    pub tls_version: String,
    /// The negotiated cipher suite's IANA name; empty before that.
    pub cipher: String,
    /// The negotiated key exchange group's IANA name; empty if there was none.
    pub group: String,
    /// The server name the client asked for, cleaned; empty if it gave none.
    pub sni: String,
    /// The negotiated application protocol, cleaned; empty if there was none.
    pub alpn: String,
    /// Whom the client's verified certificate names, cleaned; empty if it had none.
    pub client_name: String,
    /// True if the handshake resumed an earlier session.
    pub resumed: bool,
    /// Plaintext bytes from the client to the upstream.
    pub bytes_in: u64,
    /// Plaintext bytes from the upstream to the client.
    pub bytes_out: u64,
    /// Accept to close, in microseconds.
    pub lifetime_us: u64,
}

impl ConnectionRecord {
    /// Why it failed, in a few words; empty if it ended well.
    pub fn reason(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self.outcome {
            ConnectionOutcome::Ended => "",
            ConnectionOutcome::HandshakeTimeout => "handshake too slow",
            ConnectionOutcome::HandshakeEof => "left in the handshake",
            ConnectionOutcome::NotTls => "sends no TLS",
            ConnectionOutcome::UnrecognizedName => "asks for an unknown name",
            ConnectionOutcome::Certificate(refusal) => refusal.words(),
            ConnectionOutcome::HandshakeAlert
            | ConnectionOutcome::Incompatible
            | ConnectionOutcome::HandshakeOther => return Cow::Owned(handshake_failure(&self.detail)),
            ConnectionOutcome::AddressRefused => "address refused",
            ConnectionOutcome::ConnectionsPerClient => "has too many connections",
            ConnectionOutcome::ConnectionRate => "connects too often",
            ConnectionOutcome::HandshakeRate => "begins too many handshakes",
            ConnectionOutcome::MemoryMax => "no memory left for it",
            ConnectionOutcome::UpstreamConnect => "no upstream answers",
            ConnectionOutcome::UpstreamBroken => "upstream broke off",
            ConnectionOutcome::ClientBroken => "client broke off",
            ConnectionOutcome::IdleTimeout => "idle for too long",
            ConnectionOutcome::DrainTimeout => "cut by the drain",
            ConnectionOutcome::SendTimeout => "reads nothing",
            ConnectionOutcome::PendingBound => "holds too much memory",
        })
    }
}

/// Shortens the detail of a failed handshake to its last part: rustls' `received fatal alert: UnknownCA` to `unknown CA`,
/// OpenSSL's `error:0A000102:SSL routines::unsupported protocol` to `unsupported protocol`.
pub fn handshake_failure(detail: &str) -> String {
    if detail == NO_COMMON_VERSION {
        return "no common TLS version".to_owned();
    }
    let last = detail.rsplit(": ").next().unwrap_or_default();
    let last = last.rsplit_once("::").map_or(last, |(_, words)| words.split(':').next().unwrap_or_default());
    if last.contains(' ') { last.to_owned() } else { variant_words(last) }
}

/// Splits the name of a variant, such as `UnknownCA`, into words: `unknown CA`.
fn variant_words(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let is_upper = |at: usize| letters.get(at).is_some_and(|letter| letter.is_uppercase());
    let mut text = String::new();
    for (at, &letter) in letters.iter().enumerate() {
        let follows_lower = at > 0 && !is_upper(at - 1);
        if is_upper(at) && follows_lower {
            text.push(' ');
        }
        let is_abbreviation = is_upper(at + 1) || (at > 0 && is_upper(at - 1));
        if is_abbreviation { text.push(letter) } else { text.extend(letter.to_lowercase()) }
    }
    text
}

impl Keyword for ConnectionOutcome {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_detail_of_a_failed_handshake_is_shortened_to_its_reason() {
        for (detail, reason) in [
            (NO_COMMON_VERSION, "no common TLS version"),
            ("received fatal alert: UnknownCA", "unknown CA"),
            ("peer is incompatible: NoCipherSuitesInCommon", "no cipher suites in common"),
            (
                "SSL handshake failure: error:0A000102:SSL routines::unsupported protocol",
                "unsupported protocol",
            ),
            (
                "error:0A000418:SSL routines::tlsv1 alert unknown ca:SSL alert number 48",
                "tlsv1 alert unknown ca",
            ),
            ("the certificate has expired", "the certificate has expired"),
            ("", ""),
        ] {
            assert_eq!(handshake_failure(detail), reason, "{detail}");
        }
    }
}
