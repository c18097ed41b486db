//! Writes a recording of hours in minutes with the code that writes real ones: the records of a proxy and its
//! load, one interval per second, like those of the demo with this many clients.
//!
//! ```text
//! cargo run --release -p benchmarks --example recording -- /var/tmp/hour.journal --seconds 3600 --clients 200
//! ```

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use benchmarks::spread::LatencySpread;
use benchmarks::{Result, argument};
use journal::Timestamps;
use telemetry::{
    Applies, ClientCounter, ClientDelta, ClientId, Counters, CpuGroup, Delta, HostRecord, LoadCounter,
    LoadDelta, LoadEvent, LoadLatency, LoadState, ProxyCounter, ProxyDelta, ProxyLatency, Publisher,
    RECORDS_PER_SECOND_OWN, RunId, RunRecord, Setting, SettingRecord, Sketch, Value,
};

const SECOND_US: u64 = 1_000_000;
/// 2023-11-14, 22:13:20 UTC.
const BEGAN_US: u64 = 1_700_000_000_000_000;
/// The first client's address; it must not be one of the demo's.
const FIRST_CLIENT: u32 = 0x0a00_0001;
/// The requests per connection.
const KEPT: u64 = 10;
/// The interval between changes of a setting and marks, in seconds.
const EVENT_S: u64 = 300;

fn main() -> Result<()> {
    let path = std::env::args().nth(1).ok_or("name the journal file to write")?;
    let number = |name: &str, usual: u64| argument(name).map_or(Ok(usual), |text| text.parse::<u64>());
    let traffic =
        LoadTraffic { requests: number("rate", 1_000)?, clients: u32::try_from(number("clients", 200)?)? };
    let records = write(Path::new(&path), number("seconds", 3_600)?, traffic)?;
    #[expect(clippy::print_stdout, reason = "a program")]
    {
        println!("{records} records");
    }
    Ok(())
}

#[derive(Clone, Copy)]
struct LoadTraffic {
    /// Requests a second.
    requests: u64,
    /// Clients that send them.
    clients: u32,
}

/// Writes the recording; returns the number of its records.
fn write(path: &Path, seconds: u64, traffic: LoadTraffic) -> Result<u64> {
    let at = |second: u64| Timestamps {
        realtime_us: BEGAN_US + second * SECOND_US,
        monotonic_us: 1_000 * SECOND_US + second * SECOND_US,
    };
    let mut publisher =
        Publisher::new(RunId::random()?, benchmarks::create_records(path)?, RECORDS_PER_SECOND_OWN, at(0));
    let run = RunRecord {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        listen: "127.0.0.1:8443".to_owned(),
        upstream: "unix:/tmp/app.sock".to_owned(),
        certificate: "ECDSA P-256".to_owned(),
        workers: 1,
        cores: 2,
        settings: vec![resume(80.0)],
        ..RunRecord::default()
    };
    publisher.start(run.clone(), at(0));
    let (mut proxy, mut load) = (ProxyDelta::default(), LoadDelta::default());
    let mut spread = LatencySpread::default();
    for second in 1..=seconds {
        proxy.clear();
        load.clear();
        count_proxy(&mut proxy, traffic, &mut spread);
        count_load(&mut load, traffic, &mut spread);
        if second % EVENT_S == 0 {
            let resumed = if (second / EVENT_S).is_multiple_of(2) { 80.0 } else { 40.0 };
            let after = Some(resume(resumed));
            publisher.setting(
                SettingRecord {
                    name: "load.resume".to_owned(),
                    before: String::new(),
                    after,
                    ..SettingRecord::default()
                },
                at(second),
            );
            publisher.mark("as planned", at(second));
        }
        let state = LoadState {
            running: second < seconds,
            rate: traffic.requests as f64,
            resume_percent: 80.0,
            connections: u64::from(traffic.clients),
            threads: 1,
            due_us: second * SECOND_US,
            sending_us: second * SECOND_US,
            measured_us: second * SECOND_US,
        };
        publisher.interval(Some(&proxy), Some((&load, state)), Some(host(second)), at(second));
    }
    let end = Timestamps {
        realtime_us: at(seconds).realtime_us + 1_000,
        monotonic_us: at(seconds).monotonic_us + 1_000,
    };
    publisher.stop(run, None, None, Some(host(seconds)), end);
    if publisher.pending() > 0 {
        return Err(format!("the file takes no records: {:?}", publisher.refusal()).into());
    }
    let made = publisher.made();
    publisher.into_sink().close()?;
    Ok(made)
}

fn resume(percent: f64) -> Setting {
    Setting {
        name: "load.resume".to_owned(),
        value: Value::Number(percent),
        unit: "%".to_owned(),
        applies: Applies::NewConnections,
        range: Some((0.0, 100.0)),
    }
}

fn count_proxy(counted: &mut ProxyDelta, traffic: LoadTraffic, spread: &mut LatencySpread) {
    let LoadTraffic { requests, clients } = traffic;
    let connections = requests / KEPT;
    let (resumed, full) = (connections * 4 / 5, connections - connections * 4 / 5);
    for (counter, n) in [
        (ProxyCounter::Accepted, connections),
        (ProxyCounter::Closed, connections),
        (ProxyCounter::HandshakesFull, full),
        (ProxyCounter::HandshakesResumed, resumed),
        (ProxyCounter::Tls13Full, full),
        (ProxyCounter::Tls13Resumed, resumed),
        (ProxyCounter::GroupMlkem, connections),
        (ProxyCounter::CipherAes256, connections),
        (ProxyCounter::UpstreamConnects, connections),
        (ProxyCounter::Exchanges, requests),
        (ProxyCounter::BytesIn, requests * 100),
        (ProxyCounter::BytesOut, requests * 8_000),
        (ProxyCounter::WireIn, requests * 200),
        (ProxyCounter::WireOut, requests * 8_200),
    ] {
        counted.counters[counter] = n;
    }
    for (latency, n, median_us) in [
        (ProxyLatency::HandshakeFull, full, 900.0),
        (ProxyLatency::HandshakeResumed, resumed, 700.0),
        (ProxyLatency::ComputeFull, full, 120.0),
        (ProxyLatency::ComputeResumed, resumed, 110.0),
        (ProxyLatency::Connect, connections, 40.0),
        (ProxyLatency::Exchange, requests, 300.0),
        (ProxyLatency::Lifetime, connections, 100_000.0),
    ] {
        (0..n).for_each(|_| counted.latencies[latency].record(spread.draw(median_us)));
    }
    for n in 0..clients {
        let client = ClientId::from(IpAddr::from(Ipv4Addr::from_bits(FIRST_CLIENT + n)));
        let mut counters = Counters::default();
        counters[ClientCounter::Connections] = connections.div_ceil(u64::from(clients));
        counters[ClientCounter::Exchanges] = requests / u64::from(clients);
        counters[ClientCounter::BytesIn] = requests * 100 / u64::from(clients) + u64::from(n);
        counters[ClientCounter::BytesOut] = requests * 8_000 / u64::from(clients) + u64::from(n);
        let mut exchange = Sketch::default();
        (0..counters[ClientCounter::Exchanges]).for_each(|_| exchange.record(spread.draw(300.0)));
        counted.clients.push(ClientDelta { client, open_change: 0, counters, exchange });
    }
}

fn count_load(counted: &mut LoadDelta, traffic: LoadTraffic, spread: &mut LatencySpread) {
    let requests = traffic.requests;
    let connections = requests / KEPT;
    let (resumed, full) = (connections * 4 / 5, connections - connections * 4 / 5);
    for (counter, n) in [
        (LoadCounter::Scheduled, requests),
        (LoadCounter::Sent, requests),
        (LoadCounter::Ok, requests),
        (LoadCounter::Reused, requests - connections),
        (LoadCounter::Status2xx, requests),
        (LoadCounter::Opened, connections),
        (LoadCounter::Closed, connections),
        (LoadCounter::HandshakesFull, full),
        (LoadCounter::HandshakesResumed, resumed),
        (LoadCounter::ResumptionsWanted, resumed),
        (LoadCounter::ResumptionsOffered, resumed),
        (LoadCounter::BytesIn, requests * 100),
        (LoadCounter::BytesOut, requests * 8_000),
    ] {
        counted.counters[counter] = n;
    }
    for (latency, n, median_us) in [
        (LoadLatency::Response, requests, 600.0),
        (LoadLatency::Service, requests, 500.0),
        (LoadLatency::Lag, requests, 60.0),
        (LoadLatency::Connect, connections, 50.0),
        (LoadLatency::HandshakeFull, full, 1_200.0),
        (LoadLatency::HandshakeResumed, resumed, 900.0),
        (LoadLatency::FirstByte, requests, 450.0),
        (LoadLatency::Total, requests, 650.0),
        (LoadLatency::TotalFull, full, 2_000.0),
        (LoadLatency::TotalResumed, resumed, 1_700.0),
        (LoadLatency::TotalKept, requests - connections, 500.0),
    ] {
        (0..n).for_each(|_| counted.latencies[latency].record(spread.draw(median_us)));
    }
    (0..requests).for_each(|_| counted.tally.count(LoadEvent::Status(200), || "GET /".to_owned()));
}

fn host(second: u64) -> HostRecord {
    let mut host =
        HostRecord { memory_bytes: 30_000_000, descriptors: 400, threads: 8, ..HostRecord::default() };
    for (group, percent) in
        [(CpuGroup::Proxy, 30), (CpuGroup::Load, 25), (CpuGroup::Upstream, 5), (CpuGroup::Journal, 1)]
    {
        host.cpu[group] = second * SECOND_US * percent / 100;
    }
    host
}
