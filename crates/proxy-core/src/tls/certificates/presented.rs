//! The certificates that a running proxy may present.

use std::sync::{Arc, PoisonError, RwLock};

/// The certificates that a running proxy may present, readable from any thread. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct PresentedCertificates {
    /// The leaf certificates in use, and the replaced ones, with which handshakes may still be in progress. Written by
    /// the thread that checks the files, and read by clients within this process; no worker of the proxy touches it.
    leaves: Arc<RwLock<Vec<Vec<u8>>>>,
}

impl PresentedCertificates {
    /// Whether this certificate, in DER, is one of them.
    pub fn contains(&self, der: &[u8]) -> bool {
        self.leaves.read().unwrap_or_else(PoisonError::into_inner).iter().any(|leaf| leaf == der)
    }

    pub(in crate::tls) fn replace(&self, leaves: Vec<Vec<u8>>) {
        *self.leaves.write().unwrap_or_else(PoisonError::into_inner) = leaves;
    }
}
