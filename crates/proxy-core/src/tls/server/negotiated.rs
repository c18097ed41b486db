//! The result of a handshake or the reason of its failure, in the terms of telemetry.

use std::time::Duration;

use records::delta::OTHER_VALUE;
use records::kinds::ConnectionOutcome;
use records::metrics::{Counters, FullReason, ProxyCounter};
use records::text::clean;
use rustls::crypto::SupportedKxGroup;
use rustls::pki_types::CertificateDer;
use rustls::{
    AlertDescription, CipherSuite, CommonState, Error as TlsError, HandshakeKind, InvalidMessage, NamedGroup,
    ProtocolVersion, SignatureScheme,
};

use crate::tls::certificates::description::{self, CommonNameError};
use crate::tls::certificates::identity;
use crate::tls::engine::EngineError;
use crate::tls::server::evidence::{HandshakeEvidence, PresentedCertificate, RefusedCertificate};
use crate::tls::server::refusal::certificate_refusal;
use crate::tls::settings::options::suite_name;
use hello::{ClientHello, SingleChoices};

/// The parameters negotiated up to now; each part is absent until it is known.
#[derive(Default)]
pub(crate) struct NegotiatedTls<'a> {
    version: Option<ProtocolVersion>,
    cipher: Option<CipherSuite>,
    group: Option<NamedGroup>,
    kind: Option<HandshakeKind>,
    alpn: Option<&'a [u8]>,
    server_name: Option<&'a str>,
    client: Option<&'a CertificateDer<'static>>,
    /// Until the handshake has been counted.
    evidence: Option<&'a HandshakeEvidence>,
}

impl<'a> NegotiatedTls<'a> {
    pub(in crate::tls) fn new(
        connection: &'a CommonState,
        server_name: Option<&'a str>,
        evidence: Option<&'a HandshakeEvidence>,
    ) -> Self {
        Self {
            version: connection.protocol_version(),
            cipher: connection.negotiated_cipher_suite().map(|suite| suite.suite()),
            group: connection.negotiated_key_exchange_group().map(SupportedKxGroup::name),
            kind: connection.handshake_kind(),
            alpn: connection.alpn_protocol(),
            server_name,
            client: connection.peer_certificates().and_then(<[_]>::first),
            evidence,
        }
    }

    /// Of TLS that is passed to an upstream, where only the `ClientHello` is read.
    pub(in crate::tls) fn of_passed(server_name: &'a str) -> Self {
        Self { server_name: Some(server_name), ..Self::default() }
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

    /// The name in the client's certificate, made printable; empty without one. It is verified, because rustls keeps
    /// no other.
    pub(crate) fn client_name(&self) -> String {
        self.client.map(|leaf| description::subject(leaf)).unwrap_or_default()
    }

    /// Whether the client has a certificate, sent now or when the session began. It is verified, because rustls keeps
    /// no other.
    pub(crate) fn has_client_certificate(&self) -> bool {
        self.client.is_some()
    }

    /// The client's certificate, in DER. It is verified, because rustls keeps no other.
    pub(crate) fn client_certificate(&self) -> Option<&'a [u8]> {
        self.client.map(|leaf| &**leaf)
    }

    /// The common name of the client's certificate, unchanged, if there is one.
    ///
    /// # Errors
    /// If it cannot be forwarded.
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

    /// Whether this version and this cipher suite were negotiated.
    pub(in crate::tls) fn has_used(&self, version: u16, cipher: u16) -> bool {
        self.version.map(u16::from) == Some(version) && self.cipher.map(u16::from) == Some(cipher)
    }
}

/// Data that is kept until the handshake has been counted.
impl<'a> NegotiatedTls<'a> {
    /// Why a completed handshake was full; `None` if it was not. `was_seen`: the client's address completed one before.
    pub(crate) fn full_reason(&self, was_seen: bool) -> Option<FullReason> {
        let reason = |evidence: &HandshakeEvidence| evidence.full_reason(self, was_seen);
        (!self.is_resumed()).then(|| self.evidence.map_or(FullReason::Unknown, reason))
    }

    /// The client's `ClientHello`; `None` if it was not read.
    pub(crate) fn hello(&self) -> Option<&'a ClientHello> {
        self.evidence.and_then(HandshakeEvidence::hello)
    }

    /// Whether the client offered to resume a session.
    pub(crate) fn has_offer(&self) -> bool {
        self.is_resumed() || self.evidence.is_some_and(HandshakeEvidence::has_offer)
    }

    /// Whether the client offered no TLS 1.3.
    pub(crate) fn is_without_tls13(&self) -> bool {
        self.evidence.is_some_and(HandshakeEvidence::is_without_tls13)
    }

    /// Whether the client supports X25519MLKEM768.
    pub(crate) fn has_mlkem(&self) -> bool {
        self.evidence.is_some_and(HandshakeEvidence::has_mlkem)
    }

    /// How old the session is that was resumed.
    pub(crate) fn resumed_age(&self) -> Option<Duration> {
        self.evidence.filter(|_| self.is_resumed()).and_then(HandshakeEvidence::opened_age)
    }

    /// How old the session is that was offered and had expired.
    pub(crate) fn expired_age(&self) -> Option<Duration> {
        self.evidence.filter(|_| !self.is_resumed()).and_then(HandshakeEvidence::expired_age)
    }

    /// The fingerprint of the client's TLS library (JA4).
    pub(crate) fn fingerprint(&self) -> Option<&'a [u8]> {
        self.evidence.and_then(HandshakeEvidence::fingerprint)
    }

    /// Whether the client asked for a name that no certificate has.
    pub(crate) fn is_name_uncovered(&self) -> bool {
        let presented = self.evidence.and_then(HandshakeEvidence::presented);
        presented.is_some_and(|presented| presented.is_name_uncovered)
    }

    /// The client's certificate that was refused.
    pub(crate) fn refused_certificate(&self) -> Option<&'a RefusedCertificate> {
        self.evidence.and_then(HandshakeEvidence::refused_certificate)
    }

    /// Who has issued the client's certificate, made printable; `None` if it has none.
    pub(crate) fn client_issuer(&self) -> Option<String> {
        self.client.map(|leaf| identity::issuer(leaf))
    }

    /// The parameters for which only one value suited both sides.
    pub(crate) fn single_choices(&self) -> SingleChoices {
        self.evidence.map(|evidence| evidence.single_choices(self.is_tls13())).unwrap_or_default()
    }

    /// The first name of the certificate that the client was presented with; `None` if the session was resumed.
    pub(crate) fn certificate(&self) -> Option<&'a str> {
        Some(&*self.presented()?.certificate.label)
    }

    /// Counts a full handshake for the certificate that the client was presented with.
    pub(crate) fn count_certificate(&self) {
        self.presented().into_iter().for_each(|presented| presented.certificate.count());
    }

    /// The IANA name of the scheme of the proxy's signature; `None` if there is none, as in a resumed session.
    pub(crate) fn signature_name(&self) -> Option<&'static str> {
        self.presented()?.scheme.map(scheme_name)
    }

    fn presented(&self) -> Option<&'a PresentedCertificate> {
        self.evidence.filter(|_| !self.is_resumed()).and_then(HandshakeEvidence::presented)
    }

    /// Version, group, cipher suite and signature scheme as numbers, which identify the combination.
    pub(crate) fn combination(&self) -> [u16; 4] {
        [
            self.version.map_or(0, u16::from),
            self.group.map_or(0, u16::from),
            self.cipher.map_or(0, u16::from),
            self.presented().and_then(|presented| presented.scheme).unwrap_or(0),
        ]
    }
}

/// The IANA name of a scheme that a key of ours can sign with.
fn scheme_name(scheme: u16) -> &'static str {
    match SignatureScheme::from(scheme) {
        SignatureScheme::ECDSA_NISTP256_SHA256 => "ecdsa_secp256r1_sha256",
        SignatureScheme::ECDSA_NISTP384_SHA384 => "ecdsa_secp384r1_sha384",
        SignatureScheme::ECDSA_NISTP521_SHA512 => "ecdsa_secp521r1_sha512",
        SignatureScheme::ED25519 => "ed25519",
        SignatureScheme::RSA_PSS_SHA256 => "rsa_pss_rsae_sha256",
        SignatureScheme::RSA_PSS_SHA384 => "rsa_pss_rsae_sha384",
        SignatureScheme::RSA_PSS_SHA512 => "rsa_pss_rsae_sha512",
        SignatureScheme::RSA_PKCS1_SHA256 => "rsa_pkcs1_sha256",
        SignatureScheme::RSA_PKCS1_SHA384 => "rsa_pkcs1_sha384",
        SignatureScheme::RSA_PKCS1_SHA512 => "rsa_pkcs1_sha512",
        _ => OTHER_VALUE,
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
    use CipherSuite as C;
    match cipher {
        C::TLS13_AES_128_GCM_SHA256
        | C::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
        | C::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => ProxyCounter::CipherAes128,
        C::TLS13_AES_256_GCM_SHA384
        | C::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
        | C::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 => ProxyCounter::CipherAes256,
        C::TLS13_CHACHA20_POLY1305_SHA256
        | C::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256
        | C::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 => ProxyCounter::CipherChacha,
        _ => ProxyCounter::CipherOther,
    }
}

impl EngineError {
    /// Why a handshake failed with this. `has_answered`: the client had sent a valid `ClientHello` before.
    pub(crate) fn handshake_outcome(&self, has_answered: bool) -> ConnectionOutcome {
        if let Self::Tls(error) = self
            && let Some(refusal) = certificate_refusal(error)
        {
            return ConnectionOutcome::Certificate(refusal);
        }
        match self {
            Self::Tls(TlsError::AlertReceived(AlertDescription::CloseNotify)) => {
                ConnectionOutcome::HandshakeEof
            }
            Self::UnrecognizedName => ConnectionOutcome::UnrecognizedName,
            Self::Tls(TlsError::AlertReceived(_)) => ConnectionOutcome::HandshakeAlert,
            Self::Tls(TlsError::PeerIncompatible(_) | TlsError::NoApplicationProtocol) => {
                ConnectionOutcome::Incompatible
            }
            Self::Tls(TlsError::InvalidMessage(
                InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
            )) if !has_answered => ConnectionOutcome::NotTls,
            _ => ConnectionOutcome::HandshakeOther,
        }
    }
}
