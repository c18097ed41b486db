//! The writer of journal files.

mod batch;
mod disk;
mod entry_arrays;
mod file_builder;
mod file_loss;
mod hash_table;
#[cfg(test)]
mod interrupted_tests;
mod retention;
mod staging;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use file_builder::{FileBuilder, FileFull, FileIds};
use file_loss::FileDamage;
pub use file_loss::FileLoss;
use retention::ArchiveRetention;
use staging::{ExistingFile, StagedFile};

use crate::entry::{ENTRY_BYTES_MAX, ENTRY_FIELDS_MAX, EntryFault};
use crate::layout::{FileHeader, FileState};
use crate::{EntryBuf, Timestamps, WriteError, process, process_fields};

/// Bounds on [`FileOptions::size_max`]: a smaller file could not hold every permitted entry; in a larger one,
/// offsets would exceed the 32 bits of compact files.
const SIZE_MAX_BOUNDS: (u64, u64) = (4 << 20, u32::MAX as u64 & !7);

/// The buffered bytes above which `append` flushes.
const PENDING_BYTES_MAX: usize = 1 << 20;

#[derive(Clone, Debug)]
pub struct FileOptions {
    /// The size in bytes above which a file is archived and the next one created, between 4 MiB and 4 GiB.
    ///
    /// A file whose hash table is three quarters full is archived too, so a file of many small values ends
    /// smaller. The writer's memory grows with the number of distinct values in the file: at most 100 bytes
    /// for every 512 bytes of `size_max`.
    pub size_max: u64,
    /// The age of the first entry at which the next `append` archives the file and creates the next one.
    /// `None` means only the size counts.
    ///
    /// Archives are removed as a whole: to keep nothing for much longer than `archives_age_max`, set this to
    /// a fraction of it.
    pub age_max: Option<Duration>,
    /// The total size of the file's archives in bytes. The oldest are removed above it, at the start and at
    /// every rotation. `None` keeps them all.
    pub archives_bytes_max: Option<u64>,
    /// The age of the last entry at which an archive is removed, at the start and at every rotation. `None` keeps all
    /// archives.
    ///
    /// If the last entry is in the future, because the clock was set back, the age counts from the last modification.
    /// If that is in the future too, it counts from the time of the check.
    pub archives_age_max: Option<Duration>,
    /// Fields that are added to every entry.
    pub common: EntryBuf,
}

impl Default for FileOptions {
    /// Files of at most 128 MiB, without a bound on archives, with the [fields of this
    /// process](process_fields).
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
/// As root, the file gets mode 0640 and the group `systemd-journal` if that group exists, else mode 0600. The
/// writer keeps it locked (`flock`) through all rotations.
///
/// Entries are buffered until [`flush`](Self::flush), or up to a megabyte. Dropping the writer flushes too,
/// but only [`close`](Self::close) reports errors. A writer that is killed loses the entries since the last
/// flush; the file is readable up to there.
///
/// Disk space is allocated before it is written, so a full disk is an error before anything is written.
///
/// If somebody removes, moves or truncates the file, the first [`append`](Self::append) after a flush notices it and
/// goes on in a new file at the path, with continuing sequence numbers: see [`take_loss`](Self::take_loss).
#[derive(Debug)]
pub struct FileWriter {
    path: PathBuf,
    size_max: u64,
    age_max: Option<Duration>,
    retention: ArchiveRetention,
    common: EntryBuf,
    ids: FileIds,
    file: File,
    builder: FileBuilder,
    loss: Option<FileLoss>,
}

impl FileWriter {
    /// Creates a journal file.
    ///
    /// An existing journal is archived under the name that journald would give it,
    /// `NAME@SEQNUM_ID-HEAD_SEQNUM-HEAD_REALTIME.journal`; if its header is damaged or that name exists,
    /// under a name that ends in `.journal~`.
    ///
    /// # Errors
    ///
    /// If the path is not called `NAME.journal`, its folder does not exist or is not writable, the path
    /// exists and is not a journal, another writer holds it, the disk is full, or a common field has an
    /// invalid name.
    pub fn create(path: &Path, options: FileOptions) -> Result<Self, WriteError> {
        staging::check_name(path)?;
        let FileOptions { size_max, age_max, archives_bytes_max, archives_age_max, common } = options;
        let retention = ArchiveRetention { bytes_max: archives_bytes_max, age_max: archives_age_max };
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
        let writer = Self { path, size_max, age_max, retention, common, ids, file, builder, loss: None };
        writer.retention.apply(&writer.path, SystemTime::now());
        Ok(writer)
    }

    /// Appends an entry with the given fields and the common ones.
    ///
    /// Readers see it after the next [`flush`](Self::flush). A file that is full or too old is archived and
    /// the next one created, with the same `seqnum_id` and continuing sequence numbers.
    ///
    /// Times are clamped to the range that systemd accepts, and never decrease within a file: an entry
    /// earlier than the last one gets the last one's time. If only the realtime clock decreased, by more than
    /// a second, it was set back; then the next file is created, as journald does.
    ///
    /// # Errors
    ///
    /// On an error the entry was **not** appended, and all earlier entries are kept. Either the entry is
    /// invalid ([`WriteError::Entry`]), or a write failed; after a full disk, appending works again once
    /// there is space.
    pub fn append(&mut self, entry: &EntryBuf, at: Timestamps) -> Result<(), WriteError> {
        self.check(entry)?;
        if self.builder.pending_bytes() >= PENDING_BYTES_MAX {
            self.flush()?;
        }
        // Now no entry waits that belongs into the former file.
        if self.builder.pending_bytes() == 0 {
            self.recover()?;
        }
        let is_too_old = self.age_max.is_some_and(|age_max| self.builder.is_older(age_max, at));
        let must_rotate = is_too_old || self.builder.is_set_back(at);
        if !must_rotate && self.builder.append([&self.common, entry], at).is_ok() {
            return Ok(());
        }
        self.rotate()?;
        self.builder.append([&self.common, entry], at).map_err(|FileFull| self.refusal(EntryFault::TooLarge))
    }

    /// Writes all appended entries; every reader sees them afterwards.
    ///
    /// The writes wake readers that wait by inotify, such as `journalctl -f`.
    ///
    /// # Errors
    ///
    /// If the file cannot be written, for example because the disk is full. The entries are kept, and the
    /// next flush retries; meanwhile the file is readable up to the last successful flush.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        if self.builder.pending_bytes() == 0 {
            return Ok(());
        }
        write_out(&mut self.builder, &self.file).map_err(WriteError::io("write to", &self.path))
    }

    /// Returns, once, that an [`append`](Self::append) found the file removed, moved or truncated and began another one.
    pub fn take_loss(&mut self) -> Option<FileLoss> {
        self.loss.take()
    }

    /// Flushes, marks the file as offline, truncates it to its used size, and syncs it.
    ///
    /// # Errors
    ///
    /// If the file cannot be written or synced, or was removed or truncated.
    pub fn close(mut self) -> Result<(), WriteError> {
        self.flush()?;
        match self.damage()? {
            None | Some(FileDamage::Moved) => {}
            Some(damage) => return Err(WriteError::Lost(self.loss_by(damage))),
        }
        let header = self.builder.final_header(FileState::Offline);
        finish(&self.file, &header).map_err(WriteError::io("close", &self.path))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the used size of the current file in bytes, including buffered entries.
    pub fn size_bytes(&self) -> u64 {
        self.builder.used_bytes()
    }

    /// Refuses an entry that cannot be written whole.
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

    fn damage(&self) -> Result<Option<FileDamage>, WriteError> {
        let found = FileDamage::find(&self.file, &self.path, self.builder.file_size());
        found.map_err(WriteError::io("inspect", &self.path))
    }

    fn loss_by(&self, damage: FileDamage) -> FileLoss {
        let entries = self.builder.header().n_entries;
        let lost = if damage == FileDamage::Moved { 0 } else { entries };
        let entries_lost = lost + self.loss.as_ref().map_or(0, FileLoss::entries_lost);
        FileLoss { path: self.path.clone(), damage, entries, entries_lost }
    }

    /// Begins a new file if the current one was removed, moved or truncated.
    fn recover(&mut self) -> Result<(), WriteError> {
        let Some(damage) = self.damage()? else { return Ok(()) };
        let loss = self.loss_by(damage);
        let existing = match damage {
            FileDamage::Truncated => ExistingFile::of_truncated(&self.file, &self.path)?,
            // As at the start: what has taken its place is kept.
            FileDamage::Removed | FileDamage::Moved => staging::lock_existing(&self.path)?,
        };
        let (file, header) = self.begin_next(existing.as_ref(), FileState::Offline)?;
        self.loss = Some(loss);
        match damage {
            FileDamage::Moved => finish(&file, &header).map_err(WriteError::io("close", &self.path)),
            FileDamage::Removed | FileDamage::Truncated => Ok(()),
        }
    }

    /// Archives the current file and creates the next one.
    fn rotate(&mut self) -> Result<(), WriteError> {
        self.flush()?;
        let full = ExistingFile::of_full(&self.file, self.builder.header(), &self.path)?;
        let (full, header) = self.begin_next(full.as_ref(), FileState::Archived)?;
        finish(&full, &header).map_err(WriteError::io("archive", &self.path))
    }

    /// Archives what is at the path, if anything is, and begins the next file there. Returns the current file, with its
    /// last header in this state.
    ///
    /// The next file is complete before anything is renamed, so nothing changes if there is no space for it.
    fn begin_next(
        &mut self,
        existing: Option<&ExistingFile>,
        state: FileState,
    ) -> Result<(File, FileHeader), WriteError> {
        let ids = FileIds {
            file: process::random_id().map_err(WriteError::io("make an id for", &self.path))?,
            ..self.ids
        };
        let (staged, builder) =
            stage(&self.path, FileBuilder::new(ids, self.size_max, self.builder.next_seqnum()))?;
        let file = staged.install(&self.path, existing)?;
        let header = self.builder.final_header(state);
        let current = std::mem::replace(&mut self.file, file);
        self.builder = builder;
        self.retention.apply(&self.path, SystemTime::now());
        Ok((current, header))
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        // Errors cannot be reported here; `close` reports them.
        self.flush().ok();
    }
}

/// Writes an empty file that can be installed.
fn stage(path: &Path, mut builder: FileBuilder) -> Result<(StagedFile, FileBuilder), WriteError> {
    let staged = StagedFile::create(path)?;
    write_out(&mut builder, &staged.file).map_err(WriteError::io("create", path))?;
    Ok((staged, builder))
}

/// Writes the builder's changes to the file.
fn write_out(builder: &mut FileBuilder, file: &File) -> std::io::Result<()> {
    let result = builder.plan().apply(file);
    match result {
        Ok(()) => builder.commit(),
        Err(_) => builder.roll_back(),
    }
    result
}

/// Marks a file as complete and truncates it to its used size.
///
/// As the format asks, the data is synced before the header says that it is complete, and the header after.
fn finish(file: &File, header: &FileHeader) -> std::io::Result<()> {
    file.sync_data()?;
    disk::write_at(file, &header.encode(), 0)?;
    disk::cut(file, header.header_size + header.arena_size)?;
    file.sync_data()
}
