//! A drain loses nothing that has begun.

use std::io::{Read, Write};
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::{Duration, Instant};

use records::delta::ProxyDelta;
use records::kinds::ConnectionOutcome;
use records::metrics::ProxyCounter;
use socket2::{Domain, Socket, Type};

use crate::support::{
    PATIENCE, TLS13, TestProxy, TestStream, TestUpstream, echo, end, pattern, read_all, serve_echo, tls_over,
};

/// Answers a megabyte at leisure.
fn serve_slowly(stream: &mut dyn TestStream, _: &AtomicU64) {
    stream.read_exact(&mut [0; 2]).unwrap();
    for chunk in pattern(1 << 20).chunks(64 << 10) {
        thread::sleep(Duration::from_millis(20));
        stream.write_all(chunk).unwrap();
    }
    stream.end();
}

#[test]
fn a_drain_lets_a_transfer_and_a_handshake_finish() {
    let served = TestUpstream::unix(serve_slowly);
    let mut proxy = TestProxy::start(&served.upstream);
    let config = proxy.client(&TLS13);
    let mut transfer = proxy.connect(&config);
    transfer.write_all(b"go").unwrap();
    let mut handshake = proxy.connect(&config);
    handshake.conn.write_tls(&mut handshake.sock).unwrap();
    proxy.expect(ProxyCounter::Accepted, 2);
    proxy.proxy.drain();
    handshake.write_all(b"go").unwrap();
    for tls in [&mut transfer, &mut handshake] {
        let (answer, ended_well) = read_all(tls);
        assert!(ended_well && answer == pattern(1 << 20));
        end(tls);
    }
    proxy.finish();
}

#[test]
fn a_drain_serves_what_waits_in_the_backlog() {
    let served = TestUpstream::unix(serve_echo);
    let mut proxy = TestProxy::start_with(&served.upstream, |config| {
        config.limits.connections_max = Some(2);
    });
    let config = proxy.client(&TLS13);
    let clients: Vec<_> = (0..12).map(|_| proxy.connect(&config)).collect();
    proxy.expect(ProxyCounter::Accepted, 2);
    proxy.proxy.drain();
    let clients: Vec<_> = clients
        .into_iter()
        .map(|mut tls| {
            thread::spawn(move || {
                echo(&mut tls, b"hello");
                end(&mut tls);
                assert_eq!(read_all(&mut tls), (Vec::new(), true));
            })
        })
        .collect();
    for client in clients {
        client.join().unwrap();
    }
    assert_eq!(proxy.finish().counters[ProxyCounter::Accepted], 12);
}

#[test]
fn a_drained_proxy_takes_no_new_connections() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start(&served.upstream);
    let addr = proxy.addr();
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    echo(&mut tls, b"hello");
    proxy.proxy.drain();
    crate::support::eventually("connections are refused", || std::net::TcpStream::connect(addr).is_err());
    assert!(!proxy.proxy.is_drained());
    echo(&mut tls, b"still served");
    end(&mut tls);
    proxy.finish();
}

#[test]
fn a_drain_closes_a_connection_that_was_never_used_cleanly_and_early() {
    let served = TestUpstream::unix(serve_echo);
    let mut proxy = TestProxy::start_with(&served.upstream, |config| {
        config.limits.drain_quiet = Duration::from_millis(100);
    });
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    tls.conn.complete_io(&mut tls.sock).unwrap();
    proxy.expect(ProxyCounter::UpstreamConnects, 1);
    let began_at = Instant::now();
    proxy.proxy.drain();
    assert_eq!(read_all(&mut tls), (Vec::new(), true));
    end(&mut tls);
    proxy.finish();
    assert!(began_at.elapsed() < PATIENCE / 2);
}

/// Answers in two halves with a long pause between them, of which nothing tells that it is one.
fn serve_with_a_pause(stream: &mut dyn TestStream, _: &AtomicU64) {
    stream.read_exact(&mut [0; 2]).unwrap();
    stream.write_all(b"first half,").unwrap();
    thread::sleep(Duration::from_millis(1500));
    stream.write_all(b" second half").unwrap();
    stream.end();
}

#[test]
fn a_drain_does_not_take_a_pause_in_an_answer_for_its_end() {
    let served = TestUpstream::unix(serve_with_a_pause);
    let proxy = TestProxy::start_with(&served.upstream, |config| {
        config.limits.drain_quiet = Duration::from_millis(100);
    });
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    tls.write_all(b"go").unwrap();
    tls.read_exact(&mut [0; 11]).unwrap();
    proxy.proxy.drain();
    assert_eq!(read_all(&mut tls), (b" second half".to_vec(), true));
    end(&mut tls);
    proxy.finish();
}

#[test]
fn an_answer_that_pauses_beyond_the_drain_timeout_does_not_look_whole() {
    let served = TestUpstream::unix(serve_with_a_pause);
    let proxy = TestProxy::start_with(&served.upstream, |config| {
        config.limits.drain_quiet = Duration::from_millis(100);
        config.limits.drain_timeout = Duration::from_millis(700);
    });
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    tls.write_all(b"go").unwrap();
    tls.read_exact(&mut [0; 11]).unwrap();
    proxy.proxy.drain();
    assert_eq!(read_all(&mut tls), (Vec::new(), false));
    let total = proxy.finish();
    assert_eq!(total.connections[0].outcome, ConnectionOutcome::DrainTimeout);
}

fn serve_at_once(stream: &mut dyn TestStream, _: &AtomicU64) {
    stream.read_exact(&mut [0; 2]).unwrap();
    stream.write_all(&pattern(200 << 10)).unwrap();
    stream.end();
    // Its other direction stays open.
    let _ = stream.read(&mut [0; 1]);
}

#[test]
fn a_drain_does_not_wait_for_a_client_that_has_its_whole_answer() {
    let served = TestUpstream::unix(serve_at_once);
    let proxy = TestProxy::start_with(&served.upstream, |config| {
        config.limits.drain_quiet = Duration::from_millis(100);
    });
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    tls.write_all(b"go").unwrap();
    assert_eq!(read_all(&mut tls), (pattern(200 << 10), true));
    let began_at = Instant::now();
    let total = proxy.finish();
    assert!(began_at.elapsed() < PATIENCE / 2);
    assert_eq!(total.connections[0].outcome, ConnectionOutcome::Ended);
}

#[test]
fn a_drain_waits_for_a_client_that_still_takes_its_answer() {
    let served = TestUpstream::unix(serve_at_once);
    let mut proxy = TestProxy::start_with(&served.upstream, |config| {
        config.limits.drain_quiet = Duration::from_millis(100);
    });
    // So small a buffer that most of the answer waits in the kernel of the proxy.
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    socket.connect(&proxy.addr().into()).unwrap();
    let mut tls = tls_over(socket.into(), &proxy.client(&TLS13));
    tls.sock.set_read_timeout(Some(PATIENCE)).unwrap();
    tls.write_all(b"go").unwrap();
    tls.flush().unwrap();
    // More than was asked for, by records and handshake.
    proxy.expect_at_least(ProxyCounter::WireOut, 200 << 10);
    proxy.proxy.drain();
    thread::sleep(Duration::from_millis(500));
    // A connection that was closed would be reset by this.
    tls.write_all(b"more").unwrap();
    assert_eq!(read_all(&mut tls), (pattern(200 << 10), true));
    end(&mut tls);
    proxy.finish();
}

fn serve_never(stream: &mut dyn TestStream, _: &AtomicU64) {
    let _ = stream.read(&mut [0; 100]);
    thread::sleep(PATIENCE);
}

#[test]
fn a_drain_cuts_what_does_not_end_in_time_and_says_so() {
    let served = TestUpstream::unix(serve_never);
    let proxy = TestProxy::start_with(&served.upstream, |config| {
        config.limits.drain_timeout = Duration::from_millis(300);
    });
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    tls.write_all(b"hello").unwrap();
    tls.flush().unwrap();
    let mut silent = proxy.tcp();
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(silent.read(&mut [0; 1]).unwrap_or(0), 0));
        let total = proxy.finish();
        let outcomes: Vec<_> = total.connections.iter().map(|record| record.outcome).collect();
        assert_eq!(outcomes, [ConnectionOutcome::DrainTimeout; 2]);
        assert_eq!(total.counters[ProxyCounter::FailedOther], 1);
    });
    assert!(!read_all(&mut tls).1, "what was cut must not look whole");
}

#[test]
fn dropping_a_proxy_ends_its_threads_and_frees_its_port() {
    let served = TestUpstream::unix(serve_echo);
    let mut proxy = TestProxy::start(&served.upstream);
    let addr = proxy.addr();
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    echo(&mut tls, b"hello");
    proxy.collect();
    drop(proxy);
    read_all(&mut tls);
    std::net::TcpListener::bind(addr).unwrap();
}

#[test]
fn all_counters_are_collected_after_the_end() {
    let served = TestUpstream::unix(serve_echo);
    let mut proxy = TestProxy::start(&served.upstream);
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    echo(&mut tls, b"hello");
    end(&mut tls);
    read_all(&mut tls);
    proxy.proxy.drain();
    assert!(proxy.proxy.wait(PATIENCE));
    let mut total = ProxyDelta::default();
    proxy.proxy.collect(&mut total, Duration::ZERO);
    assert_eq!(total.counters[ProxyCounter::BytesIn], 5);
    assert_eq!(total.counters[ProxyCounter::Closed], 1);
    proxy.proxy.join().unwrap();
}
