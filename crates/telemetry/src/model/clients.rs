//! The table of clients.

use std::collections::{HashMap, VecDeque};

use crate::delta::CLIENTS_MAX;
use crate::families::ClientCounter;
use crate::ids::ClientId;
use crate::metric::Counters;
use crate::record::{ClientRecord, Stamp};

/// Intervals of a client that are kept for its sparkline.
pub(super) const HISTORY_MAX: usize = 60;

/// What one client did in the time that one of its records covers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientRate {
    /// End of the time, `CLOCK_MONOTONIC` in microseconds.
    pub end_us: u64,
    /// Its length in microseconds, never 0.
    pub span_us: u64,
    /// What was counted in it.
    pub counters: Counters<ClientCounter>,
}

impl ClientRate {
    /// Events, or bytes, a second.
    pub fn per_second(&self, metric: ClientCounter) -> f64 {
        self.counters[metric] as f64 * 1e6 / self.span_us as f64
    }

    /// Plaintext bytes a second, both ways.
    pub fn bytes_per_second(&self) -> f64 {
        self.per_second(ClientCounter::BytesIn) + self.per_second(ClientCounter::BytesOut)
    }
}

/// One client of a run.
#[derive(Clone, Debug)]
pub struct Client {
    /// Who it is.
    pub id: ClientId,
    /// Connections open when its last record was made.
    pub open: u64,
    /// `CLOCK_MONOTONIC` of its last record, in microseconds.
    pub last_us: u64,
    epoch: u64,
    /// Totals of the epochs before this one.
    earlier: Counters<ClientCounter>,
    /// Totals of this epoch.
    present: Counters<ClientCounter>,
    history: VecDeque<ClientRate>,
}

impl Client {
    fn new(id: ClientId) -> Self {
        Self {
            id,
            open: 0,
            last_us: 0,
            epoch: 0,
            earlier: Counters::default(),
            present: Counters::default(),
            history: VecDeque::new(),
        }
    }

    fn apply(&mut self, stamp: &Stamp, record: &ClientRecord, from_start: bool, lost_before: bool) {
        let is_first = self.epoch == 0;
        if record.epoch != self.epoch {
            self.earlier.add(&self.present);
            self.present = Counters::default();
            self.epoch = record.epoch;
        }
        let delta = record.counters.since(&self.present);
        // After a loss the counters may cover more than the record says; the longer time is the honest one.
        let since_last_us = stamp.mono_us.saturating_sub(self.last_us);
        let lost_some = lost_before && !is_first && since_last_us > stamp.interval_us;
        let span_us = if lost_some { since_last_us } else { stamp.interval_us };
        if span_us > 0 && (from_start || !is_first) {
            if self.history.len() == HISTORY_MAX {
                self.history.pop_front();
            }
            self.history.push_back(ClientRate { end_us: stamp.mono_us, span_us, counters: delta });
        }
        self.present = record.counters;
        self.open = record.open;
        self.last_us = stamp.mono_us;
    }

    /// Totals over all its epochs.
    pub fn totals(&self) -> Counters<ClientCounter> {
        let mut totals = self.earlier;
        totals.add(&self.present);
        totals
    }

    /// The latest records' rates, oldest first.
    pub fn history(&self) -> impl DoubleEndedIterator<Item = &ClientRate> + ExactSizeIterator {
        self.history.iter()
    }
}

/// The clients of a run, at most [`CLIENTS_MAX`] and one for `other`.
#[derive(Debug, Default)]
pub struct Clients {
    rows: HashMap<ClientId, Client>,
    /// Records of clients for which the table had no room.
    turned_away: u64,
    lost_so_far: u64,
}

impl Clients {
    pub(super) fn apply(&mut self, stamp: &Stamp, record: &ClientRecord, from_start: bool, lost: u64) {
        let lost_before = lost > self.lost_so_far;
        if self.rows.len() > CLIENTS_MAX && !self.rows.contains_key(&record.client) {
            self.make_room(stamp.mono_us);
        }
        if self.rows.len() > CLIENTS_MAX && !self.rows.contains_key(&record.client) {
            self.turned_away += 1;
            return;
        }
        let client = self.rows.entry(record.client).or_insert_with(|| Client::new(record.client));
        client.apply(stamp, record, from_start, lost_before);
    }

    /// Called when an interval is complete: earlier losses then no longer concern the next records.
    pub(super) fn end_interval(&mut self, lost: u64) {
        self.lost_so_far = lost;
    }

    /// Forgets the tenth of the clients that has been silent longest. Their totals leave the table with them, so
    /// this only happens beyond the size that the writer itself keeps to.
    fn make_room(&mut self, _now_us: u64) {
        let mut by_age: Vec<(u64, ClientId)> = self
            .rows
            .values()
            .filter(|client| client.open == 0 && client.id != ClientId::Other)
            .map(|client| (client.last_us, client.id))
            .collect();
        by_age.sort_unstable();
        for (_, id) in by_age.into_iter().take(CLIENTS_MAX / 10) {
            if let Some(gone) = self.rows.remove(&id) {
                self.fold_into_other(&gone);
            }
        }
    }

    fn fold_into_other(&mut self, gone: &Client) {
        let other = self.rows.entry(ClientId::Other).or_insert_with(|| Client::new(ClientId::Other));
        other.earlier.add(&gone.totals());
    }

    /// All clients, in no order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Client> {
        self.rows.values()
    }

    /// One client.
    pub fn get(&self, id: ClientId) -> Option<&Client> {
        self.rows.get(&id)
    }

    /// Clients in the table.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// True without clients.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Records of clients for which there was no room.
    pub fn turned_away(&self) -> u64 {
        self.turned_away
    }
}
