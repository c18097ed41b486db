//! Whose certificates are accepted, in the words of a plan.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Which server certificate is good.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Exactly this one, in DER, whatever names and dates it holds.
    Certificate(Vec<u8>),
    /// One that is known to be good whatever names and dates it holds: for a server that is part of this program, and
    /// may change its certificates.
    Known(Known),
    /// One that the system's certificate authorities vouch for.
    Roots,
    /// One that an authority in this PEM file vouches for.
    CaFile(PathBuf),
    /// Any, and without checking that the server has its key: for benchmarks only.
    Insecure,
}

/// Tells of a certificate in DER whether it is good; asked once a full handshake.
#[derive(Clone)]
pub struct Known(Arc<IsGood>);

type IsGood = dyn Fn(&[u8]) -> bool + Send + Sync;

impl Known {
    /// Good is what `is_good` finds so.
    pub fn new(is_good: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_good))
    }

    pub(crate) fn is_good(&self, der: &[u8]) -> bool {
        (self.0)(der)
    }
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").finish_non_exhaustive()
    }
}

impl fmt::Display for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Certificate(_) | Self::Known(_) => f.write_str("one known certificate"),
            Self::Roots => f.write_str("the system's authorities"),
            Self::CaFile(path) => write!(f, "the authorities in {}", path.display()),
            Self::Insecure => f.write_str(telemetry::model::INSECURE),
        }
    }
}
