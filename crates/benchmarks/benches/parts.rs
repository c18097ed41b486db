//! Measures the time of each part of watching: `just bench-parts`.

#![allow(clippy::unwrap_used, reason = "a benchmark fails by panicking")]

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use journal::{EntryBuf, FileOptions, FileWriter, Start, Tail};
use model::runs::Model;
use recorder::publish::RecordWriter;
use records::histogram::{Histogram, Histograms, Sketch};
use records::ids::{ClientId, RunId};
use records::kinds::{Body, ClientRecord, ProxyRecord, Record, Stamp};
use records::metrics::{ClientCounter, Counters, ProxyCounter, ProxyLatency};
use records::values::Latencies;

/// The records of a full interval.
const RECORDS: u64 = 60;
/// The intervals that are read at once.
const INTERVALS: u64 = 100;

fn main() {
    divan::main();
}

/// Returns a latency in nanoseconds, with a period of a thousand, spread over four decades.
fn latency_ns(n: u64) -> u64 {
    10_f64.powf(4.0 + (n * 617 % 1_000) as f64 / 250.0) as u64
}

fn record(seq: u64, body: Body) -> Record {
    let stamp = Stamp {
        run: RunId::from_bits(1),
        seq,
        mono_us: seq * 1_000,
        realtime_us: 1_700_000_000_000_000 + seq * 1_000,
        interval_us: 1_000_000,
    };
    Record { stamp, body }
}

/// Returns a client's latencies of five seconds.
fn sketch(seq: u64) -> Sketch {
    let mut sketch = Sketch::default();
    (0..100).for_each(|i| sketch.record(Duration::from_micros(200 + i * i / 4 + seq % 50)));
    sketch
}

/// Returns the record of one of 200 clients; one in five has latencies.
fn client(seq: u64) -> Record {
    let mut counters = Counters::default();
    for (factor, counter) in
        [ClientCounter::BytesIn, ClientCounter::BytesOut, ClientCounter::Exchanges].into_iter().enumerate()
    {
        counters[counter] = seq * (factor as u64 + 3);
    }
    let address = IpAddr::from(Ipv4Addr::from_bits(0x7f00_0002 + (seq % 200) as u32));
    let client = ClientId::from(address);
    let exchange = if seq.is_multiple_of(5) { sketch(seq) } else { Sketch::default() };
    let epoch = 1 + seq % 200;
    record(
        seq,
        Body::Client(ClientRecord { client, epoch, last: false, open: 1, counters, rtt_us: 0, exchange }),
    )
}

/// Returns the proxy's record of an interval with 20,000 requests over 2,000 connections.
fn proxy(seq: u64) -> Record {
    let mut histograms = Histograms::<ProxyLatency>::default();
    (0..20_000).for_each(|n| histograms[ProxyLatency::Exchange].record_ns(latency_ns(n)));
    for latency in [ProxyLatency::HandshakeFull, ProxyLatency::ComputeFull, ProxyLatency::Lifetime] {
        (0..2_000).for_each(|n| histograms[latency].record_ns(latency_ns(n)));
    }
    let mut counters = Counters::default();
    counters[ProxyCounter::Exchanges] = seq * 20_000;
    let latencies = Latencies::new(&histograms, &Counters::default());
    record(
        seq,
        Body::Proxy(Box::new(ProxyRecord { open: 200, counters, latencies, ..ProxyRecord::default() })),
    )
}

#[divan::bench]
fn count_a_latency(bencher: Bencher<'_, '_>) {
    let mut histogram = Histogram::new();
    let latencies: Vec<u64> = (0..1_000).map(latency_ns).collect();
    bencher.counter(ItemsCount::new(latencies.len())).bench_local(|| {
        for &latency in black_box(&latencies) {
            histogram.record_ns(latency);
        }
    });
}

#[divan::bench(args = ["client", "proxy"])]
fn encode_a_record(bencher: Bencher<'_, '_>, kind: &str) {
    let record = if kind == "client" { client(1) } else { proxy(1) };
    let mut entry = EntryBuf::new();
    bencher.bench_local(|| records::codec::encode(black_box(&record), &mut entry));
}

#[divan::bench]
fn write_an_interval(bencher: Bencher<'_, '_>) {
    let folder = tempfile::tempdir().unwrap();
    let options = FileOptions { archives_bytes_max: Some(256 << 20), ..FileOptions::default() };
    let file = FileWriter::create(&folder.path().join("a.journal"), options).unwrap();
    let mut writer = RecordWriter::new(file);
    let mut seq = 0;
    bencher.counter(ItemsCount::new(RECORDS)).bench_local(|| {
        for _ in 0..RECORDS {
            seq += 1;
            writer.append(&client(seq)).unwrap();
        }
        writer.flush().unwrap();
    });
}

#[divan::bench(args = ["entries", "records"])]
fn read_a_file(bencher: Bencher<'_, '_>, what: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.journal");
    let mut writer = RecordWriter::new(FileWriter::create(&path, FileOptions::default()).unwrap());
    for seq in 1..=RECORDS * INTERVALS {
        let record = if seq % RECORDS == 0 { proxy(seq) } else { client(seq) };
        writer.append(&record).unwrap();
    }
    writer.close().unwrap();
    let decodes = what == "records";
    let read = || {
        let mut tail = Tail::open(&path, Start::File).unwrap();
        let mut read = 0;
        while tail
            .poll(|entry| {
                let is_read = !decodes || records::codec::decode(entry).unwrap().is_some();
                read += u64::from(is_read);
            })
            .unwrap()
            .more
        {}
        assert_eq!(read, RECORDS * INTERVALS);
    };
    bencher.counter(ItemsCount::new(RECORDS * INTERVALS)).bench_local(read);
}

/// Folds into a model without history, like a headless run, or into the dashboard's.
#[divan::bench(args = [1, model::runs::HISTORY])]
fn take_in_an_interval(bencher: Bencher<'_, '_>, history: usize) {
    let mut model = Model::new(history);
    let mut seq = 0;
    let interval = || -> Vec<Record> {
        (0..RECORDS)
            .map(|n| {
                seq += 1;
                if n == 0 { proxy(seq) } else { client(seq) }
            })
            .collect()
    };
    bencher.counter(ItemsCount::new(RECORDS)).with_inputs(interval).bench_local_values(|records| {
        for record in records {
            model.apply(record, None);
        }
    });
}
