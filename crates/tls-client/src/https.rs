//! What a client of HTTPS needs that sets up rustls itself.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::refusal::reason;
use crate::verify::{TrustError, read_listed, system_certificates};

/// Why a client cannot identify itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot use the client certificate {} with the key {}: {reason}", .cert.display(), .key.display())]
pub struct IdentityError {
    cert: PathBuf,
    key: PathBuf,
    reason: String,
}

/// The library of cryptography.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// The authorities in a PEM file, or those of the system.
///
/// # Errors
/// If they cannot be read, or are none.
pub fn authorities(file: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, TrustError> {
    let Some(path) = file else { return system_certificates() };
    let listed = read_listed(path).map_err(|reason| TrustError::File { path: path.to_owned(), reason })?;
    Ok(listed.to_vec())
}

/// Why a connection failed, in words, also if TLS is the reason.
pub fn io_reason(error: &io::Error) -> String {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref());
    tls.map_or_else(|| error.to_string(), reason)
}

/// Checks that the chain of certificates and the key, PEM files, belong together.
///
/// # Errors
/// If they cannot be read, or do not.
pub fn check_identity(cert: &Path, key: &Path) -> Result<(), IdentityError> {
    let refuse = |reason| IdentityError { cert: cert.to_owned(), key: key.to_owned(), reason };
    let chain = read_listed(cert).map_err(refuse)?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| refuse(error.to_string()))?;
    let certified = CertifiedKey::from_der(chain.to_vec(), private, &provider());
    certified.map(drop).map_err(|error| refuse(reason(&error)))
}
