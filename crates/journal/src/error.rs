//! What can go wrong, said so that one line tells what was tried, on what, why it failed and what to do.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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
    /// The file may not be read by this user.
    #[error("cannot read {}: permission denied; its owner, root or a member of its group can", path.display())]
    PermissionDenied {
        /// The path as given.
        path: PathBuf,
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
                io::ErrorKind::PermissionDenied => Self::PermissionDenied { path },
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
    #[error("cannot send to {}: no journald is there ({source}); is it running?", socket.display())]
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
