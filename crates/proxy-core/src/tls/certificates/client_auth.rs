//! Certificates of clients: who may vouch for them, and whether one is needed.

use std::path::Path;
use std::sync::Arc;

use aws_lc_rs::digest;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;
use x509_parser::revocation_list::CertificateRevocationList;

use crate::tls::certificates::certificate::read_chain;
use crate::tls::certificates::chain::has_signed;
use crate::tls::certificates::error::TlsFileError;
use crate::tls::certificates::files::{FileOrigin, FromFiles};
use crate::tls::certificates::identity;
use crate::tls::certificates::revocation::Revocation;
use crate::tls::resumption::tickets::AuthDigest;
use crate::tls::server::config::TlsConfigError;
use crate::tls::server::evidence::{HandshakeNotes, RefusedCertificate};
use crate::tls::server::refusal::describe;
use crate::tls::settings::{ClientAuth, ClientAuthPolicy, CrlExpired};

/// Authorities that vouch for clients, or for upstreams.
#[derive(Clone, Debug)]
pub struct Authorities {
    roots: Arc<RootCertStore>,
    listed: Arc<[CertificateDer<'static>]>,
    digest: AuthDigest,
    origin: FileOrigin,
}

impl Authorities {
    /// Loads certificates of authorities in PEM.
    ///
    /// # Errors
    /// If the file cannot be read, or one of its certificates cannot be a trust anchor.
    pub fn load(path: &Path) -> Result<Self, TlsFileError> {
        let origin = FileOrigin::of(&[path]);
        let (mut roots, mut all) = (RootCertStore::empty(), digest::Context::new(&digest::SHA256));
        let listed = read_chain(path)?;
        for certificate in &listed {
            all.update(&(certificate.len() as u64).to_be_bytes());
            all.update(certificate);
            roots
                .add(certificate.clone())
                .map_err(|error| TlsFileError::malformed(path, describe(&error)))?;
        }
        let digest = to_binding(&all.finish());
        Ok(Self { roots: Arc::new(roots), listed: listed.into(), digest, origin })
    }

    /// The certificates, in DER.
    pub(in crate::tls) fn listed(&self) -> Arc<[CertificateDer<'static>]> {
        Arc::clone(&self.listed)
    }

    /// Whether one of them has this name, in DER.
    pub(in crate::tls) fn has_subject(&self, name: &[u8]) -> bool {
        self.listed
            .iter()
            .any(|der| X509Certificate::from_der(der).is_ok_and(|(_, one)| one.subject().as_raw() == name))
    }

    /// Whether one of them that has this name, in DER, has signed a revocation list.
    pub(in crate::tls) fn has_signed(&self, issuer: &[u8], list: &[u8]) -> bool {
        let Ok((_, list)) = CertificateRevocationList::from_der(list) else { return false };
        let (message, signature) = (list.tbs_cert_list.as_ref(), &list.signature_value.data);
        let named = self.listed.iter().filter_map(|der| Some(X509Certificate::from_der(der).ok()?.1));
        let mut named = named.filter(|one| one.subject().as_raw() == issuer);
        named.any(|one| has_signed(&one, message, signature))
    }

    fn path(&self) -> &Path {
        &self.origin.paths()[0]
    }

    pub(in crate::tls) fn summary(&self) -> String {
        let digest = u64::from_be_bytes(self.digest.first_chunk().copied().unwrap_or_default());
        let path = self.path().display();
        format!("{} of {path}, together sha256:{digest:016x}", self.roots.len())
    }

    pub(in crate::tls) fn verifier(
        &self,
        policy: &ClientAuthPolicy,
        revocation: Option<&Revocation>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ClientCertVerifier>, TlsConfigError> {
        let builder =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&self.roots), Arc::clone(provider));
        let builder = match revocation {
            Some(Revocation { lists, expired: CrlExpired::Refuse }) => {
                builder.with_crls(lists.ders()).enforce_revocation_expiration()
            }
            Some(Revocation { lists, expired: CrlExpired::Accept }) => builder.with_crls(lists.ders()),
            None => builder,
        };
        let verifier = builder.build().map_err(TlsConfigError::ClientCa)?;
        Ok(Arc::new(PolicyVerifier { verifier, policy: policy.clone() }))
    }
}

/// Asks clients for certificates as the policy of their server name says, and notes whose is refused, which rustls forgets.
#[derive(Debug)]
struct PolicyVerifier {
    verifier: Arc<dyn ClientCertVerifier>,
    policy: ClientAuthPolicy,
}

impl PolicyVerifier {
    /// What holds for the client of the present call into rustls.
    fn auth(&self) -> ClientAuth {
        HandshakeNotes::with_server_name(|name| self.policy.of(name))
    }

    fn noted<T>(certificate: &CertificateDer<'_>, verified: Result<T, Error>) -> Result<T, Error> {
        if verified.is_err() {
            HandshakeNotes::refuse_certificate(RefusedCertificate {
                subject: identity::subject(certificate),
                issuer: identity::issuer(certificate),
            });
        }
        verified
    }
}

impl ClientCertVerifier for PolicyVerifier {
    fn offer_client_auth(&self) -> bool {
        self.auth() != ClientAuth::Off
    }

    fn client_auth_mandatory(&self) -> bool {
        self.auth() == ClientAuth::Required
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.verifier.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Self::noted(end_entity, self.verifier.verify_client_cert(end_entity, intermediates, now))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Self::noted(certificate, self.verifier.verify_tls12_signature(message, certificate, signature))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Self::noted(certificate, self.verifier.verify_tls13_signature(message, certificate, signature))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier.supported_verify_schemes()
    }
}

impl FromFiles for Authorities {
    fn origin(&self) -> Option<&FileOrigin> {
        Some(&self.origin)
    }

    fn read_again(&self) -> Result<Self, TlsFileError> {
        Self::load(self.path())
    }
}

/// The digest that sessions are bound to. A session that began without a certificate, or with one of other
/// authorities, must not be resumed where a certificate is required, because a resumption does not verify it again. Of
/// revocation lists only issuers, scopes and whether the signature is right are part of it: a resumption looks the
/// certificate up in the lists themselves, and does not verify them.
pub(in crate::tls) fn binding(
    ca: Option<&Authorities>,
    policy: &ClientAuthPolicy,
    revocation: Option<&Revocation>,
) -> AuthDigest {
    let mut all = digest::Context::new(&digest::SHA256);
    if let Some(ca) = ca {
        all.update(&ca.digest);
        all.update(policy.to_string().as_bytes());
    }
    if let Some(Revocation { lists, expired }) = revocation {
        all.update(&[u8::from(*expired == CrlExpired::Refuse)]);
        for (issuer, scope, is_signed) in lists.scopes(ca) {
            for part in [issuer, scope] {
                all.update(&(part.len() as u64).to_be_bytes());
                all.update(part);
            }
            all.update(&[u8::from(is_signed)]);
        }
    }
    to_binding(&all.finish())
}

fn to_binding(digest: &digest::Digest) -> AuthDigest {
    let mut binding = AuthDigest::default();
    binding.copy_from_slice(digest.as_ref());
    binding
}
