//! Verifies the server's certificate.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::refusal::reason;
use crate::trust::{KnownCertificates, Trust};

/// Why authorities cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    #[error("cannot use the certificate authorities in {}: {reason}", .path.display())]
    File { path: PathBuf, reason: String },
    #[error("cannot use the certificate authorities in the system's store: {0}")]
    System(String),
    #[error("cannot set up TLS: {0}")]
    Library(String),
}

/// A verifier of servers' certificates.
///
/// # Errors
/// If the authorities cannot be read, or are none.
pub fn verifier(
    trust: &Trust,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TrustError> {
    let roots = match trust {
        Trust::Certificate(der) => {
            let der = der.clone();
            let known = KnownCertificates::new(move |given| *given == *der);
            return Ok(Arc::new(KnownCertVerifier { known, provider: Arc::clone(provider) }));
        }
        Trust::Known(known) => {
            return Ok(Arc::new(KnownCertVerifier { known: known.clone(), provider: Arc::clone(provider) }));
        }
        Trust::Insecure => return Ok(Arc::new(NoVerifier { provider: Arc::clone(provider) })),
        Trust::Roots => system_roots()?,
        Trust::CaFile(path) => {
            let refuse = |why| TrustError::File { path: path.to_owned(), reason: why };
            let listed = read_listed(path).map_err(refuse)?;
            let roots = listed_roots(&listed).map_err(|error| refuse(reason(&error)))?;
            return Ok(Arc::new(ListedVerifier { inner: web_pki(roots, provider)?, listed }));
        }
        Trust::Authorities(listed) => {
            let roots = listed_roots(listed).map_err(|error| TrustError::Library(reason(&error)))?;
            let (inner, listed) = (web_pki(roots, provider)?, Arc::clone(listed));
            return Ok(Arc::new(ListedVerifier { inner, listed }));
        }
    };
    Ok(web_pki(roots, provider)?)
}

fn web_pki(
    roots: RootCertStore,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, TrustError> {
    let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    builder.build().map_err(|error| TrustError::Library(error.to_string()))
}

fn system_roots() -> Result<RootCertStore, TrustError> {
    let mut roots = RootCertStore::empty();
    let (good, _) = roots.add_parsable_certificates(system_certificates()?);
    if good > 0 {
        return Ok(roots);
    }
    Err(TrustError::System("none of them can be used".to_owned()))
}

pub(crate) fn system_certificates() -> Result<Vec<CertificateDer<'static>>, TrustError> {
    let found = rustls_native_certs::load_native_certs();
    if !found.certs.is_empty() {
        return Ok(found.certs);
    }
    Err(TrustError::System(match found.errors.first() {
        Some(error) => error.to_string(),
        None => "there are none; install ca-certificates, or name a file".to_owned(),
    }))
}

/// The certificates of a file, or what is wrong with it.
pub(crate) fn read_listed(path: &Path) -> Result<Arc<[CertificateDer<'static>]>, String> {
    let pem = std::fs::read(path).map_err(|error| error.to_string())?;
    let listed = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>();
    let listed = listed.map_err(|error| error.to_string())?;
    if listed.is_empty() {
        return Err("it holds no certificate in PEM".to_owned());
    }
    Ok(listed.into())
}

fn listed_roots(listed: &[CertificateDer<'static>]) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    listed.iter().try_for_each(|certificate| roots.add(certificate.clone()))?;
    Ok(roots)
}

/// Accepts certificates signed by listed authorities, and the listed certificates themselves. Self-signed ones, as
/// `openssl req -x509` makes them, are marked as authorities, which webpki refuses as a server's certificate.
#[derive(Debug)]
struct ListedVerifier {
    inner: Arc<WebPkiServerVerifier>,
    listed: Arc<[CertificateDer<'static>]>,
}

impl ServerCertVerifier for ListedVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified =
            self.inner.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // rustls has no separate error for a server that uses an authority's certificate.
            Err(Error::InvalidCertificate(CertificateError::Other(_)))
                if self.listed.contains(end_entity) =>
            {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}

/// Accepts known certificates, and checks that the server has their keys.
#[derive(Debug)]
struct KnownCertVerifier {
    known: KnownCertificates,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for KnownCertVerifier {
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

/// Accepts every certificate, and does not check the signature either, at the lowest cost.
#[derive(Debug)]
struct NoVerifier {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for NoVerifier {
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
