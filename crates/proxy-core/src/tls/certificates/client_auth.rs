//! Certificates of clients: whether one is needed, and who is refused.

use std::sync::Arc;

use aws_lc_rs::digest;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{VerifierBuilderError, WebPkiClientVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

use crate::tls::certificates::authorities::{AuthDigest, Authorities, to_binding};
use crate::tls::certificates::identity;
use crate::tls::certificates::revocation::Revocation;
use crate::tls::server::evidence::{HandshakeNotes, RefusedCertificate};
use crate::tls::settings::{ClientAuth, ClientAuthPolicy, CrlExpired};

impl Authorities {
    /// Asks clients for certificates of these authorities.
    ///
    /// # Errors
    /// If the authorities or the lists cannot be used.
    pub(in crate::tls) fn verifier(
        &self,
        policy: &ClientAuthPolicy,
        revocation: Option<&Revocation>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ClientCertVerifier>, VerifierBuilderError> {
        let builder =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&self.roots), Arc::clone(provider));
        let builder = match revocation {
            Some(Revocation { lists, expired: CrlExpired::Refuse }) => {
                builder.with_crls(lists.ders()).enforce_revocation_expiration()
            }
            Some(Revocation { lists, expired: CrlExpired::Accept }) => builder.with_crls(lists.ders()),
            None => builder,
        };
        let verifier = builder.build()?;
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
