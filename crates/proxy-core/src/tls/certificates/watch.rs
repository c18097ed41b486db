//! Watches the files of certificates and keys, separately from the proxy that uses them.
//!
//! Reading a file can block forever, for example on a lost network mount. So a separate thread may watch the files,
//! and no other thread waits for it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::tls::Certificate;
use crate::tls::certificates::authorities::Authorities;
use crate::tls::certificates::error::TlsFileError;
use crate::tls::certificates::files::{FromFiles, WatchedFiles};
use crate::tls::certificates::revocation::RevocationLists;
use crate::tls::client::config::UpstreamTls;
use crate::tls::resumption::tickets::TicketKeyFile;

/// The files of a running proxy's certificates and keys. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct TlsFiles {
    watched: Arc<Mutex<WatchedTlsFiles>>,
    /// The files that are being read.
    reading: Arc<Mutex<Vec<PathBuf>>>,
}

#[derive(Debug, Default)]
struct WatchedTlsFiles {
    certificates: Vec<WatchedFiles<Certificate>>,
    client_ca: Option<WatchedFiles<Authorities>>,
    client_crl: Option<WatchedFiles<RevocationLists>>,
    ticket_keys: Option<WatchedFiles<TicketKeyFile>>,
    upstream_ca: Option<WatchedFiles<Authorities>>,
    upstream_certificate: Option<WatchedFiles<Certificate>>,
}

/// The files that were read again, and those that could not be, for [`Proxy::take`](crate::Proxy::take).
#[derive(Debug, Default)]
pub struct FileChanges {
    pub(in crate::tls) at_once: bool,
    /// Files that are read only at the start, such as pipes; listed if all files were to be read.
    pub skipped: Vec<PathBuf>,
    /// Each with its place among the certificates.
    pub(in crate::tls) certificates: Vec<(usize, Result<Certificate, TlsFileError>)>,
    pub(in crate::tls) client_ca: Option<Result<Authorities, TlsFileError>>,
    pub(in crate::tls) client_crl: Option<Result<RevocationLists, TlsFileError>>,
    pub(in crate::tls) ticket_keys: Option<Result<TicketKeyFile, TlsFileError>>,
    pub(in crate::tls) upstream_ca: Option<Result<Authorities, TlsFileError>>,
    pub(in crate::tls) upstream_certificate: Option<Result<Certificate, TlsFileError>>,
}

impl TlsFiles {
    pub(in crate::tls) fn new(
        certificates: &[Certificate],
        client_ca: Option<&Authorities>,
        client_crl: Option<&RevocationLists>,
        ticket_keys: Option<&TicketKeyFile>,
        upstream: Option<&UpstreamTls>,
    ) -> Self {
        let upstream_certificate = upstream.and_then(|tls| tls.certificate.clone());
        let watched = WatchedTlsFiles {
            certificates: certificates.iter().cloned().map(WatchedFiles::new).collect(),
            client_ca: client_ca.cloned().map(WatchedFiles::new),
            client_crl: client_crl.cloned().map(WatchedFiles::new),
            ticket_keys: ticket_keys.cloned().map(WatchedFiles::new),
            upstream_ca: upstream.and_then(|tls| tls.ca.clone()).map(WatchedFiles::new),
            upstream_certificate: upstream_certificate.map(WatchedFiles::new),
        };
        Self { watched: Arc::new(Mutex::new(watched)), reading: Arc::default() }
    }

    /// Reads files again that have changed and have been stable since the last call; with `at_once`, all of them.
    /// Blocks on their disks.
    pub fn check(&self, at_once: bool) -> FileChanges {
        let mut files = lock(&self.watched);
        let WatchedTlsFiles {
            certificates,
            client_ca,
            client_crl,
            ticket_keys,
            upstream_ca,
            upstream_certificate,
        } = &mut *files;
        let mut skipped = Vec::new();
        let changes = FileChanges {
            at_once,
            certificates: certificates
                .iter_mut()
                .enumerate()
                .filter_map(|(i, one)| Some((i, self.check_one(one, at_once, &mut skipped)?)))
                .collect(),
            client_ca: client_ca.as_mut().and_then(|ca| self.check_one(ca, at_once, &mut skipped)),
            client_crl: client_crl.as_mut().and_then(|crl| self.check_one(crl, at_once, &mut skipped)),
            ticket_keys: ticket_keys.as_mut().and_then(|keys| self.check_one(keys, at_once, &mut skipped)),
            upstream_ca: upstream_ca.as_mut().and_then(|ca| self.check_one(ca, at_once, &mut skipped)),
            upstream_certificate: upstream_certificate
                .as_mut()
                .and_then(|one| self.check_one(one, at_once, &mut skipped)),
            skipped: Vec::new(),
        };
        lock(&self.reading).clear();
        FileChanges { skipped, ..changes }
    }

    fn check_one<T: FromFiles>(
        &self,
        files: &mut WatchedFiles<T>,
        at_once: bool,
        skipped: &mut Vec<PathBuf>,
    ) -> Option<Result<T, TlsFileError>> {
        files.paths().clone_into(&mut lock(&self.reading));
        skipped.extend(files.pipe().filter(|_| at_once).map(ToOwned::to_owned));
        files.check(at_once)
    }

    /// The files that [`check`](Self::check) is reading at the moment: a disk that hangs holds one of them.
    pub fn reading(&self) -> Vec<PathBuf> {
        lock(&self.reading).clone()
    }
}

/// After a panic the files are checked again.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
