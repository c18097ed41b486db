//! Scans a file from entry to entry, past damaged parts.

use std::ops::ControlFlow;

use super::object_reader::{ObjectHeader, ObjectReader};
use crate::layout::{FileHeader, OBJECT_HEADER_BYTES, kind, offset_in, u64_at};

/// The offsets of the numbers and items in an ENTRY object.
const SEQNUM_AT: usize = 16;
const REALTIME_AT: usize = 24;
const MONOTONIC_AT: usize = 32;
const BOOT_ID_AT: usize = 40;
const XOR_HASH_AT: usize = 56;
pub(super) const ITEMS_AT: usize = 64;

/// The most items of an entry: journald accepts 1,024 fields from a client, and adds a few dozen.
const ITEMS_MAX: u64 = 2048;
/// The largest entry: an item has 16 bytes in files that are not compact.
const ENTRY_BYTES_MAX: u64 = ITEMS_AT as u64 + 16 * ITEMS_MAX;

/// A complete ENTRY object.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntryObject<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) is_compact: bool,
}

impl<'a> EntryObject<'a> {
    pub(super) fn seqnum(self) -> u64 {
        u64_at(self.bytes, SEQNUM_AT)
    }

    pub(super) fn realtime_us(self) -> u64 {
        u64_at(self.bytes, REALTIME_AT)
    }

    pub(super) fn monotonic_us(self) -> u64 {
        u64_at(self.bytes, MONOTONIC_AT)
    }

    pub(super) fn boot_id(self) -> u128 {
        let mut id = [0; 16];
        id.copy_from_slice(&self.bytes[BOOT_ID_AT..BOOT_ID_AT + 16]);
        u128::from_be_bytes(id)
    }

    /// Returns the combined hash of its fields, which is the same in every file.
    pub(super) fn xor_hash(self) -> u64 {
        u64_at(self.bytes, XOR_HASH_AT)
    }

    /// Returns the offsets of its fields.
    pub(super) fn items(self) -> impl ExactSizeIterator<Item = u64> + 'a {
        let size = (u64_at(self.bytes, 8) as usize).min(self.bytes.len());
        let item_bytes = if self.is_compact { 4 } else { 16 };
        // The file may have changed since its header was read.
        let items = self.bytes.get(ITEMS_AT..size).unwrap_or_default();
        items.chunks_exact(item_bytes).map(offset_in)
    }
}

/// The entries that are skipped because the tail starts later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SkippedEntries {
    /// Only this many entries, which existed when the tail was opened, may be skipped.
    entries: u64,
    /// Entries before this time are skipped.
    before_us: u64,
}

impl SkippedEntries {
    /// Returns the part of a file that a tail with a start time skips, as the file is now.
    pub(super) fn before(realtime_us: u64, header: &FileHeader) -> Self {
        Self { entries: header.n_entries, before_us: realtime_us }
    }

    /// Returns the entries of a file up to a sequence number.
    pub(super) fn up_to(seqnum: u64, header: &FileHeader) -> Self {
        let entries = (seqnum + 1).saturating_sub(header.head_entry_seqnum.max(1));
        Self { entries: entries.min(header.n_entries), before_us: u64::MAX }
    }
}

#[derive(Debug)]
pub(super) struct EntryScanner {
    position: u64,
    /// The ENTRY objects found so far.
    entries_seen: u64,
    skipped: SkippedEntries,
    /// In a damaged part, where the next object may begin at any multiple of eight.
    is_resyncing: bool,
    skipped_bytes: u64,
}

impl EntryScanner {
    /// Starts at the first object.
    pub(super) fn new(objects: &ObjectReader) -> Self {
        Self {
            position: objects.header().header_size,
            entries_seen: 0,
            skipped: SkippedEntries::default(),
            is_resyncing: false,
            skipped_bytes: 0,
        }
    }

    pub(super) fn skip(&mut self, skipped: SkippedEntries) {
        self.skipped = skipped;
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    /// Returns the damaged bytes skipped since the last call.
    pub(super) fn take_skipped_bytes(&mut self) -> u64 {
        std::mem::take(&mut self.skipped_bytes)
    }

    /// Returns whether the file has nothing more now.
    pub(super) fn is_at_end(&self, objects: &ObjectReader) -> bool {
        self.entries_seen >= objects.header().n_entries || self.position + OBJECT_HEADER_BYTES > objects.end()
    }

    /// Returns the number of the last entry that can be skipped, if there are several.
    ///
    /// That entry is complete, so continuing after it misses nothing, whatever the writer does.
    pub(super) fn last_skippable(&self, objects: &ObjectReader, may_match: bool) -> Option<u64> {
        let skippable = if !may_match {
            objects.header().n_entries
        } else if self.skipped.before_us == u64::MAX {
            self.skipped.entries
        } else {
            0
        };
        skippable.checked_sub(1).filter(|last| *last > self.entries_seen)
    }

    /// Returns the number of the last entry before which the matching entries may be read by their lists: nothing was scanned
    /// yet, and the lists of those before it are complete.
    pub(super) fn last_listed(&self, objects: &ObjectReader) -> Option<u64> {
        let is_new = self.position == objects.header().header_size;
        let entries = match self.skipped {
            SkippedEntries { entries: 0, .. } => objects.header().n_entries,
            SkippedEntries { before_us: u64::MAX, .. } => return None,
            SkippedEntries { entries, .. } => entries.min(objects.header().n_entries),
        };
        entries.checked_sub(1).filter(|last| is_new && *last > 0)
    }

    /// Jumps to an entry, given its number and offset.
    pub(super) fn jump(&mut self, number: u64, offset: u64) {
        if offset >= self.position {
            (self.position, self.entries_seen, self.is_resyncing) = (offset, number, false);
        }
    }

    /// Moves to the next complete entry in memory, and returns it.
    pub(super) fn find_entry<'a>(&mut self, objects: &'a ObjectReader) -> Option<EntryObject<'a>> {
        while self.entries_seen < objects.header().n_entries {
            let rest = objects.in_window(self.position);
            if rest.len() < OBJECT_HEADER_BYTES as usize {
                break;
            }
            match self.examine(objects, rest) {
                ControlFlow::Continue(()) => {}
                ControlFlow::Break(size) => {
                    let bytes = rest.get(..size)?;
                    return Some(EntryObject { bytes, is_compact: objects.is_compact() });
                }
            }
        }
        None
    }

    /// Returns whether the current entry lies before the start position.
    pub(super) fn is_skipped(&self, entry: EntryObject<'_>) -> bool {
        self.entries_seen < self.skipped.entries && self.is_early(entry)
    }

    /// Returns whether an entry that existed when the tail was opened lies before the start position.
    pub(super) fn is_early(&self, entry: EntryObject<'_>) -> bool {
        self.skipped.entries > 0 && entry.realtime_us() < self.skipped.before_us
    }

    /// Moves past the current entry.
    pub(super) fn advance_past(&mut self, entry: EntryObject<'_>) {
        self.entries_seen += 1;
        self.position += entry.bytes.len() as u64;
    }

    /// Returns the complete entry at an offset, if it is in memory.
    pub(super) fn entry_at(objects: &ObjectReader, offset: u64) -> Option<EntryObject<'_>> {
        let rest = objects.in_window(offset);
        let object = objects.parse(rest, offset, objects.end())?;
        let is_entry = object.kind == kind::ENTRY && object.padded_size <= ENTRY_BYTES_MAX;
        let bytes = rest.get(..object.padded_size as usize).filter(|_| is_entry)?;
        Some(EntryObject { bytes, is_compact: objects.is_compact() })
    }

    /// Stops at an entry and returns its size; moves past any other object.
    fn examine(&mut self, objects: &ObjectReader, rest: &[u8]) -> ControlFlow<usize> {
        // Unknown kinds are skipped, as the format asks, but do not end a damaged part.
        let is_known = |object: &ObjectHeader| (kind::DATA..=kind::TAG).contains(&object.kind);
        let object = objects.parse(rest, self.position, objects.end());
        let Some(object) = object.filter(|object| !self.is_resyncing || is_known(object)) else {
            self.is_resyncing = true;
            self.position += 8;
            self.skipped_bytes += 8;
            return ControlFlow::Continue(());
        };
        self.is_resyncing = false;
        if object.kind == kind::ENTRY && object.padded_size <= ENTRY_BYTES_MAX {
            return ControlFlow::Break(object.padded_size as usize);
        }
        if object.kind == kind::ENTRY || !is_known(&object) {
            self.skipped_bytes += object.padded_size;
        }
        self.entries_seen += u64::from(object.kind == kind::ENTRY);
        self.position += object.padded_size;
        ControlFlow::Continue(())
    }
}
