//! The parts of a handshake's wall time add up to it, and its cryptography is timed.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use records::delta::ProxyDelta;
use records::metrics::{ProxyLatency, TlsCounter, TlsLatency};
use rustls::ClientConnection;
use socket2::{SockFilter, SockRef};

use crate::not_run::say_not_run;
use crate::support::{TLS12, TLS13, TestProxy, TestUpstream, echo, end, eventually, read_all, serve_echo};

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
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start(&served.upstream);
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
fn the_time_of_a_slow_client_counts_as_the_clients() {
    const PAUSE: Duration = Duration::from_millis(60);
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start(&served.upstream);
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

/// A classic BPF program that drops every segment: `ret #0`.
const DROP_ALL: [SockFilter; 1] = [SockFilter::new(0x06, 0, 0, 0)];

/// The timeouts of the kernel for what the socket `local` has sent to `remote`, since the last answer.
fn timeouts(local: SocketAddr, remote: SocketAddr) -> u64 {
    let port = |field: &str| u16::from_str_radix(field.split(':').nth(1)?, 16).ok();
    let table = fs::read_to_string("/proc/self/net/tcp").unwrap();
    let sockets = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut own = sockets
        .filter(|fields| (port(fields[1]), port(fields[2])) == (Some(local.port()), Some(remote.port())));
    own.next().map_or(0, |fields| u64::from_str_radix(fields[6], 16).unwrap())
}

#[test]
fn segments_that_the_kernel_sends_again_are_counted() {
    const TEST: &str = "segments_that_the_kernel_sends_again_are_counted";
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start(&served.upstream);
    let mut tcp = proxy.tcp();
    if let Err(error) = SockRef::from(&tcp).attach_filter(&DROP_ALL) {
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
        return say_not_run(TEST, "only root can drop segments here");
    }
    let client = proxy.client(&TLS13);
    let mut undisturbed = proxy.connect(&client);
    echo(&mut undisturbed, b"hello");
    end(&mut undisturbed);

    let mut connection = ClientConnection::new(client, "localhost".try_into().unwrap()).unwrap();
    connection.write_tls(&mut tcp).unwrap();
    eventually("the server's flight is sent again", || timeouts(proxy.addr(), tcp.local_addr().unwrap()) > 0);
    SockRef::from(&tcp).detach_filter().unwrap();
    while connection.is_handshaking() {
        connection.complete_io(&mut tcp).unwrap();
    }
    connection.send_close_notify();
    connection.complete_io(&mut tcp).unwrap();
    let _ = tcp.read_to_end(&mut Vec::new());

    let total = proxy.finish();
    assert_eq!(total.tls.counters[TlsCounter::HandshakesRetransmitted], 1);
    assert!(total.tls.counters[TlsCounter::Retransmits] >= 1);
}
