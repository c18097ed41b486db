//! Closed loops: counts, connections, bytes and framings.

use std::time::Duration;

use loadgen::{LoadConfig, Template, Trust};
use records::metrics::{LoadCounter as C, LoadLatency};
use records::setting::Value;

use crate::support::{ServerAction, TestServer, TlsVersion, config, plan, run};

#[test]
fn counts_and_bytes_equal_the_servers_own() {
    for server in [
        TestServer::plain(|exchange| ServerAction::ok(exchange.body_bytes as usize)),
        TestServer::tls(TlsVersion::V13, |exchange| ServerAction::ok(exchange.body_bytes as usize)),
    ] {
        let mut config = config(&server, "connections=8,requests=500,threads=2,keep-alive=7,resume=50%");
        config.requests = vec![
            Template::get("/"),
            Template::post("/echo", 10),
            Template::post("/echo", 70_000),
            Template::post("/echo", 1_000_000),
        ];
        let (all, _) = run(config);
        let seen = server.seen();
        assert_eq!(all.counters[C::Ok], 500);
        assert_eq!((all.counters[C::Scheduled], all.counters[C::Sent]), (500, 500));
        assert_eq!(seen.requests, 500);
        assert_eq!(all.counters[C::BytesIn], seen.bytes_in);
        assert_eq!(all.counters[C::BytesOut], seen.bytes_out);
        assert_eq!(all.counters[C::Opened], seen.connections);
        assert_eq!(all.counters[C::HandshakesFull], seen.full);
        assert_eq!(all.counters[C::HandshakesResumed], seen.resumed);
        assert_eq!(seen.clean_ends, seen.connections, "every connection ends in order");
        assert_eq!(all.latencies[LoadLatency::Service].count(), 500);
        assert!(all.latencies[LoadLatency::Response].is_empty(), "a closed loop has no intended times");
        assert!(all.latencies[LoadLatency::Lag].is_empty());
    }
}

#[test]
fn keepalive_decides_how_many_requests_a_connection_carries() {
    for (keepalive, connections) in [("off", 60), ("10", 6), ("on", 1)] {
        let server = TestServer::plain(|_| ServerAction::ok(3));
        let (all, _) = run(config(&server, &format!("connections=1,requests=60,keep-alive={keepalive}")));
        assert_eq!(all.counters[C::Ok], 60);
        assert_eq!(all.counters[C::Opened], connections, "keep-alive={keepalive}");
        assert_eq!(server.seen().connections, connections);
    }
}

#[test]
fn a_server_that_says_close_gets_a_new_connection_each_time() {
    let server = TestServer::plain(|_| {
        ServerAction::AnswerAndClose(
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok".to_vec(),
        )
    });
    let (all, _) = run(config(&server, "connections=2,requests=20"));
    assert_eq!((all.counters[C::Ok], all.counters[C::Opened]), (20, 20));
    assert_eq!(all.counters[C::Retried], 0);
}

#[test]
fn every_framing_of_a_body_is_understood() {
    let bodies: [(&str, bool); 7] = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", true),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: r\r\n\r\n",
            true,
        ),
        ("HTTP/1.1 204 No Content\r\n\r\n", true),
        ("HTTP/1.1 304 Not Modified\r\nContent-Length: 100\r\n\r\n", true),
        (
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            true,
        ),
        ("HTTP/1.1 200 OK\r\n\r\nuntil the end", false),
        ("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", false),
    ];
    for (answer, is_kept) in bodies {
        for make in [TestServer::plain as fn(_) -> _, |script| TestServer::tls(TlsVersion::V13, script)] {
            let server = make(move |_: &_| {
                if is_kept {
                    ServerAction::Answer(answer.as_bytes().to_vec())
                } else {
                    ServerAction::AnswerAndClose(answer.as_bytes().to_vec())
                }
            });
            let (all, _) = run(config(&server, "connections=1,requests=5"));
            assert_eq!(all.counters[C::Ok], 5, "{answer:?}: {:?}", all.counters);
            assert_eq!(all.counters[C::Opened], if is_kept { 1 } else { 5 }, "{answer:?}");
        }
    }
}

#[test]
fn an_answer_to_head_has_no_body() {
    let server = TestServer::plain(|exchange| {
        assert_eq!(exchange.method, "HEAD");
        ServerAction::Answer(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n".to_vec())
    });
    let head = Template { method: "HEAD".into(), ..Template::get("/") };
    let (all, _) = run(LoadConfig { requests: vec![head], ..config(&server, "connections=1,requests=3") });
    assert_eq!((all.counters[C::Ok], all.counters[C::Opened]), (3, 1));
}

#[test]
fn a_large_answer_is_read_whole() {
    let server = TestServer::tls(TlsVersion::V13, |_| ServerAction::ok(30_000_000));
    let (all, _) = run(config(&server, "connections=2,requests=4"));
    assert_eq!(all.counters[C::Ok], 4);
    assert_eq!(all.counters[C::BytesOut], server.seen().bytes_out);
}

#[test]
fn templates_take_turns() {
    let server = TestServer::plain(|exchange| {
        assert_eq!(exchange.path, ["/a", "/b", "/c"][(exchange.nth % 3) as usize]);
        ServerAction::ok(0)
    });
    let requests = ["/a", "/b", "/c"].map(Template::get).to_vec();
    let (all, _) = run(LoadConfig { requests, ..config(&server, "connections=1,requests=30") });
    assert_eq!(all.counters[C::Ok], 30);
}

#[test]
fn a_duration_ends_the_loop() {
    let server = TestServer::plain(|_| ServerAction::ok(1));
    let begun = std::time::Instant::now();
    let (all, load) = run(config(&server, "connections=4,duration=300ms"));
    assert!(begun.elapsed() >= Duration::from_millis(300));
    assert!(load.is_finished());
    let running = load.settings().into_iter().find(|setting| setting.name == "load.running").unwrap();
    assert_eq!(running.value, Value::Flag(false), "it does not pretend to go on");
    assert!(load.set("load.running", &Value::Flag(true)).is_err());
    assert_eq!(all.counters[C::Ok], server.seen().requests);
    assert_eq!(all.counters[C::Failed], 0);
}

#[test]
fn a_closed_loop_is_measured_to_the_end_of_its_last_request() {
    let server =
        TestServer::plain(
            |exchange| if exchange.nth < 50 { ServerAction::ok(10) } else { ServerAction::Stall },
        );
    let (all, load) = run(config(&server, "connections=2,duration=500ms"));
    assert_eq!((all.counters[C::Ok], all.counters[C::Unfinished]), (50, 2), "{:?}", all.counters);
    let measured = load.measured();
    assert_eq!(measured.scheduled, Duration::ZERO, "nothing is wanted of it");
    assert!(measured.whole >= Duration::from_millis(2_400), "the two are waited for: {measured:?}");
    // Where nothing is answered at all it lasts as long as it was to.
    let target = "http://127.0.0.1:1/".parse().unwrap();
    let (_, load) = run(LoadConfig::new(target, plan("connections=1,duration=300ms"), Trust::Roots));
    assert!(load.measured().whole >= Duration::from_millis(300), "{:?}", load.measured());
}
