//! What is to be written next: new objects, and the changes to older ones that link them up.
//!
//! A flush is a list of positioned writes in an order that makes each of them harmless by itself: nothing refers to
//! an object before it is whole, and the header, which alone says how far the file goes, comes last. So a writer
//! that is stopped after any of them leaves every earlier entry readable, and doing all of them once more, after
//! some had failed, is right too.

use std::fs::File;
use std::io;
use std::ops::Range;

use super::disk;
use crate::layout::{HEADER_BYTES, OBJECT_HEADER_BYTES, align8};

/// New objects, and changes to objects that are in the file already.
#[derive(Debug)]
pub(super) struct Batch {
    /// Where the new objects begin in the file.
    base: u64,
    /// The new objects. While a plan is made, its changes and the header follow them.
    bytes: Vec<u8>,
    /// Items of entry arrays and links between the arrays, which nothing reads before the counts in `heads`.
    content: Vec<Change>,
    /// Everything else: the heads of hash chains and lists, and what DATA objects say of their entries.
    links: Vec<Change>,
    writes: Vec<(u64, Range<usize>)>,
}

/// Which changes come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WriteOrder {
    /// Nothing reads it before the change of a head.
    Content,
    /// Readers find it from the older part of the file.
    Link,
}

/// A number of four or eight bytes that is written over an older one.
#[derive(Clone, Copy, Debug)]
struct Change {
    offset: u64,
    len: u8,
    value: u64,
}

/// The steps of one flush, in the order in which they must be done.
#[derive(Debug)]
pub(super) struct WritePlan<'a> {
    /// The size to which the file must be extended before anything is written.
    extend_to: Option<u64>,
    bytes: &'a [u8],
    writes: &'a [(u64, Range<usize>)],
}

impl Batch {
    pub(super) fn new(base: u64) -> Self {
        Self { base, bytes: Vec::new(), content: Vec::new(), links: Vec::new(), writes: Vec::new() }
    }

    /// Gives the offset behind the last object.
    pub(super) fn end(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    /// Gives roughly the memory that waits to be written, in bytes.
    pub(super) fn pending_bytes(&self) -> usize {
        self.bytes.len() + (self.content.len() + self.links.len()) * size_of::<Change>()
    }

    /// Adds an object of `size` bytes, all zero behind its header, and gives its offset.
    pub(super) fn add_object(&mut self, kind: u8, size: u64) -> u64 {
        let offset = self.end();
        self.bytes.resize(self.bytes.len() + align8(size) as usize, 0);
        self.put(offset, &[kind]);
        self.put(offset + 8, &size.to_le_bytes());
        debug_assert!(size >= OBJECT_HEADER_BYTES && offset.is_multiple_of(8));
        offset
    }

    /// Sets bytes of a new object.
    pub(super) fn put(&mut self, offset: u64, bytes: &[u8]) {
        let at = (offset - self.base) as usize;
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Sets a 32-bit number of any object, new or old.
    pub(super) fn set_u32(&mut self, order: WriteOrder, offset: u64, value: u32) {
        self.set(order, Change { offset, len: 4, value: u64::from(value) });
    }

    /// Sets a 64-bit number of any object, new or old.
    pub(super) fn set_u64(&mut self, order: WriteOrder, offset: u64, value: u64) {
        self.set(order, Change { offset, len: 8, value });
    }

    fn set(&mut self, order: WriteOrder, change: Change) {
        if change.offset >= self.base {
            self.put(change.offset, &change.value.to_le_bytes()[..usize::from(change.len)]);
        } else {
            match order {
                WriteOrder::Content => self.content.push(change),
                WriteOrder::Link => self.links.push(change),
            }
        }
    }

    /// Makes the plan that writes this batch and then the header.
    ///
    /// The batch stays as it is until [`commit`](Self::commit) says that the plan was carried out.
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

    /// Takes what a plan added back out, after it failed.
    pub(super) fn roll_back(&mut self) {
        let objects = self.writes.first().filter(|(offset, _)| *offset == self.base);
        self.bytes.truncate(objects.map_or(0, |(_, range)| range.end));
    }

    /// Starts the next batch behind this one, after its plan was carried out.
    pub(super) fn commit(&mut self) {
        self.roll_back();
        self.base = self.end();
        self.bytes.clear();
        self.content.clear();
        self.links.clear();
    }
}

/// Joins changes that touch each other into one write each; of two at the same place the later one counts.
fn join(changes: &mut [Change], bytes: &mut Vec<u8>, writes: &mut Vec<(u64, Range<usize>)>) {
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
    /// Carries the plan out, up to the first step that fails.
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

    fn writes_of(batch: &mut Batch) -> Vec<(u64, Vec<u8>)> {
        let plan = batch.plan(&[0xee; HEADER_BYTES], None);
        plan.writes.iter().map(|(offset, range)| (*offset, plan.bytes[range.clone()].to_vec())).collect()
    }

    #[test]
    fn objects_come_first_then_items_then_heads_then_the_header() {
        let mut batch = Batch::new(1024);
        batch.set_u64(WriteOrder::Link, 512, 7);
        batch.set_u32(WriteOrder::Content, 520, 8);
        assert_eq!(batch.add_object(3, 17), 1024);
        assert_eq!(batch.end(), 1048);
        let offsets: Vec<_> = writes_of(&mut batch).iter().map(|(offset, _)| *offset).collect();
        assert_eq!(offsets, [1024, 520, 512, 0]);
    }

    #[test]
    fn neighbours_become_one_write_and_the_later_of_two_changes_wins() {
        let mut batch = Batch::new(1024);
        for (offset, value) in [(108, 3), (100, 9), (104, 2), (100, 1), (116, 5)] {
            batch.set_u32(WriteOrder::Content, offset, value);
        }
        let writes = writes_of(&mut batch);
        assert_eq!(writes[0], (100, vec![1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]));
        assert_eq!(writes[1], (116, vec![5, 0, 0, 0]));
        assert_eq!(writes.len(), 3);
    }

    #[test]
    fn a_plan_that_failed_can_be_made_again_with_more_in_it() {
        let mut batch = Batch::new(1024);
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
