//! The table of clients.

use std::collections::VecDeque;

use foldhash::HashMap;

use crate::runs::run::aligned::AlignedRun;
use crate::runs::run::traffic::client::{ClientStats, Coverage};
use records::delta::CLIENTS_MAX;
use records::ids::ClientId;
use records::kinds::heap_size::HeapSize;
use records::kinds::{ClientRecord, ConnectionRecord, Stamp};
use records::metrics::{ClientCounter, Counters};

/// Rates kept of each client, for its sparkline.
pub(in crate::runs) const HISTORY_MAX: usize = 60;

/// Latest changes that are kept for a reader with its own table.
const CHANGES_MAX: usize = 2_048;

/// Memory of all clients, in bytes: enough for [`CLIENTS_MAX`] with all of the above. Beyond it, active clients keep
/// only their latest rate and latencies.
const BYTES_MAX: usize = 128 << 20;

/// Remembered clients that have left the table. The writer distinguishes at most [`CLIENTS_MAX`] clients at a time.
const FOLDED_MAX: usize = 4 * CLIENTS_MAX;

/// A client that was removed from the table. It is kept in case the client returns in the same epoch.
#[derive(Clone, Copy, Debug)]
struct RemovedClient {
    epoch: u64,
    present: Counters<ClientCounter>,
    last_us: u64,
}

/// The clients of a run, at most [`CLIENTS_MAX`] and one for `other`.
#[derive(Debug)]
pub struct Clients {
    rows: HashMap<ClientId, ClientStats>,
    /// Clients whose totals were added to `other`.
    folded: HashMap<ClientId, RemovedClient>,
    /// Rates that are kept of each client.
    history: usize,
    /// Heap memory of the rows, in bytes.
    heap_bytes: usize,
    /// [`BYTES_MAX`], and less in tests.
    bytes_max: usize,
    /// Records of clients that did not fit into the table.
    turned_away: u64,
    /// Records taken in.
    changes_total: u64,
    /// The clients of the latest records, oldest first. It is emptied when a client leaves the table.
    changes: VecDeque<ClientId>,
    /// Records known to be lost at the end of the last interval, and of the previous one.
    lost_at_ends: [u64; 2],
    /// The earliest beginning of the records of the interval that is being read.
    earliest_us: Option<u64>,
    recorded_until_us: u64,
}

impl Clients {
    pub(in crate::runs) fn new(history: usize) -> Self {
        Self {
            rows: HashMap::default(),
            folded: HashMap::default(),
            history: history.clamp(1, HISTORY_MAX),
            heap_bytes: 0,
            bytes_max: BYTES_MAX,
            turned_away: 0,
            changes_total: 0,
            changes: VecDeque::new(),
            lost_at_ends: [0; 2],
            earliest_us: None,
            recorded_until_us: 0,
        }
    }

    /// The clients of several runs, by their addresses; without rates, which are of different clocks.
    pub(in crate::runs) fn merged(members: &[(AlignedRun<'_>, &Self)]) -> Self {
        let mut merged = Self::new(1);
        for (run, clients) in members {
            merged.turned_away += clients.turned_away;
            for client in clients.rows.values() {
                let is_known = merged.rows.contains_key(&client.id) || merged.rows.len() < CLIENTS_MAX;
                let id = if is_known { client.id } else { ClientId::Other };
                let sum = merged.rows.entry(id).or_insert_with(|| ClientStats::new(id));
                sum.open += if run.is_together { client.open } else { 0 };
                if client.rtt_us > 0 && id != ClientId::Other {
                    sum.rtt_us = client.rtt_us;
                }
                sum.present.add(&client.totals());
                sum.exchange.add(&client.exchange);
            }
        }
        merged.recount();
        merged
    }

    /// The clients that were idle from a moment on, with their totals then; without rates and latest latencies.
    pub(in crate::runs) fn idle_at(&self, us: u64, history: usize) -> Self {
        let idle = self.rows.values().filter(|client| client.last_us <= us);
        let rows = idle.map(|client| (client.id, client.without_rates()));
        let mut then = Self { rows: rows.collect(), ..Self::new(history) };
        then.recount();
        then
    }

    /// Keeps only the latest rate and latencies of each client from now on.
    pub(in crate::runs) fn condense(&mut self) {
        self.history = 1;
        self.rows.values_mut().for_each(ClientStats::condense);
        self.recount();
    }

    fn recount(&mut self) {
        self.heap_bytes = self.rows.values().map(HeapSize::heap_bytes).sum();
    }

    /// Their size in memory, in bytes.
    pub(in crate::runs) fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<(ClientId, ClientStats)>()
            + self.folded.capacity() * size_of::<(ClientId, RemovedClient)>()
            + self.changes.capacity() * size_of::<ClientId>()
            + self.heap_bytes
    }

    pub(in crate::runs) fn apply(
        &mut self,
        stamp: &Stamp,
        record: &ClientRecord,
        from_start: bool,
        lost: u64,
    ) {
        if !self.rows.contains_key(&record.client) && !self.add_client(record) {
            self.turned_away += 1;
            return;
        }
        let known = Coverage { from_start, lost, lost_lately: lost > self.lost_at_ends[1] };
        let history = if self.heap_bytes > self.bytes_max { 1 } else { self.history };
        let client = self.rows.entry(record.client).or_insert_with(|| ClientStats::new(record.client));
        let bytes_before = client.heap_bytes();
        if let Some(rate) = client.apply(stamp, record, known) {
            client.remember(rate, history);
        }
        client.time(stamp.mono_us, &record.exchange, history);
        // Those that leave have not waited their turn.
        if stamp.interval_us > 0 && !record.last {
            let begins_us = stamp.mono_us.saturating_sub(stamp.interval_us);
            self.earliest_us = Some(self.earliest_us.map_or(begins_us, |us| us.min(begins_us)));
        }
        self.heap_bytes = self.heap_bytes - bytes_before + client.heap_bytes();
        self.record_change(record.client);
    }

    /// Keeps the latest connection of a known client, from a record of this moment.
    pub(in crate::runs) fn record_connection(&mut self, us: u64, connection: Box<ConnectionRecord>) {
        if let Some(client) = self.rows.get_mut(&connection.client) {
            let at = usize::from(connection.outcome.is_error());
            client.connections_us[at] = us;
            let place = &mut client.connections[at];
            let bytes_before = place.heap_bytes();
            let connection = place.insert(connection);
            self.heap_bytes = self.heap_bytes - bytes_before + connection.heap_bytes();
        }
    }

    fn record_change(&mut self, id: ClientId) {
        if self.changes.len() == CHANGES_MAX {
            self.changes.pop_front();
        }
        self.changes.push_back(id);
        self.changes_total += 1;
    }

    /// Called when an interval is complete. All that clients did before `recorded_until_us` is known to be recorded.
    pub(in crate::runs) fn end_interval(&mut self, lost: u64, recorded_until_us: u64) {
        // The clients that waited longest get records first, so no record that is still to come begins earlier.
        let earliest_us = self.earliest_us.take().filter(|_| !self.has_new_losses(lost));
        self.recorded_until_us = recorded_until_us.max(earliest_us.unwrap_or(0));
        self.lost_at_ends = [lost, self.lost_at_ends[0]];
    }

    /// All that clients did before this moment has been recorded, as far as complete intervals tell (`CLOCK_MONOTONIC`,
    /// microseconds).
    pub(in crate::runs) fn recorded_until_us(&self) -> u64 {
        self.recorded_until_us
    }

    /// True if records were lost in the interval that is being read.
    pub(in crate::runs) fn has_new_losses(&self, lost: u64) -> bool {
        lost > self.lost_at_ends[0]
    }

    /// Makes a row for a new client; false if there is no room.
    fn add_client(&mut self, record: &ClientRecord) -> bool {
        if self.rows.len() > CLIENTS_MAX {
            self.make_room();
        }
        if self.rows.len() > CLIENTS_MAX {
            return false;
        }
        let mut client = ClientStats::new(record.client);
        // In the same epoch its counters go on from where they were, and `other` must not count them too.
        if let Some(folded) = self.folded.remove(&record.client).filter(|it| it.epoch == record.epoch) {
            let other = self.rows.entry(ClientId::Other).or_insert_with(|| ClientStats::new(ClientId::Other));
            other.earlier = other.earlier.since(&folded.present);
            self.record_change(ClientId::Other);
            client.resume(folded.epoch, folded.present, folded.last_us);
        }
        self.rows.insert(record.client, client);
        true
    }

    /// Removes the tenth of the clients that has been silent longest, and adds their totals to `other`.
    fn make_room(&mut self) {
        let idle = self.rows.values().filter(|client| client.open == 0 && client.id != ClientId::Other);
        let mut by_age: Vec<(u64, ClientId)> = idle.map(|client| (client.last_us, client.id)).collect();
        by_age.sort_unstable();
        for (_, id) in by_age.into_iter().take(CLIENTS_MAX / 10) {
            if let Some(gone) = self.rows.remove(&id) {
                let other =
                    self.rows.entry(ClientId::Other).or_insert_with(|| ClientStats::new(ClientId::Other));
                other.earlier.add(&gone.totals());
                other.exchange.add(&gone.exchange);
                let ClientStats { epoch, present, last_us, .. } = gone;
                self.folded.insert(id, RemovedClient { epoch, present, last_us });
            }
        }
        self.changes.clear();
        self.forget_folded();
        self.recount();
    }

    /// Forgets the clients that left longest ago: the writer has forgotten them too, and will begin a new epoch.
    fn forget_folded(&mut self) {
        if self.folded.len() <= FOLDED_MAX {
            return;
        }
        let mut ages: Vec<u64> = self.folded.values().map(|folded| folded.last_us).collect();
        let (_, &mut median_us, _) = ages.select_nth_unstable(FOLDED_MAX / 2);
        self.folded.retain(|_, folded| folded.last_us > median_us);
    }

    /// All clients, in no order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &ClientStats> {
        self.rows.values()
    }

    pub fn get(&self, id: ClientId) -> Option<&ClientStats> {
        self.rows.get(&id)
    }

    /// Number of changes of the table, for [`Self::changed_since`].
    pub fn changes_total(&self) -> u64 {
        self.changes_total
    }

    /// The clients changed after the first `changes_total` changes; a client may occur more than once. `None` if this
    /// is no longer known and the whole table may have changed.
    pub fn changed_since(&self, changes_total: u64) -> Option<impl Iterator<Item = ClientId>> {
        let new = usize::try_from(self.changes_total.checked_sub(changes_total)?).ok()?;
        let known = self.changes.len().checked_sub(new)?;
        Some(self.changes.range(known..).copied())
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Records of clients for which there was no room.
    pub fn turned_away(&self) -> u64 {
        self.turned_away
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use records::histogram::Sketch;
    use records::ids::RunId;

    #[test]
    fn the_client_table_is_bounded_and_totals_stay_exact() {
        let mut exchange = Sketch::default();
        (0..1_000).for_each(|us| exchange.record(Duration::from_micros(us * us)));
        let mut clients = Clients { bytes_max: 4 << 20, ..Clients::new(HISTORY_MAX) };
        for round in 1..=20_u64 {
            for number in 0..1_000_u32 {
                let mono_us = round * 1_000_000;
                let stamp = Stamp {
                    run: RunId::from_bits(1),
                    seq: 1,
                    mono_us,
                    realtime_us: 1,
                    interval_us: 1_000_000,
                };
                let client = std::net::IpAddr::from(number.to_be_bytes()).into();
                let mut counters = Counters::default();
                counters[ClientCounter::BytesIn] = 10 * round;
                let exchange = exchange.clone();
                let record =
                    ClientRecord { client, epoch: 1, last: false, open: 1, counters, rtt_us: 0, exchange };
                clients.apply(&stamp, &record, true, 0);
            }
            let counted: usize = clients.iter().map(HeapSize::heap_bytes).sum();
            assert_eq!(clients.heap_bytes, counted);
            assert!(counted < 6 << 20, "{counted} bytes after {round} rounds");
        }
        for client in clients.iter() {
            assert_eq!((client.totals()[ClientCounter::BytesIn], client.exchange().count()), (200, 20_000));
            assert!(client.history().len() > 0);
        }
    }
}
