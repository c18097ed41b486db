//! Installs a new journal file, and archives the one that it replaces.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Gid, Mode, OFlags};
use rustix::io::Errno;

use super::disk;
use crate::WriteError;
use crate::archive::{self, ArchiveName};
use crate::layout::{FileHeader, HEADER_BYTES, SIGNATURE};
use crate::process;

/// The number of attempts when another process replaces the file at the same time.
const ATTEMPTS_MAX: usize = 8;

/// How long to wait for a lock, and the interval between attempts.
const LOCK_TIMEOUT: Duration = Duration::from_millis(100);
const LOCK_POLL: Duration = Duration::from_millis(5);

/// The journal file that a new one replaces. Its lock keeps other writers out.
#[derive(Debug)]
pub(super) struct ExistingFile {
    _lock: File,
    archive: PathBuf,
}

/// A new file, locked and written under a hidden name.
///
/// It gets its real name when it is complete, so that no reader sees a partial header.
#[derive(Debug)]
pub(super) struct StagedFile {
    pub(super) file: File,
    hidden: PathBuf,
}

/// Refuses a path that is not called `NAME.journal`, or whose archives would be ambiguous.
pub(super) fn check_name(path: &Path) -> Result<(), WriteError> {
    match archive::stem(path) {
        Some(_) => Ok(()),
        None => Err(WriteError::Name { path: path.to_owned() }),
    }
}

/// Locks the journal file at the path, if there is one.
///
/// Removes an empty file: it holds nothing to keep.
pub(super) fn lock_existing(path: &Path) -> Result<Option<ExistingFile>, WriteError> {
    for _ in 0..ATTEMPTS_MAX {
        let Some(file) = open_existing(path)? else { return Ok(None) };
        lock(&file, path)?;
        // Another writer may have replaced the file before we locked it.
        if !is_at(&file, path) {
            continue;
        }
        if file.metadata().map_err(WriteError::io("inspect", path))?.len() == 0 {
            disk::remove(path).map_err(WriteError::io("remove the empty file", path))?;
            return Ok(None);
        }
        let archive = archive_path(&file, path)?;
        return Ok(Some(ExistingFile { _lock: file, archive }));
    }
    Err(WriteError::Locked { path: path.to_owned() })
}

impl ExistingFile {
    /// Describes the file that this writer has filled.
    ///
    /// Returns `None` if the file was removed or replaced: then there is nothing to archive.
    pub(super) fn of_full(file: &File, header: &FileHeader, path: &Path) -> Result<Option<Self>, WriteError> {
        let archive = ArchiveName::of(header).beside(path);
        let archive = archive.ok_or_else(|| WriteError::Name { path: path.to_owned() })?;
        let lock = file.try_clone().map_err(WriteError::io("archive", path))?;
        Ok(is_at(file, path).then_some(Self { _lock: lock, archive }))
    }

    /// Describes a file of this writer that somebody has truncated.
    ///
    /// Removes an empty one: it holds nothing to keep.
    pub(super) fn of_truncated(file: &File, path: &Path) -> Result<Option<Self>, WriteError> {
        if file.metadata().map_err(WriteError::io("inspect", path))?.len() == 0 {
            disk::remove(path).map_err(WriteError::io("remove the empty file", path))?;
            return Ok(None);
        }
        let lock = file.try_clone().map_err(WriteError::io("archive", path))?;
        Ok(Some(Self { _lock: lock, archive: disposed_path(path)? }))
    }

    /// Renames the file to its archive name, and returns the new path.
    fn archive(&self, path: &Path) -> Result<PathBuf, WriteError> {
        let io_error = || WriteError::io("archive", path);
        match disk::rename(path, &self.archive) {
            Ok(()) => Ok(self.archive.clone()),
            // Somebody has restored a copy of this file, or a part of it.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let disposed = disposed_path(path)?;
                disk::rename(path, &disposed).map_err(io_error())?;
                Ok(disposed)
            }
            Err(error) => Err(io_error()(error)),
        }
    }
}

impl StagedFile {
    /// Creates and locks a file under a hidden name beside the path.
    pub(super) fn create(path: &Path) -> Result<Self, WriteError> {
        let mut name = std::ffi::OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        name.push(".new");
        let hidden = path.with_file_name(name);
        for _ in 0..ATTEMPTS_MAX {
            match disk::create_new(&hidden) {
                Ok(file) => {
                    lock(&file, path)?;
                    let staged = Self { file, hidden };
                    share_with_group(&staged.file).map_err(WriteError::io("set the mode of", path))?;
                    return Ok(staged);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    remove_abandoned(&hidden, path)?;
                }
                // In `/proc` nothing can be made, and the kernel says the same.
                Err(error)
                    if error.kind() == io::ErrorKind::NotFound
                        && path.parent().is_some_and(|folder| !folder.is_dir()) =>
                {
                    return Err(WriteError::NoFolder { path: path.to_owned() });
                }
                Err(error) => return Err(WriteError::io("create", path)(error)),
            }
        }
        Err(WriteError::Locked { path: path.to_owned() })
    }

    /// Archives the existing file and renames this one to the path.
    pub(super) fn install(self, path: &Path, existing: Option<&ExistingFile>) -> Result<File, WriteError> {
        let archive = existing.map(|existing| existing.archive(path)).transpose()?;
        match disk::rename(&self.hidden, path) {
            Ok(()) => self.file.try_clone().map_err(WriteError::io("keep open", path)),
            Err(error) => {
                if let Some(archive) = archive {
                    // If this fails too, the archive is still complete and correctly named.
                    disk::rename(&archive, path).ok();
                }
                Err(match error.kind() {
                    io::ErrorKind::AlreadyExists => WriteError::Locked { path: path.to_owned() },
                    _ => WriteError::io("create", path)(error),
                })
            }
        }
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        // An installed file no longer has this name.
        if is_at(&self.file, &self.hidden) {
            disk::remove(&self.hidden).ok();
        }
    }
}

/// Opens a regular file, if there is one.
pub(super) fn open_existing(path: &Path) -> Result<Option<File>, WriteError> {
    let kind = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata.file_type(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(WriteError::io("inspect", path)(error)),
    };
    if !kind.is_file() {
        let what = match () {
            () if kind.is_dir() => "a folder",
            () if kind.is_symlink() => "a symbolic link",
            () if kind.is_fifo() => "a pipe",
            () if kind.is_socket() => "a socket",
            () => "a device",
        };
        return Err(WriteError::NotRegular { path: path.to_owned(), what });
    }
    // The file may have been replaced since: do not follow a link, nor wait for the other end of a pipe.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(WriteError::io("open", path)(error)),
    }
}

/// Returns the archive name of an existing file, from its header.
fn archive_path(file: &File, path: &Path) -> Result<PathBuf, WriteError> {
    let mut bytes = [0; HEADER_BYTES];
    let len = read_start(file, &mut bytes).map_err(WriteError::io("read", path))?;
    if let Some(archive) =
        FileHeader::parse(&bytes[..len]).and_then(|header| ArchiveName::of(&header).beside(path))
    {
        return Ok(archive);
    }
    // A damaged header, a header that was cut off, or the zeros that a power cut leaves of a new file.
    let is_cut_off = SIGNATURE.starts_with(&bytes[..len]);
    if is_cut_off || bytes.starts_with(SIGNATURE) || bytes == [0; HEADER_BYTES] {
        return disposed_path(path);
    }
    Err(WriteError::NotAJournal { path: path.to_owned() })
}

/// Returns the name for a damaged journal, which cannot have an archive name.
fn disposed_path(path: &Path) -> Result<PathBuf, WriteError> {
    let now_us = crate::Timestamps::now().realtime_us;
    let random = process::random_id().map_err(WriteError::io("archive", path))? as u64;
    archive::disposed_path(path, now_us, random).ok_or_else(|| WriteError::Name { path: path.to_owned() })
}

fn read_start(file: &File, bytes: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    loop {
        match file.read_at(&mut bytes[len..], len as u64)? {
            0 => return Ok(len),
            more => len += more,
        }
    }
}

/// Takes the lock that a writer holds over a file's life.
///
/// Retries for a short time: a child process that is just being started still shares a lock that its parent
/// has released.
fn lock(file: &File, path: &Path) -> Result<(), WriteError> {
    let deadline = Instant::now() + LOCK_TIMEOUT;
    loop {
        match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) if Instant::now() < deadline => thread::sleep(LOCK_POLL),
            Err(Errno::WOULDBLOCK) => return Err(WriteError::Locked { path: path.to_owned() }),
            Err(error) => return Err(WriteError::io("lock", path)(error.into())),
        }
    }
}

/// Removes the staged file of a writer that was killed. Fails if that writer still holds the lock.
fn remove_abandoned(hidden: &Path, path: &Path) -> Result<(), WriteError> {
    let Some(file) = open_existing(hidden)? else { return Ok(()) };
    lock(&file, path)?;
    let mut bytes = [0; HEADER_BYTES];
    let len = read_start(&file, &mut bytes).map_err(WriteError::io("read", hidden))?;
    let is_without_entries = match FileHeader::parse(&bytes[..len]) {
        Some(header) => header.n_entries == 0,
        None => bytes == [0; HEADER_BYTES],
    };
    if !is_without_entries {
        return Err(WriteError::NotAJournal { path: hidden.to_owned() });
    }
    if is_at(&file, hidden) {
        disk::remove(hidden).map_err(WriteError::io("remove what was left of", path))?;
    }
    Ok(())
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::symlink_metadata(path)) {
        (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

/// Lets the group `systemd-journal` read what root writes, as it may read the system's journal.
fn share_with_group(file: &File) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let mut groups = String::new();
    if File::open("/etc/group").and_then(|mut file| file.read_to_string(&mut groups)).is_err() {
        return Ok(());
    }
    let Some(group) = group_id(&groups, "systemd-journal") else { return Ok(()) };
    // The group may not exist in a user namespace; then the file stays with its owner.
    if rustix::fs::fchown(file, None, Some(Gid::from_raw(group))).is_ok() {
        rustix::fs::fchmod(file, Mode::RUSR | Mode::WUSR | Mode::RGRP)?;
    }
    Ok(())
}

fn group_id(groups: &str, name: &str) -> Option<u32> {
    groups.lines().find_map(|line| {
        let mut parts = line.split(':');
        (parts.next()? == name).then(|| parts.nth(1)?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_id_matches_the_whole_name() {
        let groups = "root:x:0:\nsystemd-journal-remote:x:7:\nsystemd-journal:x:101:a,b\n";
        assert_eq!(group_id(groups, "systemd-journal"), Some(101));
        assert_eq!(group_id(groups, "journal"), None);
        assert_eq!(group_id("broken\n", "broken"), None);
    }
}
