//! Which archives are kept.

use std::fs;
use std::io;
use std::path::Path;

use crate::archive;

/// Removes the oldest archives of `live` until those that are left take at most `bytes_max`. Only files whose names
/// are those of its archives are looked at, and only regular ones count.
///
/// # Errors
///
/// If the folder cannot be read or a file cannot be removed; what is left then is removed the next time.
pub(super) fn keep_at_most(bytes_max: u64, live: &Path) -> io::Result<()> {
    let mut kept_bytes = 0_u64;
    for (_, archive) in archive::list(live)?.into_iter().rev() {
        let metadata = fs::symlink_metadata(&archive)?;
        if !metadata.is_file() {
            continue;
        }
        kept_bytes = kept_bytes.saturating_add(metadata.len());
        if kept_bytes > bytes_max {
            fs::remove_file(&archive)?;
        }
    }
    Ok(())
}
