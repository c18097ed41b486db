//! Follows the journal files of one or several folders.

use std::collections::HashMap;
use std::path::PathBuf;

use super::set::FolderSet;
use crate::layout::FileHeader;
use crate::tail::copy_detector::CopyDetector;
use crate::tail::entry::Entry;
use crate::tail::entry_scanner::SkippedEntries;
use crate::tail::field_cache::CACHE_BYTES_MAX;
use crate::tail::file_reader::{self, FileReader, ReadStep};
use crate::tail::filter::FieldFilter;
use crate::tail::listing::{FileId, Listing};
use crate::tail::{PollProgress, Start};
use crate::{FileState, ReadError};

/// The caches of all open files together, in bytes. Each file may have an equal part of it.
const CACHES_BYTES_MAX: usize = 64 << 20;
/// The least part of a file: enough for the fields that all entries of a writer share.
const CACHE_BYTES_MIN: usize = 16 << 10;

/// With more open files, each frees its buffers when it is read to its end.
const OPEN_WITH_BUFFERS_MAX: usize = 4;

/// Reads the existing files one after the other, keeps those open that are being written, and then reads
/// these in turn.
pub(in crate::tail) struct FolderFollower {
    listing: Listing,
    /// Present if journald copies entries between the folders.
    copies: Option<CopyDetector>,
    filter: FieldFilter,
    /// Files that are still to be read.
    pending: HashMap<FileId, PendingFile>,
    open: Vec<OpenFile>,
    /// The index of the open file that is being read.
    current: usize,
    /// No file has been read yet.
    is_first: bool,
}

/// A file that is still to be read.
struct PendingFile {
    /// The header when the file was found, or the first one with entries.
    header: FileHeader,
    path: PathBuf,
    size_bytes: u64,
    skipped: SkippedEntries,
}

/// A file that is being read.
struct OpenFile {
    id: FileId,
    path: PathBuf,
    reader: FileReader,
    /// The index of the file's folder, if journald copies entries between the folders.
    folder: Option<usize>,
    /// No more entries are written to it: when it is read to its end, it is done.
    is_closed: bool,
}

impl PendingFile {
    /// Updates the file's position in the order, if it had no entry when it was found.
    fn refresh_order(&mut self) {
        if self.header.n_entries > 0 {
            return;
        }
        if let Ok(objects) = file_reader::open(&self.path)
            && FileId::of(objects.header()) == FileId::of(&self.header)
        {
            self.header = objects.header().clone();
        }
    }
}

/// Returns the bound of a file's cache of fields if so many files are open.
fn cache_bytes_max(files: usize) -> usize {
    (CACHES_BYTES_MAX / files.max(1)).clamp(CACHE_BYTES_MIN, CACHE_BYTES_MAX)
}

impl FolderFollower {
    pub(in crate::tail) fn open(folders: FolderSet, start: Start) -> Result<Self, ReadError> {
        let mut folder = Self {
            copies: matches!(folders, FolderSet::List(_)).then(CopyDetector::default),
            listing: Listing::of(folders),
            filter: FieldFilter::default(),
            pending: HashMap::new(),
            open: Vec::new(),
            current: 0,
            is_first: true,
        };
        folder.list()?;
        folder.listing.check_readable()?;
        let listing = &folder.listing;
        folder.pending.retain(|id, pending| {
            pending.skipped = SkippedEntries::before(start.since_us(), &pending.header);
            let is_read = match start {
                Start::Oldest => true,
                Start::File | Start::End => false,
                Start::Since(time) => pending.header.tail_entry_realtime >= time,
            };
            is_read || listing.is_live(*id)
        });
        Ok(folder)
    }

    /// Returns only entries that match the filter from now on.
    pub(in crate::tail) fn set_filter(&mut self, filter: FieldFilter) {
        for open in &mut self.open {
            open.reader.set_filter(&filter);
        }
        self.filter = filter;
    }

    /// Returns why one of the files cannot be read.
    pub(in crate::tail) fn refusal(&self) -> Option<&ReadError> {
        self.listing.refusal()
    }

    /// Passes at most `entries_max` entries of the current file to `each`, and counts them.
    pub(in crate::tail) fn read(&mut self, entries_max: u64, each: &mut impl FnMut(&Entry)) -> u64 {
        let Some(open) = self.open.get_mut(self.current) else { return 0 };
        let (copies, folder) = (&mut self.copies, open.folder);
        open.reader.read(entries_max, &mut |entry| {
            let is_copy =
                copies.as_mut().zip(folder).is_some_and(|(copies, folder)| copies.is_copy(entry, folder));
            if !is_copy {
                each(entry);
            }
            !is_copy
        })
    }

    /// Returns whether any file is being written.
    pub(in crate::tail) fn writer(&self) -> FileState {
        let mut states = self.open.iter().map(|open| open.reader.header().state);
        if states.any(|state| state == FileState::Online) { FileState::Online } else { FileState::Offline }
    }

    /// Reads on in the current file, or switches to another; returns whether there may be more.
    pub(in crate::tail) fn step(&mut self, progress: &mut PollProgress) -> Result<bool, ReadError> {
        progress.skipped_bytes += self.listing.take_skipped_bytes();
        let files = self.open.len();
        let Some(open) = self.open.get_mut(self.current) else { return self.end_round(progress) };
        let step = open.reader.step(cache_bytes_max(files));
        progress.skipped_bytes += open.reader.take_skipped_bytes();
        progress.walked_bytes += open.reader.take_walked_bytes();
        match step {
            Ok(ReadStep::Advanced) => {}
            Ok(ReadStep::CaughtUp) if open.is_closed => drop(self.open.remove(self.current)),
            Ok(ReadStep::CaughtUp) => {
                if files > OPEN_WITH_BUFFERS_MAX {
                    open.reader.rest();
                }
                self.current += 1;
            }
            Err(error) => {
                let error = ReadError::io("read", &open.path)(error);
                // An unreadable file must not block the others.
                self.current += 1;
                return Err(error);
            }
        }
        if self.current < self.open.len() { Ok(true) } else { self.end_round(progress) }
    }

    /// Looks for new files, once all open files are read to their ends; returns whether there may be more.
    fn end_round(&mut self, progress: &mut PollProgress) -> Result<bool, ReadError> {
        self.current = 0;
        let has_newly_closed = self.list()?;
        progress.skipped_bytes += self.listing.take_skipped_bytes();
        // Entries written to closed files since the last read come before those of new files.
        if has_newly_closed {
            return Ok(true);
        }
        let Some(id) = self.next_pending() else { return Ok(false) };
        self.switch_to(id, progress)?;
        Ok(true)
    }

    /// Switches to a pending file, if it is still where it was listed.
    fn switch_to(&mut self, id: FileId, progress: &mut PollProgress) -> Result<(), ReadError> {
        match self.open_pending(id) {
            Ok(true) => {
                progress.rotations += u64::from(!std::mem::take(&mut self.is_first));
                self.current = self.open.len() - 1;
            }
            // It was just renamed or removed.
            Ok(false) => self.listing.invalidate(),
            Err(error @ ReadError::Io { .. }) => return Err(error),
            // It was renamed, and the next file is being created under its name.
            Err(_) if self.listing.is_live(id) => self.listing.invalidate(),
            Err(_) => {
                let lost = self.pending.remove(&id);
                progress.skipped_bytes += lost.map_or(0, |pending| pending.size_bytes);
            }
        }
        Ok(())
    }

    /// Lists the folders again; returns whether an open file was closed by its writer.
    fn list(&mut self) -> Result<bool, ReadError> {
        let Some(new) = self.listing.refresh()? else { return Ok(false) };
        for file in new {
            let pending = PendingFile {
                header: file.header,
                path: file.path,
                size_bytes: file.size_bytes,
                skipped: SkippedEntries::default(),
            };
            self.pending.insert(file.id, pending);
        }
        let mut paths = self.listing.paths();
        let listing = &mut self.listing;
        self.pending.retain(|id, pending| {
            let Some(path) = paths.remove(id) else {
                listing.count_skipped(pending.size_bytes);
                return false;
            };
            pending.path = path;
            pending.refresh_order();
            true
        });
        let mut has_newly_closed = false;
        for open in &mut self.open {
            let is_closed = !self.listing.is_live(open.id);
            has_newly_closed |= is_closed && !open.is_closed;
            open.is_closed = is_closed;
        }
        Ok(has_newly_closed)
    }

    /// Chooses the next file: the first of each writer by sequence number, and of these the first by time. So
    /// a clock that was set back does not reorder one writer's files.
    fn next_pending(&self) -> Option<FileId> {
        let mut first_of_writer: HashMap<u128, (u64, u64, FileId)> = HashMap::new();
        for (id, pending) in &self.pending {
            let header = &pending.header;
            // A file without entries comes last.
            let order = if header.n_entries == 0 {
                (u64::MAX, u64::MAX, *id)
            } else {
                (header.head_entry_seqnum, header.head_entry_realtime, *id)
            };
            let first = first_of_writer.entry(header.seqnum_id).or_insert(order);
            *first = order.min(*first);
        }
        first_of_writer.into_values().map(|(_, realtime, id)| (realtime, id)).min().map(|(_, id)| id)
    }

    /// Opens a pending file; returns whether it is still at its path.
    fn open_pending(&mut self, id: FileId) -> Result<bool, ReadError> {
        let Some(pending) = self.pending.get(&id) else { return Ok(false) };
        let mut reader = match FileReader::open(&pending.path, &self.filter) {
            Err(ReadError::NotFound { .. }) => return Ok(false),
            reader => reader?,
        };
        if FileId::of(reader.header()) != id {
            return Ok(false);
        }
        reader.skip(pending.skipped);
        let is_closed = !self.listing.is_live(id);
        let path = pending.path.clone();
        self.pending.remove(&id);
        let folder = self.listing.folders().index_of(&path);
        self.open.push(OpenFile { id, path, reader, folder, is_closed });
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{EntryBuf, FileOptions, FileWriter, Timestamps};

    #[test]
    fn a_renamed_file_is_read_while_a_new_file_takes_its_name() {
        for beginning in [&b""[..], b"LPKSHHRH", &[0; 300]] {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("a.journal");
            let mut writer = FileWriter::create(&path, FileOptions::default()).unwrap();
            let mut entry = EntryBuf::new();
            entry.push("A", b"1");
            writer.append(&entry, Timestamps::now()).unwrap();
            writer.close().unwrap();
            let mut folder = FolderFollower::open(FolderSet::tree(dir.path()), Start::File).unwrap();
            let id = folder.next_pending().unwrap();

            fs::rename(&path, dir.path().join("a@1.journal")).unwrap();
            fs::write(&path, beginning).unwrap();
            let mut progress = PollProgress::new(FileState::Online);
            folder.switch_to(id, &mut progress).unwrap();
            let mut read = 0;
            while folder.step(&mut progress).unwrap() {
                read += folder.read(u64::MAX, &mut |entry| assert_eq!(entry.text("A"), Some("1")));
            }
            assert_eq!(read, 1, "{beginning:?}");
        }
    }
}
