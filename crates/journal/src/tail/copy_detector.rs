//! Detects entries that journald has copied to another folder.
//!
//! Once `/var` is writable, journald copies its entries from `/run` to there, and removes the originals
//! (`journalctl --flush`, systemd-journal-flush.service). A copy has another sequence number, but the same
//! times, boot and fields; sd-journal(3) compares these too.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher as _;

use super::entry::Entry;

/// The number of remembered entries: more than journald keeps in `/run` by default on a machine with 16 GiB
/// of memory.
const ENTRIES_MAX: usize = 1 << 18;

/// The latest entries and their folders.
#[derive(Debug, Default)]
pub(super) struct CopyDetector {
    hasher: RandomState,
    /// The index of the folder in which each entry was first read.
    first_folder: HashMap<u64, usize>,
    in_order: VecDeque<u64>,
}

impl CopyDetector {
    /// Remembers an entry; returns whether it is a copy of one from another folder.
    pub(super) fn is_copy(&mut self, entry: &Entry, folder: usize) -> bool {
        let key = self.hasher.hash_one(entry.copy_key());
        if let Some(first) = self.first_folder.get(&key) {
            return *first != folder;
        }
        if self.in_order.len() >= ENTRIES_MAX
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.first_folder.remove(&oldest);
        }
        self.first_folder.insert(key, folder);
        self.in_order.push_back(key);
        false
    }
}
