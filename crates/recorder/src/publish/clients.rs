//! The publisher's bounded table of clients: totals, their recorded parts, and the due records.

use std::collections::HashMap;

use records::delta::ClientDelta;
use records::histogram::Sketch;
use records::ids::ClientId;
use records::kinds::ClientRecord;
use records::metrics::{ClientCounter, Counters};

/// How soon a changed client gets a record while the budget allows, in microseconds.
const TURN_US_MAX: u64 = 10_000_000;

/// How long a client's latencies are gathered before a record carries them, in microseconds: a little less than five
/// intervals of a second. Latencies make a record a tenth larger.
const SKETCH_US_MIN: u64 = 4_500_000;

/// A client's record that is due, and the beginning of the time that it covers.
#[derive(Debug)]
pub(crate) struct DueRecord {
    pub(crate) record: ClientRecord,
    /// Beginning of the time that its changes fall into, `CLOCK_MONOTONIC` in microseconds.
    pub(crate) since_us: u64,
    /// Totals of the records written.
    written: Counters<ClientCounter>,
}

#[derive(Debug)]
struct TrackedClient {
    epoch: u64,
    open: i64,
    counters: Counters<ClientCounter>,
    sent: Counters<ClientCounter>,
    /// Latencies that no record has carried yet.
    exchange: Sketch,
    /// At the end of its latest handshake, in microseconds; 0 if not known.
    rtt_us: u64,
    /// When a record carried some last.
    sketch_sent_us: Option<u64>,
    /// Beginning of the first interval with changes that no record has carried yet.
    unsent_since_us: Option<u64>,
    active_us: u64,
}

impl TrackedClient {
    fn unsent_bytes(&self) -> u64 {
        let unsent = self.counters.since(&self.sent);
        unsent[ClientCounter::BytesIn] + unsent[ClientCounter::BytesOut]
    }

    fn is_sketch_due(&self, now_us: u64) -> bool {
        let waited = |sent_us: u64| now_us.saturating_sub(sent_us) >= SKETCH_US_MIN;
        !self.exchange.is_empty() && self.sketch_sent_us.is_none_or(waited)
    }

    /// Since when a record of it is due; `None` if none is. A record with latencies only covers no time.
    fn due_since(&self, now_us: u64) -> Option<u64> {
        self.unsent_since_us.or_else(|| self.is_sketch_due(now_us).then_some(now_us))
    }

    fn record(&self, client: ClientId, now_us: u64) -> ClientRecord {
        let exchange = if self.is_sketch_due(now_us) { self.exchange.clone() } else { Sketch::default() };
        ClientRecord { last: false, exchange, ..self.last_record(client) }
    }

    fn last_record(&self, client: ClientId) -> ClientRecord {
        let open = u64::try_from(self.open).unwrap_or(0);
        let Self { epoch, counters, rtt_us, .. } = *self;
        ClientRecord { client, epoch, last: true, open, counters, rtt_us, exchange: self.exchange.clone() }
    }
}

/// The table of clients, at most `max` besides `other`.
#[derive(Debug)]
pub(crate) struct ClientTable {
    rows: HashMap<ClientId, TrackedClient>,
    max: usize,
    epochs: u64,
    /// Clients that left the table with changes that no record has carried; theirs are written first.
    leaving: Vec<DueRecord>,
}

impl ClientTable {
    pub(crate) fn new(max: usize) -> Self {
        Self { rows: HashMap::new(), max, epochs: 0, leaving: Vec::new() }
    }

    /// Adds the counts of the interval from `start_us` to `end_us`.
    pub(crate) fn add(&mut self, deltas: &[ClientDelta], start_us: u64, end_us: u64, leaving_max: usize) {
        // Once no room can be made, each further attempt would scan the whole table.
        let mut is_crowded = false;
        for delta in deltas {
            let client = self.place(delta.client, leaving_max, &mut is_crowded);
            let row = self.row(client);
            row.open += delta.open_change;
            row.counters.add(&delta.counters);
            row.exchange.add(&delta.exchange);
            if delta.rtt_us > 0 {
                row.rtt_us = delta.rtt_us;
            }
            row.unsent_since_us.get_or_insert(start_us);
            row.active_us = end_us;
        }
    }

    /// The client to account to: this one, or `other` if the table is full of clients with open connections.
    fn place(&mut self, client: ClientId, leaving_max: usize, is_crowded: &mut bool) -> ClientId {
        if self.rows.len() < self.max || client == ClientId::Other || self.rows.contains_key(&client) {
            return client;
        }
        if !*is_crowded {
            self.make_room(leaving_max);
            *is_crowded = self.rows.len() >= self.max;
        }
        if *is_crowded { ClientId::Other } else { client }
    }

    fn row(&mut self, client: ClientId) -> &mut TrackedClient {
        let epochs = &mut self.epochs;
        self.rows.entry(client).or_insert_with(|| {
            *epochs += 1;
            TrackedClient {
                epoch: *epochs,
                open: 0,
                counters: Counters::default(),
                sent: Counters::default(),
                exchange: Sketch::default(),
                rtt_us: 0,
                sketch_sent_us: None,
                unsent_since_us: None,
                active_us: 0,
            }
        })
    }

    /// Removes a hundredth of the table: clients without connections that have been silent longest. Their last changes
    /// are written if not too many leave at once, and added to `other` otherwise.
    fn make_room(&mut self, leaving_max: usize) {
        let idle = |(id, row): (&ClientId, &TrackedClient)| {
            (row.open <= 0 && *id != ClientId::Other).then_some((row.active_us, *id))
        };
        let mut candidates: Vec<_> = self.rows.iter().filter_map(idle).collect();
        candidates.sort_unstable();
        for (_, id) in candidates.into_iter().take((self.max / 100).max(1)) {
            let Some(row) = self.rows.get(&id) else { continue };
            match row.due_since(u64::MAX) {
                Some(since_us) if self.leaving.len() < leaving_max => {
                    self.leaving.push(DueRecord { record: row.last_record(id), since_us, written: row.sent });
                    self.rows.remove(&id);
                }
                _ => self.fold(id),
            }
        }
    }

    /// The records that are due at `now_us`, at most `budget` of them, `span_us` after the previous round: clients
    /// that leave, then the busiest and those that have waited longest. Each must be reported by [`Self::sent`] once
    /// written.
    ///
    /// The busiest get half of the room, or down to a quarter if the others would wait too long. A reader relies on the
    /// order of the others: a change that still waits is no older than the oldest that gets a record.
    pub(crate) fn due(&mut self, budget: usize, now_us: u64, span_us: u64) -> Vec<DueRecord> {
        let leaving = self.leaving.len().min(budget);
        let mut due: Vec<DueRecord> = self.leaving.drain(..leaving).collect();
        let mut changed: Vec<(ClientId, u64, u64)> = self
            .rows
            .iter()
            .filter_map(|(id, row)| row.due_since(now_us).map(|since| (*id, since, row.unsent_bytes())))
            .collect();
        let room = budget - leaving;
        if changed.len() > room {
            let in_turn = (changed.len() as u64).saturating_mul(span_us).div_ceil(TURN_US_MAX);
            let in_turn = usize::try_from(in_turn).unwrap_or(room).clamp(room - room / 2, room - room / 4);
            let busiest = room - in_turn;
            changed.sort_unstable_by_key(|&(id, _, bytes)| (std::cmp::Reverse(bytes), id));
            changed[busiest..].sort_unstable_by_key(|&(id, since, _)| (since, id));
            changed.truncate(room);
        }
        // If the journal refuses the rest, it is not older than what it took.
        changed.sort_unstable_by_key(|&(id, since, _)| (since, id));
        let record = |(id, since_us, _)| {
            self.rows.get(&id).map(|row| DueRecord {
                record: row.record(id, now_us),
                since_us,
                written: row.sent,
            })
        };
        due.extend(changed.into_iter().filter_map(record));
        due
    }

    /// Notes that a record of [`Self::due`] has been written at `now_us`.
    pub(crate) fn sent(&mut self, record: &ClientRecord, now_us: u64) {
        if let Some(row) = self.rows.get_mut(&record.client).filter(|row| row.epoch == record.epoch) {
            row.sent = record.counters;
            if !record.exchange.is_empty() {
                row.exchange.remove(&record.exchange);
                row.sketch_sent_us = Some(now_us);
            }
            row.unsent_since_us = None;
        }
    }

    /// Keeps a refused record of a client that has left. Other records are built again.
    pub(crate) fn refused(&mut self, due: DueRecord) {
        if due.record.last {
            self.leaving.push(due);
        }
    }

    /// Epoch and totals of each client, as of the records written; also of clients that have left and whose record is
    /// still to be written.
    pub(crate) fn written<'d>(
        &'d self,
        planned: impl Iterator<Item = &'d DueRecord>,
    ) -> foldhash::HashMap<ClientId, (u64, Counters<ClientCounter>)> {
        let leaving = self.leaving.iter().chain(planned);
        let leaving = leaving.map(|due| (due.record.client, (due.record.epoch, due.written)));
        leaving.chain(self.rows.iter().map(|(id, row)| (*id, (row.epoch, row.sent)))).collect()
    }

    /// Clients with changes that no record has carried yet.
    pub(crate) fn deferred(&self) -> usize {
        self.rows.values().filter(|row| row.unsent_since_us.is_some()).count()
    }

    /// The last record of every client, as the run ends, in order of the clients. If there are more than `max`, those
    /// with the least that no record has carried are folded into `other`.
    pub(crate) fn finish(&mut self, now_us: u64, max: usize) -> Vec<DueRecord> {
        let mut all = std::mem::take(&mut self.leaving);
        let excess = (self.rows.len() + all.len()).saturating_sub(max);
        if excess > 0 {
            let weight = |(id, row): (&ClientId, &TrackedClient)| {
                (row.unsent_since_us.is_some(), row.unsent_bytes(), *id)
            };
            let mut by_weight: Vec<_> = self.rows.iter().map(weight).collect();
            by_weight.retain(|(_, _, id)| *id != ClientId::Other);
            by_weight.sort_unstable();
            // One more makes room for `other`.
            by_weight.into_iter().take(excess + 1).for_each(|(_, _, id)| self.fold(id));
        }
        let last = |(id, row): (&ClientId, &TrackedClient)| DueRecord {
            record: row.last_record(*id),
            since_us: row.unsent_since_us.unwrap_or(now_us),
            written: row.sent,
        };
        all.extend(self.rows.iter().map(last));
        all.sort_unstable_by_key(|due| due.record.client);
        all
    }

    /// Removes a client and adds its unwritten counts to `other`.
    fn fold(&mut self, client: ClientId) {
        let Some(row) = self.rows.remove(&client) else { return };
        if !row.exchange.is_empty() {
            self.row(ClientId::Other).exchange.add(&row.exchange);
        }
        if let Some(since_us) = row.unsent_since_us {
            let other = self.row(ClientId::Other);
            other.counters.add(&row.counters.since(&row.sent));
            let earliest_us = other.unsent_since_us.get_or_insert(since_us);
            *earliest_us = since_us.min(*earliest_us);
        }
    }
}

#[cfg(test)]
mod tests;
