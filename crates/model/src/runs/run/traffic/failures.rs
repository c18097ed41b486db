//! Why handshakes failed, as far as single connections have records.

use std::collections::BTreeMap;

use records::kinds::heap_size::HeapSize as _;
use records::kinds::{ConnectionOutcome, ConnectionRecord};

/// The most reasons that are counted separately.
const REASONS_MAX: usize = 64;
/// The name of all others.
const OTHER: &str = "other reasons";

/// Failed handshakes by outcome and detail, such as the alert that a client sent. Not all failures have a record: the
/// counters of the proxy have them all, by coarser causes.
#[derive(Debug, Default)]
pub struct Failures(BTreeMap<(&'static str, String), u64>);

impl Failures {
    /// Their size in memory, in bytes.
    pub(in crate::runs) fn bytes(&self) -> usize {
        self.0.keys().map(|(_, detail)| size_of::<(&str, String, u64)>() + detail.heap_bytes()).sum()
    }

    pub(in crate::runs) fn note(&mut self, connection: &ConnectionRecord) {
        let kind = match connection.outcome {
            ConnectionOutcome::HandshakeAlert => "alert",
            ConnectionOutcome::Incompatible => "incompatible",
            ConnectionOutcome::HandshakeOther => "failed",
            _ => return,
        };
        let key = (kind, connection.detail.clone());
        let key = if self.0.contains_key(&key) || self.0.len() < REASONS_MAX {
            key
        } else {
            (kind, OTHER.to_owned())
        };
        *self.0.entry(key).or_default() += 1;
    }

    pub(in crate::runs) fn merged<'a>(all: impl Iterator<Item = &'a Self>) -> Self {
        let mut merged = Self::default();
        for (key, n) in all.flat_map(|failures| &failures.0) {
            let is_known = merged.0.contains_key(key) || merged.0.len() < REASONS_MAX;
            let key = if is_known { key.clone() } else { (key.0, OTHER.to_owned()) };
            *merged.0.entry(key).or_default() += n;
        }
        merged
    }

    /// Kind, detail and number of each, the most frequent first.
    pub fn by_frequency(&self) -> Vec<(&'static str, &str, u64)> {
        let mut all: Vec<_> = self.0.iter().map(|((kind, detail), n)| (*kind, &**detail, *n)).collect();
        all.sort_by_key(|&(.., n)| std::cmp::Reverse(n));
        all
    }
}
