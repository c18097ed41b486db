//! Removes archives that exceed their bounds on size or age.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::disk;
use super::file_builder::INCOMPATIBLE_WRITTEN;
use super::staging::open_existing;
use crate::archive::{self, ArchiveName};
use crate::layout::{FileHeader, HEADER_BYTES};

/// The bounds on the archives of a file; without any, all are kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArchiveRetention {
    pub(super) bytes_max: Option<u64>,
    pub(super) age_max: Option<Duration>,
}

impl ArchiveRetention {
    /// Removes the archives of `live` whose last entry is too old, and the oldest ones until the rest fits
    /// the size.
    ///
    /// Only archives of our own format are counted or removed: regular files whose header matches their
    /// archive name. An archive that cannot be removed is retried the next time.
    pub(super) fn apply(self, live: &Path, now: SystemTime) {
        if self.bytes_max.is_none() && self.age_max.is_none() {
            return;
        }
        let mut kept_bytes = 0_u64;
        for (name, path) in archive::list(live).unwrap_or_default().into_iter().rev() {
            let Some((file, header)) = open_ours(&path, name) else { continue };
            kept_bytes = kept_bytes.saturating_add(file.metadata().map_or(0, |metadata| metadata.len()));
            let is_beyond = self.bytes_max.is_some_and(|bytes_max| kept_bytes > bytes_max);
            if is_beyond || self.is_too_old(&file, &header, now).unwrap_or(false) {
                disk::remove(&path).ok();
            }
        }
    }

    /// Returns whether the last entry of an archive is too old.
    ///
    /// If the last entry is in the future, the clock was set back, and the modification time counts instead.
    /// If that is in the future too, it is set to now: the archive ages from now on, so a wrong clock neither
    /// removes it nor keeps it forever.
    fn is_too_old(self, file: &File, header: &FileHeader, now: SystemTime) -> io::Result<bool> {
        let Some(age_max) = self.age_max else { return Ok(false) };
        let last_entry =
            SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(header.tail_entry_realtime));
        if let Some(age) = last_entry.and_then(|ended| now.duration_since(ended).ok()) {
            return Ok(age > age_max);
        }
        match now.duration_since(file.metadata()?.modified()?) {
            Ok(age) => Ok(age > age_max),
            Err(_) => file.set_modified(now).map(|()| false),
        }
    }
}

/// Opens an archive if this crate wrote its format and its header matches its name.
fn open_ours(path: &Path, name: ArchiveName) -> Option<(File, FileHeader)> {
    let file = open_existing(path).ok()??;
    let mut bytes = [0; HEADER_BYTES];
    file.read_exact_at(&mut bytes, 0).ok()?;
    let header = FileHeader::parse(&bytes)?;
    let is_ours = header.incompatible_flags == INCOMPATIBLE_WRITTEN && ArchiveName::of(&header) == name;
    is_ours.then_some((file, header))
}
