//! The publisher's bounded table of usage: totals by dimension and value, and which records are due.

use std::collections::HashMap;

use records::delta::{OTHER_VALUE, USAGE_VALUES_MAX, UsageDelta};
use records::kinds::UsageRecord;
use records::metrics::{Counters, Dimension, UsageCounter};

/// How soon a changed value gets a record while the budget allows, in microseconds.
const TURN_US_MIN: u64 = 4_500_000;
/// Most records of usage of one interval.
const EACH_INTERVAL: usize = 10;

/// A dimension and one of its values.
pub(super) type UsageKey = (Dimension, Box<str>);

/// Values by dimension, at most [`USAGE_VALUES_MAX`] of each; further ones are summed.
#[derive(Debug, Default)]
pub(super) struct UsageTable {
    rows: HashMap<UsageKey, PublishedUsage>,
    values: HashMap<Dimension, usize>,
}

#[derive(Debug, Default)]
struct PublishedUsage {
    counters: Counters<UsageCounter>,
    /// Beginning of the first interval with changes that no record has carried yet.
    unsent_since_us: Option<u64>,
    sent_us: Option<u64>,
}

impl UsageTable {
    /// Adds the counts of the interval that began at `start_us`.
    pub(super) fn add(&mut self, deltas: &[UsageDelta], start_us: u64) {
        for delta in deltas {
            let row = self.row(delta);
            row.counters.add(&delta.counters);
            row.unsent_since_us.get_or_insert(start_us);
        }
    }

    fn row(&mut self, delta: &UsageDelta) -> &mut PublishedUsage {
        let mut key = (delta.dimension, delta.value.clone());
        if !self.rows.contains_key(&key) {
            let values = self.values.entry(delta.dimension).or_default();
            if *values < USAGE_VALUES_MAX {
                *values += 1;
            } else {
                key.1 = OTHER_VALUE.into();
            }
        }
        self.rows.entry(key).or_default()
    }

    /// The values whose record is due at `now_us`, at most `budget` of them: those that have waited longest.
    pub(super) fn due(&self, budget: usize, now_us: u64) -> Vec<UsageKey> {
        let is_due = |row: &PublishedUsage| {
            row.sent_us.is_none_or(|sent_us| now_us.saturating_sub(sent_us) >= TURN_US_MIN)
        };
        let rows = self.rows.iter().filter(|(_, row)| is_due(row));
        let mut due: Vec<_> = rows.filter_map(|(key, row)| Some((row.unsent_since_us?, key))).collect();
        due.sort_unstable();
        due.truncate(budget.min(EACH_INTERVAL));
        due.into_iter().map(|(_, key)| key.clone()).collect()
    }

    /// Values with changes that no record has carried yet.
    pub(super) fn changed(&self) -> impl Iterator<Item = &UsageKey> {
        self.rows.iter().filter(|(_, row)| row.unsent_since_us.is_some()).map(|(key, _)| key)
    }

    /// The record of a value, and the beginning of the time that it covers; `None` if there is nothing new.
    pub(super) fn record(&self, key: &UsageKey) -> Option<(UsageRecord, u64)> {
        let row = self.rows.get(key)?;
        let record = UsageRecord { dimension: key.0, value: key.1.to_string(), counters: row.counters };
        Some((record, row.unsent_since_us?))
    }

    /// Notes that a record of this value has been written.
    pub(super) fn sent(&mut self, key: &UsageKey, now_us: u64) {
        if let Some(row) = self.rows.get_mut(key) {
            row.unsent_since_us = None;
            row.sent_us = Some(now_us);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(value: &str, full: u64) -> UsageDelta {
        let mut counters = Counters::default();
        counters[UsageCounter::HandshakesFull] = full;
        UsageDelta { dimension: Dimension::Name, value: value.into(), counters }
    }

    #[test]
    fn a_million_names_are_bounded_and_their_sum_is_exact() {
        let mut table = UsageTable::default();
        for n in 0..1_000_000 {
            table.add(&[delta(&format!("{n}.test"), 1)], 0);
        }
        assert_eq!(table.rows.len(), USAGE_VALUES_MAX + 1);
        let sum: u64 = table.rows.values().map(|row| row.counters[UsageCounter::HandshakesFull]).sum();
        assert_eq!(sum, 1_000_000);
        let other = table.record(&(Dimension::Name, OTHER_VALUE.into())).unwrap().0;
        assert_eq!(other.counters[UsageCounter::HandshakesFull], 1_000_000 - USAGE_VALUES_MAX as u64);
    }

    #[test]
    fn a_value_gets_a_record_at_most_each_turn() {
        let mut table = UsageTable::default();
        table.add(&[delta("a.test", 1)], 0);
        let due = table.due(5, 1_000_000);
        assert_eq!(due.len(), 1);
        table.sent(&due[0], 1_000_000);
        assert!(table.due(5, 9_000_000).is_empty(), "nothing has changed");
        table.add(&[delta("a.test", 1)], 1_000_000);
        assert!(table.due(5, 2_000_000).is_empty());
        assert_eq!(table.due(5, 6_000_000), due);
        assert_eq!(table.record(&due[0]).unwrap().0.counters[UsageCounter::HandshakesFull], 2);
    }
}
