//! The tail: entries of journal files as they are written, through rotations.

mod compressed;
mod entry;
mod feed;
mod folder;
mod listing;
mod named;
mod objects;
mod source;
mod stream;
mod values;
mod walk;
mod wanted;

use std::fmt;
use std::path::{Path, PathBuf};

pub use entry::Entry;
use folder::Folder;
use named::Named;
use source::Source;
use wanted::Filter;

use crate::{FileState, ReadError};

/// The most entries that one poll hands out.
const ENTRIES_PER_POLL_MAX: u64 = 4096;

/// The most steps over the file that one poll takes, each of 256 KiB or one object.
const STEPS_PER_POLL_MAX: u32 = 64;

/// Where a tail begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With the oldest archive beside the file, or the oldest file of a folder.
    Oldest,
    /// With the first entry of the file; in a folder, of those that are being written.
    File,
    /// With what is written from now on.
    End,
    /// With entries of this time, in microseconds since 1970-01-01 UTC, wherever they are.
    ///
    /// Files whose last entry is earlier are not read at all. What is written after the tail was opened is always
    /// read, also after the clock was set back.
    Since(u64),
}

impl Start {
    /// Gives the time before which entries that are already there are passed over.
    fn since_us(self) -> u64 {
        match self {
            Self::Oldest | Self::File => 0,
            Self::End => u64::MAX,
            Self::Since(realtime_us) => realtime_us,
        }
    }
}

/// What one poll found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Entries that were handed out.
    pub entries: u64,
    /// There is more to read now; the poll ended because it had done enough.
    pub more: bool,
    /// How often the tail went on to another file.
    pub rotations: u64,
    /// Bytes of files that could not be read: damaged, of an unknown kind, a value above 16 MiB (above 1 MiB if it is
    /// compressed), or compressed values beyond 256 MiB in one file.
    pub skipped_bytes: u64,
    /// The state of the file that is being read, as its header says; in a folder, whether any file is being written.
    pub writer: FileState,
}

/// Follows a journal file, or all those of a folder, from one end to the other, and on to the files that come later.
///
/// It never writes and takes no lock. It has one file open at a time, in a folder also those that are being written.
/// Its memory is bounded by a small multiple of the size of these files (and of 256 MiB each where values are
/// compressed): all distinct values of a file that is being read are kept, some 200 bytes each more than their length.
/// It is not `Send`: it lives on the thread that opened it.
pub struct Tail {
    path: PathBuf,
    followed: Followed,
}

enum Followed {
    File(Box<Named>),
    Folder(Box<Folder>),
}

impl Tail {
    /// Opens a journal file, or a folder of them.
    ///
    /// A file is followed with its archives `NAME@….journal` beside it. In a folder these are all the files
    /// `….journal` and `….journal~` there, of any number of writers: first what they hold now, file by file in the
    /// order of their first entries, then what is added to those that are being written, and new files. Folders
    /// within it are not looked into.
    ///
    /// # Errors
    ///
    /// If there is no such file or folder, it may not be read, or it is not a journal that this crate can read. In a
    /// folder it is enough that one file can be read, or that there is none yet; the sizes of others are counted as
    /// [`Progress::skipped_bytes`].
    pub fn open(path: &Path, start: Start) -> Result<Self, ReadError> {
        let followed = if path.is_dir() {
            Followed::Folder(Box::new(Folder::open(path, start)?))
        } else {
            Followed::File(Box::new(Named::open(path, start)?))
        };
        Ok(Self { path: path.to_owned(), followed })
    }

    /// Hands out only entries that have at least one of these fields, from now on.
    ///
    /// A file that has none of them is not read, but for its table of fields, and in others only what is wanted is
    /// kept and made plain. Damage to what is not wanted may then go unnoticed.
    #[must_use]
    pub fn only_with(mut self, names: &[&str]) -> Self {
        let filter = Filter::new(names);
        match &mut self.followed {
            Followed::File(named) => named.set_filter(filter),
            Followed::Folder(folder) => folder.set_filter(filter),
        }
        self
    }

    /// Hands out the entries that are complete now, in the order they were written to their file, and never waits
    /// for more.
    ///
    /// One call does a bounded amount of work, and says by [`Progress::more`] that it should be called again at once.
    ///
    /// # Errors
    ///
    /// If a file, or the one that replaced it, cannot be read. Polling again tries again, and goes on with others. When something was found
    /// before the error, that is told first, and the error by the next poll.
    pub fn poll(&mut self, mut each: impl FnMut(&Entry)) -> Result<Progress, ReadError> {
        let writer = self.followed.writer();
        let mut progress = Progress { entries: 0, more: true, rotations: 0, skipped_bytes: 0, writer };
        for _ in 0..STEPS_PER_POLL_MAX {
            if let Some(source) = self.followed.current() {
                progress.entries += source.read(ENTRIES_PER_POLL_MAX - progress.entries, &mut each);
            }
            if progress.entries >= ENTRIES_PER_POLL_MAX {
                break;
            }
            match self.followed.step(&mut progress) {
                Ok(more) => progress.more = more,
                Err(error) if progress.entries + progress.rotations + progress.skipped_bytes == 0 => {
                    return Err(error);
                }
                Err(_) => break,
            }
            if !progress.more {
                break;
            }
        }
        progress.writer = self.followed.writer();
        Ok(progress)
    }
}

impl Followed {
    /// Gives the file that is being read, if there is one.
    fn current(&mut self) -> Option<&mut Source> {
        match self {
            Self::File(named) => Some(named.current()),
            Self::Folder(folder) => folder.current(),
        }
    }

    fn writer(&self) -> FileState {
        match self {
            Self::File(named) => named.writer(),
            Self::Folder(folder) => folder.writer(),
        }
    }

    /// Goes on in the file that is being read, or to another one; tells whether there may be more.
    fn step(&mut self, progress: &mut Progress) -> Result<bool, ReadError> {
        match self {
            Self::File(named) => named.step(progress),
            Self::Folder(folder) => folder.step(progress),
        }
    }
}

impl fmt::Debug for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tail").field("path", &self.path).finish_non_exhaustive()
    }
}
