//! Watches the files of certificates and keys, separately from the proxy that uses them.
//!
//! Reading a file can block forever, for example on a lost network mount. So a separate thread may watch the files,
//! and no other thread waits for it.

use std::sync::{Arc, Mutex, PoisonError};

use super::Certificate;
use super::client_auth::ClientCa;
use super::error::TlsFileError;
use super::files::WatchedFiles;
use super::tickets::TicketKeyFile;

/// The files of a running proxy's certificates and keys. Clones share their state.
#[derive(Clone, Debug)]
pub struct TlsFiles(Arc<Mutex<WatchedTlsFiles>>);

#[derive(Debug)]
struct WatchedTlsFiles {
    certificates: Vec<WatchedFiles<Certificate>>,
    client_ca: Option<WatchedFiles<ClientCa>>,
    ticket_keys: Option<WatchedFiles<TicketKeyFile>>,
}

/// The files that were read again, and those that could not be, for [`Proxy::take`](crate::Proxy::take).
#[derive(Debug, Default)]
pub struct FileChanges {
    pub(super) at_once: bool,
    /// Each with its place among the certificates.
    pub(super) certificates: Vec<(usize, Result<Certificate, TlsFileError>)>,
    pub(super) client_ca: Option<Result<ClientCa, TlsFileError>>,
    pub(super) ticket_keys: Option<Result<TicketKeyFile, TlsFileError>>,
}

impl TlsFiles {
    pub(super) fn new(
        certificates: &[Certificate],
        client_ca: Option<&ClientCa>,
        ticket_keys: Option<&TicketKeyFile>,
    ) -> Self {
        Self(Arc::new(Mutex::new(WatchedTlsFiles {
            certificates: certificates.iter().cloned().map(WatchedFiles::new).collect(),
            client_ca: client_ca.cloned().map(WatchedFiles::new),
            ticket_keys: ticket_keys.cloned().map(WatchedFiles::new),
        })))
    }

    /// Reads files again that have changed and have been stable since the last call; with `at_once`, all of them.
    /// Blocks on their disks.
    pub fn check(&self, at_once: bool) -> FileChanges {
        // After a panic the files are checked again.
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let WatchedTlsFiles { certificates, client_ca, ticket_keys } = &mut *files;
        FileChanges {
            at_once,
            certificates: certificates
                .iter_mut()
                .enumerate()
                .filter_map(|(i, one)| Some((i, one.check(at_once)?)))
                .collect(),
            client_ca: client_ca.as_mut().and_then(|ca| ca.check(at_once)),
            ticket_keys: ticket_keys.as_mut().and_then(|keys| keys.check(at_once)),
        }
    }
}
