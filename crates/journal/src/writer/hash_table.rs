//! The two hash tables of a file: readers use them to find DATA and FIELD objects.

use super::batch::{WriteBatch, WriteOrder};
use crate::layout::OBJECT_HEADER_BYTES;

/// A bucket holds the offsets of the first and the last object of its chain.
const BUCKET_BYTES: u64 = 16;

/// The offset, in DATA and FIELD objects, of the link to the next object of the chain.
const NEXT_IN_CHAIN: u64 = 24;

#[derive(Debug)]
pub(super) struct HashTable {
    /// The offset of the table's object.
    offset: u64,
    /// The last object of each chain, or 0. The next one is linked there.
    tails: Vec<u32>,
    objects: u64,
}

impl HashTable {
    /// Lays out a table at this offset of the file.
    pub(super) fn new(offset: u64, buckets: u64) -> Self {
        Self { offset, tails: vec![0; buckets as usize], objects: 0 }
    }

    /// Returns the offset of the first bucket, for the file header.
    pub(super) fn buckets_offset(&self) -> u64 {
        self.offset + OBJECT_HEADER_BYTES
    }

    /// Returns the size of all buckets in bytes, for the file header.
    pub(super) fn buckets_bytes(&self) -> u64 {
        self.tails.len() as u64 * BUCKET_BYTES
    }

    /// Returns the offset after the table.
    pub(super) fn end(&self) -> u64 {
        self.buckets_offset() + self.buckets_bytes()
    }

    /// Returns the number of linked objects.
    pub(super) fn len(&self) -> u64 {
        self.objects
    }

    /// Returns whether a quarter of the table is still free after `more` objects, as the format asks.
    pub(super) fn has_room(&self, more: u64) -> bool {
        (self.objects + more) * 4 <= self.tails.len() as u64 * 3
    }

    /// Writes the object header of the table. The buckets of a new file are already zero.
    pub(super) fn lay_out(&self, kind: u8, batch: &mut WriteBatch) {
        batch.set_u64(WriteOrder::Content, self.offset, u64::from(kind));
        batch.set_u64(WriteOrder::Content, self.offset + 8, OBJECT_HEADER_BYTES + self.buckets_bytes());
    }

    /// Links a new object at the end of its hash chain.
    pub(super) fn link(&mut self, hash: u64, object: u64, batch: &mut WriteBatch) {
        let bucket = hash % self.tails.len() as u64;
        let bucket_offset = self.buckets_offset() + bucket * BUCKET_BYTES;
        let tail = std::mem::replace(&mut self.tails[bucket as usize], object as u32);
        if tail == 0 {
            batch.set_u64(WriteOrder::Link, bucket_offset, object);
        } else {
            batch.set_u64(WriteOrder::Link, u64::from(tail) + NEXT_IN_CHAIN, object);
        }
        batch.set_u64(WriteOrder::Link, bucket_offset + 8, object);
        self.objects += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_full_at_three_quarters_of_its_buckets() {
        let mut table = HashTable::new(272, 8);
        let mut batch = WriteBatch::new(table.end());
        for object in 0..4 {
            table.link(object, 1000 + object, &mut batch);
        }
        assert!(table.has_room(2));
        assert!(!table.has_room(3));
    }
}
