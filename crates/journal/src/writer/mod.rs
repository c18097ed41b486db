//! The writer of journal files.

mod batch;
mod disk;
mod entry_arrays;
mod file_builder;
mod hash_table;
mod retention;
mod staging;
#[cfg(test)]
mod stopped_tests;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use file_builder::{FileBuilder, FileFull, FileIds};
use retention::Retention;
use staging::{ExistingFile, StagedFile};

use crate::entry::{ENTRY_BYTES_MAX, ENTRY_FIELDS_MAX, EntryFault};
use crate::layout::{FileState, Header};
use crate::{EntryBuf, Timestamps, WriteError, process, process_fields};

/// Bounds on [`FileOptions::size_max`]: below, an entry of any permitted size would not fit; above, the offsets of
/// compact files end.
const SIZE_MAX_BOUNDS: (u64, u64) = (4 << 20, u32::MAX as u64 & !7);

/// So much may wait to be written before `append` writes it unasked.
const PENDING_BYTES_MAX: usize = 1 << 20;

/// How a journal file is written.
#[derive(Clone, Debug)]
pub struct FileOptions {
    /// The size in bytes above which a file is archived and the next begun, between 4 MiB and 4 GiB.
    ///
    /// A file whose hash table is three quarters full is archived too, so that files of many small values end
    /// smaller. The writer's memory grows with the number of distinct values in the file: at most 100 bytes
    /// for every 512 bytes of `size_max`.
    pub size_max: u64,
    /// The time after its first entry at which a file is archived and the next begun, with the next entry. `None` leaves
    /// it to the size.
    ///
    /// An archive only ages as a whole: whoever wants nothing to be kept for much longer than `archives_age_max` sets
    /// this to a part of it.
    pub age_max: Option<Duration>,
    /// The size in bytes that the archives of this file may take together; the oldest are removed beyond it, at the
    /// start and whenever a file is archived. `None` keeps them all.
    pub archives_bytes_max: Option<u64>,
    /// The time after its last entry at which an archive is removed, at the start and whenever a file is archived.
    /// `None` keeps them all.
    ///
    /// An archive whose last entry is still to come, because the clock was set back since, ages from its last change,
    /// or, if that is to come too, from the time at which that was noticed.
    pub archives_age_max: Option<Duration>,
    /// Fields that are added to every entry.
    pub common: EntryBuf,
}

impl Default for FileOptions {
    /// Files of at most 128 MiB, all kept, with the [fields of this process](process_fields).
    fn default() -> Self {
        Self {
            size_max: 128 << 20,
            age_max: None,
            archives_bytes_max: None,
            archives_age_max: None,
            common: process_fields(),
        }
    }
}

/// Writes one journal file, and archives it when it is full.
///
/// The file is created with mode 0640 and the group `systemd-journal` for root where there is that group, else with
/// mode 0600. It is locked (`flock`) as long as the writer lives, through all rotations.
///
/// Entries gather in memory until [`flush`](Self::flush), or until there is a megabyte of them. Dropping the writer
/// flushes too, but only [`close`](Self::close) says whether that worked. A writer that is killed loses what was not
/// flushed; the file then reads to the last flush.
///
/// Space for the file is set aside as it grows, so that a full disk is an error before anything is written.
#[derive(Debug)]
pub struct FileWriter {
    path: PathBuf,
    size_max: u64,
    age_max: Option<Duration>,
    retention: Retention,
    common: EntryBuf,
    ids: FileIds,
    file: File,
    builder: FileBuilder,
}

impl FileWriter {
    /// Creates a journal file.
    ///
    /// A journal that is there already is archived beside under the name that journald would give it,
    /// `NAME@SEQNUM_ID-HEAD_SEQNUM-HEAD_REALTIME.journal`, or, if its header is damaged or that name is taken, one
    /// ending in `.journal~`.
    ///
    /// # Errors
    ///
    /// If the path is not called `NAME.journal`, its folder does not exist or is not writable, something else than a
    /// journal is there, another writer holds it, the disk is full, or a common field has a bad name.
    pub fn create(path: &Path, options: FileOptions) -> Result<Self, WriteError> {
        staging::check_name(path)?;
        let FileOptions { size_max, age_max, archives_bytes_max, archives_age_max, common } = options;
        let retention = Retention { bytes_max: archives_bytes_max, age_max: archives_age_max };
        if let Some(fault) = common.fault() {
            return Err(WriteError::Entry { path: path.to_owned(), fault: fault.clone() });
        }
        let size_max = size_max.clamp(SIZE_MAX_BOUNDS.0, SIZE_MAX_BOUNDS.1);
        let random = || process::random_id().map_err(WriteError::io("make an id for", path));
        let ids = FileIds {
            file: random()?,
            machine: process::machine_id().unwrap_or(0),
            boot: process::boot_id().map_or_else(random, Ok)?,
            seqnum: random()?,
        };
        let existing = staging::lock_existing(path)?;
        let (staged, builder) = stage(path, FileBuilder::new(ids, size_max, 1))?;
        let file = staged.install(path, existing.as_ref())?;
        let path = path.to_owned();
        let writer = Self { path, size_max, age_max, retention, common, ids, file, builder };
        writer.retention.apply(&writer.path, SystemTime::now());
        Ok(writer)
    }

    /// Appends an entry of the given fields and the common ones.
    ///
    /// It is readable after the next [`flush`](Self::flush). A file that is full, or too old, is archived and the next
    /// one begun, with the same `seqnum_id` and continuing sequence numbers.
    ///
    /// Times are kept within what systemd accepts, and never run backwards within a file: an entry that is earlier than
    /// the last gets the time of that one. Where only the realtime clock went back, by more than a second, it was set
    /// back; then the next file is begun, as journald does it.
    ///
    /// # Errors
    ///
    /// In any case the entry was **not** taken, and everything that was taken before is still kept: an entry that
    /// cannot be written as it is ([`WriteError::Entry`]), or a write that failed; once there is space again,
    /// appending works again.
    pub fn append(&mut self, entry: &EntryBuf, at: Timestamps) -> Result<(), WriteError> {
        self.check(entry)?;
        if self.builder.pending_bytes() >= PENDING_BYTES_MAX {
            self.flush()?;
        }
        let is_too_old = self.age_max.is_some_and(|age_max| self.builder.is_older(age_max, at));
        let is_over = is_too_old || self.builder.is_set_back(at);
        if !is_over && self.builder.append([&self.common, entry], at).is_ok() {
            return Ok(());
        }
        self.rotate()?;
        self.builder.append([&self.common, entry], at).map_err(|FileFull| self.refusal(EntryFault::TooLarge))
    }

    /// Writes all entries that were appended: afterwards every reader sees them.
    ///
    /// Readers that wait by inotify, such as `journalctl -f`, are woken by the writes themselves.
    ///
    /// # Errors
    ///
    /// If the file cannot be written, for want of space for example. The entries are kept, and the next flush tries
    /// again; meanwhile the file is readable up to the last flush that succeeded.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        if self.builder.pending_bytes() == 0 {
            return Ok(());
        }
        write_out(&mut self.builder, &self.file).map_err(WriteError::io("write to", &self.path))
    }

    /// Flushes, marks the file as offline, cuts it to the size that is used, and syncs it to the disk.
    ///
    /// # Errors
    ///
    /// If the file cannot be written or synced.
    pub fn close(mut self) -> Result<(), WriteError> {
        self.flush()?;
        let header = self.builder.final_header(FileState::Offline);
        finish(&self.file, &header).map_err(WriteError::io("close", &self.path))
    }

    /// Gives the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the size of the used part of the current file in bytes, with what is not flushed yet.
    pub fn size_bytes(&self) -> u64 {
        self.builder.used_bytes()
    }

    /// Refuses an entry that would not be written whole.
    fn check(&self, entry: &EntryBuf) -> Result<(), WriteError> {
        let fault = if let Some(fault) = entry.fault() {
            fault.clone()
        } else if entry.is_empty() {
            EntryFault::Empty
        } else if entry.len() + self.common.len() > ENTRY_FIELDS_MAX {
            EntryFault::TooManyFields
        } else if entry.payload_bytes() + self.common.payload_bytes() > ENTRY_BYTES_MAX {
            EntryFault::TooLarge
        } else {
            return Ok(());
        };
        Err(self.refusal(fault))
    }

    fn refusal(&self, fault: EntryFault) -> WriteError {
        WriteError::Entry { path: self.path.clone(), fault }
    }

    /// Archives the current file and begins the next.
    ///
    /// The next file is complete before anything is renamed, so if there is no space for it, all stays as it was.
    fn rotate(&mut self) -> Result<(), WriteError> {
        self.flush()?;
        let ids = FileIds {
            file: process::random_id().map_err(WriteError::io("make an id for", &self.path))?,
            ..self.ids
        };
        let (staged, builder) =
            stage(&self.path, FileBuilder::new(ids, self.size_max, self.builder.next_seqnum()))?;
        let full = ExistingFile::of_full(&self.file, self.builder.header(), &self.path)?;
        let file = staged.install(&self.path, full.as_ref())?;
        let header = self.builder.final_header(FileState::Archived);
        let full = std::mem::replace(&mut self.file, file);
        self.builder = builder;
        self.retention.apply(&self.path, SystemTime::now());
        finish(&full, &header).map_err(WriteError::io("archive", &self.path))
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        // Nobody is left to tell; `close` is for those who want to know.
        self.flush().ok();
    }
}

/// Writes an empty file that can take its place.
fn stage(path: &Path, mut builder: FileBuilder) -> Result<(StagedFile, FileBuilder), WriteError> {
    let staged = StagedFile::create(path)?;
    write_out(&mut builder, &staged.file).map_err(WriteError::io("create", path))?;
    Ok((staged, builder))
}

/// Brings the file up to date with its image.
fn write_out(builder: &mut FileBuilder, file: &File) -> std::io::Result<()> {
    let result = builder.plan().apply(file);
    match result {
        Ok(()) => builder.commit(),
        Err(_) => builder.roll_back(),
    }
    result
}

/// Marks a file as complete and cuts off what it does not use.
///
/// The data is synced before the header says that it is complete, and the header after: the format asks for both.
fn finish(file: &File, header: &Header) -> std::io::Result<()> {
    file.sync_data()?;
    disk::write_at(file, &header.encode(), 0)?;
    disk::cut(file, header.header_size + header.arena_size)?;
    file.sync_data()
}
