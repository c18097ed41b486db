//! The tail: entries of journal files as they are written, through rotations.

mod compressed;
mod copies;
mod entry;
mod field_reader;
mod fields;
mod folder;
mod listing;
mod named;
mod objects;
mod places;
mod source;
mod values;
mod walk;
mod wanted;

use std::fmt;
use std::path::{Path, PathBuf};

pub use entry::Entry;
use folder::Folder;
use named::Named;
use places::Places;
use wanted::Filter;

use crate::{FileState, Instance, ReadError};

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
    /// Bytes of files that could not be read: damaged, of an unknown kind, fields without a proper name or above 16 MiB
    /// (above 1 MiB if they are compressed), what exceeds 32 MiB or 2,048 fields in one entry, and fields of files
    /// that are made to keep their reader busy.
    pub skipped_bytes: u64,
    /// How far it went through files, in bytes; their sizes together, but for the tables at their beginnings, once all
    /// is read.
    pub walked_bytes: u64,
    /// The state of the file that is being read, as its header says; in a folder, whether any file is being written.
    pub writer: FileState,
}

impl Progress {
    /// Nothing was found yet, and there may be more.
    fn new(writer: FileState) -> Self {
        Self { entries: 0, more: true, rotations: 0, skipped_bytes: 0, walked_bytes: 0, writer }
    }
}

/// Follows a journal file, or all those of a folder, from one end to the other, and on to the files that come later.
///
/// It never writes and takes no lock. It has one file open at a time, in a folder also those that are being written.
/// Its memory does not depend on the size of the files: some 32 MiB of fields are kept for each that is open, less for
/// smaller ones, and as much again for an entry and a part of a file at hand. It is not `Send`: it lives on the thread
/// that opened it.
///
/// # Order
///
/// Entries of one file come in the order in which they were written, and the files of one writer in the order of their
/// sequence numbers; so what one process logs through one journald, or into one file, comes in order. Files of several
/// writers (hosts, namespaces, the system's file and those of users) are read one after the other, the one with the
/// earliest entry first, and those that are being written in turns: between them there is no order by time.
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
    /// `….journal` and `….journal~` there and in the folders within it, of any number of writers: first what they
    /// hold now, file by file in the order of their first entries, then what is added to those that are being
    /// written, and new files. What is deeper is not looked into.
    ///
    /// # Errors
    ///
    /// If there is no such file or folder, it may not be read, or it is not a journal that this crate can read. In a
    /// folder it is enough that one file can be read, or that there is none yet; the sizes of others are counted as
    /// [`Progress::skipped_bytes`].
    pub fn open(path: &Path, start: Start) -> Result<Self, ReadError> {
        let followed = if path.is_dir() {
            Followed::Folder(Box::new(Folder::open(Places::tree(path), start)?))
        } else {
            Followed::File(Box::new(Named::open(path, start)?))
        };
        Ok(Self { path: path.to_owned(), followed })
    }

    /// Follows an instance of journald: the system's, also with the files of users, or that of a namespace.
    ///
    /// # Errors
    ///
    /// If there are files and none of them may be read (the error names the group that may), or it cannot be told
    /// where they would be. That there is none yet is no error.
    pub fn open_instance(instance: &Instance, start: Start) -> Result<Self, ReadError> {
        Self::open_folders(&instance.folders()?, start)
    }

    /// Follows several folders as one, each of which may be missing, appear later, or vanish.
    ///
    /// They are taken for folders between which journald moves its entries: one that was met in one of them is not
    /// handed out again when it turns up in another, as long as it is among the last 262,144. Entries before the
    /// beginning that are moved later are handed out, since they were not met.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open) for a folder.
    pub fn open_folders(folders: &[PathBuf], start: Start) -> Result<Self, ReadError> {
        let path = folders.first().cloned().unwrap_or_default();
        let folder = Folder::open(Places::Any(folders.to_vec()), start)?;
        Ok(Self { path, followed: Followed::Folder(Box::new(folder)) })
    }

    /// Tells why a file cannot be read, of those in a folder that can be read otherwise.
    ///
    /// Of several this is one that may not be read by this user, if there is such a one. It is that of a system's
    /// `system.journal`, for instance, where only the user's own file can be read.
    pub fn refusal(&self) -> Option<&ReadError> {
        match &self.followed {
            Followed::File(_) => None,
            Followed::Folder(folder) => folder.refusal(),
        }
    }

    /// Hands out only entries that have at least one of these fields, from now on: `NAME`, or `NAME=value` for one value.
    ///
    /// A file that has none of them is not read, but for its table of fields, and in others only what is wanted is
    /// kept and made plain. Damage to what is not wanted may then go unnoticed.
    #[must_use]
    pub fn only_with(mut self, fields: &[&str]) -> Self {
        let filter = Filter::new(fields);
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
        let mut progress = Progress::new(self.followed.writer());
        for _ in 0..STEPS_PER_POLL_MAX {
            progress.entries += self.followed.read(ENTRIES_PER_POLL_MAX - progress.entries, &mut each);
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
    /// Hands out at most `entries_max` entries that were found, and counts them.
    fn read(&mut self, entries_max: u64, each: &mut impl FnMut(&Entry)) -> u64 {
        match self {
            Self::File(named) => named.current().read(entries_max, &mut |entry| {
                each(entry);
                true
            }),
            Self::Folder(folder) => folder.read(entries_max, each),
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
