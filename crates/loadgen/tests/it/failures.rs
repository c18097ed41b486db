//! Servers that misbehave: each failure has its class, and nothing hangs.

use std::io::Write;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use loadgen::{LoadConfig, Trust};
use records::delta::LoadDelta;
use records::metrics::{LoadCounter as C, LoadLatency as L};
use records::values::LoadEvent;

use crate::support::{ServerAction, TestServer, TlsVersion, config, plan, run};

/// A server that is never there: no test listens at a port that needs root.
const NOBODY: &str = "https://127.0.0.1:1/";
/// Where a timeout is what is waited for.
const SHORT: Duration = Duration::from_millis(300);
/// Where it would only tell of a busy machine.
const AMPLE: Duration = Duration::from_secs(10);

/// Runs ten requests over two connections.
fn ten_within(server: &TestServer, request_timeout: Duration) -> LoadDelta {
    let begun = Instant::now();
    let config = config(server, "connections=2,requests=10");
    let (all, _) = run(LoadConfig { request_timeout, ..config });
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert_eq!(all.counters[C::Scheduled], 10);
    all
}

fn both(script: impl Fn() -> ServerAction + Clone + Send + Sync + 'static, check: impl Fn(&LoadDelta)) {
    both_within(AMPLE, script, check);
}

fn both_within(
    timeout: Duration,
    script: impl Fn() -> ServerAction + Clone + Send + Sync + 'static,
    check: impl Fn(&LoadDelta),
) {
    let for_tls = script.clone();
    check(&ten_within(&TestServer::plain(move |_| script()), timeout));
    check(&ten_within(&TestServer::tls(TlsVersion::V13, move |_| for_tls()), timeout));
}

#[test]
fn an_answer_that_breaks_off_is_short_and_no_answer_is_a_reset() {
    let short = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this";
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
    let half_a_head = b"HTTP/1.1 200 OK\r\nContent-Le";
    for bytes in [&b""[..], half_a_head, short, chunked] {
        for end in [ServerAction::AnswerAndClose, ServerAction::AnswerAndReset, ServerAction::AnswerAndCut] {
            both(
                move || end(bytes.to_vec()),
                |all| {
                    let (class, event) = match bytes {
                        b"" => (C::FailedReset, LoadEvent::Reset),
                        _ => (C::FailedShort, LoadEvent::Short),
                    };
                    assert_eq!(all.counters[class], 10, "{bytes:?}: {:?}", all.counters);
                    assert_eq!(all.events.of(event), 10, "{:?}", all.events);
                    assert!(all.latencies[L::Service].is_empty(), "a failure is never a fast success");
                },
            );
        }
    }
}

#[test]
fn a_body_without_a_length_must_end_with_a_close_notify() {
    let bytes = b"HTTP/1.1 200 OK\r\n\r\nhow long is this?";
    let all =
        ten_within(&TestServer::tls(TlsVersion::V13, |_| ServerAction::AnswerAndCut(bytes.to_vec())), AMPLE);
    assert_eq!(all.counters[C::FailedShort], 10, "{:?}", all.counters);
    let all = ten_within(
        &TestServer::tls(TlsVersion::V13, |_| ServerAction::AnswerAndClose(bytes.to_vec())),
        AMPLE,
    );
    assert_eq!(all.counters[C::Ok], 10, "{:?}", all.counters);
}

#[test]
fn a_response_that_is_not_http_is_a_protocol_failure() {
    for garbage in [
        "SSH-2.0-OpenSSH_9.2\r\n",
        "HTTP/1.1 2x0 OK\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
    ] {
        both(
            move || ServerAction::Answer(garbage.as_bytes().to_vec()),
            |all| {
                assert_eq!(all.counters[C::FailedProtocol], 10, "{garbage:?}: {:?}", all.counters);
            },
        );
    }
}

#[test]
fn a_server_that_answers_with_tls_is_named_as_that() {
    let server = TestServer::tls(TlsVersion::V13, |_| ServerAction::ok(1));
    let mut config = config(&server, "connections=1,requests=2");
    config.target = server.url("/").replace("https", "http").parse().unwrap();
    let (all, _) = run(config);
    let failed = all.events.iter().find(|entry| entry.event == LoadEvent::Protocol).unwrap();
    assert!(failed.example.contains("answers with TLS: ask for https://"), "{failed:?}");
}

#[test]
fn an_endless_response_is_cut_off() {
    let ok = b"HTTP/1.1 200 OK\r\n";
    let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let cases: [(&[u8], &[u8], C); 5] = [
        (ok, b"X-Endless: yes\r\n", C::FailedProtocol),
        (b"HTTP/1.1 200 OK\r\nX: ", b"yyyyyyyyyyyyyyyy", C::FailedProtocol),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n", C::FailedProtocol),
        (chunked, b"1;extension\r\nx\r\n", C::FailedProtocol),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"a body without an end, and without a length", C::FailedTimeout),
    ];
    for (first, again, class) in cases {
        both_within(
            if class == C::FailedTimeout { SHORT } else { AMPLE },
            move || ServerAction::AnswerForever(first.to_vec(), again.repeat(100)),
            |all| {
                assert_eq!(
                    all.counters[class],
                    10,
                    "{:?}: {:?}",
                    String::from_utf8_lossy(again),
                    all.counters
                );
            },
        );
    }
}

#[test]
fn a_status_of_400_and_above_is_a_failure_and_keeps_the_connection() {
    for (status, class) in [(404, C::Status4xx), (503, C::Status5xx)] {
        both(
            move || {
                ServerAction::Answer(
                    format!("HTTP/1.1 {status} No\r\nContent-Length: 2\r\n\r\nno").into_bytes(),
                )
            },
            |all| {
                assert_eq!((all.counters[C::FailedStatus], all.counters[class]), (10, 10));
                assert_eq!(all.counters[C::Opened], 2);
                assert!(all.latencies[L::Service].is_empty());
            },
        );
    }
    let redirect = b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n";
    both(
        || ServerAction::Answer(redirect.to_vec()),
        |all| {
            assert_eq!((all.counters[C::Ok], all.counters[C::Status3xx]), (10, 10));
        },
    );
}

#[test]
fn a_server_that_says_nothing_runs_into_the_timeout() {
    both_within(
        SHORT,
        || ServerAction::Stall,
        |all| {
            assert_eq!(all.counters[C::FailedTimeout], 10, "{:?}", all.counters);
            assert_eq!(all.latencies[L::Service].count(), 10, "what took too long is not left out");
            assert!(all.latencies[L::Service].quantile_ns(0.1).unwrap() >= 200_000_000);
        },
    );
}

#[test]
fn a_request_whose_kept_connection_was_closed_is_sent_once_more() {
    let server = TestServer::plain(|exchange| match exchange.on_connection {
        0 => ServerAction::ok(5),
        _ => ServerAction::AnswerAndClose(Vec::new()),
    });
    let (all, _) = run(config(&server, "connections=1,requests=20"));
    assert_eq!((all.counters[C::Ok], all.counters[C::Retried], all.counters[C::Sent]), (20, 19, 20));
    assert_eq!(server.seen().requests, 39);
    assert_eq!(all.counters[C::BytesIn], server.seen().bytes_in);
}

#[test]
fn it_is_not_sent_a_third_time() {
    let server = TestServer::plain(|exchange| match exchange.nth {
        0 => ServerAction::ok(5),
        _ => ServerAction::AnswerAndClose(Vec::new()),
    });
    let (all, _) = run(config(&server, "connections=1,requests=2"));
    assert_eq!((all.counters[C::Ok], all.counters[C::Retried], all.counters[C::FailedReset]), (1, 1, 1));
    assert_eq!(server.seen().requests, 3);
}

#[test]
fn connects_to_a_dead_server_are_counted_and_delayed() {
    let target = NOBODY.parse().unwrap();
    let (all, _) = run(LoadConfig::new(target, plan("connections=1,duration=500ms"), Trust::Insecure));
    let failed = all.counters[C::FailedConnect];
    assert!((3..=10).contains(&failed), "{failed} attempts in half a second");
    assert_eq!((all.counters[C::Opened], all.counters[C::Sent]), (0, 0));
    assert_eq!(all.counters[C::Failed], failed);
}

#[test]
fn in_an_open_loop_the_schedule_goes_on_without_a_server() {
    let target = NOBODY.parse().unwrap();
    let (all, load) =
        run(LoadConfig::new(target, plan("rate=1000,connections=2,duration=500ms"), Trust::Insecure));
    assert_eq!(load.measured().whole, Duration::from_millis(500));
    assert_eq!(all.counters[C::Scheduled], 500);
    assert!(all.counters[C::NeverSent] > 400, "{:?}", all.counters);
    assert!(all.counters[C::Throttled] >= all.counters[C::NeverSent] / 2, "{:?}", all.counters);
}

#[test]
fn a_server_without_tls_fails_in_the_handshake() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("https://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let server = std::thread::spawn(move || {
        for stream in listener.incoming().take(4) {
            stream.unwrap().write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
        }
    });
    let (all, _) = run(LoadConfig::new(target, plan("connections=1,requests=4"), Trust::Insecure));
    server.join().unwrap();
    assert_eq!((all.counters[C::FailedTls], all.counters[C::HandshakesFailed]), (4, 4), "{:?}", all.counters);
}

#[test]
fn a_handshake_that_stalls_runs_into_the_timeout() {
    // Nobody accepts, but the backlog does.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("https://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let config = LoadConfig::new(target, plan("connections=1,requests=2"), Trust::Insecure);
    let (all, _) = run(LoadConfig { request_timeout: Duration::from_millis(100), ..config });
    assert_eq!((all.counters[C::FailedTimeout], all.counters[C::HandshakesFailed]), (2, 2));
    assert_eq!(all.counters[C::Sent], 0);
}
