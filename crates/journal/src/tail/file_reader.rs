//! Reads the entries of one journal file.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::data_reader::DataReader;
use super::entry::Entry;
use super::entry_scanner::{EntryScanner, SkippedEntries};
use super::field_cache::FieldCache;
use super::filter::{FieldFilter, MatchIndex};
use super::object_reader::{FileHeaderError, ObjectReader};
use crate::ReadError;
use crate::layout::FileHeader;
use crate::regular_file::open_regular;

/// What is loaded before an entry that is read by a list.
const FIELDS_BYTES: u64 = 16 << 10;

/// The reason given for a file that journald is creating: it gets its name before its header.
pub(super) const EMPTY: &str = "it is empty";

/// An open file, the scanner for its entries, and the cache of their fields.
pub(super) struct FileReader {
    objects: ObjectReader,
    scanner: EntryScanner,
    matches: MatchIndex,
    /// The offsets of matching entries that are read by their lists, and not by the scanner.
    listed: VecDeque<u64>,
    data: DataReader,
    cache: FieldCache,
    /// Entries of the last step that were not returned yet.
    entries: VecDeque<Entry>,
    walked_bytes: u64,
    /// The bytes missing at the end that were returned as skipped.
    missing_bytes_taken: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadStep {
    /// The position moved; there may be more.
    Advanced,
    /// There is nothing more to read now.
    CaughtUp,
}

impl FileReader {
    pub(super) fn open(path: &Path, filter: &FieldFilter) -> Result<Self, ReadError> {
        let objects = open(path)?;
        Ok(Self {
            scanner: EntryScanner::new(&objects),
            matches: MatchIndex::new(filter.clone()),
            listed: VecDeque::new(),
            data: DataReader::new(),
            cache: FieldCache::default(),
            entries: VecDeque::new(),
            walked_bytes: 0,
            missing_bytes_taken: 0,
            objects,
        })
    }

    /// Returns only entries that match the filter from now on.
    pub(super) fn set_filter(&mut self, filter: &FieldFilter) {
        self.matches = MatchIndex::new(filter.clone());
        self.entries.retain(|entry| filter.matches(entry));
    }

    pub(super) fn skip(&mut self, skipped: SkippedEntries) {
        self.scanner.skip(skipped);
    }

    /// Skips the existing entries before the given time.
    pub(super) fn skip_before(&mut self, realtime_us: u64) {
        self.scanner.skip(SkippedEntries::before(realtime_us, self.objects.header()));
    }

    pub(super) fn file(&self) -> &File {
        self.objects.file()
    }

    pub(super) fn header(&self) -> &FileHeader {
        self.objects.header()
    }

    /// Frees buffers of a file that is read to its end, if many files are open.
    pub(super) fn rest(&mut self) {
        self.objects.drop_window();
        self.data.rest();
        self.cache.rest();
        self.entries.shrink_to_fit();
    }

    /// Returns the bytes skipped since the last call, because they are damaged, were cut off or exceed a
    /// bound.
    pub(super) fn take_skipped_bytes(&mut self) -> u64 {
        let missing = self.objects.missing_bytes().max(self.missing_bytes_taken);
        let newly_missing = missing - std::mem::replace(&mut self.missing_bytes_taken, missing);
        self.scanner.take_skipped_bytes() + self.data.take_skipped_bytes() + newly_missing
    }

    /// Returns the bytes scanned since the last call.
    pub(super) fn take_walked_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.walked_bytes)
    }

    /// Passes the entries found to `each`, until it has accepted `entries_max`; returns how many it accepted.
    pub(super) fn read(&mut self, entries_max: u64, each: &mut impl FnMut(&Entry) -> bool) -> u64 {
        let mut entries = 0;
        while entries < entries_max {
            let Some(entry) = self.entries.pop_front() else { break };
            entries += u64::from(each(&entry));
            self.cache.recycle(entry);
        }
        entries
    }

    /// Prepares to read the matching entries by their lists, if they are few, and lets the scanner go on at the last entry.
    /// The lists have all before that: it was complete before the header counted the last one.
    fn list_entries(&mut self) -> io::Result<()> {
        let Some(last) = self.scanner.last_listed(&self.objects) else { return Ok(()) };
        let Some(listed) = self.matches.listed_entries(&self.objects)? else { return Ok(()) };
        let Some(last_offset) = self.objects.entry_offset(last)? else { return Ok(()) };
        self.listed = listed.into_iter().take_while(|offset| *offset < last_offset).collect();
        self.scanner.jump(last, last_offset);
        Ok(())
    }

    /// Reads the next listed entries.
    fn read_listed(&mut self) -> io::Result<ReadStep> {
        while !self.cache.is_step_full()
            && let Some(offset) = self.listed.front().copied()
        {
            if EntryScanner::entry_at(&self.objects, offset).is_none() {
                // Its fields are before it, mostly.
                self.objects
                    .load_window(offset.saturating_sub(FIELDS_BYTES).max(self.header().header_size))?;
            }
            self.listed.pop_front();
            let object = EntryScanner::entry_at(&self.objects, offset);
            if let Some(object) = object.filter(|object| !self.scanner.is_early(*object)) {
                let entry = self.cache.entry(object, &self.objects, &mut self.data)?;
                self.data.note_scanned(object.bytes.len() as u64);
                if self.matches.filter().matches(&entry) {
                    self.entries.push_back(entry);
                }
            }
        }
        Ok(ReadStep::Advanced)
    }

    /// Scans the next part of the file for entries. The cache of fields is emptied if it has `cache_bytes_max`.
    pub(super) fn step(&mut self, cache_bytes_max: usize) -> io::Result<ReadStep> {
        self.cache.bound(cache_bytes_max);
        self.cache.begin_step();
        self.objects.refresh()?;
        let start = self.scanner.position();
        if self.listed.is_empty() {
            if self.scanner.is_at_end(&self.objects) {
                return Ok(ReadStep::CaughtUp);
            }
            self.matches.refresh(&self.objects, &mut self.data)?;
            self.list_entries()?;
        }
        if !self.listed.is_empty() {
            return self.read_listed();
        }
        if let Some(last) = self.scanner.last_skippable(&self.objects, self.matches.may_match_any())
            && let Some(offset) = self.objects.entry_offset(last)?
        {
            self.scanner.jump(last, offset);
        }
        let window_start = self.scanner.position();
        self.objects.load_window(window_start)?;
        while !self.cache.is_step_full()
            && let Some(object) = self.scanner.find_entry(&self.objects)
        {
            if !self.scanner.is_skipped(object) && self.matches.may_match(object) {
                let entry = self.cache.entry(object, &self.objects, &mut self.data)?;
                if self.matches.filter().matches(&entry) {
                    self.entries.push_back(entry);
                }
            }
            self.scanner.advance_past(object);
        }
        self.data.note_scanned(self.scanner.position() - window_start);
        self.walked_bytes += self.scanner.position() - start;
        // Otherwise the rest of a truncated file would be scanned again forever.
        Ok(if self.scanner.position() == start { ReadStep::CaughtUp } else { ReadStep::Advanced })
    }
}

/// Opens a file that may be a journal.
pub(super) fn open(path: &Path) -> Result<ObjectReader, ReadError> {
    let Some(file) = open_regular(path).map_err(ReadError::io("open", path))? else {
        return Err(ReadError::NotAJournal { path: path.to_owned(), reason: "it is not a regular file" });
    };
    let metadata = file.metadata().map_err(ReadError::io("inspect", path))?;
    if metadata.len() == 0 {
        return Err(ReadError::NotAJournal { path: path.to_owned(), reason: EMPTY });
    }
    let opened = ObjectReader::new(file).map_err(ReadError::io("read", path))?;
    opened.map_err(|refusal| match refusal {
        FileHeaderError::NotAJournal(reason) => ReadError::NotAJournal { path: path.to_owned(), reason },
        FileHeaderError::Unsupported(feature) => ReadError::Unsupported { path: path.to_owned(), feature },
    })
}

/// Returns whether the path refers to this file.
pub(super) fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(ours), Ok(there)) => (ours.dev(), ours.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}
