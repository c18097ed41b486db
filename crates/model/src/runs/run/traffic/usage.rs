//! Usage: totals of a run by TLS version, group, cipher, server name and so on.

use std::collections::BTreeMap;

use crate::runs::run::aligned::AlignedRun;
use records::delta::{OTHER_VALUE, USAGE_VALUES_MAX};
use records::kinds::heap_size::HeapSize as _;
use records::kinds::{Stamp, UsageRecord};
use records::metrics::{Counters, Dimension, UsageCounter};

#[derive(Clone, Copy, Debug, Default)]
struct UsageTotals {
    counters: Counters<UsageCounter>,
    last_us: u64,
}

/// The known values of each dimension of a run, with their totals. A hostile journal cannot add more than a writer
/// distinguishes.
#[derive(Clone, Debug, Default)]
pub struct Usage(BTreeMap<Dimension, BTreeMap<String, UsageTotals>>);

impl Usage {
    pub(in crate::runs) fn apply(&mut self, stamp: &Stamp, record: UsageRecord) {
        let values = self.0.entry(record.dimension).or_default();
        // One more for `other`.
        if values.len() <= USAGE_VALUES_MAX || values.contains_key(&record.value) {
            values.insert(record.value, UsageTotals { counters: record.counters, last_us: stamp.mono_us });
        }
    }

    pub(in crate::runs) fn merged(members: &[(AlignedRun<'_>, &Self)]) -> Self {
        let mut merged = Self::default();
        for (run, usage) in members {
            for (&dimension, values) in &usage.0 {
                let sums = merged.0.entry(dimension).or_default();
                for (value, totals) in values {
                    let has_room = sums.len() <= USAGE_VALUES_MAX || sums.contains_key(value);
                    let value = if has_room { value.as_str() } else { OTHER_VALUE };
                    let sum = sums.entry(value.to_owned()).or_default();
                    sum.counters.add(&totals.counters);
                    sum.last_us = sum.last_us.max(run.shifted_us(totals.last_us));
                }
            }
        }
        merged
    }

    /// The values that did not change after a moment; others are read again.
    pub(in crate::runs) fn idle_at(&self, us: u64) -> Self {
        let idle = |values: &BTreeMap<String, UsageTotals>| {
            let idle = values.iter().filter(|(_, totals)| totals.last_us <= us);
            idle.map(|(value, totals)| (value.clone(), *totals)).collect()
        };
        Self(self.0.iter().map(|(&dimension, values)| (dimension, idle(values))).collect())
    }

    pub(in crate::runs) fn heap_bytes(&self) -> usize {
        let value = |value: &String| size_of::<(String, UsageTotals)>() + value.heap_bytes();
        self.0.values().flat_map(BTreeMap::keys).map(value).sum()
    }

    /// The values of a dimension with their totals of the run, by name.
    pub fn of(&self, dimension: Dimension) -> impl Iterator<Item = (&str, &Counters<UsageCounter>)> {
        let values = self.0.get(&dimension).into_iter().flatten();
        values.map(|(value, totals)| (value.as_str(), &totals.counters))
    }

    /// The sum over the values of a dimension. Server names and fingerprints also count failed handshakes, and signatures
    /// and certificates only full ones.
    pub fn sum(&self, dimension: Dimension) -> Counters<UsageCounter> {
        let mut sum = Counters::default();
        self.of(dimension).for_each(|(_, counters)| sum.add(counters));
        sum
    }

    pub fn is_empty(&self) -> bool {
        self.0.values().all(BTreeMap::is_empty)
    }
}
