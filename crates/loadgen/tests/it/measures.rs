//! What is counted and timed besides the requests themselves: phases, warm-up, lifetimes, weights, bodies, examples.

use std::time::{Duration, Instant};

use loadgen::{Expect, LoadConfig, RequestBody, Template, Trust};
use records::metrics::{Counters, LoadCounter as C, LoadLatency as L};
use records::values::LoadEvent as E;

use crate::support::{ServerAction, TestServer, TlsVersion, config, run};

#[test]
fn the_phases_of_a_request_are_timed_apart_each_with_its_number() {
    let server = TestServer::tls(TlsVersion::V13, |_| {
        std::thread::sleep(Duration::from_millis(5));
        ServerAction::ok(10)
    });
    let (all, _) = run(config(&server, "connections=1,keep-alive=2,requests=20,resume=50%"));
    let latency = |class: L| &all.latencies[class];
    assert_eq!((latency(L::Connect).count(), all.counters[C::Reused]), (10, 10));
    assert_eq!(latency(L::HandshakeFull).count(), all.counters[C::HandshakesFull]);
    assert_eq!(latency(L::HandshakeResumed).count(), all.counters[C::HandshakesResumed]);
    for class in [L::FirstByte, L::Service, L::Total] {
        assert_eq!(latency(class).count(), 20, "{class:?}");
        assert!(latency(class).min_ns().unwrap() >= 4_900_000, "{class:?}");
    }
    // A connection is made for every other request, and that is a part of its total alone.
    let made = [L::Connect, L::HandshakeFull, L::HandshakeResumed].map(|class| latency(class).sum_ns());
    assert!(latency(L::Total).sum_ns() >= latency(L::Service).sum_ns() + made.iter().sum::<u64>());
    assert!(latency(L::FirstByte).sum_ns() <= latency(L::Service).sum_ns());
}

#[test]
fn the_first_byte_of_a_slow_body_comes_before_its_end() {
    let server = TestServer::plain(|_| {
        ServerAction::AnswerSlowly(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\na".to_vec(),
            Duration::from_millis(50),
            b"b".to_vec(),
        )
    });
    let (all, _) = run(config(&server, "connections=1,requests=3"));
    assert_eq!(all.counters[C::Ok], 3);
    assert!(all.latencies[L::FirstByte].max_ns() < 45_000_000, "{:?}", all.latencies[L::FirstByte].max_ns());
    assert!(all.latencies[L::Service].min_ns().unwrap() > 49_000_000);
}

#[test]
fn the_warm_up_is_counted_apart_and_not_timed() {
    let server = TestServer::plain(|_| ServerAction::ok(1));
    let (all, load) = run(config(&server, "rate=500,duration=1s,warmup=400ms,connections=4"));
    let counts = &all.counters;
    assert_eq!((counts[C::Scheduled], counts[C::Warmup], counts[C::Ok]), (500, 200, 300));
    assert_eq!((counts[C::Sent], counts[C::Status2xx], all.events.of(E::Status(200))), (300, 300, 300));
    for class in [L::Response, L::Service, L::Lag, L::Total, L::FirstByte] {
        assert_eq!(all.latencies[class].count(), 300, "{class:?}");
    }
    assert_eq!(all.latencies[L::Connect].count(), 0, "the connections were made before");
    assert_eq!(server.seen().requests, 500);
    let (without, _) = run(config(&server, "rate=500,duration=600ms,connections=4"));
    let bytes = |counts: &Counters<C>| [C::BytesIn, C::BytesOut].map(|counter| counts[counter]);
    assert_eq!(bytes(counts), bytes(&without.counters));
    assert_eq!(load.measured().scheduled, Duration::from_millis(600));
}

#[test]
fn a_connection_ends_with_the_first_request_after_its_lifetime() {
    let server = TestServer::plain(|_| {
        std::thread::sleep(Duration::from_millis(20));
        ServerAction::ok(1)
    });
    let begun = Instant::now();
    let (all, _) = run(config(&server, "connections=1,requests=60,lifetime=200ms"));
    // One more request is sent once 200 ms are over: a connection carries at most eleven, which take 20 ms or more.
    assert!(all.counters[C::Opened] >= 6, "{:?}", all.counters);
    let lifetimes = begun.elapsed().as_millis() as u64 / 200;
    assert!(all.counters[C::Opened] <= lifetimes + 1, "{lifetimes} lifetimes: {:?}", all.counters);
    assert_eq!((all.counters[C::Failed], all.counters[C::Retried]), (0, 0));
}

#[test]
fn weights_decide_how_often_a_request_is_sent() {
    let server = TestServer::plain(|exchange| match exchange.path.as_str() {
        "/often" => ServerAction::ok(1),
        _ => ServerAction::Answer(b"HTTP/1.1 204 No\r\n\r\n".to_vec()),
    });
    let often = Template { weight: 3, ..Template::get("/often") };
    let requests = vec![often, Template::get("/seldom")];
    let (all, _) = run(LoadConfig { requests, ..config(&server, "connections=2,requests=400,threads=2") });
    assert_eq!((all.events.of(E::Status(200)), all.events.of(E::Status(204))), (300, 100));
}

#[test]
fn bodies_are_compared_byte_for_byte_or_by_length() {
    let wrong = |exchange: &crate::support::ScriptedRequest| match exchange.nth % 2 {
        0 => ServerAction::Answer(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_vec()),
        _ => ServerAction::Answer(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhellp".to_vec()),
    };
    let hello = Template { body: RequestBody::Exact(b"hello"[..].into()), ..Template::post("/echo", 0) };
    for (expect, good) in
        [(Expect::Echo, 5), (Expect::Bytes(5), 10), (Expect::Bytes(4), 0), (Expect::Announced, 10)]
    {
        let server = TestServer::plain(wrong);
        let requests = vec![Template { expect, ..hello.clone() }];
        let (all, _) = run(LoadConfig { requests, ..config(&server, "connections=1,requests=10") });
        assert_eq!((all.counters[C::Ok], all.counters[C::FailedBody]), (good, 10 - good), "{expect:?}");
        assert_eq!((all.counters[C::BodyIn], all.counters[C::BodyOut]), (50, 50));
        assert_eq!(all.counters[C::HeadOut] + all.counters[C::BodyOut], all.counters[C::BytesOut]);
    }
}

#[test]
fn events_are_told_apart_with_the_first_example_of_each() {
    let server = TestServer::tls(TlsVersion::V13, |exchange| match exchange.nth % 4 {
        0 => ServerAction::ok(1),
        1 => ServerAction::Answer(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n".to_vec()),
        2 => ServerAction::Answer(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()),
        _ => ServerAction::AnswerAndClose(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort".to_vec()),
    });
    let requests = vec![Template::get("/some/path")];
    let (all, _) = run(LoadConfig { requests, ..config(&server, "connections=1,requests=40") });
    let example = |event: E| all.events.iter().find(|entry| entry.event == event).unwrap().example.clone();
    for event in [E::Status(200), E::Status(503), E::Protocol, E::Short] {
        assert_eq!(all.events.of(event), 10, "{event}: {:?}", all.events);
        assert!(example(event).starts_with("GET /some/path"), "{event}: {}", example(event));
    }
    assert!(example(E::Protocol).contains("SSH-2.0-OpenSSH_9.2"), "{}", example(E::Protocol));
    let negotiated =
        all.events.iter().find(|entry| matches!(entry.event, E::Negotiated(0x0304, ..))).unwrap();
    assert!(negotiated.example.starts_with("TLSv1.3 TLS_"), "{}", negotiated.example);
    assert!(negotiated.example.ends_with("ALPN none"), "{}", negotiated.example);
    assert_eq!(negotiated.count, all.counters[C::HandshakesFull]);
}

#[test]
fn an_alert_is_reported_by_name() {
    let server = TestServer::tls(TlsVersion::V12, |_| ServerAction::ok(1));
    let mut config = config(&server, "connections=1,requests=2");
    config.trust = Trust::Insecure;
    config.tls.version = Some(TlsVersion::V13);
    let (all, _) = run(config);
    assert_eq!(all.counters[C::FailedTls], 2);
    assert_eq!(all.events.of(E::AlertReceived(70)), 2, "protocol_version: {:?}", all.events);
}

#[test]
fn offered_tls_parameters_are_negotiated() {
    let server = TestServer::tls(TlsVersion::V13, |_| ServerAction::ok(1));
    let mut config = config(&server, "connections=1,requests=1");
    config.tls.ciphers = vec!["tls13_chacha20_poly1305_sha256".into()];
    config.tls.groups = vec!["secp384r1".into()];
    let (all, _) = run(config);
    assert_eq!(all.events.of(E::Negotiated(0x0304, 0x1303, 0x0018)), 1, "{:?}", all.events);
}

#[test]
fn a_stall_of_the_server_is_not_taken_for_a_late_generator() {
    let server = TestServer::plain(|_| {
        std::thread::sleep(Duration::from_millis(50));
        ServerAction::ok(1)
    });
    let (all, _) = run(config(&server, "rate=100,duration=1s,connections=1"));
    assert!(all.latencies[L::Lag].max_ns() > 500_000_000, "requests wait for the connection");
    assert!(all.counters[C::Late] < 50, "{:?}", all.counters);
}
