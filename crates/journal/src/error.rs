//! The errors of this crate. Each message is one line: the operation, its object, the reason, and what to
//! do.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::entry::EntryFault;
use crate::{FileLoss, InstanceError};

#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The path is not a valid name for a journal file.
    #[error("cannot write a journal to {}: the name must be NAME.journal, without an @", path.display())]
    Name { path: PathBuf },
    /// The path exists and is not a regular file; symbolic links are not followed.
    #[error("cannot write a journal to {}: it is {what}, not a regular file; choose another path", path.display())]
    NotRegular {
        path: PathBuf,
        /// What exists at the path instead.
        what: &'static str,
    },
    /// The path exists and is not a journal; it is left alone.
    #[error("cannot write a journal to {}: the file there is not a journal; move it away or choose another path",
        path.display())]
    NotAJournal { path: PathBuf },
    /// Another process holds the file's lock.
    #[error("cannot write to {}: another program is writing it; stop that one or choose another path",
        path.display())]
    Locked { path: PathBuf },
    #[error("cannot create {}: its folder does not exist; create the folder first", path.display())]
    NoFolder { path: PathBuf },
    /// The entry is invalid; nothing was written.
    #[error("cannot append an entry to {}: {fault}", path.display())]
    Entry { path: PathBuf, fault: EntryFault },
    /// The file was removed or truncated, and is not written any more.
    #[error(transparent)]
    Lost(FileLoss),
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// The operation that failed, such as `write to`.
        operation: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl WriteError {
    /// Returns whether the disk, a quota or the file size limit is exhausted: a later attempt may succeed.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Io { source, .. } if matches!(source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge))
    }

    /// Returns a function that converts an I/O error of `operation` on `path`.
    pub(crate) fn io(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { operation, path: path.to_owned(), source }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("cannot read {}: no such file; is the path right, and has the writer started?", path.display())]
    NotFound { path: PathBuf },
    /// This user may not read the file or folder.
    #[error("cannot read {}: permission denied; run as {who}", path.display())]
    PermissionDenied {
        path: PathBuf,
        /// Who may read it.
        who: String,
    },
    #[error("cannot read {}: not a journal file: {reason}", path.display())]
    NotAJournal {
        path: PathBuf,
        /// How this was detected.
        reason: &'static str,
    },
    /// The file uses a part of the format that this crate does not read.
    #[error("cannot read {}: it uses {feature}, which is not supported; read it with journalctl --file", path.display())]
    Unsupported { path: PathBuf, feature: String },
    /// The folders of a journald instance cannot be determined.
    #[error(transparent)]
    Instance(#[from] InstanceError),

    /// A store of logs cannot be read.
    #[error("cannot read {place}: {reason}")]
    Store {
        place: String,
        /// What it answered, or why it did not.
        reason: String,
    },
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// The operation that failed, such as `read`.
        operation: &'static str,
        path: PathBuf,
        source: io::Error,
    },
}

impl ReadError {
    /// Returns a function that converts an I/O error of `operation` on `path`.
    pub(crate) fn io(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| {
            let path = path.to_owned();
            match source.kind() {
                io::ErrorKind::NotFound => Self::NotFound { path },
                io::ErrorKind::PermissionDenied => Self::PermissionDenied { who: who_may_read(&path), path },
                _ => Self::Io { operation, path, source },
            }
        }
    }
}

/// Why an entry was not sent to journald.
///
/// `Full` is frequent under back-pressure, so the path is shared instead of copied.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// journald's queue is full. Try again later.
    #[error("cannot send an entry to {}: journald's queue is full; try again when it has caught up", socket.display())]
    Full { socket: Arc<Path> },
    /// journald is not running. Try again later.
    #[error("cannot send to {}: is journald running there? {source}", socket.display())]
    Absent { socket: Arc<Path>, source: io::Error },
    /// This user may not send to journald. This can also occur briefly while journald creates its socket.
    #[error("cannot send to {}: permission denied; the folder, the socket or a security module forbids it to this \
        user", socket.display())]
    Denied { socket: Arc<Path> },
    /// journald would not accept the entry. A retry does not help.
    #[error("cannot send an entry to {}: {fault}", socket.display())]
    Entry { socket: Arc<Path>, fault: EntryFault },
    #[error("cannot {operation} {}: {source}", socket.display())]
    Io {
        /// The operation that failed, such as `connect to`.
        operation: &'static str,
        socket: Arc<Path>,
        source: io::Error,
    },
}

impl SendError {
    /// Classifies an I/O error of `operation` on `socket`.
    pub(crate) fn of_io(operation: &'static str, socket: &Arc<Path>, source: io::Error) -> Self {
        use io::ErrorKind::{
            BrokenPipe, ConnectionRefused, ConnectionReset, NotConnected, NotFound, PermissionDenied,
            WouldBlock,
        };
        let socket = socket.clone();
        match source.kind() {
            WouldBlock => Self::Full { socket },
            PermissionDenied => Self::Denied { socket },
            NotFound | ConnectionRefused | ConnectionReset | NotConnected | BrokenPipe => {
                Self::Absent { socket, source }
            }
            _ => Self::Io { operation, socket, source },
        }
    }
}

/// Describes who may read a file or folder, from its owner and group, or those of the nearest folder that can
/// be inspected.
fn who_may_read(path: &Path) -> String {
    const GROUP_MAY_READ: u32 = 0o040;
    let Some(metadata) = path.ancestors().find_map(|path| fs::metadata(path).ok()) else {
        return "root".to_owned();
    };
    if metadata.mode() & GROUP_MAY_READ != 0 && metadata.gid() != 0 {
        let groups = fs::read_to_string("/etc/group").unwrap_or_default();
        return format!("root or as a member of the group {}", name_of(&groups, metadata.gid()));
    }
    if metadata.uid() == 0 {
        return "root".to_owned();
    }
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    format!("root or as the user {}", name_of(&users, metadata.uid()))
}

/// Returns the name of a user or group from the text of passwd(5) or group(5), else the number.
fn name_of(lines: &str, id: u32) -> String {
    let id = id.to_string();
    let mut fields = lines.lines().map(|line| line.splitn(4, ':'));
    let name = fields.find_map(|mut fields| {
        let name = fields.next()?;
        (fields.nth(1)? == id).then(|| name.to_owned())
    });
    name.unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_returns_the_name_or_else_the_number() {
        let groups = "root:x:0:\nbroken\nsystemd-journal:x:101:a,b\nadm:x:4:\n";
        assert_eq!(name_of(groups, 101), "systemd-journal");
        assert_eq!(name_of(groups, 1), "1");
        assert_eq!(name_of("", 4), "4");
    }
}
