//! Upstreams that speak HTTP/2.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use h2::Reason;
use h2::client::Builder;
use http::{HeaderMap, HeaderValue, Method};
use records::metrics::{HttpCounter, UpstreamCounter};

use crate::http2_client::{Bytes, connect, connect_with, get, get_all, get_hundred, read, request, run};
use crate::http2_server::{Behaviour, Http2Upstream};
use crate::support::{TestHttpProxy, eventually};
use crate::upstream::ScriptedUpstream;

/// Answers with the path, or with a megabyte.
fn echoing(behaviour: Behaviour) -> Http2Upstream {
    Http2Upstream::start_with(behaviour, |request| async {
        let path = request.path();
        let content = if path == "/big" { vec![b'x'; 1_000_000] } else { path.into_bytes() };
        request.respond(&[], content, None).await;
    })
}

async fn ask_hundred(proxy: &TestHttpProxy) {
    let (client, _driver) = connect(proxy).await;
    get_hundred(&client).await;
}

/// Asks for as many pages at once, each of which must be answered with this status.
fn expect_all(proxy: &TestHttpProxy, requests: usize, status: u16) {
    run(async {
        let (client, _driver) = connect(proxy).await;
        let responses = get_all(&client, vec!["/".to_owned(); requests]).await;
        let statuses: Vec<u16> = responses.iter().map(|(_, status, _)| *status).collect();
        assert_eq!(statuses, vec![status; requests]);
    });
}

fn grpc(path: &str) -> http::Request<()> {
    let mut request = request(Method::POST, path);
    request.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    request.headers_mut().insert("te", HeaderValue::from_static("trailers"));
    request
}

fn status(code: &'static str) -> HeaderMap {
    HeaderMap::from_iter([("grpc-status".parse().unwrap(), HeaderValue::from_static(code))])
}

#[test]
fn requests_at_once_share_a_connection() {
    let upstream = echoing(Behaviour::default());
    let mut proxy = TestHttpProxy::start(&upstream.upstream);
    run(ask_hundred(&proxy));
    for n in 0..3 {
        assert_eq!(proxy.get(&format!("/{n}")).text(), format!("/{n}"), "HTTP/1.1 in front");
    }
    assert_eq!(upstream.connections(), 1);
    proxy.expect(HttpCounter::Requests, 103);
    assert_eq!(proxy.count(HttpCounter::Reused), 102);
    assert_eq!(proxy.collect().gauges.upstream_open, 1);
    let total = proxy.finish();
    let of_upstream = &total.upstreams.all()[0].counters;
    assert_eq!(of_upstream[UpstreamCounter::Connections], 1);
    assert_eq!(of_upstream[UpstreamCounter::Exchanges], 103);
}

#[test]
fn more_streams_than_an_upstream_allows_open_more_connections_up_to_the_bound() {
    let upstream = echoing(Behaviour { streams_max: Some(2), ..Behaviour::default() });
    let mut proxy = TestHttpProxy::start_with(&upstream.upstream, |_, http| {
        http.limits.upstream_connections_max = 3;
    });
    run(ask_hundred(&proxy));
    assert!((2..=3).contains(&upstream.connections()), "{}", upstream.connections());
    assert!(proxy.count(HttpCounter::Queued) > 0);
    proxy.finish();
}

#[test]
fn an_idle_connection_is_closed_in_time() {
    let upstream = echoing(Behaviour::default());
    let mut proxy = TestHttpProxy::start_with(&upstream.upstream, |_, http| {
        http.limits.upstream_idle_timeout = Duration::from_millis(100);
    });
    assert_eq!(proxy.get("/").status, 200);
    eventually("it is closed", || proxy.collect().gauges.upstream_open == 0);
    assert_eq!(proxy.get("/").status, 200);
    assert_eq!(upstream.connections(), 2);
    proxy.finish();
}

#[test]
fn heads_are_those_of_http2() {
    let upstream = echoing(Behaviour::default());
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let answer = proxy.ask(
        "POST /x?y HTTP/1.1\r\nhost: shop.example\r\nconnection: x-own, te\r\nx-own: 1\r\nte: trailers\r\nkeep-alive: 1\r\n\
         upgrade: websocket\r\nx-sent: 2\r\ncontent-length: 0\r\n\r\n",
    );
    assert_eq!(answer.status, 200);
    let heads = upstream.heads();
    assert_eq!(heads[0].uri(), "http://shop.example/x?y");
    assert_eq!(heads[0].method(), Method::POST);
    let fields = heads[0].headers();
    let of = |name: &str| fields.get(name).map(|value| value.to_str().unwrap());
    for (name, value) in [
        ("te", Some("trailers")),
        ("x-sent", Some("2")),
        ("content-length", Some("0")),
        ("x-forwarded-for", Some("127.0.0.1")),
        ("x-forwarded-proto", Some("https")),
        ("x-forwarded-host", Some("shop.example")),
        ("host", None),
        ("connection", None),
        ("keep-alive", None),
        ("upgrade", None),
        ("x-own", None),
    ] {
        assert_eq!(of(name), value, "{name}");
    }
    proxy.finish();
}

#[test]
fn content_and_trailers_pass_both_ways() {
    const LENGTH: usize = 3_000_000;
    let upstream = Http2Upstream::start(|mut request| async {
        let (content, trailers) = request.content().await;
        request.respond(&[], content, trailers).await;
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let content: Vec<u8> = (0..LENGTH).map(|i| (i / 3 % 251) as u8).collect();
    let mut client = proxy.connect();
    client.send(format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {LENGTH}\r\n\r\n"));
    client.send(&content);
    assert!(client.answer().body == content, "what came back over HTTP/1.1 differs");
    run(async {
        let (mut client, _driver) = connect(&proxy).await;
        let (response, mut stream) = client.send_request(request(Method::POST, "/"), false).unwrap();
        let sent = Bytes::from(content.clone());
        let sending = async {
            let mut rest = sent.clone();
            while !rest.is_empty() {
                stream.reserve_capacity(rest.len());
                let room = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await.unwrap().unwrap();
                stream.send_data(rest.split_to(room.min(rest.len())), false).unwrap();
            }
            stream.send_trailers(HeaderMap::from_iter([
                ("x-sum".parse().unwrap(), HeaderValue::from_static("7")),
                ("x-forwarded-for".parse().unwrap(), HeaderValue::from_static("192.0.2.1")),
            ]))
        };
        let reading = async { read(response.await.unwrap().into_body()).await.unwrap() };
        let (_, (received, trailers)) = tokio::join!(sending, reading);
        assert!(received == sent, "what came back over HTTP/2 differs");
        let trailers = trailers.unwrap();
        assert_eq!((trailers.len(), &trailers["x-sum"]), (1, &HeaderValue::from_static("7")));
    });
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::BodyIn], 2 * LENGTH as u64);
    assert_eq!(http.counters[HttpCounter::BodyOut], 2 * LENGTH as u64);
}

#[test]
fn responses_without_content_keep_their_fields() {
    let upstream = Http2Upstream::start(|mut request| async move {
        let status = request.path()[1..].parse().unwrap_or(200);
        let mut response = http::Response::builder().status(status);
        if status == 200 {
            response = response.header("content-length", "7");
        }
        request.respond.send_response(response.body(()).unwrap(), true).unwrap();
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let mut client = proxy.connect();
    for (method, path, status, length) in
        [("HEAD", "/", 200, Some("7")), ("GET", "/204", 204, None), ("GET", "/304", 304, None)]
    {
        client.send(format!("{method} {path} HTTP/1.1\r\nhost: a\r\n\r\n"));
        let answer = client.answer_to(method);
        assert_eq!((answer.status, answer.field("content-length").as_deref()), (status, length), "{path}");
    }
    proxy.finish();
}

#[test]
fn no_request_is_lost_when_connections_are_announced_to_end() {
    let upstream = Http2Upstream::start_with(
        Behaviour { requests_max: Some(7), ..Behaviour::default() },
        |mut request| async move {
            let (content, _) = request.content().await;
            request.respond(&[], content, None).await;
        },
    );
    let proxy = TestHttpProxy::start(&upstream.upstream);
    run(async {
        let (client, _driver) = connect(&proxy).await;
        for round in 0..10 {
            let mut all = tokio::task::JoinSet::new();
            for n in 0..20 {
                let client = client.clone();
                all.spawn(async move {
                    let mut client = client.ready().await.unwrap();
                    let (response, mut stream) =
                        client.send_request(request(Method::POST, "/"), false).unwrap();
                    stream.send_data(Bytes::from(format!("{round} {n}")), true).unwrap();
                    let response = response.await.unwrap();
                    assert_eq!(response.status(), 200, "{round} {n}");
                    assert_eq!(
                        read(response.into_body()).await.unwrap().0,
                        format!("{round} {n}").as_bytes()
                    );
                });
            }
            all.join_all().await;
        }
    });
    assert!(upstream.connections() > 5, "{}", upstream.connections());
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::Status2xx], 200);
}

#[test]
fn only_what_was_not_processed_is_sent_again() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let upstream = Http2Upstream::start(move |mut request| {
        let n = count.fetch_add(1, Ordering::SeqCst);
        async move {
            match request.path().as_str() {
                "/refused" if n.is_multiple_of(2) => request.reset(Reason::REFUSED_STREAM),
                "/broken" => request.reset(Reason::INTERNAL_ERROR),
                _ => {
                    let (content, _) = request.content().await;
                    request.respond(&[], content, None).await;
                }
            }
        }
    });
    let mut proxy = TestHttpProxy::start(&upstream.upstream);
    let post =
        |path: &str| proxy.ask(&format!("POST {path} HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello"));
    let answer = post("/refused");
    assert_eq!((answer.status, answer.text()), (200, "hello"));
    assert_eq!(asked.load(Ordering::SeqCst), 2);
    assert_eq!(post("/broken").status, 502);
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    proxy.expect(HttpCounter::Retried, 1);
    proxy.expect(HttpCounter::FailedUpstreamClosed, 1);
    proxy.finish();
}

#[test]
fn what_is_refused_again_and_again_is_sent_on_a_new_connection() {
    let upstream = Http2Upstream::start(|mut request| async move {
        match (request.path().as_str(), request.connection) {
            ("/", 0) | ("/never", _) => request.reset(Reason::REFUSED_STREAM),
            _ => {
                let (content, _) = request.content().await;
                request.respond(&[], content, None).await;
            }
        }
    });
    let mut proxy = TestHttpProxy::start(&upstream.upstream);
    let post =
        |path: &str| proxy.ask(&format!("POST {path} HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello"));
    let answer = post("/");
    assert_eq!((answer.status, answer.text()), (200, "hello"));
    assert_eq!((upstream.heads().len(), upstream.connections()), (3, 2), "the first one had room too");
    assert_eq!(post("/never").status, 502);
    assert_eq!(upstream.heads().len(), 3 + 4);
    proxy.expect(HttpCounter::Retried, 2);
    proxy.expect(HttpCounter::FailedUpstreamClosed, 1);
    proxy.finish();
}

/// Ends its first connections with GOAWAY before it processes a stream, and answers on later ones with 204.
fn going_away(connections: usize) -> ScriptedUpstream {
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    const GOAWAY: [u8; 17] = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    const NO_CONTENT: [u8; 10] = [0, 0, 1, 1, 5, 0, 0, 0, 1, 0x89];
    ScriptedUpstream::unix(move |mut peer| {
        peer.send(SETTINGS);
        peer.read_until(|bytes| bytes.ends_with(b"hello"));
        let is_going = peer.number < connections;
        peer.send(if is_going { &GOAWAY[..] } else { &NO_CONTENT });
        peer.wait_for_end();
    })
}

#[test]
fn connections_that_end_together_fail_no_request() {
    for (connections, status) in [(3, 204), (4, 502)] {
        let upstream = going_away(connections);
        let proxy = TestHttpProxy::start(&format!("h2c://{}", upstream.upstream).parse().unwrap());
        let answer = proxy.ask("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello");
        assert_eq!(answer.status, status, "{connections}");
        assert_eq!(upstream.connections(), 4);
        proxy.finish();
    }
}

#[test]
fn a_response_that_is_reset_is_cut() {
    let upstream = Http2Upstream::start(|mut request| async move {
        let response = http::Response::builder().header("content-length", "10").body(()).unwrap();
        let mut stream = request.respond.send_response(response, false).unwrap();
        stream.send_data(Bytes::from_static(b"hello"), false).unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        stream.send_reset(Reason::INTERNAL_ERROR);
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let mut client = proxy.connect();
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    client.head();
    assert_eq!(client.read_until(|bytes| bytes.len() >= 10), Err(true));
    assert_eq!(client.received, b"hello");
    assert_eq!(proxy.finish().http.unwrap().counters[HttpCounter::FailedUpstreamCut], 1);
}

#[test]
fn a_client_that_does_not_read_stops_no_other() {
    let upstream = Http2Upstream::start(|request| async {
        let length = if request.path() == "/big" { 10_000_000 } else { 10 };
        request.respond(&[], vec![b'x'; length], None).await;
    });
    let mut proxy = TestHttpProxy::start(&upstream.upstream);
    let slow: Vec<_> = (0..40)
        .map(|_| {
            let mut client = proxy.connect();
            client.send("GET /big HTTP/1.1\r\nhost: a\r\n\r\n");
            client
        })
        .collect();
    eventually("all are asked for", || upstream.heads().len() == 40);
    for _ in 0..20 {
        assert_eq!(proxy.get("/").text().len(), 10);
    }
    assert_eq!(upstream.connections(), 1);
    drop(slow);
    proxy.expect(HttpCounter::FailedClientGone, 40);
    assert_eq!(proxy.get("/").text().len(), 10, "the windows of those that have left are free again");
    proxy.finish();
}

#[test]
fn what_waits_in_streams_for_clients_that_do_not_read_is_bounded() {
    let upstream = Http2Upstream::start(|request| async {
        request.respond(&[], vec![b'x'; 10_000_000], None).await;
    });
    let start = || {
        TestHttpProxy::start_with(&upstream.upstream, |config, _| config.limits.pending_bytes_max = 8 << 20)
    };
    let mut proxy = start();
    let _slow: Vec<_> = (0..60)
        .map(|_| {
            let mut client = proxy.connect();
            client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
            client
        })
        .collect();
    eventually("some are cut", || proxy.count(HttpCounter::FailedPendingBound) >= 10);
    drop(proxy);
    // A client of HTTP/2 whose windows are closed has as much waiting in each of its streams.
    let mut proxy = start();
    run(async {
        let (client, _driver) = connect_with(&proxy, Builder::new().initial_window_size(0)).await;
        let asked: Vec<_> =
            (0..60).map(|_| client.clone().send_request(request(Method::GET, "/"), true).unwrap()).collect();
        while proxy.count(HttpCounter::FailedPendingBound) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(asked);
    });
    proxy.proxy.drain();
}

#[test]
fn a_stalled_client_of_many_small_messages_ends_no_stream_of_another() {
    let upstream = Http2Upstream::start(|mut request| async move {
        if request.path() == "/" {
            return request.respond(&[], "hello", None).await;
        }
        let response = http::Response::builder().body(()).unwrap();
        let mut stream = request.respond.send_response(response, false).unwrap();
        loop {
            stream.reserve_capacity(2);
            let room = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await;
            if !matches!(room, Some(Ok(_))) || stream.send_data(Bytes::from_static(b"ab"), false).is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let mut stalled = proxy.connect();
    stalled.send("GET /stream HTTP/1.1\r\nhost: a\r\n\r\n");
    stalled.head();
    let until = Instant::now() + Duration::from_secs(2);
    while Instant::now() < until {
        assert_eq!(proxy.get("/").status, 200);
    }
    assert_eq!(upstream.connections(), 1);
    proxy.proxy.drain();
}

/// Answers as an upstream of HTTP/2 that writes so many frames of two bytes at once.
fn sending_at_once(frames: usize) -> ScriptedUpstream {
    const SETTINGS: [u8; 18] = [0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0, 0, 0, 0];
    ScriptedUpstream::unix(move |mut peer| {
        peer.send(SETTINGS);
        peer.read_until(|bytes| bytes.windows(6).any(|six| *six == [1, 5, 0, 0, 0, 1]));
        let mut sent = vec![0, 0, 1, 1, 4, 0, 0, 0, 1, 0x88];
        for n in 1..=frames {
            sent.extend_from_slice(&[0, 0, 2, 0, u8::from(n == frames), 0, 0, 0, 1, b'a', b'b']);
        }
        peer.send(sent);
        peer.wait_for_end();
    })
}

#[test]
fn many_short_frames_at_once_end_no_connection() {
    const FRAMES: usize = 120_000;
    let upstream = sending_at_once(FRAMES);
    let proxy = TestHttpProxy::start(&format!("h2c://{}", upstream.upstream).parse().unwrap());
    assert_eq!(proxy.get("/").text().len(), 2 * FRAMES);
    proxy.finish();
}

#[test]
fn stalled_clients_of_many_small_messages_end_no_stream_of_another() {
    const SHORT_FRAMES: usize = 1_000;
    let upstream = Http2Upstream::start(|mut request| async move {
        if request.path() == "/" {
            return request.respond(&[], "hello", None).await;
        }
        let response = http::Response::builder().body(()).unwrap();
        let mut stream = request.respond.send_response(response, false).unwrap();
        stream.send_data(Bytes::from_static(&[b'x'; 20]), false).unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        for _ in 0..SHORT_FRAMES {
            stream.send_data(Bytes::from_static(b"ab"), false).unwrap();
        }
        std::future::pending::<()>().await;
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    run(async {
        let (client, _driver) = connect_with(&proxy, Builder::new().initial_window_size(10)).await;
        let mut unread = Vec::new();
        for _ in 0..90 {
            let mut client = client.clone().ready().await.unwrap();
            let (response, _) = client.send_request(request(Method::GET, "/stream"), true).unwrap();
            unread.push(response.await.unwrap());
        }
        for _ in 0..100 {
            assert_eq!(get(&client, "/").await.unwrap_or_default().0, 200);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    assert_eq!(upstream.connections(), 1);
    proxy.proxy.drain();
}

#[test]
fn short_pieces_of_content_are_joined() {
    let upstream = Http2Upstream::start(|mut request| async move {
        let mut frames = 0;
        // It reads late, and bounds what waits for it.
        tokio::time::sleep(Duration::from_millis(200)).await;
        while let Some(Ok(data)) = request.body.data().await {
            request.body.flow_control().release_capacity(data.len()).unwrap();
            frames += 1;
        }
        request.respond(&[], format!("{frames}"), None).await;
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let mut client = proxy.connect();
    client.send("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n");
    client.send("1\r\nx\r\n".repeat(20_000));
    client.send("0\r\n\r\n");
    let answer = client.answer();
    assert_eq!(answer.status, 200);
    let frames: usize = answer.text().parse().unwrap();
    assert!(frames < 1_000, "{frames}");
    proxy.finish();
}

#[test]
fn an_upstream_that_accepts_and_says_nothing_is_given_up() {
    let silent = ScriptedUpstream::unix(|mut peer| peer.wait_for_end());
    let named = format!("h2c://{}", silent.upstream).parse().unwrap();
    let mut proxy = TestHttpProxy::start_with(&named, |config, _| {
        config.limits.connect_timeout = Duration::from_millis(500);
    });
    run(async {
        let (client, _driver) = connect(&proxy).await;
        let (call, _) = client.clone().send_request(grpc("/"), true).unwrap();
        let (status, _) = get(&client, "/").await.unwrap();
        assert_eq!(status, 504);
        assert_eq!(call.await.unwrap().status(), 502, "also a call without a deadline");
    });
    let said = proxy.said();
    assert!(said.contains("it does not begin HTTP/2 in time"), "{said}");
    proxy.expect(HttpCounter::Status5xx, 2);
    proxy.finish();
}

#[test]
fn a_response_is_whole_however_its_stream_ends() {
    let upstream = Http2Upstream::start(|mut request| async move {
        let head = http::Response::builder().header("content-length", "5").body(()).unwrap();
        let mut stream = request.respond.send_response(head, false).unwrap();
        if request.head.method() == Method::GET {
            stream.send_data(Bytes::from_static(b"hello"), false).unwrap();
            // Its content has come, and its end comes later.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let _ = stream.send_data(Bytes::new(), true);
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let mut client = proxy.connect();
    for method in ["GET", "HEAD", "GET"] {
        client.send(format!("{method} / HTTP/1.1\r\nhost: a\r\n\r\n"));
        let answer = client.answer_to(method);
        assert_eq!((answer.status, answer.field("content-length").as_deref()), (200, Some("5")));
    }
    run(async {
        let (client, _driver) = connect(&proxy).await;
        assert_eq!(get(&client, "/").await.unwrap(), (200, b"hello".to_vec()));
    });
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::FailedClientGone], 0);
}

#[test]
fn an_upstream_that_does_not_take_content_holds_its_client_back() {
    let upstream = Http2Upstream::start(|request| async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        drop(request);
    });
    let proxy = TestHttpProxy::start_with(&upstream.upstream, |_, http| {
        http.limits.body_timeout = Duration::from_secs(1);
    });
    let mut client = proxy.connect();
    client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100000000\r\n\r\n");
    // It fails once the proxy has given the request up.
    let _ = std::io::Write::write_all(&mut client.tls, &vec![0; 20_000_000]);
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::FailedUpstreamTimeout], 1);
    let taken = http.counters[HttpCounter::BodyIn];
    assert!((65_535..1_000_000).contains(&taken), "{taken}");
}

#[test]
fn a_late_response_ends_the_use_of_its_connection() {
    let upstream = Http2Upstream::start(|request| async move {
        if request.connection == 0 {
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
        request.respond(&[], "hello", None).await;
    });
    let proxy = TestHttpProxy::start_with(&upstream.upstream, |_, http| {
        http.limits.response_timeout = Duration::from_millis(200);
    });
    assert_eq!(proxy.get("/").status, 504);
    assert_eq!(proxy.get("/").status, 200);
    proxy.finish();
}

#[test]
fn an_upstream_that_speaks_http1_is_told_apart() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        peer.head();
        peer.send("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
    });
    let named = format!("h2c://{}", upstream.upstream).parse().unwrap();
    let mut proxy = TestHttpProxy::start(&named);
    assert_eq!(proxy.get("/").status, 502);
    let said = proxy.said();
    assert!(said.contains("it answers with HTTP/1.1"), "{said}");
    proxy.expect(HttpCounter::Status5xx, 1);
    proxy.finish();
}

#[test]
fn requests_that_wait_for_a_connection_fail_with_it() {
    let nowhere = format!("h2c://{}", crate::upstream::nowhere()).parse().unwrap();
    let mut proxy = TestHttpProxy::start(&nowhere);
    expect_all(&proxy, 50, 502);
    proxy.expect(HttpCounter::FailedConnect, 50);
    proxy.finish();
}

#[test]
fn requests_wait_for_streams_where_no_other_connection_can_be_opened() {
    let behaviour = Behaviour { streams_max: Some(2), connections_max: Some(1), ..Behaviour::default() };
    let upstream = Http2Upstream::start_with(behaviour, |request| async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        request.respond(&[], "hello", None).await;
    });
    let mut proxy = TestHttpProxy::start(&upstream.upstream);
    assert_eq!(proxy.get("/").status, 200);
    expect_all(&proxy, 40, 200);
    assert_eq!(upstream.connections(), 1);
    assert!(proxy.count(HttpCounter::Queued) > 0);
    let notices = proxy.proxy.take_notices();
    assert!(notices.is_empty(), "it serves: {notices:?}");
    proxy.finish();
}

#[test]
fn a_call_ends_in_time_also_if_its_response_has_begun() {
    let upstream = Http2Upstream::start(|mut request| async move {
        let head = http::Response::builder().body(()).unwrap();
        let _stream = request.respond.send_response(head, false).unwrap();
        std::future::pending::<()>().await;
    });
    let mut proxy = TestHttpProxy::start(&upstream.upstream);
    run(async {
        let (mut client, _driver) = connect(&proxy).await;
        let mut call = grpc("/");
        call.headers_mut().insert("grpc-timeout", HeaderValue::from_static("10m"));
        let (response, _) = client.send_request(call, true).unwrap();
        let mut body = response.await.unwrap().into_body();
        assert!(body.data().await.unwrap().is_err());
    });
    proxy.expect(HttpCounter::FailedUpstreamTimeout, 1);
    proxy.finish();
}

#[test]
fn over_tls_both_sides_agree_on_http2() {
    let upstream = echoing(Behaviour { alpn: Some("h2"), ..Behaviour::default() });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    run(ask_hundred(&proxy));
    assert_eq!(upstream.heads()[0].uri().scheme_str(), Some("https"));
    assert_eq!(upstream.connections(), 1);
    proxy.finish();
    let upstream = echoing(Behaviour { alpn: Some("http/1.1"), ..Behaviour::default() });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    assert_eq!(proxy.get("/").status, 502);
    let said = proxy.said();
    assert!(said.contains("it does not agree on HTTP/2; name it with tls:// for HTTP/1.1"), "{said}");
    proxy.finish();
}

#[test]
fn calls_of_grpc_are_counted_by_their_status() {
    let upstream = Http2Upstream::start(|mut request| async move {
        let (content, _) = request.content().await;
        if request.path() == "/none" {
            let response = http::Response::builder().header("grpc-status", "12").body(()).unwrap();
            request.respond.send_response(response, true).unwrap();
            return;
        }
        let code = if request.path() == "/denied" { "7" } else { "0" };
        request.respond(&[("content-type", "application/grpc")], content, Some(status(code))).await;
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    run(async {
        let (client, _driver) = connect(&proxy).await;
        for (path, code) in [("/ok", "0"), ("/ok", "0"), ("/denied", "7"), ("/none", "12")] {
            let mut client = client.clone().ready().await.unwrap();
            let (response, mut stream) = client.send_request(grpc(path), false).unwrap();
            stream.send_data(Bytes::from_static(b"\0\0\0\0\x05hello"), true).unwrap();
            let response = response.await.unwrap();
            let of_head = response.headers().get("grpc-status").cloned();
            let (_, trailers) = read(response.into_body()).await.unwrap();
            let found = trailers.and_then(|trailers| trailers.get("grpc-status").cloned()).or(of_head);
            assert_eq!(found, Some(HeaderValue::from_static(code)), "{path}");
        }
    });
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.grpc_statuses.to_string(), "0:2 7:1 12:1");
}

#[test]
fn a_call_streams_both_ways_however_long_both_are_silent() {
    let upstream = Http2Upstream::start(|mut request| async move {
        let response = http::Response::builder().body(()).unwrap();
        let first = request.body.data().await.unwrap().unwrap();
        let mut stream = request.respond.send_response(response, false).unwrap();
        stream.send_data(first, false).unwrap();
        while let Some(Ok(data)) = request.body.data().await {
            request.body.flow_control().release_capacity(data.len()).unwrap();
            stream.send_data(data, false).unwrap();
        }
        stream.send_trailers(status("0")).unwrap();
    });
    let proxy = TestHttpProxy::start_with(&upstream.upstream, |_, http| {
        http.limits.body_timeout = Duration::from_millis(50);
        http.limits.response_timeout = Duration::from_millis(50);
    });
    run(async {
        let (mut client, _driver) = connect(&proxy).await;
        let (response, mut stream) = client.send_request(grpc("/"), false).unwrap();
        tokio::time::sleep(Duration::from_millis(200)).await;
        stream.send_data(Bytes::from_static(b"first"), false).unwrap();
        let mut body = response.await.unwrap().into_body();
        assert_eq!(body.data().await.unwrap().unwrap(), "first");
        for n in 0..3 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            stream.send_data(Bytes::from(format!("{n}")), false).unwrap();
            assert_eq!(body.data().await.unwrap().unwrap(), format!("{n}"));
        }
        stream.send_data(Bytes::new(), true).unwrap();
        assert!(body.data().await.is_none());
        assert_eq!(body.trailers().await.unwrap(), Some(status("0")));
    });
    proxy.finish();
}

#[test]
fn a_call_that_is_cancelled_or_late_is_reset_at_the_upstream() {
    let reset = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&reset);
    let upstream = Http2Upstream::start(move |mut request| {
        let count = Arc::clone(&count);
        async move {
            let reason = std::future::poll_fn(|cx| request.respond.poll_reset(cx)).await;
            count.fetch_add(usize::from(reason.unwrap() == Reason::CANCEL), Ordering::SeqCst);
        }
    });
    let mut proxy = TestHttpProxy::start(&upstream.upstream);
    run(async {
        let (client, _driver) = connect(&proxy).await;
        let mut ready = client.clone().ready().await.unwrap();
        let (response, mut stream) = ready.send_request(grpc("/"), false).unwrap();
        while upstream.heads().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stream.send_reset(Reason::CANCEL);
        drop(response);
        let mut late = grpc("/");
        late.headers_mut().insert("grpc-timeout", HeaderValue::from_static("10m"));
        let (response, _) = client.clone().ready().await.unwrap().send_request(late, true).unwrap();
        assert_eq!(response.await.unwrap().status(), 504);
    });
    eventually("both are reset", || reset.load(Ordering::SeqCst) == 2);
    proxy.expect(HttpCounter::FailedClientGone, 1);
    proxy.expect(HttpCounter::FailedUpstreamTimeout, 1);
    proxy.finish();
}
