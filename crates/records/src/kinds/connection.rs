//! The record of one connection: a failed one, or a sample of the others.

use crate::text::ParseIdError;
use crate::text::keywords::Keyword;
use std::fmt;
use std::str::FromStr;

use crate::ids::{ClientId, ConnId};

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
    /// The handshake failed for another reason.
    HandshakeOther,
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
        (Self::HandshakeOther, "handshake-other"),
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

impl Keyword for ConnectionOutcome {}
