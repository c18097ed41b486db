//! How the proxy speaks TLS: versions, tickets, the choice of certificate.

use std::cell::RefCell;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert, UnbufferedServerConnection};
use rustls::sign::CertifiedKey;

use super::Certificate;

/// TLS 1.3 tickets sent after each handshake. A ticket is used once, and a client that resumes gets the next one
/// with it, so one is enough for clients that open a connection after another.
const TICKETS_PER_HANDSHAKE: usize = 1;

/// TLS could not be set up.
#[derive(Debug, thiserror::Error)]
#[error("cannot set up TLS: {0}")]
pub struct TlsConfigError(#[from] rustls::Error);

/// What all connections of a proxy share.
#[derive(Clone, Debug)]
pub(crate) struct TlsConfig(Arc<ServerConfig>);

impl TlsConfig {
    /// TLS 1.2 and 1.3, no client certificates, no 0-RTT, resumption by stateless tickets whose key is random in
    /// each process and never leaves it.
    pub(crate) fn new(certificate: &Certificate, alpn: &[String]) -> Result<Self, TlsConfigError> {
        let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Resolver { certified: certificate.certified() }));
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.ticketer = aws_lc_rs::Ticketer::new()?;
        config.send_tls13_tickets = TICKETS_PER_HANDSHAKE;
        config.alpn_protocols = alpn.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
        Ok(Self(Arc::new(config)))
    }

    pub(super) fn connection(&self) -> Result<UnbufferedServerConnection, rustls::Error> {
        UnbufferedServerConnection::new(Arc::clone(&self.0))
    }
}

thread_local! {
    /// The server name of the `ClientHello` that the thread's current call into rustls has read. The unbuffered
    /// connection does not tell it, and the resolver is called within the connection's own call, so this hands
    /// it over without a lock.
    static SERVER_NAME: RefCell<Option<Box<str>>> = const { RefCell::new(None) };
}

/// Takes the server name that a `ClientHello` has just brought on this thread.
pub(super) fn take_server_name() -> Option<Box<str>> {
    SERVER_NAME.take()
}

/// Presents the one certificate to everybody, and notes whom the client asked for.
#[derive(Debug)]
struct Resolver {
    certified: Arc<CertifiedKey>,
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        SERVER_NAME.set(hello.server_name().map(Box::from));
        Some(Arc::clone(&self.certified))
    }
}
