//! How the proxy speaks TLS.

pub(in crate::tls) mod client_auth;
pub(in crate::tls) mod options;

use std::time::Duration;

use records::values::TlsVersion;
use rustls::crypto::SupportedKxGroup;
use rustls::crypto::aws_lc_rs::{cipher_suite, kx_group};
use rustls::{SupportedCipherSuite, SupportedProtocolVersion, Tls13CipherSuite};

pub use client_auth::{ClientAuth, ClientAuthPolicy};

use crate::tls::provider::{CountedAead, TimedGroup};

pub(in crate::tls) fn supported_version(version: TlsVersion) -> &'static SupportedProtocolVersion {
    match version {
        TlsVersion::V12 => &rustls::version::TLS12,
        TlsVersion::V13 => &rustls::version::TLS13,
    }
}

/// How a client resumes its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumption {
    /// The client keeps the session, sealed.
    Tickets,
    /// The proxy keeps the session in memory, behind a lock that its workers share.
    Cache,
    /// Nothing: every handshake is full.
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TicketSend {
    /// Together with the first answer of the upstream, which saves a packet and a wake-up of the client; after 100 ms
    /// without one.
    WithAnswer,
    AtOnce,
}

/// What a client gets that asks for a server name that no certificate has, or for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerNames {
    /// The first certificate.
    Any,
    /// The alert `unrecognized_name`, as with `strict-sni` of `HAProxy`.
    Strict,
}

/// What becomes of clients whose certificates' revocation list has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrlExpired {
    /// They are refused: nobody knows who has been revoked since.
    Refuse,
    /// The list counts as if it had not ended.
    Accept,
}

/// Decides whose cipher suite preference applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CipherOrder {
    Proxy,
    /// The client's, which takes into account whether it has AES instructions.
    Client,
}

/// A suite of TLS 1.3 whose keys are counted.
macro_rules! counted {
    ($suite:path) => {{
        static AEAD: CountedAead = CountedAead::of(&$suite);
        static SUITE: Tls13CipherSuite = AEAD.counted(&$suite);
        SupportedCipherSuite::Tls13(&SUITE)
    }};
}

/// All cipher suites, those with AES-128 first: it costs the least, and foreseeable attacks on it break the key
/// exchange first.
pub(in crate::tls) const CIPHERS: &[SupportedCipherSuite] = &[
    counted!(cipher_suite::TLS13_AES_128_GCM_SHA256),
    counted!(cipher_suite::TLS13_AES_256_GCM_SHA384),
    counted!(cipher_suite::TLS13_CHACHA20_POLY1305_SHA256),
    cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
    cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
    cipher_suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
    cipher_suite::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
    cipher_suite::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
];

/// The key exchange groups, with their IANA names in lower case.
pub(in crate::tls) const GROUPS: &[(&str, &dyn SupportedKxGroup)] = &[
    ("x25519", &TimedGroup(kx_group::X25519)),
    ("secp256r1", &TimedGroup(kx_group::SECP256R1)),
    ("secp384r1", &TimedGroup(kx_group::SECP384R1)),
    ("x25519mlkem768", &TimedGroup(kx_group::X25519MLKEM768)),
];

/// How the proxy speaks TLS. All of it can change while it runs, for new connections.
#[derive(Clone, Debug)]
pub struct TlsSettings {
    /// Oldest version.
    pub min: TlsVersion,
    /// Newest version.
    pub max: TlsVersion,
    /// Cipher suites in the proxy's order of preference; at least one.
    pub(in crate::tls) ciphers: Vec<SupportedCipherSuite>,
    pub cipher_order: CipherOrder,
    /// Groups that may be chosen, in the client's order of preference.
    pub(in crate::tls) groups: Vec<&'static dyn SupportedKxGroup>,
    /// Application protocols offered by ALPN, most preferred first. If empty, ALPN is omitted, because the proxy does
    /// not know its upstream's protocol.
    pub alpn: Vec<String>,
    pub server_names: ServerNames,
    pub resumption: Resumption,
    /// TLS 1.3 tickets sent after each handshake. One is used once, and a client that resumes gets the next with it.
    pub tickets: usize,
    /// Lifetime of a session, from its first handshake on.
    pub ticket_lifetime: Duration,
    /// How long a key of the proxy's own seals tickets, before it makes another.
    pub ticket_rotation: Duration,
    pub ticket_send: TicketSend,
    /// Sessions that are kept with [`Resumption::Cache`]; at least one.
    pub session_cache: usize,
    /// Whether clients need certificates, if there are authorities for them.
    pub client_auth: ClientAuthPolicy,
    pub crl_expired: CrlExpired,
}

impl Default for TlsSettings {
    fn default() -> Self {
        Self {
            min: TlsVersion::V12,
            max: TlsVersion::V13,
            ciphers: CIPHERS.to_vec(),
            cipher_order: CipherOrder::Proxy,
            groups: GROUPS.iter().map(|(_, group)| *group).collect(),
            alpn: Vec::new(),
            server_names: ServerNames::Any,
            resumption: Resumption::Tickets,
            tickets: 1,
            ticket_lifetime: Duration::from_secs(12 * 3600),
            ticket_rotation: Duration::from_secs(6 * 3600),
            ticket_send: TicketSend::WithAnswer,
            session_cache: 20_000,
            client_auth: ClientAuthPolicy::default(),
            crl_expired: CrlExpired::Refuse,
        }
    }
}

#[cfg(test)]
mod tests {
    use hello::{Choices, SingleChoices};

    use super::*;

    #[test]
    fn each_suite_and_group_of_the_proxy_is_told_from_the_others_in_an_offer() {
        let mut all = Choices::default();
        for suite in CIPHERS {
            let before = all;
            all.add_suite(suite.suite().into());
            assert_ne!(all, before, "{suite:?}");
            let is_tls13 = suite.tls13().is_some();
            let mut one = Choices::default();
            one.add_suite(suite.suite().into());
            assert!(one.single(one, is_tls13).cipher && !one.single(one, !is_tls13).cipher);
        }
        for (name, group) in GROUPS {
            let before = all;
            all.add_group(group.name().into());
            assert_ne!(all, before, "{name}");
            let mut one = Choices::default();
            one.add_group(group.name().into());
            let is_hybrid = !group.usable_for_version(rustls::ProtocolVersion::TLSv1_2);
            assert_eq!((one.has_mlkem(), one.single(one, false).group), (is_hybrid, !is_hybrid));
        }
        assert_eq!(all.single(all, true), SingleChoices::default(), "there is a choice");
    }
}
