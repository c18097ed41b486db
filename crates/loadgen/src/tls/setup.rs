//! What is settled about TLS before a load starts: whom to trust, and the server's name.

use std::path::Path;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, Tls12Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::{ClientTls, Sessions};
use crate::config::{Known, StartError, Trust};

/// TLS towards one server, to be shared by all clients.
#[derive(Debug)]
pub(crate) struct TlsSetup {
    config: ClientConfig,
    name: ServerName<'static>,
}

impl TlsSetup {
    /// Reads the certificates that are trusted.
    pub(crate) fn new(trust: &Trust, host: &str) -> Result<Self, StartError> {
        let name =
            ServerName::try_from(host.to_owned()).map_err(|_| StartError::ServerName(host.to_owned()))?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let verifier = verifier(trust, &provider)?;
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| StartError::Tls(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { config, name })
    }

    /// TLS for a client of so many connections at once, with sessions of its own.
    pub(crate) fn client(&self, connections: usize) -> ClientTls {
        let sessions = Arc::new(Sessions::new(connections));
        let mut config = self.config.clone();
        let store: Arc<Sessions> = Arc::clone(&sessions);
        config.resumption = Resumption::store(store).tls12_resumption(Tls12Resumption::SessionIdOrTickets);
        ClientTls { config: Arc::new(config), sessions, name: self.name.clone() }
    }
}

fn verifier(
    trust: &Trust,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, StartError> {
    let roots = match trust {
        Trust::Certificate(der) => {
            let der = der.clone();
            let known = Known::new(move |given| *given == *der);
            return Ok(Arc::new(Exactly { known, provider: Arc::clone(provider) }));
        }
        Trust::Known(known) => {
            return Ok(Arc::new(Exactly { known: known.clone(), provider: Arc::clone(provider) }));
        }
        Trust::Insecure => return Ok(Arc::new(Anyone { provider: Arc::clone(provider) })),
        Trust::Roots => system_roots()?,
        Trust::CaFile(path) => file_roots(path)?,
    };
    match WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider)).build() {
        Ok(verifier) => Ok(verifier),
        Err(error) => Err(StartError::Tls(error.to_string())),
    }
}

fn system_roots() -> Result<RootCertStore, StartError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (good, _) = roots.add_parsable_certificates(found.certs);
    if good > 0 {
        return Ok(roots);
    }
    let reason = match found.errors.first() {
        Some(error) => error.to_string(),
        None => "there are none; install ca-certificates, or name a file".to_owned(),
    };
    Err(StartError::Roots { from: "the system's store".to_owned(), reason })
}

fn file_roots(path: &Path) -> Result<RootCertStore, StartError> {
    let refuse = |reason: String| StartError::Roots { from: path.display().to_string(), reason };
    let pem = std::fs::read(path).map_err(|error| refuse(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| refuse(error.to_string()))?;
        roots.add(certificate).map_err(|error| refuse(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(refuse("it holds no certificate in PEM".to_owned()));
    }
    Ok(roots)
}

/// Trusts certificates that are known otherwise, and checks that the server has their keys.
#[derive(Debug)]
struct Exactly {
    known: Known,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Exactly {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.known.is_good(end_entity) {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Trusts everybody, and leaves out the signature too: it is there to cost as little as possible.
#[derive(Debug)]
struct Anyone {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
