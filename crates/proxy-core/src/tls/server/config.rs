//! The configuration of rustls, made from settings, certificates and keys.

use std::sync::Arc;

use records::setting::Value;
use records::values::TlsVersion;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::{NoServerSessionStorage, StoresServerSessions, UnbufferedServerConnection};
use rustls::{ServerConfig, SupportedCipherSuite};

use crate::tls::certificates::authorities::Authorities;
use crate::tls::certificates::cert_resolver::CertResolver;
use crate::tls::certificates::revocation::Revocation;
use crate::tls::client::config::UpstreamTlsConfig;
use crate::tls::resumption::tickets::{OWN_KEYS_MAX, RefusingTicketer, Ticketer};
use crate::tls::server::acme_challenges::AcmeChallenges;
use crate::tls::server::evidence::Policy;
use crate::tls::settings::{CipherOrder, Resumption, TicketSend, TlsSettings, supported_version};
use crate::tls::{Certificate, TlsConfigError};
use crate::upstream::route::NameRoutes;
use hello::Choices;

/// The data that new connections of a proxy share.
#[derive(Clone, Debug)]
pub(crate) struct TlsConfig {
    server: Arc<ServerConfig>,
    /// For upstreams that speak TLS; `None` if none does.
    upstream: Option<UpstreamTlsConfig>,
    holds_tickets: bool,
    policy: Policy,
    challenges: Option<AcmeChallenges>,
}

/// The inputs of a configuration besides the settings.
pub(in crate::tls) struct TlsConfigInputs<'a> {
    pub(in crate::tls) certificates: Vec<&'a Certificate>,
    pub(in crate::tls) client_ca: Option<&'a Authorities>,
    pub(in crate::tls) revocation: Option<&'a Revocation>,
    /// Used with [`Resumption::Tickets`]; with [`Resumption::Cache`] it only classifies offered tickets.
    pub(in crate::tls) ticketer: Arc<Ticketer>,
    /// Used with [`Resumption::Cache`].
    pub(in crate::tls) sessions: Arc<dyn StoresServerSessions>,
    pub(in crate::tls) upstream: Option<UpstreamTlsConfig>,
    pub(in crate::tls) routes: Option<Arc<NameRoutes>>,
    pub(in crate::tls) challenges: Option<AcmeChallenges>,
}

impl TlsSettings {
    /// The versions from the oldest to the newest.
    fn versions(&self) -> impl Iterator<Item = TlsVersion> {
        [TlsVersion::V13, TlsVersion::V12]
            .into_iter()
            .filter(|version| (self.min..=self.max).contains(version))
    }

    /// Checks that all options are compatible.
    ///
    /// # Errors
    /// If they are not.
    pub fn check(&self) -> Result<(), TlsConfigError> {
        if self.min > self.max {
            return Err(TlsConfigError::NoVersion);
        }
        for version in self.versions() {
            let is_for = |suite: &SupportedCipherSuite| suite.version() == supported_version(version);
            if !self.ciphers.iter().any(is_for) {
                let version = if version == TlsVersion::V13 { "1.3" } else { "1.2" };
                return Err(TlsConfigError::NoCipher { version });
            }
        }
        if self.groups.is_empty() {
            return Err(TlsConfigError::NoGroup);
        }
        for setting in self.list() {
            let (Value::Number(value), Some((low, high))) = (setting.value, setting.range) else { continue };
            if !(low..=high).contains(&value) {
                return Err(TlsConfigError::OutOfRange { word: setting.name, value, low, high });
            }
        }
        // Beyond the rotations in a lifetime there are two keys: the sealing key, and the key about to expire.
        if self.ticket_rotation * (OWN_KEYS_MAX - 2) < self.ticket_lifetime {
            return Err(TlsConfigError::RotationTooShort);
        }
        Ok(())
    }

    /// What a client may choose with these certificates.
    fn choices(&self, certificates: &[&Certificate]) -> Choices {
        let mut choices = Choices::default();
        self.versions().for_each(|version| choices.add_version(supported_version(version).version.into()));
        self.groups.iter().for_each(|group| choices.add_group(group.name().into()));
        let has_key_for = |suite: &&SupportedCipherSuite| {
            certificates
                .iter()
                .any(|one| suite.usable_for_signature_algorithm(one.certified().key.algorithm()))
        };
        let suites = self.ciphers.iter().filter(has_key_for);
        suites.for_each(|suite| choices.add_suite(suite.suite().into()));
        choices
    }

    pub(in crate::tls) fn provider(&self) -> CryptoProvider {
        let mut provider = aws_lc_rs::default_provider();
        provider.cipher_suites.clone_from(&self.ciphers);
        // rustls chooses among certificates by all suites, so suites of other versions would mislead it.
        let is_spoken = |suite: &SupportedCipherSuite| {
            self.versions().any(|version| supported_version(version) == suite.version())
        };
        provider.cipher_suites.retain(is_spoken);
        provider.kx_groups.clone_from(&self.groups);
        provider
    }
}

impl TlsConfig {
    /// Creates a configuration without 0-RTT and renegotiation; docs/tls.md gives the reasons.
    pub(in crate::tls) fn new(
        settings: &TlsSettings,
        inputs: TlsConfigInputs<'_>,
    ) -> Result<Self, TlsConfigError> {
        settings.check()?;
        if inputs.certificates.is_empty() {
            return Err(TlsConfigError::NoCertificate);
        }
        let provider = Arc::new(settings.provider());
        let versions: Vec<_> = settings.versions().map(supported_version).collect();
        let builder =
            ServerConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(&versions)?;
        let builder = match inputs.client_ca {
            Some(ca) => {
                let verifier = ca.verifier(&settings.client_auth, inputs.revocation, &provider);
                builder.with_client_cert_verifier(verifier.map_err(TlsConfigError::ClientCa)?)
            }
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_cert_resolver(Arc::new(
            CertResolver::new(&inputs.certificates).serving(settings.server_names, inputs.routes),
        ));
        config.ignore_client_order = settings.cipher_order == CipherOrder::Proxy;
        config.alpn_protocols = settings.alpn.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = settings.tickets;
        match settings.resumption {
            Resumption::Tickets => config.ticketer = inputs.ticketer,
            Resumption::Cache => {
                config.session_storage = inputs.sessions;
                config.ticketer = Arc::new(RefusingTicketer(inputs.ticketer));
            }
            Resumption::Off => config.send_tls13_tickets = 0,
        }
        let holds_tickets = settings.ticket_send == TicketSend::WithAnswer;
        let allowed = settings.choices(&inputs.certificates);
        let is_by_name = inputs.client_ca.is_some() && settings.client_auth.is_by_name();
        let policy = Policy { resumption: settings.resumption, allowed, is_by_name };
        let (upstream, challenges) = (inputs.upstream, inputs.challenges);
        Ok(Self { server: Arc::new(config), upstream, holds_tickets, policy, challenges })
    }

    /// Copies the configuration for one worker. Each connection holds a reference to it, and workers that shared one
    /// reference count would slow each other down.
    pub(crate) fn for_worker(&self) -> Self {
        Self { server: Arc::new(ServerConfig::clone(&self.server)), ..self.clone() }
    }

    /// Whether it may be asked to answer challenges of ACME.
    pub(crate) fn has_challenges(&self) -> bool {
        self.challenges.is_some()
    }

    /// The configuration that answers the challenge for a domain; `None` if there is none.
    pub(crate) fn challenge(&self, domain: &str) -> Option<Self> {
        let server = self.challenges.as_ref()?.answer(domain)?;
        Some(Self { server, upstream: None, holds_tickets: false, ..self.clone() })
    }

    /// TLS to upstreams, if any speaks it.
    pub(crate) fn upstream(&self) -> Option<&UpstreamTlsConfig> {
        self.upstream.as_ref()
    }

    pub(in crate::tls) fn connection(&self) -> Result<UnbufferedServerConnection, rustls::Error> {
        UnbufferedServerConnection::new(Arc::clone(&self.server))
    }

    /// The parameters that connections may negotiate.
    pub(in crate::tls) fn policy(&self) -> Policy {
        self.policy
    }

    /// Whether tickets are held back and sent with the first response.
    pub(crate) fn holds_tickets(&self) -> bool {
        self.holds_tickets
    }
}
