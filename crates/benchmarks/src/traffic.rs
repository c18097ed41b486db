//! Made-up traffic of a proxy and its load, like that of the demo.

use std::net::{IpAddr, Ipv4Addr};

use records::delta::{ClientDelta, LoadDelta, ProxyDelta};
use records::histogram::Sketch;
use records::ids::ClientId;
use records::kinds::HostRecord;
use records::metrics::{
    ClientCounter, Counters, CpuGroup, LoadCounter, LoadLatency, ProxyCounter, ProxyLatency,
};
use records::values::LoadEvent;

use crate::spread::LatencySpread;

const SECOND_US: u64 = 1_000_000;
/// The first client's address; it must not be one of the demo's.
const FIRST_CLIENT: u32 = 0x0a00_0001;
/// The requests per connection.
const KEPT: u64 = 10;

/// What happens in a second.
#[derive(Clone, Copy, Debug)]
pub struct LoadTraffic {
    /// Requests a second.
    pub requests: u64,
    /// Clients that send them.
    pub clients: u32,
}

/// Counts a second of a proxy.
pub fn count_proxy(counted: &mut ProxyDelta, traffic: LoadTraffic, spread: &mut LatencySpread) {
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
        counted.clients.push(ClientDelta { client, open_change: 0, counters, rtt_us: 0, exchange });
    }
}

/// Counts a second of the load.
pub fn count_load(counted: &mut LoadDelta, traffic: LoadTraffic, spread: &mut LatencySpread) {
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
    (0..requests).for_each(|_| counted.events.count(LoadEvent::Status(200), || "GET /".to_owned()));
}

/// What a process has used after so many seconds.
pub fn host(second: u64) -> HostRecord {
    let mut host =
        HostRecord { memory_bytes: 30_000_000, descriptors: 400, threads: 8, ..HostRecord::default() };
    for (group, percent) in
        [(CpuGroup::Proxy, 30), (CpuGroup::Load, 25), (CpuGroup::Upstream, 5), (CpuGroup::Journal, 1)]
    {
        host.cpu[group] = second * SECOND_US * percent / 100;
    }
    host
}
