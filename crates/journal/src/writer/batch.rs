//! The changes to write next: new objects, and updates of older ones that link to them.
//!
//! A flush is a list of positioned writes whose order makes each of them harmless: nothing refers to an
//! object before it is complete, and the header, which says how far the file extends, comes last. If the
//! writer stops after any write, every earlier entry is readable. After a failure, all writes can be
//! repeated.

use std::fs::File;
use std::io;
use std::ops::Range;

use super::disk;
use crate::layout::{HEADER_BYTES, OBJECT_HEADER_BYTES, align8};

/// New objects, and changes to existing objects.
#[derive(Debug)]
pub(super) struct WriteBatch {
    /// The file offset of the new objects.
    base: u64,
    /// The new objects. In a plan, its changes and the header follow them.
    bytes: Vec<u8>,
    /// Entry array items and links between the arrays. Readers do not use them before the counts in `links`.
    content: Vec<PendingWrite>,
    /// All other changes: hash chains, lists of values, and the entry counts of DATA objects.
    links: Vec<PendingWrite>,
    writes: Vec<(u64, Range<usize>)>,
}

/// The order of changes within a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteOrder {
    /// Written first: readers do not use it before a link is written.
    Content,
    /// Written second: readers follow it from an existing object.
    Link,
}

/// A number of four or eight bytes that overwrites an older one.
#[derive(Clone, Copy, Debug)]
struct PendingWrite {
    offset: u64,
    len: u8,
    value: u64,
}

/// The steps of one flush, in order.
#[derive(Debug)]
pub(super) struct WritePlan<'a> {
    /// The size to which the file is extended first.
    extend_to: Option<u64>,
    bytes: &'a [u8],
    writes: &'a [(u64, Range<usize>)],
}

impl WriteBatch {
    pub(super) fn new(base: u64) -> Self {
        Self { base, bytes: Vec::new(), content: Vec::new(), links: Vec::new(), writes: Vec::new() }
    }

    /// Returns the offset after the last object.
    pub(super) fn end(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    /// Returns the approximate size of the buffered changes, in bytes.
    pub(super) fn pending_bytes(&self) -> usize {
        self.bytes.len() + (self.content.len() + self.links.len()) * size_of::<PendingWrite>()
    }

    /// Adds an object of `size` bytes, all zero after its header, and returns its offset.
    pub(super) fn add_object(&mut self, kind: u8, size: u64) -> u64 {
        let offset = self.end();
        self.bytes.resize(self.bytes.len() + align8(size) as usize, 0);
        self.put(offset, &[kind]);
        self.put(offset + 8, &size.to_le_bytes());
        debug_assert!(size >= OBJECT_HEADER_BYTES && offset.is_multiple_of(8));
        offset
    }

    pub(super) fn put(&mut self, offset: u64, bytes: &[u8]) {
        let at = (offset - self.base) as usize;
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Sets a 32-bit number of a new or existing object.
    pub(super) fn set_u32(&mut self, order: WriteOrder, offset: u64, value: u32) {
        self.set(order, PendingWrite { offset, len: 4, value: u64::from(value) });
    }

    /// Sets a 64-bit number of a new or existing object.
    pub(super) fn set_u64(&mut self, order: WriteOrder, offset: u64, value: u64) {
        self.set(order, PendingWrite { offset, len: 8, value });
    }

    fn set(&mut self, order: WriteOrder, change: PendingWrite) {
        if change.offset >= self.base {
            self.put(change.offset, &change.value.to_le_bytes()[..usize::from(change.len)]);
        } else {
            match order {
                WriteOrder::Content => self.content.push(change),
                WriteOrder::Link => self.links.push(change),
            }
        }
    }

    /// Returns the plan that writes this batch and then the header.
    ///
    /// The batch is unchanged until [`commit`](Self::commit) or [`roll_back`](Self::roll_back).
    pub(super) fn plan(&mut self, header: &[u8; HEADER_BYTES], extend_to: Option<u64>) -> WritePlan<'_> {
        self.writes.clear();
        let objects = self.bytes.len();
        if objects > 0 {
            self.writes.push((self.base, 0..objects));
        }
        for changes in [&mut self.content, &mut self.links] {
            join(changes, &mut self.bytes, &mut self.writes);
        }
        let header_at = self.bytes.len();
        self.bytes.extend_from_slice(header);
        self.writes.push((0, header_at..self.bytes.len()));
        WritePlan { extend_to, bytes: &self.bytes, writes: &self.writes }
    }

    /// Removes the bytes that a failed plan added.
    pub(super) fn roll_back(&mut self) {
        let objects = self.writes.first().filter(|(offset, _)| *offset == self.base);
        self.bytes.truncate(objects.map_or(0, |(_, range)| range.end));
    }

    /// Starts the next batch after this one has been written.
    pub(super) fn commit(&mut self) {
        self.roll_back();
        self.base = self.end();
        self.bytes.clear();
        self.content.clear();
        self.links.clear();
    }
}

/// Merges adjacent changes into one write; of two changes at the same offset, the later one wins.
fn join(changes: &mut [PendingWrite], bytes: &mut Vec<u8>, writes: &mut Vec<(u64, Range<usize>)>) {
    changes.sort_by_key(|change| change.offset);
    let mut run: Option<(u64, Range<usize>)> = None;
    let mut latest_of_same_place = changes.chunk_by(|a, b| a.offset == b.offset).filter_map(<[_]>::last);
    loop {
        let change = latest_of_same_place.next();
        if let Some((offset, range)) = &run {
            let run_end = offset + range.len() as u64;
            if change.is_none_or(|change| change.offset != run_end) {
                writes.push((*offset, range.start..bytes.len()));
                run = None;
            }
        }
        let Some(change) = change else { return };
        let start = bytes.len();
        bytes.extend_from_slice(&change.value.to_le_bytes()[..usize::from(change.len)]);
        run = Some(run.map_or((change.offset, start..bytes.len()), |(offset, range)| {
            (offset, range.start..bytes.len())
        }));
    }
}

impl WritePlan<'_> {
    /// Executes the plan, up to the first step that fails.
    pub(super) fn apply(&self, file: &File) -> io::Result<()> {
        if let Some(size) = self.extend_to {
            disk::extend(file, size)?;
        }
        for (offset, range) in self.writes {
            disk::write_at(file, &self.bytes[range.clone()], *offset)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writes_of(batch: &mut WriteBatch) -> Vec<(u64, Vec<u8>)> {
        let plan = batch.plan(&[0xee; HEADER_BYTES], None);
        plan.writes.iter().map(|(offset, range)| (*offset, plan.bytes[range.clone()].to_vec())).collect()
    }

    #[test]
    fn a_plan_writes_objects_then_content_then_links_then_the_header() {
        let mut batch = WriteBatch::new(1024);
        batch.set_u64(WriteOrder::Link, 512, 7);
        batch.set_u32(WriteOrder::Content, 520, 8);
        assert_eq!(batch.add_object(3, 17), 1024);
        assert_eq!(batch.end(), 1048);
        let offsets: Vec<_> = writes_of(&mut batch).iter().map(|(offset, _)| *offset).collect();
        assert_eq!(offsets, [1024, 520, 512, 0]);
    }

    #[test]
    fn adjacent_changes_merge_and_the_later_of_two_wins() {
        let mut batch = WriteBatch::new(1024);
        for (offset, value) in [(108, 3), (100, 9), (104, 2), (100, 1), (116, 5)] {
            batch.set_u32(WriteOrder::Content, offset, value);
        }
        let writes = writes_of(&mut batch);
        assert_eq!(writes[0], (100, vec![1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]));
        assert_eq!(writes[1], (116, vec![5, 0, 0, 0]));
        assert_eq!(writes.len(), 3);
    }

    #[test]
    fn a_rolled_back_plan_can_be_repeated_with_more_changes() {
        let mut batch = WriteBatch::new(1024);
        batch.add_object(1, 24);
        batch.set_u64(WriteOrder::Link, 512, 1);
        let first = writes_of(&mut batch);
        batch.roll_back();
        assert_eq!(writes_of(&mut batch), first);
        batch.roll_back();
        let added = batch.add_object(1, 16);
        assert_eq!(added, 1048);
        batch.set_u64(WriteOrder::Link, 512, added);
        let writes = writes_of(&mut batch);
        assert_eq!(writes[0].1.len(), 40);
        assert_eq!(writes[1], (512, added.to_le_bytes().to_vec()));
        batch.commit();
        assert_eq!(batch.end(), 1064);
        assert_eq!(batch.pending_bytes(), 0);
    }
}
