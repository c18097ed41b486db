//! Which archives are kept.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::disk;
use super::file_builder::INCOMPATIBLE_WRITTEN;
use super::staging::open_existing;
use crate::archive::{self, ArchiveName};
use crate::layout::{HEADER_BYTES, Header};

/// What is kept of the archives of a file; without any bound, all are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retention {
    pub(super) bytes_max: Option<u64>,
    pub(super) age_max: Option<Duration>,
}

impl Retention {
    /// Removes the archives of `live` that ended too long before `now`, and the oldest until those that are left take
    /// no more than they may.
    ///
    /// Only what this writer's like has written is removed, or counted: regular files with the name of an archive, and
    /// a header that is of our format and of that name. What cannot be removed is tried again the next time.
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

    /// Tells whether an archive ended too long ago, by the time of its last entry.
    ///
    /// If that is still to come, the clock has been set back since, and the file's time of change counts. If that is to
    /// come as well, it is set to now: so the archive has an age from now on, and is neither removed for what a clock
    /// said nor kept until that comes true.
    fn is_too_old(self, file: &File, header: &Header, now: SystemTime) -> io::Result<bool> {
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

/// Opens an archive, if it is one of a format that this crate writes, and the one that its name says.
fn open_ours(path: &Path, name: ArchiveName) -> Option<(File, Header)> {
    let file = open_existing(path).ok()??;
    let mut bytes = [0; HEADER_BYTES];
    file.read_exact_at(&mut bytes, 0).ok()?;
    let header = Header::parse(&bytes)?;
    let is_ours = header.incompatible_flags == INCOMPATIBLE_WRITTEN && ArchiveName::of(&header) == name;
    is_ours.then_some((file, header))
}
