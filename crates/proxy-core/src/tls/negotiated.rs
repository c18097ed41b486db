//! What a handshake negotiated, and why one failed, in the terms of telemetry.

use rustls::crypto::SupportedKxGroup;
use rustls::pki_types::CertificateDer;
use rustls::{
    AlertDescription, CipherSuite, CommonState, Error as TlsError, HandshakeKind, InvalidMessage, NamedGroup,
    ProtocolVersion,
};
use telemetry::{Counters, Outcome, ProxyCounter, clean};

use super::description::{self, CommonNameError};
use super::engine::EngineError;
use super::words::suite_name;

/// What was negotiated so far; each part is absent until it is known.
pub(crate) struct NegotiatedTls<'a> {
    version: Option<ProtocolVersion>,
    cipher: Option<CipherSuite>,
    group: Option<NamedGroup>,
    kind: Option<HandshakeKind>,
    alpn: Option<&'a [u8]>,
    server_name: Option<&'a str>,
    client: Option<&'a CertificateDer<'static>>,
}

impl<'a> NegotiatedTls<'a> {
    pub(super) fn new(connection: &'a CommonState, server_name: Option<&'a str>) -> Self {
        Self {
            version: connection.protocol_version(),
            cipher: connection.negotiated_cipher_suite().map(|suite| suite.suite()),
            group: connection.negotiated_key_exchange_group().map(SupportedKxGroup::name),
            kind: connection.handshake_kind(),
            alpn: connection.alpn_protocol(),
            server_name,
            client: connection.peer_certificates().and_then(<[_]>::first),
        }
    }

    pub(crate) fn is_tls13(&self) -> bool {
        self.version == Some(ProtocolVersion::TLSv1_3)
    }

    pub(crate) fn is_resumed(&self) -> bool {
        self.kind == Some(HandshakeKind::Resumed)
    }

    /// Counts a completed handshake by kind, version, group and cipher. A resumed TLS 1.2 handshake has no group.
    pub(crate) fn count(&self, counters: &mut Counters<ProxyCounter>) {
        let (all, by_version) = match (self.is_resumed(), self.is_tls13()) {
            (false, true) => (ProxyCounter::HandshakesFull, ProxyCounter::Tls13Full),
            (false, false) => (ProxyCounter::HandshakesFull, ProxyCounter::Tls12Full),
            (true, true) => (ProxyCounter::HandshakesResumed, ProxyCounter::Tls13Resumed),
            (true, false) => (ProxyCounter::HandshakesResumed, ProxyCounter::Tls12Resumed),
        };
        counters[all] += 1;
        counters[by_version] += 1;
        if self.kind == Some(HandshakeKind::FullWithHelloRetryRequest) {
            counters[ProxyCounter::HandshakesRetried] += 1;
        }
        if let Some(group) = self.group {
            counters[group_counter(group)] += 1;
        }
        counters[self.cipher.map_or(ProxyCounter::CipherOther, cipher_counter)] += 1;
    }

    /// The protocol's name, such as `TLSv1.3`; empty before it is known.
    pub(crate) fn version_name(&self) -> &'static str {
        match self.version {
            Some(ProtocolVersion::TLSv1_3) => "TLSv1.3",
            Some(ProtocolVersion::TLSv1_2) => "TLSv1.2",
            _ => "",
        }
    }

    /// The suite's IANA name.
    pub(crate) fn cipher_name(&self) -> String {
        self.cipher.map(suite_name).unwrap_or_default()
    }

    /// The group's IANA name.
    pub(crate) fn group_name(&self) -> &'static str {
        match self.group {
            Some(NamedGroup::X25519) => "x25519",
            Some(group) => group.as_str().unwrap_or("other"),
            None => "",
        }
    }

    /// The server name that the client asked for, as it was sent.
    pub(crate) fn raw_server_name(&self) -> &'a str {
        self.server_name.unwrap_or_default()
    }

    /// The server name that the client asked for, made printable.
    pub(crate) fn server_name(&self) -> String {
        self.server_name.map(clean::text).unwrap_or_default()
    }

    /// Whom the client's certificate names, made printable; empty without one. It has been verified: rustls knows no
    /// other.
    pub(crate) fn client_name(&self) -> String {
        self.client.map(|leaf| description::subject(leaf)).unwrap_or_default()
    }

    /// Whether the client has a certificate, shown now or when the session began. It has been verified: rustls knows no
    /// other.
    pub(crate) fn has_client_certificate(&self) -> bool {
        self.client.is_some()
    }

    /// The common name of the client's certificate as it stands there, if there is one.
    ///
    /// # Errors
    /// When it cannot be passed on.
    pub(crate) fn common_name(&self) -> Result<Option<String>, CommonNameError> {
        self.client.map_or(Ok(None), |leaf| description::common_name(leaf))
    }

    /// The negotiated application protocol, as it was negotiated.
    pub(crate) fn raw_alpn(&self) -> &'a [u8] {
        self.alpn.unwrap_or_default()
    }

    /// The negotiated application protocol, made printable.
    pub(crate) fn alpn(&self) -> String {
        self.alpn.map(clean::bytes).unwrap_or_default()
    }
}

fn group_counter(group: NamedGroup) -> ProxyCounter {
    match group {
        NamedGroup::X25519 => ProxyCounter::GroupX25519,
        NamedGroup::secp256r1 => ProxyCounter::GroupP256,
        NamedGroup::secp384r1 => ProxyCounter::GroupP384,
        NamedGroup::X25519MLKEM768 => ProxyCounter::GroupMlkem,
        _ => ProxyCounter::GroupOther,
    }
}

fn cipher_counter(cipher: CipherSuite) -> ProxyCounter {
    let name = cipher.as_str().unwrap_or_default();
    if name.contains("AES_128_GCM") {
        ProxyCounter::CipherAes128
    } else if name.contains("AES_256_GCM") {
        ProxyCounter::CipherAes256
    } else if name.contains("CHACHA20") {
        ProxyCounter::CipherChacha
    } else {
        ProxyCounter::CipherOther
    }
}

impl EngineError {
    /// Why a handshake failed with this. `has_answered`: the client had sent a valid `ClientHello` before.
    pub(crate) fn handshake_outcome(&self, has_answered: bool) -> Outcome {
        match self {
            Self::Tls(TlsError::AlertReceived(AlertDescription::CloseNotify)) => Outcome::HandshakeEof,
            Self::Tls(TlsError::AlertReceived(_)) => Outcome::HandshakeAlert,
            Self::Tls(TlsError::PeerIncompatible(_) | TlsError::NoApplicationProtocol) => {
                Outcome::Incompatible
            }
            Self::Tls(TlsError::InvalidMessage(
                InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
            )) if !has_answered => Outcome::NotTls,
            _ => Outcome::HandshakeOther,
        }
    }
}
