//! The authorities that may vouch for certificates.

use std::path::Path;
use std::sync::Arc;

use aws_lc_rs::digest;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;
use x509_parser::revocation_list::CertificateRevocationList;

use crate::tls::certificates::certificate::read_chain;
use crate::tls::certificates::chain::has_signed;
use crate::tls::certificates::error::TlsFileError;
use crate::tls::certificates::files::{FileOrigin, FromFiles};
use crate::tls::server::refusal::describe;

/// The digest that a session is bound to; of a ticket, besides its key.
pub(in crate::tls) type AuthDigest = [u8; 32];

/// Authorities that vouch for clients, or for upstreams.
#[derive(Clone, Debug)]
pub struct Authorities {
    pub(super) roots: Arc<RootCertStore>,
    listed: Arc<[CertificateDer<'static>]>,
    pub(super) digest: AuthDigest,
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
}

impl FromFiles for Authorities {
    fn origin(&self) -> Option<&FileOrigin> {
        Some(&self.origin)
    }

    fn read_again(&self) -> Result<Self, TlsFileError> {
        Self::load(self.path())
    }
}

pub(super) fn to_binding(digest: &digest::Digest) -> AuthDigest {
    let mut binding = AuthDigest::default();
    binding.copy_from_slice(digest.as_ref());
    binding
}
