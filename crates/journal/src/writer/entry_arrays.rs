//! Chained `ENTRY_ARRAY` objects: all entries of a file, or the entries with one value.

use super::batch::{WriteBatch, WriteOrder};

/// The size of an `ENTRY_ARRAY` object without its items, and of one item in a compact file.
const ARRAY_BYTES: u64 = 24;
const ITEM_BYTES: u64 = 4;

/// Each array holds twice as many items as the one before, up to this many.
const ITEMS_MAX: u32 = 1 << 14;

/// A growing list of entries.
#[derive(Debug)]
pub(super) struct EntryArrays {
    first: u32,
    tail: u32,
    tail_len: u32,
    /// The capacity of the last array in items; before there is one, half the capacity of the first.
    tail_capacity: u32,
}

impl EntryArrays {
    /// An empty list for all entries of a file.
    pub(super) const ALL_ENTRIES: Self = Self { first: 0, tail: 0, tail_len: 32, tail_capacity: 32 };
    /// An empty list for the entries with one value, without the first of them.
    pub(super) const OF_DATA: Self = Self { first: 0, tail: 0, tail_len: 2, tail_capacity: 2 };

    /// Returns the offset of the first array, or 0.
    pub(super) fn first(&self) -> u32 {
        self.first
    }

    /// Returns the offset of the last array, or 0.
    pub(super) fn tail(&self) -> u32 {
        self.tail
    }

    /// Returns the number of items in the last array.
    pub(super) fn tail_len(&self) -> u32 {
        if self.tail == 0 { 0 } else { self.tail_len }
    }

    /// Returns the bytes that the next entry adds to the file: zero, or the size of a new array.
    pub(super) fn growth_bytes(&self) -> u64 {
        if self.tail_len == self.tail_capacity { array_bytes(self.next_capacity()) } else { 0 }
    }

    /// Appends an entry. `add_array` adds an `ENTRY_ARRAY` object of a size in bytes and returns its offset.
    pub(super) fn push(
        &mut self,
        entry: u32,
        batch: &mut WriteBatch,
        add_array: &mut impl FnMut(&mut WriteBatch, u64) -> u64,
    ) {
        if self.tail_len == self.tail_capacity {
            let capacity = self.next_capacity();
            let array = add_array(batch, array_bytes(capacity));
            if self.tail == 0 {
                self.first = array as u32;
            } else {
                batch.set_u64(WriteOrder::Content, u64::from(self.tail) + 16, array);
            }
            *self = Self { first: self.first, tail: array as u32, tail_len: 0, tail_capacity: capacity };
        }
        let place = u64::from(self.tail) + ARRAY_BYTES + u64::from(self.tail_len) * ITEM_BYTES;
        batch.set_u32(WriteOrder::Content, place, entry);
        self.tail_len += 1;
    }

    fn next_capacity(&self) -> u32 {
        (self.tail_capacity * 2).min(ITEMS_MAX)
    }
}

fn array_bytes(items: u32) -> u64 {
    ARRAY_BYTES + u64::from(items) * ITEM_BYTES
}
