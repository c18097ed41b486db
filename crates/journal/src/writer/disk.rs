//! The system calls with which a writer changes the disk, one function each.
//!
//! Tests can stop a writer after any of them, as `kill -9` does.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::{FallocateFlags, RenameFlags};
use rustix::io::Errno;

/// Creates a file that only its owner can access.
pub(super) fn create_new(path: &Path) -> io::Result<File> {
    #[cfg(test)]
    stop::step()?;
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// Extends a file to `size` bytes and allocates the space.
///
/// A full disk is detected before anything is written.
pub(super) fn extend(file: &File, size: u64) -> io::Result<()> {
    #[cfg(test)]
    stop::step()?;
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, size) {
        // Some file systems do not support this.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => file.set_len(size),
        result => result.map_err(io::Error::from),
    }
}

/// Truncates a file to its used size.
pub(super) fn cut(file: &File, size: u64) -> io::Result<()> {
    #[cfg(test)]
    stop::step()?;
    file.set_len(size)
}

pub(super) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    #[cfg(test)]
    stop::step()?;
    file.write_all_at(bytes, offset)
}

/// Renames a file and never replaces another.
pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(test)]
    stop::step()?;
    let cwd = rustix::fs::CWD;
    match rustix::fs::renameat_with(cwd, from, cwd, to, RenameFlags::NOREPLACE) {
        // Some file systems cannot do this atomically.
        Err(Errno::INVAL | Errno::NOSYS) => {
            if fs::symlink_metadata(to).is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            fs::rename(from, to)
        }
        result => result.map_err(io::Error::from),
    }
}

pub(super) fn remove(path: &Path) -> io::Result<()> {
    #[cfg(test)]
    stop::step()?;
    fs::remove_file(path)
}

#[cfg(test)]
pub(super) mod stop {
    use std::cell::Cell;
    use std::io;

    thread_local! {
        static STEPS_LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
        static IS_STOPPED: Cell<bool> = const { Cell::new(false) };
    }

    pub(in crate::writer::disk) fn step() -> io::Result<()> {
        let left = STEPS_LEFT.get().checked_sub(1);
        IS_STOPPED.set(left.is_none());
        STEPS_LEFT.set(left.unwrap_or(0));
        left.map(drop).ok_or_else(|| io::Error::other("stopped by a test"))
    }

    /// Runs a function that may change the disk `steps` times and no more, not even to clean up; returns
    /// whether that stopped it.
    pub(in crate::writer) fn after<T>(steps: usize, run: impl FnOnce() -> T) -> (T, bool) {
        STEPS_LEFT.set(steps);
        let result = run();
        STEPS_LEFT.set(usize::MAX);
        (result, IS_STOPPED.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rename_never_replaces_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        fs::write(&a, "a").unwrap();
        fs::write(&b, "b").unwrap();
        assert_eq!(rename(&a, &b).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&b).unwrap(), "b");
    }

    #[test]
    fn extend_allocates_space_and_never_shortens() {
        use std::os::unix::fs::MetadataExt as _;
        let file = tempfile::tempfile().unwrap();
        extend(&file, 1 << 20).unwrap();
        extend(&file, 1 << 10).unwrap();
        let metadata = file.metadata().unwrap();
        assert_eq!(metadata.len(), 1 << 20);
        assert!(metadata.blocks() * 512 >= 1 << 20, "{} blocks", metadata.blocks());
    }
}
