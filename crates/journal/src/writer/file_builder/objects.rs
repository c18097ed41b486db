//! The DATA and FIELD objects of a file under construction.

use crate::writer::batch::{WriteBatch, WriteOrder};
use crate::writer::entry_arrays::EntryArrays;

/// Identifies a payload by two unrelated hashes, so its bytes need not be kept in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct DataKey {
    pub(super) keyed: u64,
    pub(super) jenkins: u64,
}

/// A DATA object: the value of a field, and the entries that have it.
#[derive(Debug)]
pub(super) struct DataObject {
    pub(super) offset: u32,
    /// The DATA object itself holds its first entry, `later_entries` the others.
    pub(super) first_entry: u32,
    pub(super) entries: u32,
    pub(super) later_entries: EntryArrays,
    pub(super) changed: bool,
}

/// A FIELD object: the name of a field.
#[derive(Debug)]
pub(super) struct FieldObject {
    pub(super) offset: u32,
    /// The latest DATA object of this field: the head of the list of its values.
    pub(super) head_data: u32,
}

impl DataObject {
    /// Writes the object's list of entries.
    pub(super) fn write(&self, batch: &mut WriteBatch) {
        let offset = u64::from(self.offset);
        batch.set_u64(WriteOrder::Link, offset + 40, u64::from(self.first_entry));
        batch.set_u64(WriteOrder::Link, offset + 48, u64::from(self.later_entries.first()));
        batch.set_u64(WriteOrder::Link, offset + 56, u64::from(self.entries));
        batch.set_u32(WriteOrder::Link, offset + 64, self.later_entries.tail());
        batch.set_u32(WriteOrder::Link, offset + 68, self.later_entries.tail_len());
    }
}
