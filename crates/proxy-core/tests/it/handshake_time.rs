//! The parts of a handshake's wall time add up to it, and its cryptography is timed.

use std::io::{Read, Write};
use std::thread;
use std::time::Duration;

use rustls::ClientConnection;
use telemetry::{ProxyDelta, ProxyLatency, TlsLatency};

use crate::support::{Counted, Served, TLS12, TLS13, echo, end, read_all, serve_echo};

/// Sums in nanoseconds, of full and of resumed handshakes alike: the whole, and its parts.
fn sums(total: &ProxyDelta) -> [(u64, u64); 2] {
    let part = |latency| total.tls.latencies[latency].sum_ns();
    let whole = |latency| total.latencies[latency].sum_ns();
    [
        (
            whole(ProxyLatency::HandshakeFull),
            part(TlsLatency::NetworkFull)
                + part(TlsLatency::ClientFull)
                + part(TlsLatency::WorkerFull)
                + whole(ProxyLatency::ComputeFull),
        ),
        (
            whole(ProxyLatency::HandshakeResumed),
            part(TlsLatency::NetworkResumed)
                + part(TlsLatency::ClientResumed)
                + part(TlsLatency::WorkerResumed)
                + whole(ProxyLatency::ComputeResumed),
        ),
    ]
}

#[test]
fn the_parts_of_all_handshakes_add_up_to_their_wall_time() {
    let served = Served::unix(serve_echo);
    let proxy = Counted::start(&served.upstream);
    for version in [&TLS12, &TLS13] {
        let client = proxy.client(version);
        for _ in 0..5 {
            let mut tls = proxy.connect(&client);
            echo(&mut tls, b"hello");
            end(&mut tls);
            read_all(&mut tls);
        }
    }
    let total = proxy.finish();
    for (whole, parts) in sums(&total) {
        assert!(whole > 0);
        assert_eq!(whole, parts);
    }
    let count = |latency| total.tls.latencies[latency].count();
    assert_eq!([count(TlsLatency::WorkerFull), count(TlsLatency::WorkerResumed)], [2, 8]);
    assert_eq!([count(TlsLatency::NetworkFull), count(TlsLatency::NetworkResumed)], [2, 8]);
    assert_eq!(count(TlsLatency::Signature), 2, "only full handshakes sign");
    assert_eq!(count(TlsLatency::KeyExchange), 2 + 4, "TLS 1.3 exchanges keys whenever it resumes");
}

#[test]
fn a_client_that_takes_its_time_is_the_clients_part() {
    const PAUSE: Duration = Duration::from_millis(60);
    let served = Served::unix(serve_echo);
    let proxy = Counted::start(&served.upstream);
    let client = proxy.client(&TLS13);
    let mut tcp = proxy.tcp();
    let mut connection = ClientConnection::new(client, "localhost".try_into().unwrap()).unwrap();
    connection.write_tls(&mut tcp).unwrap();
    thread::sleep(PAUSE);
    while connection.is_handshaking() {
        connection.complete_io(&mut tcp).unwrap();
    }
    connection.send_close_notify();
    connection.complete_io(&mut tcp).unwrap();
    tcp.flush().unwrap();
    let _ = tcp.read_to_end(&mut Vec::new());
    let total = proxy.finish();
    let part = |latency| Duration::from_nanos(total.tls.latencies[latency].sum_ns());
    // The round trip of a loopback is far shorter.
    assert!(part(TlsLatency::ClientFull) > PAUSE / 2, "{:?}", part(TlsLatency::ClientFull));
    assert!(part(TlsLatency::NetworkFull) < PAUSE / 2, "{:?}", part(TlsLatency::NetworkFull));
}
