//! Where a journal file goes: what may be there already, and how a new file takes its place.

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
use crate::layout::{HEADER_BYTES, Header, SIGNATURE};
use crate::process;

/// How often the start is tried anew when the file changes hands in between.
const ATTEMPTS_MAX: usize = 8;

/// How long a lock is asked for, and how often.
const LOCK_PATIENCE: Duration = Duration::from_millis(100);
const LOCK_POLL: Duration = Duration::from_millis(5);

/// A journal file that is where the new one shall be; it is locked, so that nobody writes it.
#[derive(Debug)]
pub(super) struct ExistingFile {
    _lock: File,
    archive: PathBuf,
}

/// A file that is locked and ready to be written, but not yet where it belongs.
///
/// It becomes visible only when it is complete, so that no reader meets half a header.
#[derive(Debug)]
pub(super) struct StagedFile {
    pub(super) file: File,
    hidden: PathBuf,
}

/// Refuses paths that are not called `NAME.journal`, or whose archives could not be told apart.
pub(super) fn check_name(path: &Path) -> Result<(), WriteError> {
    match archive::stem(path) {
        Some(_) => Ok(()),
        None => Err(WriteError::Name { path: path.to_owned() }),
    }
}

/// Locks the journal file that exists at the path, if there is one.
///
/// An empty file is removed, since there is nothing to keep.
pub(super) fn lock_existing(path: &Path) -> Result<Option<ExistingFile>, WriteError> {
    for _ in 0..ATTEMPTS_MAX {
        let Some(file) = open_existing(path)? else { return Ok(None) };
        lock(&file, path)?;
        // Before it was locked, its writer may have put another file here.
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
    /// Makes an occupant of the file that this writer itself has filled.
    ///
    /// If somebody has removed it or put another in its place, there is nothing to archive.
    pub(super) fn of_full(file: &File, header: &Header, path: &Path) -> Result<Option<Self>, WriteError> {
        let archive = ArchiveName::of(header).beside(path);
        let archive = archive.ok_or_else(|| WriteError::Name { path: path.to_owned() })?;
        let lock = file.try_clone().map_err(WriteError::io("archive", path))?;
        Ok(is_at(file, path).then_some(Self { _lock: lock, archive }))
    }

    /// Gives the file its name as an archive; tells which.
    fn archive(&self, path: &Path) -> Result<PathBuf, WriteError> {
        let io_error = || WriteError::io("archive", path);
        match disk::rename(path, &self.archive) {
            Ok(()) => Ok(self.archive.clone()),
            // A copy of this file, or a part of it, as somebody may have brought back from elsewhere.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let aside = aside(path)?;
                disk::rename(path, &aside).map_err(io_error())?;
                Ok(aside)
            }
            Err(error) => Err(io_error()(error)),
        }
    }
}

impl StagedFile {
    /// Creates and locks a file beside the path under a hidden name.
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
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Err(WriteError::NoFolder { path: path.to_owned() });
                }
                Err(error) => return Err(WriteError::io("create", path)(error)),
            }
        }
        Err(WriteError::Locked { path: path.to_owned() })
    }

    /// Archives the occupant and puts this file in its place.
    pub(super) fn install(self, path: &Path, existing: Option<&ExistingFile>) -> Result<File, WriteError> {
        let archive = existing.map(|existing| existing.archive(path)).transpose()?;
        match disk::rename(&self.hidden, path) {
            Ok(()) => self.file.try_clone().map_err(WriteError::io("keep open", path)),
            Err(error) => {
                if let Some(archive) = archive {
                    // If this fails too, the archive at least is complete and has its right name.
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
        // When it took its place there is nothing under this name any more.
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
    // In case it has been exchanged since: do not follow a link, and do not wait for a pipe's other end.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32;
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(WriteError::io("open", path)(error)),
    }
}

/// Finds the name under which an existing file is put aside, by its header.
fn archive_path(file: &File, path: &Path) -> Result<PathBuf, WriteError> {
    let mut bytes = [0; HEADER_BYTES];
    let len = read_start(file, &mut bytes).map_err(WriteError::io("read", path))?;
    if let Some(archive) =
        Header::parse(&bytes[..len]).and_then(|header| ArchiveName::of(&header).beside(path))
    {
        return Ok(archive);
    }
    // A journal with a damaged header, one that was cut off within it, or what a power cut leaves of one just begun.
    let is_cut_off = SIGNATURE.starts_with(&bytes[..len]);
    if is_cut_off || bytes.starts_with(SIGNATURE) || bytes == [0; HEADER_BYTES] {
        return aside(path);
    }
    Err(WriteError::NotAJournal { path: path.to_owned() })
}

/// Finds a name under which a journal is put aside that cannot have the name of an archive.
fn aside(path: &Path) -> Result<PathBuf, WriteError> {
    let now_us = crate::Timestamps::now().realtime_us;
    let random = process::random_id().map_err(WriteError::io("archive", path))? as u64;
    archive::aside(path, now_us, random).ok_or_else(|| WriteError::Name { path: path.to_owned() })
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
/// A program that is being started has for a moment all that its parent has, also the lock of a file that the parent
/// just closed; so the lock is asked for a few times.
fn lock(file: &File, path: &Path) -> Result<(), WriteError> {
    let deadline = Instant::now() + LOCK_PATIENCE;
    loop {
        match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) if Instant::now() < deadline => thread::sleep(LOCK_POLL),
            Err(Errno::WOULDBLOCK) => return Err(WriteError::Locked { path: path.to_owned() }),
            Err(error) => return Err(WriteError::io("lock", path)(error.into())),
        }
    }
}

/// Removes a file that a writer left which was killed while it began; if it is alive, it keeps us out.
fn remove_abandoned(hidden: &Path, path: &Path) -> Result<(), WriteError> {
    let Some(file) = open_existing(hidden)? else { return Ok(()) };
    lock(&file, path)?;
    let mut bytes = [0; HEADER_BYTES];
    let len = read_start(&file, &mut bytes).map_err(WriteError::io("read", hidden))?;
    let is_without_entries = match Header::parse(&bytes[..len]) {
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

/// Lets the members of the group `systemd-journal` read what root writes, as they may read the system's journal.
fn share_with_group(file: &File) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let mut groups = String::new();
    if File::open("/etc/group").and_then(|mut file| file.read_to_string(&mut groups)).is_err() {
        return Ok(());
    }
    let Some(group) = group_id(&groups, "systemd-journal") else { return Ok(()) };
    // In a user namespace the group may not exist; then the file stays with its owner.
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
    fn a_group_is_found_by_its_whole_name() {
        let groups = "root:x:0:\nsystemd-journal-remote:x:7:\nsystemd-journal:x:101:a,b\n";
        assert_eq!(group_id(groups, "systemd-journal"), Some(101));
        assert_eq!(group_id(groups, "journal"), None);
        assert_eq!(group_id("broken\n", "broken"), None);
    }
}
