//! TLS configuration: trust, the server's name, and the offered parameters.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Read as _};
use std::iter;
use std::net::Shutdown;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hello::is_name;
use records::metrics::ProxyCounter;
use records::values::TlsVersion;
use rustls::client::{Resumption, Tls12Resumption};
use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::{ClientConfig, ClientConnection, Error};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use socket2::Socket;

use super::{ClientTls, SessionReset, SessionStore, TRUST_FLAGS, Trust, TrustError, refusal_reason};

/// The TLS options of the load, where they differ from the library's defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsOptions {
    /// The only version; `None` for 1.3 and 1.2.
    pub version: Option<TlsVersion>,
    /// Names of the only cipher suites, as TLS registers them; empty for all.
    pub ciphers: Vec<String>,
    /// Names of the only key exchange groups, the preferred one first; empty for the defaults.
    pub groups: Vec<String>,
    /// Application protocols, most preferred first; empty for the load's own protocol.
    pub alpn: Vec<Alpn>,
    /// The server name that is asked for, and that the certificate must have, in place of the target's host.
    pub server_name: Option<String>,
    /// The client's own certificate.
    pub identity: Option<Identity>,
}

/// An application protocol (RFC 7301).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alpn {
    /// `http/1.1`.
    Http1,
    /// `h2`.
    Http2,
}

impl Alpn {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http1 => "http/1.1",
            Self::Http2 => "h2",
        }
    }

    /// The protocol that was settled upon, if it is one of ours.
    pub(super) fn known(bytes: &[u8]) -> Option<Self> {
        [Self::Http1, Self::Http2].into_iter().find(|alpn| alpn.name().as_bytes() == bytes)
    }
}

impl fmt::Display for Alpn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The client's own certificate, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The chain, its own certificate first.
    pub certificates: PathBuf,
    pub key: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsSetupError {
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The client's certificate or key cannot be used.
    #[error("cannot use {} as the client's certificate: {reason}", .path.display())]
    Identity { path: PathBuf, reason: String },
    /// rustls does not have a cipher suite or a group of this name.
    #[error("there is no {what} {name}; there are {known}")]
    Unsupported { what: &'static str, name: String, known: String },
    /// The host cannot be the name of a TLS server.
    #[error("{0} is not a name that a TLS server can have")]
    ServerName(String),
    #[error("cannot set up TLS: {0}")]
    Library(String),
}

/// TLS towards one server, shared by all clients.
#[derive(Debug)]
pub(crate) struct TlsSetup {
    pub(super) config: ClientConfig,
    pub(super) name: ServerName<'static>,
}

impl TlsSetup {
    /// Reads the certificates that are trusted, and the client's own.
    pub(crate) fn new(trust: &Trust, host: &str, options: &TlsOptions) -> Result<Self, TlsSetupError> {
        let host = options.server_name.as_deref().unwrap_or(host);
        let name =
            ServerName::try_from(host.to_owned()).map_err(|_| TlsSetupError::ServerName(host.to_owned()))?;
        let provider = Arc::new(provider(options)?);
        let verifier = tls_client::verifier(trust, &provider)?;
        let refused = |error: Error| TlsSetupError::Library(refusal_reason(&error));
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = match options.version {
            None => builder.with_safe_default_protocol_versions(),
            Some(TlsVersion::V12) => builder.with_protocol_versions(&[&rustls::version::TLS12]),
            Some(TlsVersion::V13) => builder.with_protocol_versions(&[&rustls::version::TLS13]),
        };
        let builder = builder.map_err(refused)?.dangerous().with_custom_certificate_verifier(verifier);
        let mut config = match &options.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let (chain, key) = identity.read()?;
                builder.with_client_auth_cert(chain, key).map_err(|error| identity.refused(&error))?
            }
        };
        config.alpn_protocols = options.alpn.iter().map(|alpn| alpn.name().into()).collect();
        Ok(Self { config, name })
    }

    /// Completes one handshake over a socket that blocks, waits up to `patience` for each step, and ends the connection.
    pub(crate) fn probe_handshake(
        &self,
        mut socket: Socket,
        patience: Duration,
    ) -> Result<ProbedServer, HandshakeProbeError> {
        let connection = ClientConnection::new(Arc::new(self.config.clone()), self.name.clone());
        let mut connection = connection.map_err(HandshakeProbeError::Tls)?;
        let io_failed = HandshakeProbeError::Io;
        socket.set_read_timeout(Some(patience)).map_err(io_failed)?;
        socket.set_write_timeout(Some(patience)).map_err(io_failed)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut socket).map_err(|error| {
                let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()).cloned();
                tls.map_or(HandshakeProbeError::Io(error), HandshakeProbeError::Tls)
            })?;
        }
        connection.send_close_notify();
        let _ = connection.write_tls(&mut socket);
        end(socket);
        let chain = connection.peer_certificates().unwrap_or_default();
        Ok(ProbedServer {
            alpn: connection.alpn_protocol().and_then(Alpn::known),
            chain: chain.iter().map(|certificate| certificate.to_vec()).collect(),
        })
    }

    /// TLS for a client of up to `connections` connections at a time, with its own session store, which `forgetting` empties.
    /// With `early_data`, connections that resume send their first request before the handshake is complete.
    pub(crate) fn client(&self, connections: usize, early_data: bool, forgetting: SessionReset) -> ClientTls {
        let sessions = Arc::new(SessionStore::new(connections, forgetting));
        let mut config = self.config.clone();
        config.enable_early_data = early_data;
        let store: Arc<SessionStore> = Arc::clone(&sessions);
        config.resumption = Resumption::store(store).tls12_resumption(Tls12Resumption::SessionIdOrTickets);
        ClientTls { config: Arc::new(config), sessions, name: self.name.clone() }
    }
}

/// What a server agreed to.
#[derive(Debug)]
pub(crate) struct ProbedServer {
    pub(crate) alpn: Option<Alpn>,
    /// Its certificates in DER, the leaf first.
    pub(crate) chain: Vec<Vec<u8>>,
}

/// Waits until the server ends the connection. A socket that is closed before session tickets are read resets the connection,
/// and the server counts it as broken. Each read waits 200 ms at most.
fn end(mut socket: Socket) {
    const READS_MAX: usize = 8;
    let _ = socket.shutdown(Shutdown::Write);
    let _ = socket.set_read_timeout(Some(Duration::from_millis(200)));
    let mut ignored = [0; 4096];
    for _ in 0..READS_MAX {
        if !socket.read(&mut ignored).is_ok_and(|n| n > 0) {
            break;
        }
    }
}

/// Why a handshake that was tried out failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HandshakeProbeError {
    #[error("{}", refusal_reason(.0))]
    Tls(Error),
    #[error("{0}")]
    Io(io::Error),
}

impl HandshakeProbeError {
    /// True if the server said nothing for too long.
    pub(crate) fn timed_out(&self) -> bool {
        let kinds = [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut];
        matches!(self, Self::Io(error) if kinds.contains(&error.kind()))
    }

    /// A possible remedy; empty if there is none.
    pub(crate) fn advice(&self) -> String {
        match self {
            Self::Tls(error) => tls_client::advice(error, TRUST_FLAGS),
            Self::Io(_) => String::new(),
        }
    }
}

impl Identity {
    fn read(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsSetupError> {
        let refuse = |path: &Path, reason: String| TlsSetupError::Identity { path: path.to_owned(), reason };
        let chain: Result<Vec<_>, _> =
            CertificateDer::pem_file_iter(&self.certificates).and_then(Iterator::collect);
        let chain = chain.map_err(|error| refuse(&self.certificates, error.to_string()))?;
        if chain.is_empty() {
            return Err(refuse(&self.certificates, "it holds no certificate in PEM".to_owned()));
        }
        let pem = std::fs::read(&self.key).map_err(|error| refuse(&self.key, error.to_string()))?;
        let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|error| {
            // PKCS#8 has a label of its own, the traditional format a header.
            let text = String::from_utf8_lossy(&pem);
            let is_encrypted = ["BEGIN ENCRYPTED PRIVATE KEY", "Proc-Type: 4,ENCRYPTED"];
            let reason = if is_encrypted.iter().any(|mark| text.contains(mark)) {
                "the key is encrypted; decrypt it first (openssl pkey -in KEY -out PLAIN.key)".to_owned()
            } else {
                error.to_string()
            };
            refuse(&self.key, reason)
        })?;
        Ok((chain, key))
    }

    fn refused(&self, error: &Error) -> TlsSetupError {
        let reason = match error {
            Error::InconsistentKeys(_) => format!("the key in {} does not belong to it", self.key.display()),
            error => refusal_reason(error),
        };
        TlsSetupError::Identity { path: self.certificates.clone(), reason }
    }
}

/// Whether the load can offer a key exchange group of this name, in whatever case.
pub fn knows_group(name: &str) -> bool {
    aws_lc_rs::ALL_KX_GROUPS.iter().any(|group| is_name(name, &group_name(group)))
}

/// Whether the load can offer a cipher suite of this name, in whatever case.
pub fn knows_cipher(name: &str) -> bool {
    aws_lc_rs::ALL_CIPHER_SUITES.iter().any(|suite| is_name(name, &suite_name(suite)))
}

/// What a client offers that settles on this group: the group, and those that servers like less. In TLS 1.2 all others
/// follow, as a server refuses a client without the curve of its certificate's key.
pub fn groups_from(name: &str, version: Option<TlsVersion>) -> Vec<String> {
    const LIKED: [&str; 3] = ["X25519", "secp256r1", "secp384r1"];
    let at = LIKED.iter().position(|liked| is_name(name, liked));
    let is_12 = version == Some(TlsVersion::V12);
    let follows = |place: usize| is_12 && at != Some(place) || at.is_none_or(|at| place > at);
    let following = LIKED.iter().enumerate().filter(|(place, _)| follows(*place)).map(|(_, liked)| *liked);
    iter::once(name).chain(following).map(str::to_owned).collect()
}

/// The names of all cipher suites, those with the cipher of this one first.
pub fn ciphers_from(name: &str) -> Vec<String> {
    let cipher = |name: &str| ProxyCounter::of_cipher(name);
    let all = aws_lc_rs::ALL_CIPHER_SUITES.iter().map(suite_name);
    let (first, rest): (Vec<_>, Vec<_>) = all.partition(|one| cipher(one) == cipher(name));
    first.into_iter().chain(rest).map(Cow::into_owned).collect()
}

fn group_name(group: &&dyn SupportedKxGroup) -> Cow<'static, str> {
    hello::group_name(group.name().into())
}

fn suite_name(suite: &rustls::SupportedCipherSuite) -> Cow<'static, str> {
    hello::suite_name(suite.suite().into())
}

fn provider(options: &TlsOptions) -> Result<CryptoProvider, TlsSetupError> {
    let mut provider = aws_lc_rs::default_provider();
    if !options.ciphers.is_empty() {
        let all = provider.cipher_suites;
        provider.cipher_suites = chosen("cipher suite", &options.ciphers, &all, suite_name)?;
    }
    if !options.groups.is_empty() {
        provider.kx_groups = chosen("group", &options.groups, aws_lc_rs::ALL_KX_GROUPS, group_name)?;
    }
    Ok(provider)
}

/// Selects from `known` the items named in `asked`, in that order.
fn chosen<T: Copy>(
    what: &'static str,
    asked: &[String],
    known: &[T],
    name: impl Fn(&T) -> Cow<'static, str>,
) -> Result<Vec<T>, TlsSetupError> {
    let find = |asked: &String| {
        let found = known.iter().find(|item| is_name(asked, &name(item))).copied();
        found.ok_or_else(|| TlsSetupError::Unsupported {
            what,
            name: records::text::clean::text(asked),
            known: known.iter().map(&name).collect::<Vec<_>>().join(", "),
        })
    };
    asked.iter().map(find).collect()
}
