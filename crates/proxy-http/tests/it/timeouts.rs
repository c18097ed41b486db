//! Everything that may take too long has a deadline, a status and a counter.

use std::io::Write;
use std::time::{Duration, Instant};

use proxy_core::{Upstream, UpstreamChange};
use proxy_http::{Route, RouteTimeouts};
use records::metrics::{HttpCounter, HttpLatency};
use records::setting::Value;

use crate::support::{Http1Client, TestHttpProxy, eventually};
use crate::upstream::{HELLO, ScriptedUpstream};

const SHORT: Duration = Duration::from_millis(200);
/// After which a connection rests.
const RESTING: Duration = Duration::from_millis(2_500);
const GET: &str = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";

fn deaf() -> ScriptedUpstream {
    ScriptedUpstream::unix(|mut peer| peer.wait_for_end())
}

#[test]
fn a_head_that_never_ends_is_a_408() {
    let upstream = deaf();
    let proxy = TestHttpProxy::start_with(&upstream.upstream, |_, http| http.limits.header_timeout = SHORT);
    let mut client = proxy.connect();
    client.send("GET / HTTP/1.1\r\nhost: ");
    let began_at = Instant::now();
    while began_at.elapsed() < 2 * SHORT && client.tls.write_all(b"x").is_ok() {
        std::thread::sleep(SHORT / 10);
    }
    assert_eq!(client.answer().status, 408);
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::FailedHeadTimeout], 1);
    assert_eq!(http.counters[HttpCounter::Status4xx], 1);
}

#[test]
fn a_head_that_begins_behind_a_request_is_a_408_too() {
    let upstream = ScriptedUpstream::answering(HELLO);
    let mut proxy =
        TestHttpProxy::start_with(&upstream.upstream, |_, http| http.limits.header_timeout = SHORT);
    for (n, begun) in ["GET /x HT", "GET /x HTTP/1.1\r\nhos"].into_iter().enumerate() {
        let mut client = proxy.connect();
        client.send(format!("{GET}{begun}"));
        assert_eq!(client.answer().status, 200);
        assert_eq!(client.answer().status, 408, "{begun}");
        proxy.expect(HttpCounter::FailedHeadTimeout, n as u64 + 1);
    }
    proxy.finish();
}

#[test]
fn a_body_without_progress_is_a_408_and_a_slow_one_is_none() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        while peer.head().is_some() && peer.content(8).is_some() {
            peer.send(HELLO);
        }
    });
    let proxy = TestHttpProxy::start_with(&upstream.upstream, |_, http| http.limits.body_timeout = 2 * SHORT);
    let head = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 8\r\n\r\n";
    let mut client = proxy.connect();
    client.send(head);
    for _ in 0..8 {
        std::thread::sleep(SHORT / 2);
        client.send("x");
    }
    assert_eq!(client.answer().status, 200, "each byte is progress");
    assert_eq!(proxy.ask(&format!("{head}xxxx")).status, 408);
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::FailedBodyTimeout], 1);
}

#[test]
fn an_upstream_that_does_not_answer_is_a_504_and_not_tried_again() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        if peer.head().is_some() {
            peer.send(HELLO);
        }
        peer.wait_for_end();
    });
    let proxy = TestHttpProxy::start_with(&upstream.upstream, |_, http| http.limits.response_timeout = SHORT);
    assert_eq!(proxy.get("/").status, 200);
    assert_eq!(proxy.get("/").status, 504, "on the kept connection");
    assert_eq!(upstream.connections(), 1);
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::FailedUpstreamTimeout], 1);
    assert_eq!(http.counters[HttpCounter::Retried], 0);
}

/// A client whose request has the only connection to the upstream, and one whose request waits for it.
fn one_in_use_and_one_waiting(
    proxy: &mut TestHttpProxy,
    upstream: &ScriptedUpstream,
) -> (Http1Client, Http1Client) {
    let (mut first, mut second) = (proxy.connect(), proxy.connect());
    first.send(GET);
    eventually("the only connection is in use", || upstream.connections() == 1);
    second.send(GET);
    eventually("a request waits", || proxy.collect().gauges.queued == 1);
    (first, second)
}

#[test]
fn requests_queue_for_a_bounded_time_and_in_a_bounded_number() {
    let upstream = deaf();
    let mut proxy = TestHttpProxy::start_with(&upstream.upstream, |_, http| {
        http.limits.upstream_connections_max = 1;
        http.limits.queue_max = 1;
        http.limits.queue_timeout = 2 * SHORT;
    });
    let (first, mut second) = one_in_use_and_one_waiting(&mut proxy, &upstream);
    let began_at = Instant::now();
    assert_eq!(proxy.ask(GET).status, 503, "the queue is full");
    assert!(began_at.elapsed() < SHORT);
    assert_eq!(second.answer().status, 503, "it has waited for too long");
    drop((first, second));
    proxy.expect(HttpCounter::FailedQueueFull, 1);
    proxy.expect(HttpCounter::FailedQueueTimeout, 1);
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::Queued], 1, "what was refused did not wait");
    let queue = &http.latencies()[HttpLatency::Queue];
    assert!(queue.count() == 1 && u128::from(queue.max_ns()) >= SHORT.as_nanos(), "{queue:?}");
}

#[test]
fn a_request_whose_client_leaves_the_queue_has_waited_too() {
    let upstream = deaf();
    let mut proxy =
        TestHttpProxy::start_with(&upstream.upstream, |_, http| http.limits.upstream_connections_max = 1);
    let (first, second) = one_in_use_and_one_waiting(&mut proxy, &upstream);
    drop(second);
    proxy.expect(HttpCounter::FailedClientGone, 1);
    drop(first);
    proxy.expect(HttpCounter::FailedClientGone, 2);
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::Queued], 1);
    assert_eq!(http.latencies()[HttpLatency::Queue].count(), 1);
}

#[test]
fn a_request_gets_the_connection_that_another_one_leaves() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        while peer.head().is_some() {
            std::thread::sleep(SHORT / 4);
            peer.send(HELLO);
        }
    });
    let proxy =
        TestHttpProxy::start_with(&upstream.upstream, |_, http| http.limits.upstream_connections_max = 1);
    let mut clients: Vec<_> = (0..5).map(|_| proxy.connect()).collect();
    for client in &mut clients {
        client.send(GET);
    }
    for client in &mut clients {
        assert_eq!(client.answer().status, 200);
    }
    assert_eq!(upstream.connections(), 1);
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::Queued], 4);
    assert_eq!(http.counters[HttpCounter::Reused], 4);
}

#[test]
fn an_idle_connection_that_has_rested_serves_on() {
    let upstream = ScriptedUpstream::answering(HELLO);
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let mut client = proxy.connect();
    for _ in 0..2 {
        std::thread::sleep(RESTING);
        client.send(GET.repeat(2));
        assert_eq!([client.answer().status, client.answer().status], [200; 2]);
    }
    std::thread::sleep(RESTING);
    drop(client);
    let http = proxy.finish().http.unwrap();
    assert_eq!((http.counters[HttpCounter::Requests], http.counters[HttpCounter::Status2xx]), (4, 4));
}

#[test]
fn content_behind_an_early_answer_is_no_request_after_a_rest() {
    let upstream = ScriptedUpstream::answering(HELLO);
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let mut client = proxy.connect();
    client.send(format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n", 2 * GET.len()));
    assert_eq!(client.answer().status, 200);
    std::thread::sleep(RESTING);
    let _ = client.tls.write_all(GET.as_bytes());
    std::thread::sleep(SHORT);
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::Requests], 1);
}

#[test]
fn idle_clients_are_closed_after_the_keep_alive_timeout_which_is_live() {
    let upstream = ScriptedUpstream::answering(HELLO);
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let mut client = proxy.connect();
    client.send(GET);
    assert_eq!(client.answer().status, 200);
    proxy.proxy.set("proxy.keep-alive-timeout", &Value::Number(SHORT.as_secs_f64())).unwrap();
    assert_eq!(client.read_until(|_| false), Err(false), "closed with a close_notify");
    proxy.finish();
}

/// An address whose backlog is full, so that it drops what comes, with the sockets that keep it so.
fn deaf_upstream() -> (Upstream, impl Drop) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    socket2::SockRef::from(&listener).listen(0).unwrap();
    let filler = || {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.set_nonblocking(true).unwrap();
        let _ = socket.connect(&addr.into());
        socket
    };
    let mut sockets: Vec<_> = (0..4).map(|_| filler()).collect();
    sockets.push(listener.into());
    std::thread::sleep(SHORT);
    (addr.to_string().parse().unwrap(), sockets)
}

#[test]
fn an_address_that_never_answers_is_a_504() {
    let (upstream, _sockets) = deaf_upstream();
    let proxy = TestHttpProxy::start_with(&upstream, |config, _| config.limits.connect_timeout = SHORT);
    assert_eq!(proxy.get("/").status, 504);
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::FailedConnectTimeout], 1);
    assert_eq!(http.counters[HttpCounter::Queued], 0, "connecting is no waiting for a connection");
}

#[test]
fn a_connection_to_an_upstream_is_open_once_it_is_established() {
    let (upstream, _sockets) = deaf_upstream();
    let mut proxy = TestHttpProxy::start(&upstream);
    let mut client = proxy.connect();
    client.send(GET);
    eventually("the request is under way", || proxy.collect().gauges.requests == 1);
    assert_eq!(proxy.collect().gauges.upstream_open, 0);
    assert_eq!(proxy.total.upstreams.all()[0].open_change, 0);
}

#[test]
fn requests_for_upstreams_that_are_all_drained_get_503() {
    let upstream = ScriptedUpstream::answering(HELLO);
    let mut proxy = TestHttpProxy::start(&upstream.upstream);
    let name = proxy.proxy.upstream_names().remove(0);
    assert!(proxy.proxy.change_upstream(&name, UpstreamChange::Drain).unwrap());
    let answer = proxy.get("/");
    assert_eq!((answer.status, &*answer.body), (503, &b"the upstream is out of service\n"[..]));
    proxy.expect(HttpCounter::FailedUpstreamsDrained, 1);
    assert!(proxy.proxy.change_upstream(&name, UpstreamChange::Return).unwrap());
    assert_eq!(proxy.get("/").status, 200);
    proxy.finish();
}

fn route(path: &str, upstream: &Upstream, timeouts: RouteTimeouts) -> Route {
    Route { timeouts, ..Route::new("", path, vec![upstream.clone()]).unwrap() }
}

#[test]
fn timeouts_of_a_route_come_before_those_of_the_proxy() {
    let upstream = deaf();
    let none = RouteTimeouts::default();
    let proxy = TestHttpProxy::start_with(&upstream.upstream, |_, http| {
        http.routes = vec![
            route("/answer", &upstream.upstream, RouteTimeouts { response: Some(SHORT), ..none }),
            route("/upload", &upstream.upstream, RouteTimeouts { body: Some(SHORT), ..none }),
            route("/patient", &upstream.upstream, RouteTimeouts { response: Some(30 * SHORT), ..none }),
        ];
        http.limits.response_timeout = 3 * SHORT;
    });
    let began_at = Instant::now();
    assert_eq!(proxy.get("/answer").status, 504);
    let upload = "POST /upload HTTP/1.1\r\nhost: a\r\ncontent-length: 8\r\n\r\nxxxx";
    assert_eq!(proxy.ask(upload).status, 408);
    assert!(began_at.elapsed() < 3 * SHORT, "neither waits for the proxy's timeout");
    let mut patient = proxy.connect();
    patient.send("GET /patient HTTP/1.1\r\nhost: a\r\n\r\n");
    assert_eq!(proxy.get("/").status, 504, "what no route says is as the proxy has it");
    assert!(began_at.elapsed() < 20 * SHORT);
    assert_eq!(patient.answer().status, 504);
    assert!(began_at.elapsed() >= 30 * SHORT, "a route may be more patient than the proxy");
    proxy.finish();
}

#[test]
fn a_route_may_wait_less_for_a_connection() {
    let upstream = deaf();
    let route =
        |path, queue| route(path, &upstream.upstream, RouteTimeouts { queue, ..RouteTimeouts::default() });
    let mut proxy = TestHttpProxy::start_with(&upstream.upstream, |_, http| {
        http.routes = vec![route("/quick", Some(SHORT))];
        http.limits.upstream_connections_max = 1;
        http.limits.response_timeout = 20 * SHORT;
    });
    let mut first = proxy.connect();
    first.send(GET);
    eventually("the only connection is taken", || proxy.collect().gauges.upstream_open == 1);
    let began_at = Instant::now();
    assert_eq!(proxy.get("/quick").status, 503);
    assert!(began_at.elapsed() < 10 * SHORT, "the proxy would wait for 10 s");
    proxy.expect(HttpCounter::FailedQueueTimeout, 1);
    assert_eq!(first.answer().status, 504);
    proxy.finish();
}

#[test]
fn a_request_on_which_nothing_moves_is_cut_by_the_idle_timeout() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nxxxx");
        peer.wait_for_end();
    });
    let proxy = TestHttpProxy::start_with(&upstream.upstream, |config, _| config.limits.idle_timeout = SHORT);
    let mut client = proxy.connect();
    client.send(GET);
    assert!(client.head().starts_with("http/1.1 200"));
    assert!(client.read_until(|bytes| bytes.len() >= 8).is_err(), "the response is not whole");
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::FailedIdleTimeout], 1);
    assert_eq!(http.counters[HttpCounter::FailedClientGone], 0);
}
