//! TLS of a running proxy: certificates, keys and settings, and how they change.

use std::sync::Arc;
use std::time::Instant;

use records::kinds::CertificateRecord;
use records::setting::{Setting, SettingError, Value, certificate_name, is_certificate};

use crate::config::options::{PREFIX, refused};
use crate::tls::certificates::authorities::Authorities;
use crate::tls::certificates::client_auth::binding;
use crate::tls::certificates::error::TlsFileWarning;
use crate::tls::certificates::revocation::{Revocation, RevocationLists};
use crate::tls::certificates::served::{PresentedCertificates, ServedHistory};
use crate::tls::certificates::watch::{FileChanges, TlsFiles};
use crate::tls::client::config::UpstreamTls;
use crate::tls::client::live::LiveUpstreamTls;
use crate::tls::resumption::session_cache::SessionCache;
use crate::tls::resumption::tickets::snapshot::TicketKeySnapshot;
use crate::tls::resumption::tickets::{RotatingTicketKeys, TicketKeyFile, Ticketer};
use crate::tls::server::acme_challenges::AcmeChallenges;
use crate::tls::server::config::{TlsConfig, TlsConfigInputs};
use crate::tls::server::refresh::{TlsRefresh, fixed};
use crate::tls::settings::{Resumption, TlsSettings};
use crate::tls::{Certificate, TlsConfigError};
use crate::upstream::route::NameRoutes;

const CLIENT_CA: &str = "proxy.client-ca";
const CLIENT_CRL: &str = "proxy.client-crl";
const TICKET_KEYS: &str = "proxy.ticket-keys";
/// Certificates listed among the settings; further ones are served but not listed.
const LISTED_MAX: usize = 100;

/// The certificates, authorities and settings of a proxy's TLS.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The server certificates. The client's server name and signature algorithms select one; the first also serves
    /// clients that ask for none of their names.
    pub certificates: Vec<Certificate>,
    /// The authorities of client certificates; `None`: clients are not asked for one.
    pub client_ca: Option<Authorities>,
    /// Their lists of revoked certificates; `None`: nobody's certificate is looked up.
    pub client_crl: Option<RevocationLists>,
    /// The file of shared ticket keys; `None`: random keys, which never leave the process.
    pub ticket_keys: Option<TicketKeyFile>,
    /// Versions, cipher suites, groups, ALPN and resumption.
    pub settings: TlsSettings,
    /// TLS to the upstreams that speak it.
    pub upstream: UpstreamTls,
    /// Challenges of ACME that are answered in handshakes.
    pub challenges: Option<AcmeChallenges>,
}

impl Tls {
    /// With one certificate, and the default settings.
    pub fn new(certificate: Certificate) -> Self {
        Self {
            certificates: vec![certificate],
            client_ca: None,
            client_crl: None,
            ticket_keys: None,
            settings: TlsSettings::default(),
            upstream: UpstreamTls::default(),
            challenges: None,
        }
    }

    pub fn warnings(&self) -> impl Iterator<Item = TlsFileWarning> {
        let certificates = self.certificates.iter().flat_map(Certificate::warnings);
        let upstream = self.upstream.certificate.iter().flat_map(Certificate::warnings);
        let ticket_keys = self.ticket_keys.iter().flat_map(TicketKeyFile::warnings);
        let files = certificates.chain(ticket_keys).chain(upstream).cloned();
        files.chain(crl_warnings(self.client_ca.as_ref(), self.client_crl.as_ref()))
    }
}

impl From<Certificate> for Tls {
    fn from(certificate: Certificate) -> Self {
        Self::new(certificate)
    }
}

/// Why the keys of tickets are not replaced.
#[derive(Debug, thiserror::Error)]
pub enum TicketKeyError {
    /// Others open tickets with the same keys.
    #[error("the keys of tickets come from a file, and others hold them too: replace the file")]
    SharedKeys,
    /// Sessions are not kept in tickets.
    #[error("sessions are not kept in tickets: change resumption to tickets")]
    RefusingTicketer,
    #[error(transparent)]
    Config(#[from] TlsConfigError),
}

#[derive(Debug)]
pub(crate) struct LiveTls {
    certificates: Vec<Certificate>,
    served: ServedHistory,
    client_ca: Option<Authorities>,
    client_crl: Option<RevocationLists>,
    ticket_keys: Option<TicketKeyFile>,
    settings: TlsSettings,
    own_keys: RotatingTicketKeys,
    /// Whether another process has the same keys: a new one would make tickets that it does not open.
    holds_keys: bool,
    sessions: SessionCache,
    presented: PresentedCertificates,
    /// TLS to upstreams; `None` if none speaks it.
    client: Option<LiveUpstreamTls>,
    /// The only names that are served; `None`: all that certificates serve.
    routes: Option<Arc<NameRoutes>>,
    challenges: Option<AcmeChallenges>,
}

impl LiveTls {
    /// `speaks_to_upstreams`: whether any upstream speaks TLS.
    pub(crate) fn new(tls: Tls, speaks_to_upstreams: bool) -> Result<Self, TlsConfigError> {
        let own_keys = RotatingTicketKeys::new(Instant::now()).map_err(|_| TlsConfigError::NoTicketKey)?;
        let presented = PresentedCertificates::default();
        presented.replace(tls.certificates.iter().map(|one| one.leaf_der().to_vec()).collect());
        let client = speaks_to_upstreams.then(|| LiveUpstreamTls::new(tls.upstream)).transpose()?;
        Ok(Self {
            presented,
            client,
            certificates: tls.certificates,
            served: ServedHistory::default(),
            client_ca: tls.client_ca,
            client_crl: tls.client_crl,
            ticket_keys: tls.ticket_keys,
            settings: tls.settings,
            own_keys,
            holds_keys: false,
            sessions: SessionCache::new(1),
            routes: None,
            challenges: tls.challenges,
        })
    }

    /// Whether it can speak TLS to upstreams.
    pub(crate) fn speaks_to_upstreams(&self) -> bool {
        self.client.is_some()
    }

    /// Refuses names that no route serves.
    pub(crate) fn refuse_other_names(&mut self, routes: Arc<NameRoutes>) {
        self.routes = Some(routes);
    }

    /// The configuration that follows from the present state.
    pub(crate) fn config(&mut self) -> Result<TlsConfig, TlsConfigError> {
        let client_ca = self.client_ca.as_ref();
        let expired = self.settings.crl_expired;
        let revocation = self.client_crl.clone().map(|lists| Revocation { lists, expired });
        let binding = binding(client_ca, &self.settings.client_auth, revocation.as_ref());
        self.sessions.resize(self.settings.session_cache);
        let keys = self.ticket_keys.as_ref().map_or_else(|| self.own_keys.keys(), TicketKeyFile::keys);
        let mut ticketer = Ticketer::new(keys, self.settings.ticket_lifetime, binding);
        ticketer.revocation.clone_from(&revocation);
        let ticketer = Arc::new(ticketer);
        let sessions = self.sessions.store(self.settings.ticket_lifetime, binding, Arc::clone(&ticketer));
        let certificates = self.certificates.iter().collect();
        let upstream = self.client.as_ref().map(LiveUpstreamTls::config);
        let routes = self.routes.clone();
        let inputs = TlsConfigInputs {
            certificates,
            client_ca,
            revocation: revocation.as_ref(),
            ticketer,
            sessions,
            upstream,
            routes,
            challenges: self.challenges.clone(),
        };
        TlsConfig::new(&self.settings, inputs)
    }

    pub(crate) fn files(&self) -> TlsFiles {
        TlsFiles::new(
            &self.certificates,
            self.client_ca.as_ref(),
            self.client_crl.as_ref(),
            self.ticket_keys.as_ref(),
            self.client.as_ref().map(LiveUpstreamTls::inputs),
        )
    }

    /// Takes over changed files, drops OCSP responses that have ended, and makes a new ticket key when one is due.
    /// Returns the configuration if it has changed.
    pub(crate) fn take(&mut self, changes: FileChanges) -> (TlsRefresh, Option<TlsConfig>) {
        let FileChanges {
            at_once,
            certificates,
            client_ca,
            client_crl,
            ticket_keys,
            upstream_ca,
            upstream_certificate,
            skipped: _,
        } = changes;
        let mut refreshed = TlsRefresh::default();
        let mut is_new = false;
        let former = self.leaves();
        for (i, read) in certificates {
            if let Err(error) = &read
                && (at_once || !error.is_shortage())
            {
                self.served.refuse(i, &error.to_string());
            }
            if let Some(mut new) = refreshed.usable(read, at_once) {
                refreshed.warnings.extend_from_slice(new.warnings());
                let before = certificate_setting(i, &self.certificates[i]);
                refreshed.note(&before, certificate_setting(i, &new));
                self.served.replace(i, &self.certificates[i], &mut new);
                self.certificates[i] = new;
                is_new = true;
            }
        }
        is_new |= refreshed.drop_ended_responses(&mut self.certificates);
        if let Some(new) = client_ca.and_then(|read| refreshed.usable(read, at_once)) {
            let before = self.client_ca.replace(new).as_ref().map(client_ca_setting);
            refreshed.note_some(before, self.client_ca.as_ref().map(client_ca_setting));
            is_new = true;
        }
        if let Some(new) = client_crl.and_then(|read| refreshed.usable(read, at_once)) {
            refreshed.warnings.extend(crl_warnings(self.client_ca.as_ref(), Some(&new)));
            let before = self.client_crl.replace(new).as_ref().map(client_crl_setting);
            refreshed.note_some(before, self.client_crl.as_ref().map(client_crl_setting));
            is_new = true;
        }
        if let Some(new) = ticket_keys.and_then(|read| refreshed.usable(read, at_once)) {
            refreshed.warnings.extend_from_slice(new.warnings());
            let before = self.ticket_keys.replace(new).as_ref().map(ticket_keys_setting);
            refreshed.note_some(before, self.ticket_keys.as_ref().map(ticket_keys_setting));
            is_new = true;
        }
        let upstream_ca = upstream_ca.and_then(|read| refreshed.usable(read, at_once));
        let upstream_certificate = upstream_certificate.and_then(|read| refreshed.usable(read, at_once));
        if let Some(client) = &mut self.client {
            is_new |= client.take(upstream_ca, upstream_certificate, &mut refreshed);
        }
        let TlsSettings { ticket_rotation, ticket_lifetime, .. } = self.settings;
        if !self.holds_keys {
            // Without a new key the old keys stay in use, and the next call tries again.
            is_new |= self.own_keys.rotate(Instant::now(), ticket_rotation, ticket_lifetime).unwrap_or(false);
        }
        if is_new {
            // Before any client can see the new ones.
            self.presented.replace(self.leaves().into_iter().chain(former).collect());
        }
        let config = is_new.then(|| self.config()).transpose().unwrap_or_else(|error| {
            refreshed.refusals.push(error.into());
            None
        });
        (refreshed, config)
    }

    /// Makes a new ticket key; tickets of the former keys are accepted to the end of their lifetime.
    pub(crate) fn rotate_tickets(&mut self) -> Result<TlsConfig, TicketKeyError> {
        if self.ticket_keys.is_some() {
            return Err(TicketKeyError::SharedKeys);
        }
        if self.settings.resumption != Resumption::Tickets {
            return Err(TicketKeyError::RefusingTicketer);
        }
        self.own_keys.add(Instant::now()).map_err(|_| TlsConfigError::NoTicketKey)?;
        Ok(self.config()?)
    }

    /// Its own keys, for the process that replaces this one. They are not rotated until they are released.
    pub(crate) fn hold_ticket_keys(&mut self) -> TicketKeySnapshot {
        self.holds_keys = true;
        self.own_keys.snapshot(Instant::now())
    }

    /// Rotates keys again.
    pub(crate) fn release_ticket_keys(&mut self) {
        self.holds_keys = false;
    }

    /// Uses the keys of the process that this one replaces.
    pub(crate) fn restore_ticket_keys(
        &mut self,
        keys: &TicketKeySnapshot,
    ) -> Result<TlsConfig, TlsConfigError> {
        self.own_keys =
            RotatingTicketKeys::restore(keys, Instant::now()).map_err(|_| TlsConfigError::NoTicketKey)?;
        self.config()
    }

    /// Forgets the keys of all issued tickets, and all cached sessions: no earlier session resumes.
    pub(crate) fn forget_sessions(&mut self) -> Result<TlsConfig, TicketKeyError> {
        if self.ticket_keys.is_some() {
            return Err(TicketKeyError::SharedKeys);
        }
        self.own_keys = RotatingTicketKeys::new(Instant::now()).map_err(|_| TlsConfigError::NoTicketKey)?;
        self.sessions = self.sessions.emptied();
        Ok(self.config()?)
    }

    fn leaves(&self) -> Vec<Vec<u8>> {
        self.certificates.iter().map(|certificate| certificate.leaf_der().to_vec()).collect()
    }

    /// The certificates that it serves or served, as records.
    pub(crate) fn certificate_records(&self) -> Vec<CertificateRecord> {
        self.served.records(&self.certificates)
    }

    pub(crate) fn presented(&self) -> PresentedCertificates {
        self.presented.clone()
    }

    /// Every setting of TLS with its present value.
    pub(crate) fn list(&self) -> Vec<Setting> {
        let certificates = self.certificates.iter().take(LISTED_MAX).enumerate();
        let certificates = certificates.map(|(i, certificate)| certificate_setting(i, certificate));
        let client_ca = self.client_ca.iter().map(client_ca_setting);
        let client_crl = self.client_crl.iter().map(client_crl_setting);
        let ticket_keys = self.ticket_keys.iter().map(ticket_keys_setting);
        let words =
            self.settings.list().map(|word| Setting { name: format!("{PREFIX}{}", word.name), ..word });
        let upstream = self.client.iter().flat_map(LiveUpstreamTls::settings);
        certificates
            .chain(client_ca)
            .chain(client_crl)
            .chain(ticket_keys)
            .chain(upstream)
            .chain(words)
            .collect()
    }

    /// Changes a setting; returns its former state, and the new configuration. `None`: there is no such setting here.
    pub(crate) fn set(
        &mut self,
        name: &str,
        value: &Value,
    ) -> Option<Result<(Setting, TlsConfig), SettingError>> {
        let before = self.list().into_iter().find(|setting| setting.name == name)?;
        let refused = |reason| refused(name, value, reason);
        if [CLIENT_CA, CLIENT_CRL, TICKET_KEYS].contains(&name)
            || is_certificate(name)
            || LiveUpstreamTls::has_setting(name)
        {
            return Some(Err(refused("it follows its files; replace them".to_owned())));
        }
        let mut settings = self.settings.clone();
        let changed =
            settings.set(name.strip_prefix(PREFIX)?, value).map_err(|error| refused(error.to_string()));
        let former = std::mem::replace(&mut self.settings, settings);
        let config = changed.and_then(|()| self.config().map_err(|error| refused(error.to_string())));
        if config.is_err() {
            self.settings = former;
        }
        Some(config.map(|config| (before, config)))
    }
}

fn client_ca_setting(ca: &Authorities) -> Setting {
    fixed(CLIENT_CA, ca.summary())
}

fn client_crl_setting(crl: &RevocationLists) -> Setting {
    fixed(CLIENT_CRL, crl.summary())
}

fn crl_warnings(
    ca: Option<&Authorities>,
    crl: Option<&RevocationLists>,
) -> impl Iterator<Item = TlsFileWarning> {
    ca.zip(crl).into_iter().flat_map(|(ca, crl)| crl.warnings(ca))
}

fn ticket_keys_setting(keys: &TicketKeyFile) -> Setting {
    fixed(TICKET_KEYS, keys.summary())
}

fn certificate_setting(index: usize, certificate: &Certificate) -> Setting {
    fixed(&certificate_name(index), certificate.summary())
}

#[cfg(test)]
mod tests;
