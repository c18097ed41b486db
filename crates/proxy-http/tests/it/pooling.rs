//! Kept upstream connections: reuse, the race with an upstream that closes, and what is never sent twice.

use std::time::Duration;

use records::metrics::{HttpCounter, ProxyCounter, ProxyLatency};

use crate::support::{TestHttpProxy, eventually};
use crate::upstream::{HELLO, ScriptedConn, ScriptedUpstream};

/// Serves one request a connection, and closes when it gets the second.
fn close_on_the_second(mut peer: ScriptedConn) {
    if peer.head().is_some() {
        peer.send(HELLO);
        peer.read_until(|bytes| !bytes.is_empty());
    }
}

fn closing_on_the_second() -> ScriptedUpstream {
    ScriptedUpstream::unix(close_on_the_second)
}

fn answer_all(mut peer: ScriptedConn) {
    while peer.head().is_some() {
        peer.send(HELLO);
    }
}

#[test]
fn a_kept_connection_serves_the_next_request() {
    // Over TLS, session tickets come behind the handshake, while the connection is idle, and do not end it.
    for upstream in [ScriptedUpstream::tcp(answer_all), ScriptedUpstream::tls(answer_all)] {
        let proxy = TestHttpProxy::start(&upstream.upstream);
        for _ in 0..3 {
            assert_eq!(proxy.get("/").text(), "hello");
        }
        assert_eq!(upstream.connections(), 1);
        let delta = proxy.finish();
        assert_eq!(delta.counters[ProxyCounter::UpstreamConnects], 1);
        assert_eq!(delta.latencies[ProxyLatency::Connect].count(), 1);
        assert_eq!(delta.http.unwrap().counters[HttpCounter::Reused], 2);
    }
}

#[test]
fn a_request_that_meets_the_end_of_a_kept_connection_is_sent_once_more() {
    for upstream in [closing_on_the_second(), ScriptedUpstream::tls(close_on_the_second)] {
        let proxy = TestHttpProxy::start(&upstream.upstream);
        assert_eq!(proxy.get("/").status, 200);
        assert_eq!(proxy.get("/").status, 200);
        assert_eq!(upstream.connections(), 2);
        let http = proxy.finish().http.unwrap();
        assert_eq!(http.counters[HttpCounter::Retried], 1);
        assert_eq!(http.counters[HttpCounter::FailedUpstreamClosed], 0);
    }
}

#[test]
fn a_request_that_may_not_be_repeated_is_sent_once() {
    let upstream = closing_on_the_second();
    let proxy = TestHttpProxy::start(&upstream.upstream);
    for (request, expected) in [
        ("GET / HTTP/1.1\r\nhost: a\r\n\r\n", 200),
        ("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n", 502),
        ("GET / HTTP/1.1\r\nhost: a\r\n\r\n", 200),
        ("PUT / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n\r\nx", 502),
    ] {
        assert_eq!(proxy.ask(request).status, expected, "{request:?}");
    }
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::Retried], 0);
    assert_eq!(http.counters[HttpCounter::FailedUpstreamClosed], 2);
}

#[test]
fn a_new_connection_that_the_upstream_closes_is_not_tried_again() {
    let upstream = ScriptedUpstream::unix(|mut peer| drop(peer.head()));
    let proxy = TestHttpProxy::start(&upstream.upstream);
    assert_eq!(proxy.get("/").status, 502);
    assert_eq!(upstream.connections(), 1);
    proxy.finish();
}

#[test]
fn a_second_failure_is_not_tried_a_third_time() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        if peer.number == 0 && peer.head().is_some() {
            peer.send(HELLO);
        }
        peer.read_until(|bytes| !bytes.is_empty());
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    assert_eq!(proxy.get("/").status, 200);
    assert_eq!(proxy.get("/").status, 502);
    assert_eq!(upstream.connections(), 2);
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::Retried], 1);
}

#[test]
fn idle_connections_are_closed_by_age_and_when_the_upstream_ends_them() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        while let Some(head) = peer.head() {
            peer.send(HELLO);
            if head.contains("/last") {
                return;
            }
        }
    });
    let mut proxy = TestHttpProxy::start_with(&upstream.upstream, |_, http| {
        http.limits.upstream_idle_timeout = Duration::from_millis(100);
    });
    for path in ["/", "/last"] {
        assert_eq!(proxy.get(path).status, 200);
        eventually("it is closed", || proxy.collect().gauges.upstream_open == 0);
    }
    proxy.finish();
}

#[test]
fn a_response_that_says_close_ends_its_connection() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        while peer.head().is_some() {
            peer.send("HTTP/1.1 200 OK\r\nconnection: Close\r\ncontent-length: 1\r\n\r\nx");
        }
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let mut client = proxy.connect();
    for _ in 0..2 {
        client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
        let answer = client.answer();
        assert_eq!((answer.status, answer.field("connection")), (200, None));
    }
    assert_eq!(upstream.connections(), 2);
    proxy.finish();
}
