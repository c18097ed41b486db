//! Which server certificates are accepted.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use rustls_pki_types::CertificateDer;

#[derive(Clone, Debug)]
pub enum Trust {
    /// Exactly this certificate, in DER, whatever its names and dates.
    Certificate(Vec<u8>),
    /// A certificate known to this program, whatever its names and dates: for a server in the same program, which may
    /// change its certificates.
    Known(KnownCertificates),
    /// A certificate signed by the system's authorities.
    Roots,
    /// A certificate signed by an authority in this PEM file.
    CaFile(PathBuf),
    /// A certificate signed by one of these, in DER, or one of these itself.
    Authorities(Arc<[CertificateDer<'static>]>),
    /// Any certificate, without proof that the server has its key: for benchmarks only.
    Insecure,
}

/// Decides whether a certificate in DER is accepted, once for each full handshake.
#[derive(Clone)]
pub struct KnownCertificates(Arc<IsGood>);

type IsGood = dyn Fn(&[u8]) -> bool + Send + Sync;

impl KnownCertificates {
    /// Accepts the certificates for which `is_good` returns true.
    pub fn new(is_good: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_good))
    }

    pub fn is_good(&self, der: &[u8]) -> bool {
        (self.0)(der)
    }
}

impl fmt::Debug for KnownCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").finish_non_exhaustive()
    }
}

impl fmt::Display for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Certificate(_) | Self::Known(_) => f.write_str("one known certificate"),
            Self::Authorities(listed) => write!(f, "{} authorities", listed.len()),
            Self::Roots => f.write_str("the system's authorities"),
            Self::CaFile(path) => write!(f, "the authorities in {}", path.display()),
            Self::Insecure => f.write_str(records::setting::INSECURE),
        }
    }
}
