use super::*;
use std::net::{IpAddr, Ipv4Addr};

fn client(n: u32) -> ClientId {
    IpAddr::from(Ipv4Addr::from_bits(0x0a00_0000 + n)).into()
}

fn delta(n: u32, bytes: u64) -> ClientDelta {
    let mut counters = Counters::default();
    counters[ClientCounter::BytesOut] = bytes;
    counters[ClientCounter::Connections] = 1;
    ClientDelta { client: client(n), open_change: 0, counters, rtt_us: 0, exchange: Sketch::default() }
}

#[test]
fn the_round_trip_time_stays_that_of_the_latest_handshake() {
    let mut table = ClientTable::new(2);
    for (rtt_us, told_us) in [(0, 0), (410, 410), (0, 410), (390, 390)] {
        table.add(&[ClientDelta { rtt_us, ..delta(1, 5) }], 0, 1, 10);
        assert_eq!(table.due(10, 1, 1)[0].record.rtt_us, told_us);
    }
}

/// One exchange of the client that took so many milliseconds.
fn exchange(n: u32, ms: u64) -> ClientDelta {
    let mut exchange = Sketch::default();
    exchange.record(std::time::Duration::from_millis(ms));
    ClientDelta { exchange, ..delta(n, 1) }
}

/// The totals that a reader has after these records: the last of each epoch.
fn read_totals(records: &[ClientRecord]) -> u64 {
    let last: HashMap<_, _> =
        records.iter().map(|r| ((r.client, r.epoch), r.counters[ClientCounter::BytesOut])).collect();
    last.values().sum()
}

const NOW_US: u64 = 1_000_000;

fn take(table: &mut ClientTable, budget: usize, into: &mut Vec<ClientRecord>) -> usize {
    let due = table.due(budget, NOW_US, 1_000_000);
    for due in &due {
        table.sent(&due.record, NOW_US);
        into.push(due.record.clone());
    }
    due.len()
}

#[test]
fn the_busiest_are_due_each_time_and_the_others_in_turn() {
    let mut table = ClientTable::new(100);
    let mut records = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for tick in 0..10_u64 {
        let deltas: Vec<_> = (0..20).map(|n| delta(n, if n == 7 { 1_000_000 } else { 10 })).collect();
        table.add(&deltas, tick * 1_000_000, (tick + 1) * 1_000_000, 10);
        records.clear();
        assert_eq!(take(&mut table, 6, &mut records), 6);
        assert!(records.iter().any(|r| r.client == client(7)), "tick {tick}");
        seen.extend(records.iter().map(|r| r.client));
    }
    assert_eq!(seen.len(), 20);
}

#[test]
fn no_byte_is_lost_however_small_the_table_and_the_budget() {
    let mut table = ClientTable::new(10);
    let mut records = Vec::new();
    let mut counted = 0;
    for tick in 0..500_u32 {
        let deltas: Vec<_> = (0..7).map(|n| delta((tick * 13 + n * 31) % 97, u64::from(n) + 1)).collect();
        counted += deltas.iter().map(|d| d.counters[ClientCounter::BytesOut]).sum::<u64>();
        table.add(&deltas, u64::from(tick), u64::from(tick) + 1, 2);
        take(&mut table, 3, &mut records);
    }
    records.extend(table.finish(500, usize::MAX).into_iter().map(|due| due.record));
    assert_eq!(read_totals(&records), counted);
}

#[test]
fn a_client_with_open_connections_keeps_its_row() {
    let mut table = ClientTable::new(2);
    let open = ClientDelta { open_change: 1, ..delta(1, 5) };
    table.add(&[open, ClientDelta { open_change: 1, ..delta(2, 5) }], 0, 1, 10);
    table.add(&[delta(3, 7)], 1, 2, 10);
    let ids: Vec<_> = table.finish(2, usize::MAX).into_iter().map(|due| due.record.client).collect();
    assert_eq!(ids, [client(1), client(2), ClientId::Other]);
}

#[test]
fn a_crowd_beyond_the_table_is_accounted_in_an_instant() {
    let mut table = ClientTable::new(10_000);
    let crowd: Vec<_> = (0..60_000).map(|n| ClientDelta { open_change: 1, ..delta(n, 1) }).collect();
    let begun = std::time::Instant::now();
    table.add(&crowd, 0, 1, 10);
    // A scan of the whole table for each would take a hundred times as long.
    assert!(begun.elapsed() < std::time::Duration::from_secs(2), "{:?}", begun.elapsed());
    assert_eq!(table.rows[&ClientId::Other].counters[ClientCounter::BytesOut], 50_000);
}

#[test]
fn a_client_that_returns_begins_a_new_epoch() {
    let mut table = ClientTable::new(1);
    let mut records = Vec::new();
    for n in [1, 2, 1] {
        table.add(&[delta(n, 10)], 0, 1, 10);
        take(&mut table, 10, &mut records);
    }
    let epochs: Vec<_> = records.iter().filter(|r| r.client == client(1)).map(|r| r.epoch).collect();
    assert_eq!(epochs.len(), 2);
    assert!(epochs[0] < epochs[1]);
}

#[test]
fn latencies_travel_once_each_and_not_with_every_record() {
    let mut table = ClientTable::new(10);
    let mut carried = Vec::new();
    for second in 1..=20_u64 {
        let now_us = second * 1_000_000;
        // The client falls silent before its last latencies have travelled.
        if second <= 13 {
            table.add(&[exchange(1, second)], now_us - 1_000_000, now_us, 10);
        }
        for due in table.due(10, now_us, 1_000_000) {
            table.sent(&due.record, now_us);
            carried.extend((!due.record.exchange.is_empty()).then_some((second, due.record.exchange)));
        }
    }
    let seconds: Vec<u64> = carried.iter().map(|&(second, _)| second).collect();
    assert_eq!(seconds, [1, 6, 11, 16]);
    assert_eq!(carried.iter().map(|(_, sketch)| sketch.count()).sum::<u64>(), 13);
}

#[test]
fn latencies_of_clients_that_leave_are_told_in_the_end() {
    let mut table = ClientTable::new(3);
    let mut records = Vec::new();
    for n in 0..50 {
        table.add(&[exchange(n % 7, 1)], 0, 1, 1);
        take(&mut table, 1, &mut records);
    }
    records.extend(table.finish(50, usize::MAX).into_iter().map(|due| due.record));
    assert_eq!(records.iter().map(|record| record.exchange.count()).sum::<u64>(), 50);
}
