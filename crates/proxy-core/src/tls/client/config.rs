//! TLS to upstreams: whom it trusts, what it presents, and the sessions that each worker can resume.

use std::fmt;
use std::io::{self, Read, Write};
use std::sync::Arc;

use rustls::client::{Resumption, Tls12Resumption, UnbufferedClientConnection};
use rustls::pki_types::ServerName;
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, ClientConnection, Error, Stream};
use tls_client::{SessionReset, SessionStore, Trust, TrustError, verifier};

use crate::tls::client::engine::ClientEngine;
use crate::tls::client::error::UpstreamTlsError;
use crate::tls::engine::EngineError;
use crate::tls::settings::TlsSettings;
use crate::tls::{Authorities, Certificate, TlsConfigError};

/// Sessions of one upstream that a worker keeps are twice this number: connections end and begin in bursts.
const SESSION_CONNECTIONS: usize = 32;

/// HTTP/2 in ALPN (RFC 9113, section 3.2).
const HTTP2: &[u8] = b"h2";

/// How TLS is spoken with upstreams.
#[derive(Clone, Debug, Default)]
pub struct UpstreamTls {
    /// Authorities of upstreams; `None`: those of the system.
    pub ca: Option<Authorities>,
    /// The certificate that the proxy presents, if an upstream asks for one.
    pub certificate: Option<Certificate>,
    /// The name that every upstream without its own is asked for, and that its certificate must have; `None`: its host.
    pub server_name: Option<UpstreamName>,
    /// Whether any certificate is accepted, without proof that the upstream has its key.
    pub is_insecure: bool,
}

/// Whom TLS is spoken with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TlsPeer {
    /// The name that it is asked for, and that its certificate must have.
    pub(crate) name: UpstreamName,
    /// Whether this is its own name: then the name of all upstreams is not used.
    pub(crate) is_named: bool,
    /// Whether it must speak HTTP/2, which ALPN agrees on.
    pub(crate) is_http2: bool,
}

/// A name that a server can have: a DNS name or an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamName(ServerName<'static>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is neither a DNS name nor an address")]
pub struct UpstreamNameError(String);

impl fmt::Display for UpstreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_str())
    }
}

impl std::str::FromStr for UpstreamName {
    type Err = UpstreamNameError;

    fn from_str(text: &str) -> Result<Self, UpstreamNameError> {
        let name = ServerName::try_from(text.to_owned());
        name.map(Self).map_err(|_| UpstreamNameError(records::text::clean::text(text)))
    }
}

/// The client's side of TLS, shared by the connections of a proxy or, with its own sessions, of a worker.
#[derive(Clone, Debug)]
pub(crate) struct UpstreamTlsConfig {
    base: Arc<ClientConfig>,
    server_name: Option<UpstreamName>,
    /// By the upstream's place: a session of one is unknown to the others.
    sessions: Vec<Arc<SessionStore>>,
    /// One for each upstream, with its sessions.
    configs: Vec<Arc<ClientConfig>>,
}

impl UpstreamTlsConfig {
    pub(crate) fn new(upstream: &UpstreamTls) -> Result<Self, TlsConfigError> {
        let settings = TlsSettings::default();
        let provider = Arc::new(settings.provider());
        let trust = match (&upstream.ca, upstream.is_insecure) {
            (_, true) => Trust::Insecure,
            (Some(ca), false) => Trust::Authorities(ca.listed()),
            (None, false) => Trust::Roots,
        };
        let verifier = verifier(&trust, &provider)?;
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(rustls::ALL_VERSIONS)?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match &upstream.certificate {
            None => builder.with_no_client_auth(),
            Some(certificate) => {
                builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(certificate.certified())))
            }
        };
        // A check that resumed a session would not see the certificate.
        config.resumption = Resumption::disabled();
        let server_name = upstream.server_name.clone();
        Ok(Self { base: Arc::new(config), server_name, sessions: Vec::new(), configs: Vec::new() })
    }

    /// Whether both come from the same configuration.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.base, &other.base)
    }

    /// The same for one worker, which has its own sessions: workers that shared them would wait for each other.
    pub(crate) fn for_worker(&self) -> Self {
        let (base, server_name) = (Arc::clone(&self.base), self.server_name.clone());
        Self { base, server_name, sessions: Vec::new(), configs: Vec::new() }
    }

    /// Completes a full handshake over a socket that blocks, as a check, and calls `speak` for what is said over TLS.
    pub(crate) fn check<S: Read + Write>(
        &self,
        peer: &TlsPeer,
        socket: &mut S,
        speak: impl FnOnce(&mut Stream<'_, ClientConnection, S>) -> io::Result<()>,
    ) -> io::Result<()> {
        let tls_failed = |error: Error| io::Error::other(UpstreamTlsError::from(EngineError::Tls(error)));
        let in_words = |error: io::Error| {
            let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
            inner.cloned().map_or(error, tls_failed)
        };
        let (config, name) = (Arc::clone(&self.base), self.name_for(peer));
        let connection = ClientConnection::new_with_alpn(config, name, peer.protocols());
        let mut connection = connection.map_err(tls_failed)?;
        while connection.is_handshaking() {
            connection.complete_io(socket).map_err(in_words)?;
        }
        peer.check_protocol(connection.alpn_protocol())
            .map_err(|error| io::Error::other(UpstreamTlsError::from(error)))?;
        speak(&mut Stream::new(&mut connection, socket)).map_err(in_words)?;
        connection.send_close_notify();
        // The upstream need not hear of the end.
        let _ = connection.write_tls(socket);
        Ok(())
    }

    /// Begins a connection to the upstream number `index`.
    pub(crate) fn connect(&mut self, index: usize, peer: &TlsPeer) -> Result<ClientEngine, EngineError> {
        while self.configs.len() <= index {
            let sessions = Arc::new(SessionStore::new(SESSION_CONNECTIONS, SessionReset::default()));
            let store: Arc<SessionStore> = Arc::clone(&sessions);
            let resumption = Resumption::store(store).tls12_resumption(Tls12Resumption::SessionIdOrTickets);
            let mut config = ClientConfig::clone(&self.base);
            config.resumption = resumption;
            self.sessions.push(sessions);
            self.configs.push(Arc::new(config));
        }
        let sessions = &self.sessions[index];
        sessions.allow(true);
        let (config, name) = (Arc::clone(&self.configs[index]), self.name_for(peer));
        let connection = UnbufferedClientConnection::new_with_alpn(config, name, peer.protocols())?;
        Ok(ClientEngine::new(connection, sessions.was_offered()))
    }

    fn name_for(&self, peer: &TlsPeer) -> ServerName<'static> {
        let UpstreamName(name) = self.server_name.as_ref().filter(|_| !peer.is_named).unwrap_or(&peer.name);
        name.clone()
    }
}

impl TlsPeer {
    /// What ALPN offers.
    fn protocols(&self) -> Vec<Vec<u8>> {
        if self.is_http2 { vec![HTTP2.to_vec()] } else { Vec::new() }
    }

    /// Checks what ALPN has agreed on.
    ///
    /// # Errors
    /// If that is not what must be spoken.
    pub(crate) fn check_protocol(&self, agreed: Option<&[u8]>) -> Result<(), EngineError> {
        if self.is_http2 && agreed != Some(HTTP2) { Err(EngineError::NotHttp2) } else { Ok(()) }
    }
}

impl From<TrustError> for TlsConfigError {
    fn from(error: TrustError) -> Self {
        Self::UpstreamTrust(error)
    }
}
