//! What goes in comes out: echo, resumption, half-close, large transfers.

use std::io::{Read, Write};
use std::sync::atomic::Ordering;
use std::thread;

use records::metrics::{ProxyCounter, ProxyLatency};
use rustls::HandshakeKind;

use crate::support::{
    TLS12, TLS13, TestProxy, TestStream, TestUpstream, Tls, echo, end, eventually, pattern, read_all,
    serve_echo,
};

#[test]
fn echoes_work_over_both_kinds_of_upstream_and_both_versions() {
    for served in [TestUpstream::unix(serve_echo), TestUpstream::tcp(serve_echo)] {
        let proxy = TestProxy::start(&served.upstream);
        for version in [&TLS12, &TLS13] {
            let mut tls = proxy.connect(&proxy.client(version));
            echo(&mut tls, b"hello");
            echo(&mut tls, &pattern(100_000));
            end(&mut tls);
            assert_eq!(read_all(&mut tls), (Vec::new(), true));
        }
        let total = proxy.finish();
        let count = |counter| total.counters[counter];
        assert_eq!(count(ProxyCounter::BytesIn), 2 * 100_005);
        assert_eq!(count(ProxyCounter::BytesOut), 2 * 100_005);
        assert_eq!((count(ProxyCounter::Tls12Full), count(ProxyCounter::Tls13Full)), (1, 1));
        assert_eq!(count(ProxyCounter::UpstreamConnects), 2);
        assert_eq!(count(ProxyCounter::Failed), 0);
        for latency in [ProxyLatency::HandshakeFull, ProxyLatency::ComputeFull, ProxyLatency::Lifetime] {
            assert_eq!(total.latencies[latency].count(), 2, "{latency:?}");
        }
        let [handshake, compute] = [ProxyLatency::HandshakeFull, ProxyLatency::ComputeFull];
        assert!(total.latencies[compute].sum_ns() < total.latencies[handshake].sum_ns());
        assert!(count(ProxyCounter::WireIn) > 200_010 && count(ProxyCounter::WireOut) > 200_010);
    }
}

#[test]
fn each_request_answered_on_a_kept_connection_is_one_exchange() {
    let served = TestUpstream::unix(serve_echo);
    let mut proxy = TestProxy::start(&served.upstream);
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    for _ in 0..25 {
        echo(&mut tls, b"request");
    }
    proxy.expect(ProxyCounter::Exchanges, 25);
    end(&mut tls);
    let total = proxy.finish();
    assert_eq!(total.latencies[ProxyLatency::Exchange].count(), 25);
}

#[test]
fn a_client_resumes_its_session_in_both_versions() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start(&served.upstream);
    for version in [&TLS12, &TLS13] {
        let config = proxy.client(version);
        for kind in [HandshakeKind::Full, HandshakeKind::Resumed, HandshakeKind::Resumed] {
            let mut tls = proxy.connect(&config);
            echo(&mut tls, b"hello");
            assert_eq!(tls.conn.handshake_kind(), Some(kind));
            end(&mut tls);
            read_all(&mut tls);
        }
    }
    let total = proxy.finish();
    let count = |counter| total.counters[counter];
    assert_eq!((count(ProxyCounter::Tls12Full), count(ProxyCounter::Tls12Resumed)), (1, 2));
    assert_eq!((count(ProxyCounter::Tls13Full), count(ProxyCounter::Tls13Resumed)), (1, 2));
    assert_eq!(total.latencies[ProxyLatency::HandshakeResumed].count(), 4);
    assert_eq!(total.latencies[ProxyLatency::ComputeResumed].count(), 4);
}

#[test]
fn tickets_do_not_outlive_the_process_that_made_them() {
    // A second proxy stands for a second process: its ticket key is another one.
    let served = TestUpstream::unix(serve_echo);
    let certificate = proxy_core::Certificate::generate(&[]).unwrap();
    let start = || {
        TestProxy::start_with(&served.upstream, |config| config.tls.certificates = vec![certificate.clone()])
    };
    let (mut first, mut second) = (start(), start());
    first.certificate = certificate.leaf_der().to_vec();
    let config = first.client(&TLS13);
    echo(&mut first.connect(&config), b"hello");
    let mut tls = second.connect(&config);
    echo(&mut tls, b"hello");
    assert_eq!(tls.conn.handshake_kind(), Some(HandshakeKind::Full));
    second.expect(ProxyCounter::HandshakesFull, 1);
}

#[test]
fn a_ticket_comes_with_the_first_answer() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start(&served.upstream);
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    echo(&mut tls, b"hello");
    assert_eq!(tls.conn.tls13_tickets_received(), 1);
}

#[test]
fn a_ticket_comes_without_an_answer_soon_after_the_handshake() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start(&served.upstream);
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    while tls.conn.is_handshaking() || tls.conn.wants_write() {
        tls.conn.complete_io(&mut tls.sock).unwrap();
    }
    let began_at = std::time::Instant::now();
    while tls.conn.tls13_tickets_received() == 0 {
        tls.conn.complete_io(&mut tls.sock).unwrap();
    }
    let waited_ms = began_at.elapsed().as_millis();
    assert!((50..5_000).contains(&waited_ms), "it came after {waited_ms} ms");
}

#[test]
fn holding_the_ticket_does_not_delay_a_client_that_awaits_the_ack() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start(&served.upstream);
    let config = proxy.client(&TLS13);
    let first_exchange = || {
        let mut tls = proxy.connect(&config);
        tls.sock.set_nodelay(false).unwrap();
        tls.flush().unwrap();
        let began_at = std::time::Instant::now();
        echo(&mut tls, b"hello");
        began_at.elapsed()
    };
    // The delayed acknowledgement that it would wait for takes 40 ms; a busy machine may, but not each time.
    let fastest = (0..10).map(|_| first_exchange()).min().unwrap();
    assert!(fastest.as_millis() < 30, "{fastest:?}");
}

#[test]
fn a_ticket_comes_to_a_client_that_ends_at_once() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start(&served.upstream);
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    tls.flush().unwrap();
    tls.conn.send_close_notify();
    assert_eq!(read_all(&mut tls), (Vec::new(), true));
    assert_eq!(tls.conn.tls13_tickets_received(), 1);
}

/// Counts to the end, then answers with how much it was.
fn serve_length(stream: &mut dyn TestStream, received: &std::sync::atomic::AtomicU64) {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    received.fetch_add(bytes.len() as u64, Ordering::Relaxed);
    stream.write_all(bytes.len().to_string().as_bytes()).unwrap();
    stream.end();
}

#[test]
fn a_half_closed_client_still_gets_the_answer() {
    for served in [TestUpstream::unix(serve_length), TestUpstream::tcp(serve_length)] {
        let proxy = TestProxy::start(&served.upstream);
        for version in [&TLS12, &TLS13] {
            let mut tls = proxy.connect(&proxy.client(version));
            tls.write_all(&pattern(300_000)).unwrap();
            end(&mut tls);
            assert_eq!(read_all(&mut tls), (b"300000".to_vec(), true));
        }
        assert_eq!(proxy.finish().counters[ProxyCounter::BytesIn], 600_000);
    }
}

#[test]
fn an_end_without_close_notify_is_passed_on_too() {
    let served = TestUpstream::unix(serve_length);
    let proxy = TestProxy::start(&served.upstream);
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    tls.write_all(b"abc").unwrap();
    tls.sock.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(read_all(&mut tls), (b"3".to_vec(), true));
    assert_eq!(proxy.finish().counters[ProxyCounter::ClientBroken], 0);
}

/// Ends its own direction first, and counts what still comes.
fn serve_early_end(stream: &mut dyn TestStream, received: &std::sync::atomic::AtomicU64) {
    stream.write_all(b"that is all").unwrap();
    stream.end();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    received.fetch_add(bytes.len() as u64, Ordering::Relaxed);
}

#[test]
fn a_client_may_go_on_sending_after_its_upstream_has_ended() {
    for served in [TestUpstream::unix(serve_early_end), TestUpstream::tcp(serve_early_end)] {
        let proxy = TestProxy::start(&served.upstream);
        for (version, received) in [(&TLS12, 300_000), (&TLS13, 600_000)] {
            let mut tls = proxy.connect(&proxy.client(version));
            assert_eq!(read_all(&mut tls), (b"that is all".to_vec(), true));
            tls.write_all(&pattern(300_000)).unwrap();
            end(&mut tls);
            eventually("the upstream has all", || served.received.load(Ordering::Relaxed) == received);
        }
        assert_eq!(proxy.finish().counters[ProxyCounter::BytesIn], 600_000);
    }
}

const LARGE: usize = 64 << 20;

#[test]
fn a_large_transfer_each_way_arrives_intact_at_a_slow_reader() {
    for served in [TestUpstream::unix(serve_echo), TestUpstream::tcp(serve_echo)] {
        let proxy = TestProxy::start(&served.upstream);
        let data = pattern(LARGE);
        let tls = proxy.connect(&proxy.client(&TLS13));
        let received = transfer(tls, &data);
        assert!(received == data, "{} bytes arrived, and not those that were sent", received.len());
        let total = proxy.finish();
        assert_eq!(total.counters[ProxyCounter::BytesIn], LARGE as u64);
        assert_eq!(total.counters[ProxyCounter::BytesOut], LARGE as u64);
    }
}

/// Sends `data` on one thread while another reads what comes back in small, uneven pieces, with pauses.
fn transfer(mut tls: Tls, data: &[u8]) -> Vec<u8> {
    while tls.conn.is_handshaking() {
        tls.conn.complete_io(&mut tls.sock).unwrap();
    }
    tls.conn.set_buffer_limit(None);
    let mut socket = tls.sock.try_clone().unwrap();
    let connection = std::sync::Mutex::new(tls.conn);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut sender = tls.sock.try_clone().unwrap();
            for chunk in data.chunks(200_000) {
                let mut records = Vec::new();
                let mut connection = connection.lock().unwrap();
                connection.writer().write_all(chunk).unwrap();
                while connection.wants_write() {
                    connection.write_tls(&mut records).unwrap();
                }
                drop(connection);
                sender.write_all(&records).unwrap();
            }
            let mut last = Vec::new();
            connection.lock().unwrap().send_close_notify();
            connection.lock().unwrap().write_tls(&mut last).unwrap();
            sender.write_all(&last).unwrap();
            sender.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let mut received = Vec::with_capacity(data.len());
        let mut buffer = vec![0; 30_011];
        loop {
            let n = socket.read(&mut buffer).unwrap();
            let mut connection = connection.lock().unwrap();
            let mut records = &buffer[..n];
            while !records.is_empty() {
                connection.read_tls(&mut records).unwrap();
                let state = connection.process_new_packets().unwrap();
                let mut plaintext = vec![0; state.plaintext_bytes_to_read()];
                connection.reader().read_exact(&mut plaintext).unwrap();
                received.extend_from_slice(&plaintext);
                if state.peer_has_closed() {
                    return received;
                }
            }
            drop(connection);
            assert_ne!(n, 0, "the end came without a close_notify after {} bytes", received.len());
            if received.len() % 64 == 0 {
                thread::sleep(std::time::Duration::from_micros(500));
            }
        }
    })
}
