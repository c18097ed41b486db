//! The folder with the account and the certificate. Files have mode 0600 and are replaced whole.
//!
//! Key and chain are one file, so that whoever watches it never sees the one without the other.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use instant_acme::AccountCredentials;
use output_file::OutputError;
use rustix::fs::{FlockOperation, flock};

const ACCOUNT: &str = "account.json";
const CERTIFICATE: &str = "certificate.pem";
const LOCK: &str = "lock";
const FAILED: &str = "failed";

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("cannot write to the folder of ACME {}: {source}", .path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("cannot write {}: {source}", .path.display())]
    Write { path: PathBuf, source: OutputError },
    #[error("cannot read {}: {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot use the account in {}: {problem}; remove the file for a new account", .path.display())]
    Account { path: PathBuf, problem: String },
}

#[derive(Clone, Debug)]
pub struct AcmeStore {
    folder: PathBuf,
}

/// Held by the process that renews, until it is dropped.
#[derive(Debug)]
pub struct StoreLock(#[expect(dead_code, reason = "the lock ends with the open file")] File);

impl AcmeStore {
    /// Opens the folder, making it if it is missing, and checks that it can be written to.
    ///
    /// # Errors
    /// If it cannot.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let failed = |source| StoreError::Folder { path: folder.to_owned(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        let store = Self { folder: folder.to_owned() };
        let certificate = store.certificate();
        output_file::check(&certificate).map_err(|source| StoreError::Write { path: certificate, source })?;
        Ok(store)
    }

    /// The file with the key and the chain; it exists once there is one.
    pub fn certificate(&self) -> PathBuf {
        Self::certificate_in(&self.folder)
    }

    /// The same of a folder that need not be open.
    pub fn certificate_in(folder: &Path) -> PathBuf {
        folder.join(CERTIFICATE)
    }

    /// The lock of the process that renews; `None` if another one has it.
    ///
    /// # Errors
    /// If the file of the lock cannot be opened.
    pub fn lock(&self) -> Result<Option<StoreLock>, StoreError> {
        let path = self.folder.join(LOCK);
        let opened = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let failed = |source| StoreError::Folder { path, source };
        let file = opened.map_err(failed.clone())?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(StoreLock(file))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(failed(error.into())),
        }
    }

    /// Replaces the certificate by a key and its chain, in PEM.
    ///
    /// # Errors
    /// If it cannot be written; the former one stays.
    pub fn write_certificate(&self, key: &str, chain: &str) -> Result<(), StoreError> {
        write(self.certificate(), &format!("{key}{chain}"))
    }

    /// Notes that an order has failed now, or that none has since the last success. Another process that starts soon waits.
    pub(crate) fn note_failure(&self, has_failed: bool) {
        let path = self.folder.join(FAILED);
        // Without it a restart only tries again earlier.
        let _ = if has_failed { fs::write(path, "") } else { fs::remove_file(path) };
    }

    /// When an order failed last, if none has succeeded since.
    pub(crate) fn failed_at(&self) -> Option<SystemTime> {
        fs::metadata(self.folder.join(FAILED)).and_then(|file| file.modified()).ok()
    }

    /// The account at this directory, if there is one.
    ///
    /// # Errors
    /// If its file is damaged or cannot be read.
    pub(crate) fn account(&self, directory: &str) -> Result<Option<AccountCredentials>, StoreError> {
        let path = self.folder.join(ACCOUNT);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|source| StoreError::Read { path: path.clone(), source })?,
        };
        let damaged = |error: serde_json::Error| StoreError::Account { path, problem: error.to_string() };
        let value: serde_json::Value = serde_json::from_str(&text).map_err(damaged.clone())?;
        if value["directory"] != directory {
            return Ok(None);
        }
        serde_json::from_value(value).map(Some).map_err(damaged)
    }

    pub(crate) fn write_account(&self, account: &AccountCredentials) -> Result<(), StoreError> {
        let path = self.folder.join(ACCOUNT);
        let damaged =
            |error: serde_json::Error| StoreError::Account { path: path.clone(), problem: error.to_string() };
        let text = serde_json::to_string(account).map_err(damaged)?;
        write(path.clone(), &text)
    }
}

fn write(path: PathBuf, text: &str) -> Result<(), StoreError> {
    output_file::write(&path, text).map_err(|source| StoreError::Write { path, source })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn one_process_at_a_time_has_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let store = AcmeStore::open(&folder.path().join("acme")).unwrap();
        let first = store.lock().unwrap();
        assert!(first.is_some() && store.lock().unwrap().is_none());
        drop(first);
        assert!(store.lock().unwrap().is_some());
    }

    #[test]
    fn secrets_are_readable_by_their_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let store = AcmeStore::open(&folder.path().join("acme")).unwrap();
        store.write_certificate("key\n", "chain\n").unwrap();
        store.write_certificate("new key\n", "chain\n").unwrap();
        assert_eq!(fs::read_to_string(store.certificate()).unwrap(), "new key\nchain\n");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&store.certificate()), mode(&folder.path().join("acme"))), (0o600, 0o700));
        assert_eq!(fs::read_dir(folder.path().join("acme")).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let refused = AcmeStore::open(&file.join("acme")).unwrap_err().to_string();
        assert!(refused.starts_with("cannot write to the folder of ACME"), "{refused}");
    }

    #[test]
    fn a_damaged_account_is_refused_and_that_of_another_directory_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let store = AcmeStore::open(folder.path()).unwrap();
        let write = |text: &str| fs::write(folder.path().join(ACCOUNT), text).unwrap();
        write("{\"directory\": \"https://other.test\"}");
        assert!(store.account("https://ca.test").unwrap().is_none());
        for damaged in ["{", "{\"directory\": \"https://ca.test\", \"id\": 1}"] {
            write(damaged);
            assert!(matches!(store.account("https://ca.test"), Err(StoreError::Account { .. })), "{damaged}");
        }
    }
}
