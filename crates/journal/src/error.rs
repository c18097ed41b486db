//! What can go wrong, said so that one line tells what was tried, on what, why it failed and what to do.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::InstanceError;
use crate::entry::EntryFault;

/// Why writing a journal file failed.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The path cannot be a journal file's.
    #[error("cannot write a journal to {}: the name must be NAME.journal, without an @", path.display())]
    Name {
        /// The path as given.
        path: PathBuf,
    },
    /// Something that is no regular file is in the way; a symbolic link is not followed.
    #[error("cannot write a journal to {}: it is {what}, not a regular file; choose another path", path.display())]
    NotRegular {
        /// The path as given.
        path: PathBuf,
        /// What is there instead.
        what: &'static str,
    },
    /// A regular file that is no journal is in the way; it is left alone.
    #[error("cannot write a journal to {}: the file there is not a journal; move it away or choose another path",
        path.display())]
    NotAJournal {
        /// The path as given.
        path: PathBuf,
    },
    /// Another live writer holds the file.
    #[error("cannot write to {}: another program is writing it; stop that one or choose another path",
        path.display())]
    Locked {
        /// The path as given.
        path: PathBuf,
    },
    /// The folder does not exist.
    #[error("cannot create {}: its folder does not exist; create the folder first", path.display())]
    NoFolder {
        /// The path as given.
        path: PathBuf,
    },
    /// The entry cannot be written as it is; nothing was written.
    #[error("cannot append an entry to {}: {fault}", path.display())]
    Entry {
        /// The file.
        path: PathBuf,
        /// What is wrong with the entry.
        fault: EntryFault,
    },
    /// The operating system refused an operation.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// What was tried, such as `write to`.
        operation: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

impl WriteError {
    /// Tells whether the disk (or a quota, or the limit on file sizes) is full: trying again later may succeed.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Io { source, .. } if matches!(source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge))
    }

    /// Makes a function that turns an I/O error of `operation` on `path` into a `WriteError`.
    pub(crate) fn io(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { operation, path: path.to_owned(), source }
    }
}

/// Why reading a journal file failed.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// There is no such file.
    #[error("cannot read {}: no such file; is the path right, and has the writer started?", path.display())]
    NotFound {
        /// The path as given.
        path: PathBuf,
    },
    /// The file or folder may not be read by this user.
    #[error("cannot read {}: permission denied; run as {who}", path.display())]
    PermissionDenied {
        /// The path as given.
        path: PathBuf,
        /// Who may read it.
        who: String,
    },
    /// The file is no journal.
    #[error("cannot read {}: not a journal file: {reason}", path.display())]
    NotAJournal {
        /// The path as given.
        path: PathBuf,
        /// What gave it away.
        reason: &'static str,
    },
    /// The file uses a part of the format that this crate does not read.
    #[error("cannot read {}: it uses {feature}, which is not supported; read it with journalctl --file", path.display())]
    Unsupported {
        /// The path as given.
        path: PathBuf,
        /// The feature by name.
        feature: String,
    },
    /// It cannot be told where an instance of journald keeps its files.
    #[error(transparent)]
    Instance(#[from] InstanceError),
    /// The operating system refused an operation.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// What was tried, such as `read`.
        operation: &'static str,
        /// On which file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

impl ReadError {
    /// Makes a function that turns an I/O error of `operation` on `path` into a `ReadError`.
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
/// The path is shared, since back-pressure makes `Full` a thing of every second.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The queue of the daemon is full. This passes by.
    #[error("cannot send an entry to {}: journald's queue is full; try again when it has caught up", socket.display())]
    Full {
        /// The daemon's socket.
        socket: Arc<Path>,
    },
    /// No daemon is there. This may pass by.
    #[error("cannot send to {}: is journald running there? {source}", socket.display())]
    Absent {
        /// The daemon's socket.
        socket: Arc<Path>,
        /// What the operating system said.
        source: io::Error,
    },
    /// This user may not send to the daemon; so it can seem for a moment while a daemon opens its own socket.
    #[error("cannot send to {}: permission denied; the folder, the socket or a security module forbids it to this \
        user", socket.display())]
    Denied {
        /// The daemon's socket.
        socket: Arc<Path>,
    },
    /// The daemon would not take the entry as it is. This never passes by.
    #[error("cannot send an entry to {}: {fault}", socket.display())]
    Entry {
        /// The daemon's socket.
        socket: Arc<Path>,
        /// What is wrong with the entry.
        fault: EntryFault,
    },
    /// The operating system refused an operation.
    #[error("cannot {operation} {}: {source}", socket.display())]
    Io {
        /// What was tried, such as `connect to`.
        operation: &'static str,
        /// The daemon's socket.
        socket: Arc<Path>,
        /// Why it failed.
        source: io::Error,
    },
}

impl SendError {
    /// Says what an I/O error of `operation` means for the sender to `socket`.
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

/// Says who may read a file or folder, by its owner and group; or who may enter the folder that keeps us from knowing.
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

/// Gives the name of a user or group from the text of passwd(5) or group(5), else its number.
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
    fn a_user_or_group_is_named_and_one_without_a_name_numbered() {
        let groups = "root:x:0:\nbroken\nsystemd-journal:x:101:a,b\nadm:x:4:\n";
        assert_eq!(name_of(groups, 101), "systemd-journal");
        assert_eq!(name_of(groups, 1), "1");
        assert_eq!(name_of("", 4), "4");
    }
}
