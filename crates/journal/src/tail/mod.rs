//! Follows journal files while they are written, through rotations.

mod compression;
mod copy_detector;
mod data_reader;
mod entry;
mod entry_scanner;
mod field_cache;
mod field_reader;
mod file_follower;
mod file_reader;
mod filter;
mod folder;
mod listing;
mod object_reader;

use std::fmt;
use std::path::{Path, PathBuf};

pub use entry::Entry;
use file_follower::FileFollower;
use filter::FieldFilter;
use folder::follower::FolderFollower;
use folder::set::FolderSet;

use crate::layout::FileHeader;
use crate::{FileState, JournaldInstance, ReadError, WriterPlaces};

const ENTRIES_PER_POLL_MAX: u64 = 4096;

/// The most steps that one poll takes. Each reads up to 256 KiB, or one larger object.
const STEPS_PER_POLL_MAX: u32 = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the oldest archive of the file, or the oldest file of a folder.
    Oldest,
    /// At the first entry of the file; in a folder, of the files that are being written.
    File,
    /// At the end: only entries written from now on.
    End,
    /// At this time, in microseconds since 1970-01-01 UTC, in whatever file it is.
    ///
    /// Files whose last entry is earlier are not read. Entries written after the tail was opened are always
    /// read, even if the clock was set back.
    Since(u64),
}

impl Start {
    /// Returns the time before which existing entries are skipped.
    fn since_us(self) -> u64 {
        match self {
            Self::Oldest | Self::File => 0,
            Self::End => u64::MAX,
            Self::Since(realtime_us) => realtime_us,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PollProgress {
    /// The entries that were returned.
    pub entries: u64,
    /// More entries can be read now: the poll ended because it had done its share.
    pub more: bool,
    /// How often the tail moved on to another file.
    pub rotations: u64,
    /// The bytes that were skipped: damaged or unknown objects, an end that was cut off, fields with an
    /// invalid name or above 16 MiB (1 MiB if compressed), fields above 32 MiB or 2,048 in one entry, and
    /// fields above the bound for a whole file.
    pub skipped_bytes: u64,
    /// The bytes of files that were scanned: in the end, the sizes of all files without the tables at their
    /// beginnings, and without what lies between entries that are found by their lists.
    pub walked_bytes: u64,
    /// The state in the header of the file that is being read; for a folder, whether any file is being
    /// written.
    pub writer: FileState,
}

impl PollProgress {
    /// The progress before the first step.
    fn new(writer: FileState) -> Self {
        Self { entries: 0, more: true, rotations: 0, skipped_bytes: 0, walked_bytes: 0, writer }
    }
}

/// Follows a journal file, or all journal files of a folder, from a start position on, and continues with later files.
///
/// It never writes and takes no lock. It keeps one file open at a time, and in a folder also the files that are being
/// written. Memory does not depend on the size of the files: it caches up to about 32 MiB of fields for a file and 64
/// MiB for all open files together (but 16 KiB for each), and needs 32 MiB more for an entry and a part of a file. It
/// is not `Send`: use it on the thread that opened it.
///
/// # Order
///
/// Entries of one file are returned in the order in which they were written, and files of one writer by sequence
/// number. So the entries that one process logs through one journald, or into one file, keep their order. Files of
/// several writers (hosts, namespaces, the system and users) are read one after the other, by their first entries;
/// files that are being written are read in turn. Entries of different writers are not ordered by time.
pub struct Tail {
    path: PathBuf,
    follower: PathFollower,
}

enum PathFollower {
    File(Box<FileFollower>),
    Folder(Box<FolderFollower>),
}

impl Tail {
    /// Opens a journal file, or a folder of them.
    ///
    /// A file is followed with its archives `NAME@….journal` in the same folder. A folder is followed with
    /// all its files `….journal` and `….journal~`, and those of its direct subfolders, of any number of
    /// writers: first their existing entries, file by file in the order of their first entries, then new
    /// entries and new files.
    ///
    /// # Errors
    ///
    /// If the file or folder does not exist, may not be read, or is not a journal that this crate can read.
    /// For a folder, one readable file is enough, or none yet; the sizes of the other files are counted in
    /// [`PollProgress::skipped_bytes`].
    pub fn open(path: &Path, start: Start) -> Result<Self, ReadError> {
        let follower = if path.is_dir() {
            PathFollower::Folder(Box::new(FolderFollower::open(FolderSet::tree(path), start)?))
        } else {
            PathFollower::File(Box::new(FileFollower::open(path, start, WriterPlaces::new())?))
        };
        Ok(Self { path: path.to_owned(), follower })
    }

    /// Follows an instance of journald: that of the system, including the files of users, or that of a
    /// namespace.
    ///
    /// # Errors
    ///
    /// If there are files and none may be read (the error names the group that may read them), or their
    /// folders cannot be determined. It is no error if there are no files yet.
    pub fn open_instance(instance: &JournaldInstance, start: Start) -> Result<Self, ReadError> {
        Self::open_folders(&instance.folders()?, start)
    }

    /// Follows a file and its archives, of each writer behind the entry at its place; of others all is read.
    ///
    /// # Errors
    ///
    /// Like [`open`](Self::open).
    pub fn resume(path: &Path, places: WriterPlaces) -> Result<Self, ReadError> {
        let follower = PathFollower::File(Box::new(FileFollower::open(path, Start::Oldest, places)?));
        Ok(Self { path: path.to_owned(), follower })
    }

    /// Follows several folders as one. Each may be missing, appear later, or vanish.
    ///
    /// journald is expected to copy entries between them: an entry that was returned from one folder is not
    /// returned again from another, as long as it is among the last 262,144. An entry before the start
    /// position that is copied later is returned.
    ///
    /// # Errors
    ///
    /// Like [`open`](Self::open) for a folder.
    pub fn open_folders(folders: &[PathBuf], start: Start) -> Result<Self, ReadError> {
        let path = folders.first().cloned().unwrap_or_default();
        let folder = FolderFollower::open(FolderSet::List(folders.to_vec()), start)?;
        Ok(Self { path, follower: PathFollower::Folder(Box::new(folder)) })
    }

    /// Returns why one of the files in a folder cannot be read.
    ///
    /// Of several errors, it returns one about permission, if there is one: for example that of
    /// `system.journal` where only the user's own file can be read.
    pub fn refusal(&self) -> Option<&ReadError> {
        match &self.follower {
            PathFollower::File(_) => None,
            PathFollower::Folder(folder) => folder.refusal(),
        }
    }

    /// Returns only entries with at least one of these fields from now on: `NAME`, or `NAME=value` for one
    /// value.
    ///
    /// A file without these fields is not read except for its field table; in other files only the matching
    /// entries are decoded, and if they are few only they are read. Damage in other entries may go unnoticed. To be called
    /// before the first poll.
    #[must_use]
    pub fn only_with(self, fields: &[&str]) -> Self {
        self.filtered(FieldFilter::new(fields))
    }

    /// As [`only_with`](Self::only_with), and returns the first entry of each file with each value of the field `first_of`,
    /// too. Of a file that must be scanned, it returns all entries with that field.
    #[must_use]
    pub fn only_with_or_first_of(self, fields: &[&str], first_of: &str) -> Self {
        self.filtered(FieldFilter::new(fields).or_first_of(first_of))
    }

    fn filtered(mut self, filter: FieldFilter) -> Self {
        match &mut self.follower {
            PathFollower::File(file) => file.set_filter(filter),
            PathFollower::Folder(folder) => folder.set_filter(filter),
        }
        self
    }

    /// Passes the entries that are complete now to `each`, in the order in which they were written to their
    /// file. It never waits for more.
    ///
    /// One call does a bounded amount of work. If [`PollProgress::more`] is set, call it again at once.
    ///
    /// # Errors
    ///
    /// If a file, or the one that replaced it, cannot be read. The next poll retries, and continues with
    /// other files. If entries were found before the error, this poll returns them, and the next one the
    /// error.
    pub fn poll(&mut self, each: impl FnMut(&Entry)) -> Result<PollProgress, ReadError> {
        self.poll_up_to(ENTRIES_PER_POLL_MAX, each)
    }

    /// Passes at most `entries_max` entries to `each`, otherwise like [`poll`](Self::poll).
    ///
    /// # Errors
    ///
    /// Like [`poll`](Self::poll).
    pub fn poll_up_to(
        &mut self,
        entries_max: u64,
        mut each: impl FnMut(&Entry),
    ) -> Result<PollProgress, ReadError> {
        let mut progress = PollProgress::new(self.follower.writer());
        for _ in 0..STEPS_PER_POLL_MAX {
            progress.entries += self.follower.read(entries_max - progress.entries, &mut each);
            if progress.entries >= entries_max {
                break;
            }
            match self.follower.step(&mut progress) {
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
        progress.writer = self.follower.writer();
        Ok(progress)
    }
}

/// Reads the header of a journal file.
pub(crate) fn open_header(path: &Path) -> Result<FileHeader, ReadError> {
    Ok(file_reader::open(path)?.header().clone())
}

impl PathFollower {
    /// Passes at most `entries_max` entries to `each`, and counts them.
    fn read(&mut self, entries_max: u64, each: &mut impl FnMut(&Entry)) -> u64 {
        match self {
            Self::File(file) => file.current().read(entries_max, &mut |entry| {
                each(entry);
                true
            }),
            Self::Folder(folder) => folder.read(entries_max, each),
        }
    }

    fn writer(&self) -> FileState {
        match self {
            Self::File(file) => file.writer(),
            Self::Folder(folder) => folder.writer(),
        }
    }

    /// Reads on in the current file, or switches to another; returns whether there may be more.
    fn step(&mut self, progress: &mut PollProgress) -> Result<bool, ReadError> {
        match self {
            Self::File(file) => file.step(progress),
            Self::Folder(folder) => folder.step(progress),
        }
    }
}

impl fmt::Debug for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tail").field("path", &self.path).finish_non_exhaustive()
    }
}
