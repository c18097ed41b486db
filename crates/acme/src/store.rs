//! The files of orders: accounts, certificates, and what an order must not lose. They have mode 0600 and are replaced whole.
//!
//! An order has a folder of its own, by directory and domains, so that two of them never replace each other's certificate. Its
//! key and chain are one file, so that whoever watches it never sees the one without the other.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use instant_acme::AccountCredentials;
use output_file::OutputError;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

const CERTIFICATE: &str = "certificate.pem";
const PENDING: &str = "pending.json";
const LOCK: &str = "lock";
const FAILED: &str = "failed";
const SPACE: &str = "space";
/// What all files of an order take at most; a chain has a few kilobytes.
const SPACE_BYTES: usize = 64 << 10;
/// Longer than an authority needs, and shorter than any certificate is valid.
const PENDING_AGE_MAX: Duration = Duration::from_secs(24 * 3600);
/// Bytes of the first domain that the folder of an order is named by, to be found by people.
const NAME_BYTES_MAX: usize = 64;

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
    /// Of this order.
    folder: PathBuf,
    /// The file of the account at the authority, which orders share.
    account: PathBuf,
}

/// Held by the process that renews, until it is dropped.
#[derive(Debug)]
pub struct StoreLock(File);

impl Drop for StoreLock {
    fn drop(&mut self) {
        // While a process is started it has a copy of every descriptor, and closing alone leaves it the lock.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// An order that the authority has validated, and whose certificate is not here yet.
#[derive(Serialize, Deserialize)]
pub(crate) struct PendingOrder {
    pub(crate) url: String,
    /// The key of the certificate, in PEM.
    pub(crate) key: String,
}

impl AcmeStore {
    /// The files of the order of these domains from the authority with this directory, below a folder. Touches none.
    pub fn new(folder: &Path, directory: &str, domains: &[String]) -> Self {
        let mut sorted = domains.to_vec();
        sorted.sort_unstable();
        let first = sorted.first().map_or("", String::as_str).replace('*', "_");
        let name = first.get(..NAME_BYTES_MAX).unwrap_or(&first);
        let order = hash(&[directory, &sorted.join(" ")].join(" "));
        Self {
            folder: folder.join(format!("{name}-{order}")),
            account: folder.join(format!("account-{}.json", hash(directory))),
        }
    }

    /// Makes the folder if it is missing, and checks that it can be written to.
    ///
    /// # Errors
    /// If it cannot.
    pub fn open(&self) -> Result<(), StoreError> {
        let failed = |source| StoreError::Folder { path: self.folder.clone(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map_err(failed)?;
        let certificate = self.certificate();
        output_file::check(&certificate).map_err(|source| StoreError::Write { path: certificate, source })
    }

    /// The file with the key and the chain; it exists once there is one.
    pub fn certificate(&self) -> PathBuf {
        self.folder.join(CERTIFICATE)
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

    /// Checks that the disk has room for an account and a certificate, before an authority makes them.
    ///
    /// # Errors
    /// If it has not.
    pub(crate) fn check_space(&self) -> Result<(), StoreError> {
        let path = self.folder.join(SPACE);
        let written = write(path.clone(), &" ".repeat(SPACE_BYTES));
        // Empty, it would be as harmless as whole.
        let _ = fs::remove_file(path);
        written
    }

    /// The certificates of other orders below the same folder, the newest first.
    pub fn certificates_of_others(&self) -> Vec<PathBuf> {
        let folders = self.folder.parent().and_then(|all| fs::read_dir(all).ok()).into_iter().flatten();
        let files = folders.filter_map(|entry| Some(entry.ok()?.path().join(CERTIFICATE)));
        let dated = files.filter_map(|file| Some((fs::metadata(&file).ok()?.modified().ok()?, file)));
        let mut dated: Vec<_> = dated.filter(|(_, file)| *file != self.certificate()).collect();
        dated.sort_unstable_by(|one, other| other.cmp(one));
        dated.into_iter().map(|(_, file)| file).collect()
    }

    /// Replaces the certificate by a key and its chain, in PEM. The order is no longer pending.
    ///
    /// # Errors
    /// If it cannot be written; the former one stays.
    pub fn write_certificate(&self, pem: &str) -> Result<(), StoreError> {
        write(self.certificate(), pem)?;
        self.remove_pending();
        Ok(())
    }

    /// The order that is pending, since a day at most.
    pub(crate) fn pending(&self) -> Option<PendingOrder> {
        let path = self.folder.join(PENDING);
        let since = fs::metadata(&path).and_then(|file| file.modified()).ok()?;
        // Set back, the clock says nothing about it.
        let age = SystemTime::now().duration_since(since).unwrap_or_default();
        serde_json::from_slice(&fs::read(path).ok()?).ok().filter(|_| age < PENDING_AGE_MAX)
    }

    pub(crate) fn write_pending(&self, order: &PendingOrder) -> Result<(), StoreError> {
        write_json(&self.folder.join(PENDING), order)
    }

    pub(crate) fn remove_pending(&self) {
        // If it stays, the authority is asked about an order that is over.
        let _ = fs::remove_file(self.folder.join(PENDING));
    }

    /// Notes why an order has failed now, or that none has since the last success. Another process that starts soon waits.
    pub(crate) fn note_failure(&self, error: Option<&str>) {
        let path = self.folder.join(FAILED);
        // Without it a restart only tries again earlier.
        let _ = match error {
            Some(error) => write(path, error).is_ok(),
            None => fs::remove_file(path).is_ok(),
        };
    }

    /// When and why an order failed last, if none has succeeded since.
    pub(crate) fn failure(&self) -> Option<(SystemTime, String)> {
        let path = self.folder.join(FAILED);
        let at = fs::metadata(&path).and_then(|file| file.modified()).ok()?;
        Some((at, fs::read_to_string(path).ok()?))
    }

    /// The file of the account.
    pub(crate) fn account_file(&self) -> &Path {
        &self.account
    }

    /// The account, if there is one.
    ///
    /// # Errors
    /// If its file is damaged or cannot be read.
    pub(crate) fn account(&self) -> Result<Option<AccountCredentials>, StoreError> {
        let path = || self.account.clone();
        let text = match fs::read(&self.account) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|source| StoreError::Read { path: path(), source })?,
        };
        let read = serde_json::from_slice(&text);
        read.map(Some).map_err(|error| StoreError::Account { path: path(), problem: error.to_string() })
    }

    pub(crate) fn write_account(&self, account: &AccountCredentials) -> Result<(), StoreError> {
        write_json(&self.account, account)
    }
}

/// The first bytes of a digest, as a part of a file's name.
fn hash(text: &str) -> String {
    let digest = Sha256::digest(text);
    format!("{:016x}", digest.iter().take(8).fold(0u64, |all, &byte| all << 8 | u64::from(byte)))
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), StoreError> {
    let text = serde_json::to_string(value).map_err(|error| {
        let source = OutputError::Io(error.into());
        StoreError::Write { path: path.to_owned(), source }
    })?;
    write(path.to_owned(), &text)
}

fn write(path: PathBuf, text: &str) -> Result<(), StoreError> {
    output_file::write(&path, text).map_err(|source| StoreError::Write { path, source })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn store(folder: &Path) -> AcmeStore {
        AcmeStore::new(folder, "https://ca.test", &["a.test".to_owned()])
    }

    fn opened() -> (tempfile::TempDir, AcmeStore) {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path());
        store.open().unwrap();
        (folder, store)
    }

    #[test]
    fn one_process_at_a_time_has_the_lock() {
        let (_folder, store) = opened();
        let first = store.lock().unwrap().unwrap();
        assert!(store.lock().unwrap().is_none());
        let child_copy = first.0.try_clone().unwrap();
        drop(first);
        assert!(store.lock().unwrap().is_some());
        drop(child_copy);
    }

    #[test]
    fn orders_have_folders_of_their_own_and_share_the_account_at_an_authority() {
        let of = |directory: &str, domains: &[&str]| {
            let domains: Vec<String> = domains.iter().map(|&domain| domain.to_owned()).collect();
            AcmeStore::new(Path::new(""), directory, &domains)
        };
        let one = of("https://ca.test", &["a.test", "b.test"]);
        let other = of("https://staging.test", &["a.test", "b.test"]);
        let fewer = of("https://ca.test", &["a.test"]);
        assert_ne!(one.folder, other.folder);
        assert_ne!(one.folder, fewer.folder);
        assert!(one.account == fewer.account && one.account != other.account);
        let name = |store: &AcmeStore| store.folder.to_str().unwrap().to_owned();
        assert_eq!(one.folder, of("https://ca.test", &["b.test", "a.test"]).folder);
        assert!(name(&of("https://ca.test", &["*.a.test"])).starts_with("_.a.test-"));
        assert!(name(&of("https://ca.test", &[&"a".repeat(253)])).len() < 100);
    }

    #[test]
    fn secrets_are_readable_by_their_owner_alone() {
        let (_folder, store) = opened();
        store.check_space().unwrap();
        store.write_pending(&PendingOrder { url: String::new(), key: String::new() }).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&store.folder.join(PENDING)), 0o600);
        store.write_certificate("key and chain\n").unwrap();
        store.write_certificate("others\n").unwrap();
        assert_eq!(fs::read_to_string(store.certificate()).unwrap(), "others\n");
        assert_eq!((mode(&store.certificate()), mode(&store.folder)), (0o600, 0o700));
        assert_eq!(fs::read_dir(&store.folder).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let refused = store(&file).open().unwrap_err().to_string();
        assert!(refused.starts_with("cannot write to the folder of ACME"), "{refused}");
    }

    #[test]
    fn a_damaged_account_is_refused_and_a_damaged_order_forgotten() {
        let (_folder, store) = opened();
        assert!(store.account().unwrap().is_none());
        for damaged in ["{", "{\"directory\": \"https://ca.test\", \"id\": 1}"] {
            fs::write(&store.account, damaged).unwrap();
            assert!(matches!(store.account(), Err(StoreError::Account { .. })), "{damaged}");
        }
        let pending = store.folder.join(PENDING);
        fs::write(&pending, "{").unwrap();
        assert!(store.pending().is_none());
        store.write_pending(&PendingOrder { url: String::new(), key: String::new() }).unwrap();
        assert!(store.pending().is_some());
        let old = SystemTime::now() - PENDING_AGE_MAX;
        File::options().write(true).open(&pending).unwrap().set_modified(old).unwrap();
        assert!(store.pending().is_none());
    }

    #[test]
    fn a_failure_is_kept_for_the_next_process_and_the_newest_certificate_of_others_found() {
        let (folder, store) = opened();
        assert_eq!(store.failure(), None);
        store.note_failure(Some("it is down"));
        assert_eq!(store.failure().unwrap().1, "it is down");
        store.note_failure(None);
        assert_eq!(store.failure(), None);
        store.write_certificate("own").unwrap();
        assert!(store.certificates_of_others().is_empty());
        let other = AcmeStore::new(folder.path(), "https://other.test", &["a.test".to_owned()]);
        other.open().unwrap();
        other.write_certificate("other").unwrap();
        assert_eq!(store.certificates_of_others(), [other.certificate()]);
    }
}
