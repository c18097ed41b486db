//! Tests of the clients' figures while records are deferred.

use std::net::Ipv4Addr;

use model::runs::{Model, Run};
use records::histogram::Sketch;
use records::ids::{ClientId, RunId};
use records::kinds::{Body, ClientRecord, ProxyRecord, Record, RunRecord, Stamp};
use records::metrics::{ClientCounter, Counters, ProxyCounter};

use super::rows::ClientRows;
use crate::view_model::span::Span;

const SECOND_US: u64 = 1_000_000;
const WINDOW: Span = Span::Last(10 * SECOND_US);
const BYTES: u64 = 1_000;

/// A recorder that writes the records of clients in the order in which they began to wait.
#[derive(Default)]
struct DeferringRecorder {
    model: Model,
    seq: u64,
    second: u64,
    accepted: u64,
    /// Clients that wait for a record, with the second before their first change.
    waiting: Vec<(u32, u64)>,
    connections: std::collections::HashMap<u32, u64>,
}

impl DeferringRecorder {
    fn begun() -> Self {
        let mut recorder = Self::default();
        recorder.write(Body::Run(Box::<RunRecord>::default()), 0);
        recorder
    }

    fn write(&mut self, body: Body, interval_us: u64) {
        self.seq += 1;
        let mono_us = (100 + self.second) * SECOND_US;
        let stamp =
            Stamp { run: RunId::from_bits(1), seq: self.seq, mono_us, realtime_us: mono_us, interval_us };
        self.model.apply(Record { stamp, body }, None);
    }

    /// A second in which each of these clients connects once, with room for so many records of clients.
    fn second(&mut self, clients: impl IntoIterator<Item = u32>, room: usize) {
        for client in clients {
            self.accepted += 1;
            *self.connections.entry(client).or_default() += 1;
            if self.waiting.iter().all(|(waiting, _)| *waiting != client) {
                self.waiting.push((client, self.second));
            }
        }
        self.second += 1;
        let due: Vec<_> = self.waiting.drain(..room.min(self.waiting.len())).collect();
        let mut proxy = ProxyRecord { clients_deferred: self.waiting.len() as u64, ..ProxyRecord::default() };
        proxy.counters[ProxyCounter::Accepted] = self.accepted;
        proxy.counters[ProxyCounter::BytesOut] = self.accepted * BYTES;
        self.write(Body::Proxy(Box::new(proxy)), SECOND_US);
        for (client, since) in due {
            let mut counters = Counters::default();
            counters[ClientCounter::Connections] = self.connections[&client];
            counters[ClientCounter::BytesOut] = self.connections[&client] * BYTES;
            let record = ClientRecord {
                client: id(client),
                epoch: u64::from(client) + 1,
                last: false,
                open: 0,
                counters,
                rtt_us: 0,
                exchange: Sketch::default(),
            };
            self.write(Body::Client(record), (self.second - since) * SECOND_US);
        }
    }

    fn run(&self) -> &Run {
        self.model.current().unwrap()
    }

    /// What all clients did together, over what the proxy did: bytes a second, and connections.
    fn shares(&self, table: &mut ClientRows) -> (f64, f64) {
        table.refresh(self.run(), WINDOW);
        let window = self.run().proxy().unwrap().window(10 * SECOND_US);
        let rows = table.rows.all();
        let rates: f64 = rows.iter().filter_map(|row| row.out_per_second).sum();
        let connections: u64 = rows.iter().filter_map(|row| row.connections).sum();
        let accepted = window.counters.sum(&[ProxyCounter::Accepted]) as f64;
        (rates / window.rate(ProxyCounter::BytesOut).unwrap(), connections as f64 / accepted)
    }
}

fn id(client: u32) -> ClientId {
    std::net::IpAddr::from(Ipv4Addr::from_bits(client)).into()
}

#[test]
fn clients_that_come_once_add_up_to_no_more_than_the_proxy() {
    // The first second leaves a backlog, so that records wait for two seconds; then room is short.
    for (room, least) in [(40, 0.85), (20, 0.1)] {
        let (mut recorder, mut table) = (DeferringRecorder::begun(), ClientRows::default());
        recorder.second(0..120, 40);
        for second in 1..40 {
            recorder.second((0..40).map(|n| 1_000 * second + n), room);
            let (rates, connections) = recorder.shares(&mut table);
            assert!(rates <= 1.001 && connections <= 1.001, "second {second}: {rates}, {connections}");
            let is_settled = second > 12;
            assert!(!is_settled || rates >= least, "second {second}: {rates} with room for {room}");
            assert!(table.rows.all().iter().all(|row| row.connections.is_none_or(|n| n <= 1)));
        }
    }
}

#[test]
fn steady_clients_have_their_rates_while_records_are_deferred() {
    let (mut recorder, mut table) = (DeferringRecorder::begun(), ClientRows::default());
    for second in 1..40 {
        recorder.second(0..40, 10);
        let (rates, connections) = recorder.shares(&mut table);
        if second > 14 {
            assert!((rates - 1.0).abs() < 0.001, "second {second}: {rates}");
            assert!((connections - 1.0).abs() < 0.001, "second {second}: {connections}");
        }
    }
}

#[test]
fn an_idle_client_shows_zero_while_others_wait_for_records() {
    let (mut recorder, mut table) = (DeferringRecorder::begun(), ClientRows::default());
    let idle = |recorder: &DeferringRecorder, table: &mut ClientRows| {
        table.refresh(recorder.run(), WINDOW);
        let row = table.get(id(99)).unwrap();
        (row.out_per_second, row.connections)
    };
    recorder.second([99], 10);
    for _ in 0..20 {
        recorder.second(0..40, 10);
    }
    assert!(recorder.run().clients_deferred() > 0);
    assert_eq!(idle(&recorder, &mut table), (Some(0.0), Some(0)));
    // Records wait for longer than the window: nothing is known of it.
    for _ in 0..30 {
        recorder.second(100..500, 10);
    }
    assert_eq!(idle(&recorder, &mut table), (None, None));
    // No record is left to come.
    recorder.second([], 1_000);
    assert_eq!(idle(&recorder, &mut table), (Some(0.0), Some(0)));
}
