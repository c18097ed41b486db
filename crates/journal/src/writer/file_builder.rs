//! Builds the objects of a file: what each entry adds, and where it is linked.
//!
//! The builder does no I/O: it converts entries into a [`WriteBatch`], and keeps the matching header.

mod header;
mod objects;

use std::collections::HashMap;
use std::time::Duration;

use objects::{DataKey, DataObject, FieldObject};

use super::batch::{WriteBatch, WriteOrder, WritePlan};
use super::entry_arrays::EntryArrays;
use super::hash_table::HashTable;
use crate::hash;
use crate::layout::{
    FileHeader, FileState, HEADER_BYTES, INCOMPATIBLE_COMPACT, INCOMPATIBLE_KEYED_HASH, align8, kind,
};
use crate::{EntryBuf, Timestamps};

/// The file grows in steps of this size, so that few appends extend it.
const GROWTH_BYTES: u64 = 512 << 10;

/// The hash table has one bucket for this many bytes of the maximum size. Our records have about 300 bytes
/// per value, so a file reaches its maximum size and three quarters of its buckets at about the same time;
/// the table takes 3 % of it.
const BYTES_PER_BUCKET: u64 = 512;
const DATA_BUCKETS_MIN: u64 = 2047;
const FIELD_BUCKETS: u64 = 2047;

/// The sizes of objects without their payload, in compact files.
const DATA_BYTES: u64 = 72;
const FIELD_BYTES: u64 = 40;
const ENTRY_BYTES: u64 = 64;

/// systemd takes times of 2^55 µs and more for damaged, and zero for unset.
const TIME_US_MAX: u64 = (1 << 55) - 1;

/// The incompatible flags of the files that we write.
pub(super) const INCOMPATIBLE_WRITTEN: u32 = INCOMPATIBLE_KEYED_HASH | INCOMPATIBLE_COMPACT;

/// Entries may seem earlier than the last one by less than this: a caller reads the two clocks one after the
/// other, and threads append in any order.
const JITTER_US_MAX: u64 = 1_000_000;

/// The ids in a file's header.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileIds {
    pub(super) file: u128,
    pub(super) machine: u128,
    pub(super) boot: u128,
    pub(super) seqnum: u128,
}

/// The contents of one file as they are built.
#[derive(Debug)]
pub(super) struct FileBuilder {
    ids: FileIds,
    size_max: u64,
    header: FileHeader,
    next_seqnum: u64,
    /// The allocated size of the file.
    file_size: u64,
    data_table: HashTable,
    field_table: HashTable,
    data: Vec<DataObject>,
    data_index: HashMap<DataKey, u32>,
    fields: HashMap<Box<[u8]>, FieldObject>,
    entries: EntryArrays,
    batch: WriteBatch,
    /// DATA objects whose entry lists changed since the last plan, by index.
    changed: Vec<u32>,
    /// The fields of the current entry.
    lookups: Vec<Lookup>,
    /// The DATA objects to which the current entry refers.
    items: Vec<EntryItem>,
}

/// A field of an entry, and the index of the DATA object that already holds it.
#[derive(Clone, Copy, Debug)]
struct Lookup {
    key: DataKey,
    found: Option<u32>,
}

/// The index of a DATA object to which an entry refers, and its part in the entry's `xor_hash`.
#[derive(Clone, Copy, Debug)]
struct EntryItem {
    data: u32,
    jenkins: u64,
}

/// The file has no room for the entry.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileFull;

impl FileBuilder {
    /// Builds an empty file of at most `size_max` bytes whose first entry gets the sequence number
    /// `next_seqnum`.
    pub(super) fn new(ids: FileIds, size_max: u64, next_seqnum: u64) -> Self {
        let field_table = HashTable::new(HEADER_BYTES as u64, FIELD_BUCKETS);
        let data_buckets = (size_max / BYTES_PER_BUCKET).max(DATA_BUCKETS_MIN);
        let data_table = HashTable::new(field_table.end(), data_buckets);
        let header = header::empty(ids, &data_table, &field_table);
        let mut batch = WriteBatch::new(data_table.end());
        field_table.lay_out(kind::FIELD_HASH_TABLE, &mut batch);
        data_table.lay_out(kind::DATA_HASH_TABLE, &mut batch);
        Self {
            ids,
            size_max,
            header,
            next_seqnum,
            file_size: 0,
            data_table,
            field_table,
            data: Vec::new(),
            data_index: HashMap::new(),
            fields: HashMap::new(),
            entries: EntryArrays::ALL_ENTRIES,
            batch,
            changed: Vec::new(),
            lookups: Vec::new(),
            items: Vec::new(),
        }
    }

    pub(super) fn header(&self) -> &FileHeader {
        &self.header
    }

    /// Returns the size of the file on disk, as last written.
    pub(super) fn file_size(&self) -> u64 {
        self.file_size
    }

    pub(super) fn next_seqnum(&self) -> u64 {
        self.next_seqnum
    }

    /// Returns whether the realtime clock was set back since the last entry: it decreased, and the monotonic
    /// clock did not.
    pub(super) fn is_set_back(&self, at: Timestamps) -> bool {
        let last = &self.header;
        at.monotonic_us >= last.tail_entry_monotonic
            && at.realtime_us.saturating_add(JITTER_US_MAX) < last.tail_entry_realtime
    }

    /// Returns whether the first entry is more than `age_max` earlier.
    pub(super) fn is_older(&self, age_max: Duration, at: Timestamps) -> bool {
        let age_us = at.realtime_us.saturating_sub(self.header.head_entry_realtime);
        self.header.n_entries > 0 && Duration::from_micros(age_us) > age_max
    }

    /// Returns the used size of the file in bytes, including buffered changes.
    pub(super) fn used_bytes(&self) -> u64 {
        self.batch.end()
    }

    /// Returns the approximate size of the buffered changes, in bytes.
    pub(super) fn pending_bytes(&self) -> usize {
        self.batch.pending_bytes() + self.changed.len() * size_of::<u32>()
    }

    /// Adds an entry with the fields of both parts to the batch. If it does not fit, nothing changes.
    pub(super) fn append(&mut self, parts: [&EntryBuf; 2], at: Timestamps) -> Result<(), FileFull> {
        self.look_up(parts);
        if !self.has_room(parts) {
            return Err(FileFull);
        }
        self.items.clear();
        for (index, (payload, name_len)) in parts.into_iter().flat_map(EntryBuf::payloads).enumerate() {
            let Lookup { key, found } = self.lookups[index];
            // A field that appears twice in this entry and is new was not found by either lookup.
            let data = match found.or_else(|| self.data_index.get(&key).copied()) {
                Some(data) => data,
                None => self.add_data(key, payload, name_len),
            };
            self.items.push(EntryItem { data, jenkins: key.jenkins });
        }
        // Offsets grow with the index, and readers expect them sorted. A repeated field is kept once.
        self.items.sort_unstable_by_key(|item| item.data);
        self.items.dedup_by_key(|item| item.data);
        let entry = self.add_entry(at);
        self.link_entry(entry);
        Ok(())
    }

    /// Returns the plan that writes all changes.
    pub(super) fn plan(&mut self) -> WritePlan<'_> {
        for index in self.changed.drain(..) {
            let data = &mut self.data[index as usize];
            data.changed = false;
            data.write(&mut self.batch);
        }
        self.header.n_data = self.data_table.len();
        self.header.n_fields = self.field_table.len();
        self.header.tail_entry_array_offset = self.entries.tail();
        self.header.tail_entry_array_n_entries = self.entries.tail_len();
        self.header.entry_array_offset = u64::from(self.entries.first());
        let size = self.batch.end().next_multiple_of(GROWTH_BYTES).min(self.size_max.max(self.batch.end()));
        let extend_to = (size > self.file_size).then_some(size);
        self.header.arena_size = size.max(self.file_size) - self.header.header_size;
        self.batch.plan(&self.header.encode(), extend_to)
    }

    /// Records that the last plan was executed.
    pub(super) fn commit(&mut self) {
        self.file_size = self.header.arena_size + self.header.header_size;
        self.batch.commit();
    }

    /// Records that the last plan failed.
    pub(super) fn roll_back(&mut self) {
        self.batch.roll_back();
    }

    /// Returns the header of the completed file, truncated to its used size.
    pub(super) fn final_header(&self, state: FileState) -> FileHeader {
        FileHeader { state, arena_size: self.used_bytes() - self.header.header_size, ..self.header.clone() }
    }

    /// Looks up which fields the file already holds.
    fn look_up(&mut self, parts: [&EntryBuf; 2]) {
        self.lookups.clear();
        for (payload, _) in parts.into_iter().flat_map(EntryBuf::payloads) {
            let key = DataKey { keyed: hash::keyed(self.ids.file, payload), jenkins: hash::jenkins(payload) };
            self.lookups.push(Lookup { key, found: self.data_index.get(&key).copied() });
        }
    }

    /// Returns whether the looked-up entry fits, by an upper bound of its size.
    fn has_room(&self, parts: [&EntryBuf; 2]) -> bool {
        let payloads = parts.into_iter().flat_map(EntryBuf::payloads);
        let mut new_values = 0;
        let mut bytes = align8(ENTRY_BYTES + 4 * self.lookups.len() as u64) + self.entries.growth_bytes();
        for (lookup, (payload, name_len)) in self.lookups.iter().zip(payloads) {
            if let Some(index) = lookup.found {
                bytes += self.data[index as usize].later_entries.growth_bytes();
            } else {
                new_values += 1;
                bytes += align8(DATA_BYTES + payload.len() as u64) + align8(FIELD_BYTES + name_len as u64);
            }
        }
        self.batch.end() + bytes <= self.size_max
            && self.data_table.has_room(new_values)
            && self.field_table.has_room(new_values)
    }

    /// Adds a DATA object and links it into its hash chain and the list of its field.
    fn add_data(&mut self, key: DataKey, payload: &[u8], name_len: usize) -> u32 {
        let offset = self.add_object(kind::DATA, DATA_BYTES + payload.len() as u64);
        self.batch.put(offset + 16, &key.keyed.to_le_bytes());
        self.batch.put(offset + DATA_BYTES, payload);
        self.data_table.link(key.keyed, offset, &mut self.batch);

        let name = &payload[..name_len];
        if !self.fields.contains_key(name) {
            self.add_field(name);
        }
        if let Some(field) = self.fields.get_mut(name) {
            self.batch.put(offset + 32, &u64::from(field.head_data).to_le_bytes());
            field.head_data = offset as u32;
            self.batch.set_u64(WriteOrder::Link, u64::from(field.offset) + 32, offset);
        }
        let index = self.data.len() as u32;
        self.data.push(DataObject {
            offset: offset as u32,
            first_entry: 0,
            entries: 0,
            later_entries: EntryArrays::OF_DATA,
            changed: false,
        });
        self.data_index.insert(key, index);
        index
    }

    fn add_field(&mut self, name: &[u8]) {
        let offset = self.add_object(kind::FIELD, FIELD_BYTES + name.len() as u64);
        let hash = hash::keyed(self.ids.file, name);
        self.batch.put(offset + 16, &hash.to_le_bytes());
        self.batch.put(offset + FIELD_BYTES, name);
        self.field_table.link(hash, offset, &mut self.batch);
        self.fields.insert(name.into(), FieldObject { offset: offset as u32, head_data: 0 });
    }

    /// Adds the ENTRY object for the fields in `items`, and counts it.
    fn add_entry(&mut self, at: Timestamps) -> u32 {
        // Readers find a time by bisection, and skip whole files by the times of their first and last
        // entries.
        let realtime = at.realtime_us.clamp(self.header.tail_entry_realtime.max(1), TIME_US_MAX);
        // This clock never decreases within one boot; `journalctl --verify` checks that.
        let monotonic = at.monotonic_us.clamp(self.header.tail_entry_monotonic.max(1), TIME_US_MAX);
        let offset = self.add_object(kind::ENTRY, ENTRY_BYTES + 4 * self.items.len() as u64);
        let numbers = [self.next_seqnum, realtime, monotonic];
        for (place, number) in (offset + 16..).step_by(8).zip(numbers) {
            self.batch.put(place, &number.to_le_bytes());
        }
        self.batch.put(offset + 40, &self.ids.boot.to_be_bytes());
        let xor_hash = self.items.iter().fold(0, |hash, item| hash ^ item.jenkins);
        self.batch.put(offset + 56, &xor_hash.to_le_bytes());
        for (place, item) in (offset + ENTRY_BYTES..).step_by(4).zip(&self.items) {
            self.batch.put(place, &self.data[item.data as usize].offset.to_le_bytes());
        }
        let header = &mut self.header;
        if header.n_entries == 0 {
            header.head_entry_seqnum = self.next_seqnum;
            header.head_entry_realtime = realtime;
        }
        header.n_entries += 1;
        header.tail_entry_seqnum = self.next_seqnum;
        header.tail_entry_realtime = realtime;
        header.tail_entry_monotonic = monotonic;
        header.tail_entry_offset = offset;
        self.next_seqnum += 1;
        offset as u32
    }

    /// Adds the entry to the array of all entries and to those of its values.
    fn link_entry(&mut self, entry: u32) {
        let mut add_array = |batch: &mut WriteBatch, size| {
            self.header.n_objects += 1;
            self.header.n_entry_arrays += 1;
            self.header.tail_object_offset = batch.end();
            batch.add_object(kind::ENTRY_ARRAY, size)
        };
        self.entries.push(entry, &mut self.batch, &mut add_array);
        for item in &self.items {
            let data = &mut self.data[item.data as usize];
            if data.entries == 0 {
                data.first_entry = entry;
            } else {
                data.later_entries.push(entry, &mut self.batch, &mut add_array);
            }
            data.entries += 1;
            if !data.changed {
                data.changed = true;
                self.changed.push(item.data);
            }
        }
    }

    fn add_object(&mut self, kind: u8, size: u64) -> u64 {
        self.header.n_objects += 1;
        self.header.tail_object_offset = self.batch.end();
        self.batch.add_object(kind, size)
    }
}
