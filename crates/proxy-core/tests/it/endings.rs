//! How connections end: which ends are clean, what an absent or broken upstream looks like.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use proxy_core::{ProxyConfig, Upstream, UpstreamAddr};
use records::kinds::ConnectionOutcome;
use records::metrics::ProxyCounter;

use crate::support::{
    PATIENCE, TLS12, TLS13, TestProxy, TestStream, TestUpstream, Tls, echo, end, pattern, read_all,
    reserved_address, reset, serve_echo,
};

fn serve_one_answer(stream: &mut dyn TestStream, _: &AtomicU64) {
    let mut buffer = [0; 100];
    let n = stream.read(&mut buffer).unwrap();
    stream.write_all(&buffer[..n]).unwrap();
    stream.end();
}

#[test]
fn an_upstream_that_closes_after_its_answer_ends_the_client_cleanly() {
    for served in [TestUpstream::unix(serve_one_answer), TestUpstream::tcp(serve_one_answer)] {
        let mut proxy = TestProxy::start(&served.upstream);
        for version in [&TLS12, &TLS13] {
            let mut tls = proxy.connect(&proxy.client(version));
            tls.write_all(b"hello").unwrap();
            assert_eq!(read_all(&mut tls), (b"hello".to_vec(), true));
            end(&mut tls);
        }
        proxy.expect(ProxyCounter::Closed, 2);
        assert!(proxy.total.connections.iter().all(|record| record.outcome == ConnectionOutcome::Ended));
    }
}

/// Answers with less than it should, and closes with something unread, which resets the connection.
fn serve_and_break(stream: &mut dyn TestStream, _: &AtomicU64) {
    stream.read_exact(&mut [0; 1]).unwrap();
    stream.write_all(b"half an ans").unwrap();
}

#[test]
fn an_upstream_that_breaks_ends_the_client_without_a_close_notify() {
    for served in [TestUpstream::unix(serve_and_break), TestUpstream::tcp(serve_and_break)] {
        let mut proxy = TestProxy::start(&served.upstream);
        for version in [&TLS12, &TLS13] {
            let mut tls = proxy.connect(&proxy.client(version));
            tls.write_all(b"hello").unwrap();
            let (answer, ended_well) = read_all(&mut tls);
            assert!(!ended_well, "a truncated answer must not look whole");
            assert!(b"half an ans".starts_with(&answer));
        }
        proxy.expect(ProxyCounter::UpstreamBroken, 2);
        proxy.expect(ProxyCounter::Closed, 2);
        assert!(
            proxy.total.connections.iter().all(|record| record.outcome == ConnectionOutcome::UpstreamBroken)
        );
    }
}

#[test]
fn an_upstream_that_broke_unnoticed_does_not_look_whole() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut proxy = TestProxy::start(&listener.local_addr().unwrap().to_string().parse().unwrap());
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    tls.write_all(b"go").unwrap();
    let (mut app, _) = listener.accept().unwrap();
    app.read_exact(&mut [0; 2]).unwrap();
    // More than the proxy takes while its client does not read, so that it does not read the upstream either.
    app.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let answer = vec![1; 100_000];
    while app.write(&answer).is_ok() {}
    tls.write_all(b"unread").unwrap();
    proxy.expect(ProxyCounter::BytesIn, 8);
    drop(app);
    let before = proxy.count(ProxyCounter::WireIn);
    // Writing is what learns of the reset, and the kernel tells of it only once.
    tls.write_all(b"into the void").unwrap();
    proxy.expect_at_least(ProxyCounter::WireIn, before + 13);
    let (_, ended_well) = read_all(&mut tls);
    assert!(!ended_well, "a truncated answer must not look whole");
    proxy.expect(ProxyCounter::UpstreamBroken, 1);
}

#[test]
fn a_client_that_asks_for_nothing_and_ends_well_has_not_failed() {
    let served = TestUpstream::unix(serve_echo);
    let mut proxy = TestProxy::start(&served.upstream);
    for version in [&TLS12, &TLS13] {
        let mut tls = proxy.connect(&proxy.client(version));
        tls.conn.complete_io(&mut tls.sock).unwrap();
        end(&mut tls);
        assert_eq!(read_all(&mut tls), (Vec::new(), true));
    }
    proxy.expect(ProxyCounter::Closed, 2);
    let total = proxy.finish();
    assert_eq!((total.counters[ProxyCounter::HandshakesFull], total.counters[ProxyCounter::Failed]), (2, 0));
}

#[test]
fn an_absent_upstream_ends_clients_cleanly_until_it_appears() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("app.sock");
    let (reserved, addr) = reserved_address();
    for upstream in [Upstream::unix(path), addr.to_string().parse().unwrap()] {
        let mut proxy = TestProxy::start(&upstream);
        for version in [&TLS12, &TLS13] {
            let mut tls = proxy.connect(&proxy.client(version));
            tls.write_all(&pattern(100_000)).unwrap();
            assert_eq!(read_all(&mut tls), (Vec::new(), true));
            end(&mut tls);
        }
        proxy.expect(ProxyCounter::UpstreamConnectsFailed, 2);
        proxy.expect(ProxyCounter::Failed, 2);
        let record = proxy.total.connections[0].clone();
        assert_eq!((record.outcome, record.sni.as_str()), (ConnectionOutcome::UpstreamConnect, "localhost"));
        assert!(!record.detail.is_empty());

        let (unix, tcp);
        if let UpstreamAddr::Unix(path) = &upstream.addr {
            unix = UnixListener::bind(path).unwrap();
            std::thread::spawn(move || serve_echo(&mut unix.accept().unwrap().0, &AtomicU64::new(0)));
        } else {
            reserved.listen(128).unwrap();
            tcp = TcpListener::from(reserved.try_clone().unwrap());
            std::thread::spawn(move || serve_echo(&mut tcp.accept().unwrap().0, &AtomicU64::new(0)));
        }
        let mut tls = proxy.connect(&proxy.client(&TLS13));
        echo(&mut tls, b"there it is");
        end(&mut tls);
        let total = proxy.finish();
        assert_eq!(total.counters[ProxyCounter::UpstreamConnects], 1);
        assert_eq!(total.counters[ProxyCounter::BytesIn], 11);
    }
}

#[test]
fn a_name_with_several_addresses_is_tried_address_by_address() {
    // localhost is ::1 and 127.0.0.1 on most hosts; only one of them has a listener here.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = format!("localhost:{}", listener.local_addr().unwrap().port()).parse().unwrap();
    std::thread::spawn(move || serve_echo(&mut listener.accept().unwrap().0, &AtomicU64::new(0)));
    let mut proxy = TestProxy::start(&upstream);
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    echo(&mut tls, b"hello");
    proxy.expect(ProxyCounter::UpstreamConnects, 1);
    assert_eq!(proxy.count(ProxyCounter::UpstreamConnectsFailed), 0);
}

#[test]
fn a_full_backlog_is_waited_for_up_to_the_connect_timeout() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("app.sock");
    let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
    socket.bind(&socket2::SockAddr::unix(&path).unwrap()).unwrap();
    socket.listen(0).unwrap();
    let filler = std::os::unix::net::UnixStream::connect(&path).unwrap();
    let mut proxy = TestProxy::start_with(&Upstream::unix(path), |config| {
        config.limits.connect_timeout = Duration::from_millis(100);
    });
    let config = proxy.client(&TLS13);
    let mut tls = proxy.connect(&config);
    tls.write_all(b"hello").unwrap();
    assert_eq!(read_all(&mut tls), (Vec::new(), true));
    end(&mut tls);
    proxy.expect(ProxyCounter::UpstreamConnectsFailed, 1);

    proxy
        .proxy
        .set("proxy.connect-timeout", &records::setting::Value::Number(PATIENCE.as_secs_f64()))
        .unwrap();
    let mut tls = proxy.connect(&config);
    tls.write_all(b"hello").unwrap();
    tls.flush().unwrap();
    proxy.expect(ProxyCounter::HandshakesFull, 1);
    drop(filler);
    for _ in 0..2 {
        let (mut accepted, _) = socket.accept().unwrap();
        let mut hello = [0; 5];
        if accepted.read(&mut hello).unwrap() == 5 {
            accepted.write_all(&hello).unwrap();
            drop(accepted);
        }
    }
    assert_eq!(read_all(&mut tls), (b"hello".to_vec(), true));
}

#[test]
fn a_client_that_resets_in_mid_stream_is_counted_as_broken() {
    let served = TestUpstream::unix(serve_echo);
    let mut proxy = TestProxy::start(&served.upstream);
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    echo(&mut tls, b"hello");
    reset(&tls.sock);
    drop(tls);
    proxy.expect(ProxyCounter::ClientBroken, 1);
    proxy.expect(ProxyCounter::Closed, 1);
}

#[test]
fn a_client_that_resets_after_its_close_notify_has_ended_well() {
    let served = TestUpstream::unix(serve_echo);
    let mut proxy = TestProxy::start(&served.upstream);
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    echo(&mut tls, b"hello");
    reset(&tls.sock);
    tls.conn.send_close_notify();
    tls.flush().unwrap();
    drop(tls);
    proxy.expect(ProxyCounter::Closed, 1);
    assert_eq!(proxy.count(ProxyCounter::ClientBroken), 0);
}

#[test]
fn an_upstream_that_stops_reading_may_still_answer() {
    // As an application does that refuses an upload by its headers.
    fn refuse(stream: &mut dyn TestStream, _: &AtomicU64) {
        stream.read_exact(&mut [0; 10]).unwrap();
        stream.write_all(b"too large").unwrap();
        stream.end();
        std::thread::sleep(Duration::from_millis(200));
    }
    let served = TestUpstream::unix(refuse);
    let mut proxy = TestProxy::start(&served.upstream);
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    tls.write_all(&pattern(150_000)).unwrap();
    assert_eq!(read_all(&mut tls).0, b"too large");
    end(&mut tls);
    proxy.expect(ProxyCounter::Closed, 1);
}

fn send_damaged(tls: &mut Tls) {
    tls.conn.writer().write_all(b"damaged").unwrap();
    let mut record = Vec::new();
    tls.conn.write_tls(&mut record).unwrap();
    *record.last_mut().unwrap() ^= 1;
    tls.sock.write_all(&record).unwrap();
}

#[test]
fn a_damaged_record_ends_the_client_and_reaches_no_upstream() {
    let served = TestUpstream::unix(serve_echo);
    let mut proxy = TestProxy::start(&served.upstream);
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    echo(&mut tls, b"hello");
    send_damaged(&mut tls);
    let error = tls.read(&mut [0; 10]).unwrap_err().to_string();
    assert!(error.contains("BadRecordMac"), "the client is told: {error}");
    drop(tls);
    proxy.expect(ProxyCounter::ClientBroken, 1);
    assert_eq!(proxy.count(ProxyCounter::BytesIn), 5);
}

#[test]
fn a_client_that_changes_its_keys_for_ever_is_ended_and_counted() {
    let served = TestUpstream::tcp(serve_echo);
    let mut proxy = TestProxy::start(&served.upstream);
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    echo(&mut tls, b"hello");
    let mut updates = 0;
    while tls.conn.refresh_traffic_keys().is_ok() && tls.write_all(b"x").is_ok() && updates < 1_000 {
        if tls.read_exact(&mut [0; 1]).is_err() {
            break;
        }
        updates += 1;
    }
    assert_eq!(updates, 254, "as many as a handshake has left of 256");
    proxy.expect(ProxyCounter::ClientBroken, 1);
    let total = proxy.finish();
    assert!(total.connections[0].detail.contains("changes its keys too often"), "{:?}", total.connections);
}

/// How an upstream on TCP sees the end of a client that has sent some bytes.
fn end_of_upload(
    change: impl FnOnce(&mut ProxyConfig),
    act: impl FnOnce(&TestProxy, &mut Tls, &mut TcpStream),
) -> Result<usize, ErrorKind> {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = listener.local_addr().unwrap().to_string().parse().unwrap();
    let proxy = TestProxy::start_with(&upstream, change);
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    tls.write_all(b"half").unwrap();
    let (mut app, _) = listener.accept().unwrap();
    app.set_read_timeout(Some(PATIENCE)).unwrap();
    app.read_exact(&mut [0; 4]).unwrap();
    act(&proxy, &mut tls, &mut app);
    app.read(&mut [0; 1]).map_err(|error| error.kind())
}

fn idle_soon(config: &mut ProxyConfig) {
    config.limits.idle_timeout = Duration::from_millis(300);
}

fn answer(tls: &mut Tls, app: &mut TcpStream) {
    app.write_all(b"x").unwrap();
    tls.read_exact(&mut [0; 1]).unwrap();
}

#[test]
fn an_upload_that_is_cut_resets_its_upstream() {
    let drain_soon = |config: &mut ProxyConfig| config.limits.drain_timeout = Duration::from_millis(100);
    let reset_client = |proxy: &TestProxy, tls: &mut Tls, _: &mut TcpStream| {
        reset(&tls.sock);
        // Closes the former one.
        tls.sock = proxy.tcp();
    };
    let damage_after_answer = |_: &TestProxy, tls: &mut Tls, app: &mut TcpStream| {
        answer(tls, app);
        send_damaged(tls);
    };
    let ends = [
        end_of_upload(|_| {}, reset_client),
        end_of_upload(|_| {}, |_, tls, _| send_damaged(tls)),
        end_of_upload(|_| {}, damage_after_answer),
        end_of_upload(idle_soon, |_, _, _| {}),
        end_of_upload(drain_soon, |proxy, _, _| proxy.proxy.drain()),
        end_of_upload(|_| {}, |proxy, _, _| proxy.proxy.cut()),
    ];
    assert_eq!(ends, [Err(ErrorKind::ConnectionReset); 6]);
}

#[test]
fn a_client_that_ends_or_idles_after_its_answer_is_a_fin_to_its_upstream() {
    let cut_after_end = |proxy: &TestProxy, tls: &mut Tls, app: &mut TcpStream| {
        end(tls);
        assert_eq!(app.peek(&mut [0; 1]).unwrap(), 0);
        proxy.proxy.cut();
        assert!(proxy.proxy.wait(PATIENCE));
    };
    let ends = [
        end_of_upload(|_| {}, |_, tls, _| end(tls)),
        end_of_upload(|_| {}, |_, tls, _| tls.sock.shutdown(Shutdown::Write).unwrap()),
        end_of_upload(idle_soon, |_, tls, app| answer(tls, app)),
        end_of_upload(|_| {}, cut_after_end),
    ];
    assert_eq!(ends, [Ok(0); 4]);
}
