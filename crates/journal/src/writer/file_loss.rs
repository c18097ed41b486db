//! Finds out that somebody has removed, moved or truncated the file that is being written.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// What somebody has done to the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileDamage {
    Removed,
    /// It has another name now.
    Moved,
    Truncated,
}

/// Somebody has removed, moved or truncated the file, and the writer has begun a new one at the path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} {}", path.display(), self.what_happened())]
pub struct FileLoss {
    pub(super) path: PathBuf,
    pub(super) damage: FileDamage,
    /// The entries that the file had.
    pub(super) entries: u64,
    pub(super) entries_lost: u64,
}

impl FileDamage {
    /// Inspects the file at the path, which this writer has written up to `size`.
    pub(super) fn find(file: &File, path: &Path, size: u64) -> io::Result<Option<Self>> {
        let own = file.metadata()?;
        match fs::symlink_metadata(path) {
            Ok(there) if (there.dev(), there.ino()) == (own.dev(), own.ino()) => {
                Ok((own.len() < size).then_some(Self::Truncated))
            }
            // Writing reports what is wrong.
            Err(error) if error.kind() != io::ErrorKind::NotFound => Ok(None),
            _ if own.nlink() == 0 => Ok(Some(Self::Removed)),
            _ => Ok(Some(Self::Moved)),
        }
    }
}

impl FileLoss {
    /// The number of entries that no reader will find, those of earlier losses that nobody took included.
    pub fn entries_lost(&self) -> u64 {
        self.entries_lost
    }

    fn what_happened(&self) -> String {
        let entries = self.entries;
        match self.damage {
            FileDamage::Removed => {
                format!("was removed while it was written; its {entries} entries are lost")
            }
            FileDamage::Moved => {
                format!("was moved while it was written; its {entries} entries are in the moved file")
            }
            FileDamage::Truncated => {
                format!("was truncated while it was written; its {entries} entries are lost")
            }
        }
    }
}
