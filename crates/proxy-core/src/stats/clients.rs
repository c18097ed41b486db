//! Counters of each client of a worker since they were last collected.

use std::time::Duration;

use foldhash::{HashMap, HashMapExt as _};
use records::delta::{ClientDelta, ProxyDelta};
use records::histogram::Sketch;
use records::ids::ClientId;
use records::metrics::{ClientCounter, Counters};
use slab::Slab;

/// Where a client's counters are. A connection holds the slot of its client for as long as it lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientSlot(usize);

#[derive(Debug)]
struct ClientEntry {
    id: ClientId,
    /// Connections that hold the slot.
    open: u64,
    open_change: i64,
    counters: Counters<ClientCounter>,
    exchange: Sketch,
    rtt: Duration,
    is_changed: bool,
}

/// The clients that a worker distinguishes: those with an open connection, and those that had one since the last
/// delta. Beyond a limit, all connections of new clients count as [`ClientId::Other`], so the clients always add up to
/// the proxy's totals.
#[derive(Debug)]
pub(crate) struct ClientSlots {
    slots: HashMap<ClientId, ClientSlot>,
    table: Slab<ClientEntry>,
    changed: Vec<ClientSlot>,
    /// The most clients that are counted separately.
    max: usize,
}

impl ClientSlots {
    pub(crate) fn new(max: usize) -> Self {
        Self { slots: HashMap::new(), table: Slab::new(), changed: Vec::new(), max }
    }

    /// Returns the slot for a new connection of `id`, and keeps it for as long as the connection holds it.
    pub(crate) fn hold(&mut self, id: ClientId) -> ClientSlot {
        let slot = self.slot(id);
        self.table[slot.0].open += 1;
        slot
    }

    /// Releases the slot of a connection that turned out to be another client's.
    pub(crate) fn release(&mut self, slot: ClientSlot) {
        let client = &mut self.table[slot.0];
        client.open -= 1;
        if client.open == 0 && !client.is_changed {
            self.slots.remove(&client.id);
            self.table.remove(slot.0);
        }
    }

    /// Counts the connection that holds `slot` as the client's.
    pub(crate) fn open(&mut self, slot: ClientSlot) {
        let client = self.change(slot);
        client.open_change += 1;
        client.counters[ClientCounter::Connections] += 1;
    }

    /// Counts the end of a connection that held `slot` and was counted.
    pub(crate) fn close(&mut self, slot: ClientSlot) {
        let client = self.change(slot);
        client.open -= 1;
        client.open_change -= 1;
    }

    pub(crate) fn add(&mut self, slot: ClientSlot, counter: ClientCounter, n: u64) {
        self.change(slot).counters[counter] += n;
    }

    /// Connections of the client besides the one that holds `slot`; `None` for the client `other`.
    pub(crate) fn other_connections(&self, slot: ClientSlot) -> Option<u64> {
        let client = &self.table[slot.0];
        (client.id != ClientId::Other).then(|| client.open.saturating_sub(1))
    }

    pub(crate) fn exchange(&mut self, slot: ClientSlot, took: Duration) {
        let client = self.change(slot);
        client.counters[ClientCounter::Exchanges] += 1;
        client.exchange.record(took);
    }

    /// Takes the kernel's round-trip time and retransmissions at the end of a handshake.
    pub(crate) fn path(&mut self, slot: ClientSlot, rtt: Option<Duration>, retransmits: u32) {
        let client = self.change(slot);
        client.counters[ClientCounter::Retransmits] += u64::from(retransmits);
        // The clients behind `other` share no path.
        if let Some(rtt) = rtt.filter(|_| client.id != ClientId::Other) {
            client.rtt = rtt;
        }
    }

    /// Moves changes into a delta, and forgets clients that have left.
    pub(crate) fn hand_over(&mut self, into: &mut ProxyDelta) {
        for slot in self.changed.drain(..) {
            let client = &mut self.table[slot.0];
            client.is_changed = false;
            into.clients.push(ClientDelta {
                client: client.id,
                open_change: std::mem::take(&mut client.open_change),
                counters: std::mem::take(&mut client.counters),
                exchange: std::mem::take(&mut client.exchange),
                rtt_us: std::mem::take(&mut client.rtt).as_micros() as u64,
            });
            if client.open == 0 {
                self.slots.remove(&client.id);
                self.table.remove(slot.0);
            }
        }
    }

    fn slot(&mut self, id: ClientId) -> ClientSlot {
        if let Some(&slot) = self.slots.get(&id) {
            return slot;
        }
        if id != ClientId::Other && self.slots.len() >= self.max {
            return self.slot(ClientId::Other);
        }
        let client = ClientEntry {
            id,
            open: 0,
            open_change: 0,
            counters: Counters::default(),
            exchange: Sketch::default(),
            rtt: Duration::ZERO,
            is_changed: false,
        };
        let slot = ClientSlot(self.table.insert(client));
        self.slots.insert(id, slot);
        slot
    }

    fn change(&mut self, slot: ClientSlot) -> &mut ClientEntry {
        let client = &mut self.table[slot.0];
        if !client.is_changed {
            client.is_changed = true;
            self.changed.push(slot);
        }
        client
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    fn id(n: u32) -> ClientId {
        IpAddr::from(Ipv4Addr::from_bits(0x7f00_0000 + n)).into()
    }

    fn open(clients: &mut ClientSlots, id: ClientId) -> ClientSlot {
        let slot = clients.hold(id);
        clients.open(slot);
        slot
    }

    fn handed_over(clients: &mut ClientSlots) -> Vec<ClientDelta> {
        let mut delta = ProxyDelta::default();
        clients.hand_over(&mut delta);
        delta.clients
    }

    #[test]
    fn only_changed_clients_are_handed_over_and_only_once() {
        let mut clients = ClientSlots::new(10);
        let (a, b) = (open(&mut clients, id(1)), open(&mut clients, id(2)));
        clients.add(a, ClientCounter::BytesIn, 5);
        assert_eq!(handed_over(&mut clients).len(), 2);
        assert!(handed_over(&mut clients).is_empty());
        clients.add(b, ClientCounter::BytesOut, 7);
        let changed = handed_over(&mut clients);
        assert_eq!((changed.len(), changed[0].client, changed[0].open_change), (1, id(2), 0));
        assert_eq!(changed[0].counters[ClientCounter::BytesOut], 7);
    }

    #[test]
    fn a_client_without_connections_leaves_the_table_after_the_hand_over() {
        let mut clients = ClientSlots::new(10);
        let slot = open(&mut clients, id(1));
        clients.close(slot);
        let last = handed_over(&mut clients);
        assert_eq!((last[0].open_change, last[0].counters[ClientCounter::Connections]), (0, 1));
        assert!(clients.slots.is_empty() && clients.table.is_empty());
    }

    #[test]
    fn a_slot_that_was_held_for_another_client_leaves_no_trace() {
        let mut clients = ClientSlots::new(10);
        let (balancer, client) = (clients.hold(id(1)), clients.hold(id(2)));
        clients.open(client);
        clients.release(balancer);
        let changed = handed_over(&mut clients);
        assert_eq!((changed.len(), changed[0].client), (1, id(2)));
        assert_eq!(clients.table.len(), 1);
    }

    #[test]
    fn each_client_has_the_latencies_of_its_own_exchanges() {
        let mut clients = ClientSlots::new(10);
        let (a, b) = (open(&mut clients, id(1)), open(&mut clients, id(2)));
        clients.exchange(a, Duration::from_millis(1));
        clients.exchange(b, Duration::from_millis(30));
        clients.exchange(b, Duration::from_millis(20));
        let told = |deltas: Vec<ClientDelta>| -> Vec<_> {
            let of = |it: &ClientDelta| (it.counters[ClientCounter::Exchanges], it.exchange.max_ns());
            deltas.iter().map(of).collect()
        };
        assert_eq!(told(handed_over(&mut clients)), [(1, 1_000_000), (2, 30_000_000)]);
        clients.exchange(a, Duration::from_millis(2));
        assert_eq!(told(handed_over(&mut clients)), [(1, 2_000_000)], "only what is new");
    }

    #[test]
    fn the_latest_way_to_a_client_counts_and_all_that_was_sent_again() {
        let mut clients = ClientSlots::new(1);
        let (known, other) = (open(&mut clients, id(1)), open(&mut clients, id(2)));
        for (rtt_us, resent) in [(Some(400), 1), (Some(300), 0), (None, 2)] {
            let rtt = rtt_us.map(Duration::from_micros);
            clients.path(known, rtt, resent);
            clients.path(other, rtt, resent);
        }
        let told = |deltas: Vec<ClientDelta>| -> Vec<_> {
            deltas.iter().map(|it| (it.rtt_us, it.counters[ClientCounter::Retransmits])).collect()
        };
        assert_eq!(told(handed_over(&mut clients)), [(300, 3), (0, 3)], "of others there is no one way");
        clients.add(known, ClientCounter::BytesIn, 1);
        assert_eq!(told(handed_over(&mut clients)), [(0, 0)], "no handshake since");
    }

    #[test]
    fn clients_beyond_the_bound_are_accounted_to_other_and_nothing_is_lost() {
        let mut clients = ClientSlots::new(3);
        let slots: Vec<_> = (0..10).map(|n| open(&mut clients, id(n))).collect();
        for &slot in &slots {
            clients.add(slot, ClientCounter::BytesIn, 10);
            clients.close(slot);
        }
        let deltas = handed_over(&mut clients);
        assert_eq!(deltas.len(), 4);
        let other = deltas.iter().find(|delta| delta.client == ClientId::Other).unwrap();
        assert_eq!(other.counters[ClientCounter::Connections], 7);
        assert_eq!(deltas.iter().map(|delta| delta.counters[ClientCounter::BytesIn]).sum::<u64>(), 100);
        open(&mut clients, id(9));
        assert_eq!(handed_over(&mut clients)[0].client, id(9), "there is room again");
    }
}
