//! Bounds: memory of one connection, connections at once, time.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use proxy_core::{Certificate, Proxy, ProxyConfig};
use records::kinds::ConnectionOutcome;
use records::metrics::ProxyCounter;
use records::setting::Value;

use crate::support::{
    PATIENCE, TLS12, TLS13, TestProxy, TestStream, TestUpstream, echo, end, eventually, read_all, serve_echo,
    tcp_from, tcp_to, tls_over,
};

/// What a connection may hold of ours in one direction.
const HELD_BYTES_MAX: u64 = 256 << 10;

/// Waits until `counter` stands still, and returns it.
fn settled(proxy: &mut TestProxy, counter: ProxyCounter) -> u64 {
    let (mut last, mut since) = (0, Instant::now());
    eventually("nothing moves any more", || {
        let now = proxy.count(counter);
        if now != last {
            (last, since) = (now, Instant::now());
        }
        now > 0 && since.elapsed() > Duration::from_millis(300)
    });
    last
}

fn serve_endlessly(stream: &mut dyn TestStream, _: &AtomicU64) {
    let bytes = vec![1; 100_000];
    while stream.write_all(&bytes).is_ok() {}
}

#[test]
fn a_client_that_does_not_read_stops_its_upstream() {
    for served in [TestUpstream::unix(serve_endlessly), TestUpstream::tcp(serve_endlessly)] {
        let mut proxy = TestProxy::start(&served.upstream);
        let mut tls = proxy.connect(&proxy.client(&TLS13));
        tls.write_all(b"go").unwrap();
        let taken = settled(&mut proxy, ProxyCounter::BytesOut);
        let sent = proxy.count(ProxyCounter::WireOut);
        assert!(
            taken < sent + HELD_BYTES_MAX,
            "{taken} were read of the upstream, {sent} went to the client"
        );
        // It goes on where it stopped.
        let mut buffer = vec![0; 1 << 20];
        tls.read_exact(&mut buffer).unwrap();
        assert!(buffer.iter().all(|&byte| byte == 1));
    }
}

fn serve_nothing(stream: &mut dyn TestStream, _: &AtomicU64) {
    let mut first = [0];
    let _ = stream.read(&mut first);
    std::thread::sleep(PATIENCE);
}

#[test]
fn an_upstream_that_does_not_read_stops_its_client() {
    for served in [TestUpstream::unix(serve_nothing), TestUpstream::tcp(serve_nothing)] {
        let mut proxy = TestProxy::start(&served.upstream);
        let mut tls = proxy.connect(&proxy.client(&TLS13));
        tls.write_all(b"go").unwrap();
        tls.sock.set_nonblocking(true).unwrap();
        let mut refused_since = None;
        eventually("the client cannot send any more", || {
            match tls.write(&[1; 10_000]).and_then(|_| tls.flush()) {
                Ok(()) => {
                    refused_since = None;
                    false
                }
                Err(_) => {
                    refused_since.get_or_insert_with(Instant::now).elapsed() > Duration::from_millis(300)
                }
            }
        });
        let received = settled(&mut proxy, ProxyCounter::WireIn);
        let taken = proxy.count(ProxyCounter::BytesIn);
        assert!(received < taken + taken / 100 + HELD_BYTES_MAX, "{received} came in, {taken} went on");
    }
}

#[test]
fn connections_beyond_the_bound_wait_in_the_backlog_and_are_served_later() {
    let served = TestUpstream::unix(serve_echo);
    let mut proxy = TestProxy::start_with(&served.upstream, |config| config.limits.connections_max = Some(3));
    let config = proxy.client(&TLS13);
    let mut held: Vec<_> = (0..3).map(|_| proxy.connect(&config)).collect();
    for tls in &mut held {
        echo(tls, b"hello");
    }
    let waiting: Vec<_> = (0..5)
        .map(|_| {
            let mut tls = proxy.connect(&config);
            std::thread::spawn(move || {
                echo(&mut tls, b"later");
                end(&mut tls);
                read_all(&mut tls);
            })
        })
        .collect();
    let began_at = Instant::now();
    while began_at.elapsed() < Duration::from_millis(100) {
        assert_eq!(proxy.count(ProxyCounter::Accepted), 3);
        echo(&mut held[0], b"still served");
    }
    for tls in &mut held {
        end(tls);
    }
    for waiting in waiting {
        waiting.join().unwrap();
    }
    proxy.expect(ProxyCounter::Closed, 8);
}

#[test]
fn the_limit_of_connections_per_client_holds() {
    let served = TestUpstream::unix(serve_echo);
    let mut proxy = TestProxy::start_with(&served.upstream, |config| {
        config.limits.connections_per_client = Some(3);
    });
    let config = proxy.client(&TLS13);
    let mut held: Vec<_> = (0..3).map(|_| proxy.connect(&config)).collect();
    for tls in &mut held {
        echo(tls, b"hello");
    }
    let mut beyond = proxy.connect(&config);
    beyond.write_all(b"hello").and_then(|()| beyond.flush()).unwrap_err();
    proxy.expect(ProxyCounter::RefusedConnections, 1);
    // Others are not affected, and one that leaves makes room.
    let mut other = tls_over(tcp_from("127.0.0.9", proxy.addr()), &config);
    echo(&mut other, b"hello");
    end(&mut held[0]);
    read_all(&mut held[0]);
    proxy.expect(ProxyCounter::Closed, 2);
    let mut next = proxy.connect(&config);
    echo(&mut next, b"hello");
    proxy.proxy.set("proxy.connections-per-client", &Value::Number(0.0)).unwrap();
    let mut unbounded = proxy.connect(&config);
    echo(&mut unbounded, b"hello");
    drop((held, other, next, unbounded));
    let total = proxy.finish();
    let refused = total
        .connections
        .iter()
        .find(|record| record.outcome == ConnectionOutcome::ConnectionsPerClient)
        .unwrap();
    assert!(refused.detail.contains("3 connections"), "{refused:?}");
}

#[test]
fn handshakes_beyond_the_bound_wait_until_others_are_done() {
    let served = TestUpstream::unix(serve_echo);
    let mut proxy = TestProxy::start_with(&served.upstream, |config| {
        config.workers = 1.try_into().unwrap();
        config.limits.handshakes_max = Some(2);
        config.limits.handshake_timeout = Duration::from_millis(1500);
    });
    let config = proxy.client(&TLS13);
    let mut done = proxy.connect(&config);
    echo(&mut done, b"not a handshake any more");
    let silent = [proxy.tcp(), proxy.tcp()];
    proxy.expect(ProxyCounter::Accepted, 3);
    let mut waiting = proxy.connect(&config);
    let began_at = Instant::now();
    echo(&mut waiting, b"hello");
    assert!(began_at.elapsed() > Duration::from_millis(300), "it had to wait");
    proxy.expect(ProxyCounter::FailedTimeout, 2);
    drop((done, silent, waiting));
    assert_eq!(proxy.finish().counters[ProxyCounter::Accepted], 4);
}

#[test]
fn a_raised_bound_acts_at_once() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start_with(&served.upstream, |config| config.limits.connections_max = Some(1));
    let config = proxy.client(&TLS13);
    // One after the other: two workers would not accept them in the order in which they came.
    let mut first = proxy.connect(&config);
    echo(&mut first, b"hello");
    let mut second = proxy.connect(&config);
    let before = proxy.proxy.set("proxy.connections-max", &Value::Number(2.0)).unwrap();
    assert_eq!(before.value, Value::Number(1.0));
    echo(&mut second, b"hello");
}

#[test]
fn a_handshake_times_out_in_every_state() {
    let served = TestUpstream::unix(serve_echo);
    let mut proxy = TestProxy::start_with(&served.upstream, |config| {
        config.limits.handshake_timeout = Duration::from_millis(200);
    });
    let mut patient = proxy.connect(&proxy.client(&TLS13));
    echo(&mut patient, b"in time");
    let mut silent = proxy.tcp();
    let mut halting = proxy.tcp();
    halting.write_all(&[22, 3, 1, 1, 0, 1]).unwrap();
    for socket in [&mut silent, &mut halting] {
        assert_eq!(socket.read(&mut [0; 100]).unwrap_or(0), 0, "it is closed without a word");
    }
    proxy.expect(ProxyCounter::FailedTimeout, 2);
    echo(&mut patient, b"not affected");
    end(&mut patient);
    let total = proxy.finish();
    let timeouts =
        total.connections.iter().filter(|record| record.outcome == ConnectionOutcome::HandshakeTimeout);
    assert_eq!(timeouts.count(), 2);
}

#[test]
fn an_idle_connection_gets_a_close_notify_and_an_active_one_does_not() {
    let served = TestUpstream::unix(serve_echo);
    let mut proxy = TestProxy::start_with(&served.upstream, |config| {
        config.limits.idle_timeout = Duration::from_secs(1);
    });
    let configs = [&TLS12, &TLS13].map(|version| proxy.client(version));
    let mut idle = configs.each_ref().map(|config| proxy.connect(config));
    let mut active = configs.each_ref().map(|config| proxy.connect(config));
    for tls in &mut idle {
        echo(tls, b"hello");
    }
    let began_at = Instant::now();
    while began_at.elapsed() < Duration::from_millis(2500) {
        for tls in &mut active {
            echo(tls, b"tick");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    for mut tls in idle {
        assert_eq!(read_all(&mut tls), (Vec::new(), true));
    }
    for mut tls in active {
        echo(&mut tls, b"still there");
        end(&mut tls);
        read_all(&mut tls);
    }
    proxy.expect(ProxyCounter::IdleTimeouts, 2);
}

#[test]
fn an_idle_connection_that_owes_an_answer_is_cut_without_a_close_notify() {
    let served = TestUpstream::unix(serve_nothing);
    let mut proxy = TestProxy::start_with(&served.upstream, |config| {
        config.limits.idle_timeout = Duration::from_millis(200);
    });
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    tls.write_all(b"hello").unwrap();
    assert_eq!(read_all(&mut tls), (Vec::new(), false), "no answer must not look like an empty one");
    proxy.expect(ProxyCounter::IdleTimeouts, 1);
}

#[test]
fn a_connection_that_waited_for_its_upstream_still_times_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("app.sock");
    let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None).unwrap();
    socket.bind(&socket2::SockAddr::unix(&path).unwrap()).unwrap();
    socket.listen(0).unwrap();
    let filler = std::os::unix::net::UnixStream::connect(&path).unwrap();
    let mut proxy = TestProxy::start_with(&proxy_core::Upstream::unix(path), |config| {
        config.limits.connect_timeout = PATIENCE;
        config.limits.idle_timeout = Duration::from_millis(200);
    });
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    tls.conn.complete_io(&mut tls.sock).unwrap();
    proxy.expect(ProxyCounter::HandshakesFull, 1);
    // Longer than it takes until the full backlog is tried again.
    std::thread::sleep(Duration::from_millis(50));
    let _held = [socket.accept().unwrap(), socket.accept().unwrap()];
    drop(filler);
    proxy.expect(ProxyCounter::UpstreamConnects, 1);
    proxy.expect(ProxyCounter::IdleTimeouts, 1);
}

#[test]
fn under_the_handshake_limit_every_address_is_served() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start_with(&served.upstream, |config| {
        config.workers = 1.try_into().unwrap();
        config.listen.push("127.0.0.1:0".parse().unwrap());
        config.limits.connections_max = Some(1);
    });
    let config = proxy.client(&TLS13);
    let other = proxy.proxy.local_addrs()[1];
    let mut held = proxy.connect(&config);
    echo(&mut held, b"hello");
    let mut crowd: Vec<_> = (0..5).map(|_| proxy.connect(&config)).collect();
    let mut alone = tls_over(tcp_to(other), &config);
    alone.conn.writer().write_all(b"my turn").unwrap();
    alone.sock.set_nonblocking(true).unwrap();
    drop((held, crowd.remove(0)));
    drop(crowd.remove(0));
    eventually("the other address is served", || alone.read(&mut [0; 7]).is_ok());
    drop(crowd);
}

#[test]
fn a_shortened_idle_timeout_acts_on_open_connections() {
    let served = TestUpstream::unix(serve_echo);
    let mut proxy = TestProxy::start(&served.upstream);
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    echo(&mut tls, b"hello");
    proxy.proxy.set("proxy.idle-timeout", &Value::Number(0.05)).unwrap();
    assert_eq!(read_all(&mut tls), (Vec::new(), true));
    proxy.expect(ProxyCounter::IdleTimeouts, 1);
}

#[test]
fn settings_report_values_and_refuse_invalid_ones() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start(&served.upstream).proxy;
    let value = |name: &str| proxy.settings().into_iter().find(|setting| setting.name == name).unwrap().value;
    assert_eq!(value("proxy.workers"), Value::Number(2.0));
    let certificate = value("proxy.certificate").to_string();
    assert!(certificate.starts_with("ECDSA P-256 for localhost and "), "{certificate}");
    assert_eq!(value("proxy.pending-max"), Value::Number(512.0));
    proxy.set("proxy.pending-max", &Value::Number(3.0)).unwrap();
    assert_eq!(value("proxy.pending-max"), Value::Number(3.0));
    for mebibytes in [512.0, 0.0] {
        proxy.set("proxy.memory-max", &Value::Number(mebibytes)).unwrap();
        assert_eq!(value("proxy.memory-max"), Value::Number(mebibytes), "0 is no bound of its own");
    }
    proxy.set("proxy.handshake-timeout", &Value::Number(3.0)).unwrap();
    assert_eq!(value("proxy.handshake-timeout"), Value::Number(3.0));
    for (name, value, says) in [
        ("proxy.listen", Value::Text(":1".into()), "restart"),
        ("proxy.workers", Value::Number(0.0), "expected a whole number"),
        ("proxy.workers", Value::Number(1.5), "expected a whole number"),
        ("proxy.handshakes-max", Value::Number(1e7), "expected a whole number"),
        ("proxy.connections-per-client", Value::Number(f64::INFINITY), "expected a whole number"),
        ("proxy.drain-timeout", Value::Number(86_401.0), "expected a number"),
        ("proxy.no-such", Value::Number(3.0), "no setting"),
        ("proxy.idle-timeout", Value::Number(-1.0), "expected a number"),
        ("proxy.idle-timeout", Value::Number(f64::NAN), "expected a number"),
        ("proxy.idle-timeout", Value::Text("\u{1b}".into()), "expected a number"),
        ("proxy.connections-max", Value::Number(1e9), "expected a whole number"),
        ("proxy.pending-max", Value::Number(0.0), "expected a whole number"),
        ("proxy.pending-max", Value::Number(1.5), "expected a whole number"),
        ("proxy.memory-max", Value::Number(63.0), "expected a whole number from 64 to 1048576"),
    ] {
        let error = proxy.set(name, &value).unwrap_err().to_string();
        assert!(error.contains(says) && !error.contains('\u{1b}'), "{error}");
    }
    assert_eq!(value("proxy.idle-timeout"), Value::Number(600.0));
}

/// Changes a configuration to something that cannot be.
type Change = fn(&mut ProxyConfig);

#[test]
fn a_proxy_does_not_start_with_an_invalid_setting() {
    const TOO_LONG: Duration = Duration::from_secs(86_401);
    let cases: [(Change, &str); 17] = [
        (|config| config.workers = 257.try_into().unwrap(), "workers 257"),
        (|config| config.limits.handshakes_max = Some(0), "handshakes-max 0"),
        (|config| config.limits.handshakes_max = Some(usize::MAX), "handshakes-max"),
        (|config| config.limits.connections_per_client = Some(0), "connections-per-client 0"),
        (|config| config.limits.connections_max = Some(0), "connections-max 0"),
        (|config| config.limits.handshake_timeout = Duration::ZERO, "handshake-timeout 0s"),
        (|config| config.limits.connect_timeout = Duration::from_nanos(1), "connect-timeout 0.000000001s"),
        (|config| config.limits.idle_timeout = Duration::MAX, "idle-timeout"),
        (|config| config.limits.send_timeout = Duration::ZERO, "send-timeout 0s"),
        (|config| config.limits.pending_bytes_max = 1000, "pending-max 0.0009"),
        (|config| config.limits.memory_bytes_max = Some(1 << 20), "memory-max 1MiB"),
        (|config| config.limits.half_closed_timeout = TOO_LONG, "half-closed-timeout 86401s"),
        (|config| config.limits.drain_timeout = TOO_LONG, "drain-timeout 86401s"),
        (|config| config.limits.drain_quiet = TOO_LONG, "drain-quiet 86401s"),
        (|config| config.upstreams.push(config.upstreams[0].clone()), "twice"),
        (|config| config.upstreams.clear(), "0 upstreams"),
        (|config| config.tls.settings.tickets = 9, "tickets"),
    ];
    let served = TestUpstream::unix(serve_echo);
    for (change, part) in cases {
        let listen = vec!["127.0.0.1:0".parse().unwrap()];
        let certificate = Certificate::generate(&[]).unwrap();
        let mut config = ProxyConfig::new(listen, served.upstream.clone(), certificate);
        change(&mut config);
        let error = Proxy::start(config).unwrap_err().to_string();
        assert!(error.contains(part) && !error.contains('\n'), "{part}: {error}");
    }
}

#[test]
fn a_proxy_does_not_forward_to_itself() {
    let refusal = |listen: &str, upstream: &str| {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let listen = vec![format!("{listen}:{port}").parse().unwrap()];
        let upstream = format!("{upstream}:{port}").parse().unwrap();
        let config = ProxyConfig::new(listen, upstream, Certificate::generate(&[]).unwrap());
        Proxy::start(config).unwrap_err().to_string()
    };
    for (listen, upstream) in [("127.0.0.1", "127.0.0.1"), ("", "127.0.0.1"), ("", "localhost")] {
        // Another test may take the port first.
        let mut refusals = (0..5).map(|_| refusal(listen, upstream));
        let error = refusals.find(|error| !error.contains("in use")).unwrap();
        assert!(error.contains("where the proxy itself listens"), "{error}");
    }
}
