//! Entries that are met a second time, in another folder.
//!
//! Once `/var` is writable, journald copies what it has in `/run` to there, and removes it
//! (`journalctl --flush`, systemd-journal-flush.service). The copies have numbers of their own, but the times, the boot
//! and the fields of the originals, by which sd-journal(3) knows them too.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasher as _;

use super::entry::Entry;

/// So many entries are remembered: more than journald keeps in `/run` by default on a machine with 16 GiB of memory.
const ENTRIES_MAX: usize = 1 << 18;

/// The entries that were met lately.
#[derive(Debug, Default)]
pub(super) struct CopyDetector {
    hasher: RandomState,
    /// In which folder, by number, each was met first.
    first_folder: HashMap<u64, usize>,
    in_order: VecDeque<u64>,
}

impl CopyDetector {
    /// Remembers an entry, and tells whether it is a copy of one that was met in another folder.
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
