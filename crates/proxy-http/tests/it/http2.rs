//! HTTP/2 in front: streams, resets, trailers, bounds, the orderly end.

use std::sync::atomic::Ordering;
use std::time::Duration;

use http::{HeaderMap, Method};
use proxy_core::{MemoryGauge, MemoryUsage};
use records::metrics::{HttpCounter, ProxyCounter};

use crate::http2_client::{Bytes, connect, connect_with, get, get_hundred, read, request, run};
use crate::support::{TestHttpProxy, client_errors, eventually, field};
use crate::upstream::{HELLO, ScriptedUpstream, nowhere};

fn echoing() -> ScriptedUpstream {
    ScriptedUpstream::unix(|mut peer| {
        while let Some(head) = peer.head() {
            let path = head.split(' ').nth(1).unwrap().to_owned();
            let n = if path == "/big" { 1_000_000 } else { path.len() };
            peer.send(format!("HTTP/1.1 200 OK\r\ncontent-length: {n}\r\n\r\n"));
            peer.send(path.bytes().cycle().take(n).collect::<Vec<u8>>());
        }
    })
}

#[test]
fn streams_of_a_connection_are_requests_of_their_own() {
    let upstream = echoing();
    let mut proxy = TestHttpProxy::start(&upstream.upstream);
    run(async {
        let (client, _) = connect(&proxy).await;
        get_hundred(&client).await;
    });
    proxy.expect(HttpCounter::Requests2, 100);
    let total = proxy.finish();
    let http = total.http.unwrap();
    assert_eq!(http.counters[HttpCounter::Connections2], 1);
    assert_eq!(total.counters[ProxyCounter::Exchanges], 100);
}

#[test]
fn a_stream_that_the_client_resets_cancels_its_request() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        peer.head();
        peer.wait_for_end();
    });
    let mut proxy = TestHttpProxy::start(&upstream.upstream);
    run(async {
        let (mut client, _driver) = connect(&proxy).await;
        let (response, mut stream) = client.send_request(request(Method::GET, "/"), true).unwrap();
        while upstream.heads().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stream.send_reset(h2::Reason::CANCEL);
        drop(response);
        tokio::time::sleep(Duration::from_millis(50)).await;
    });
    proxy.expect(HttpCounter::FailedClientGone, 1);
    assert_eq!(proxy.collect().gauges.upstream_open, 0);
    proxy.finish();
}

#[test]
fn an_upstream_that_breaks_in_mid_body_resets_its_stream_only() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        while let Some(head) = peer.head() {
            if head.contains("/cut") {
                peer.send("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello");
                return;
            }
            peer.send(HELLO);
        }
    });
    let mut proxy = TestHttpProxy::start(&upstream.upstream);
    run(async {
        let (client, _driver) = connect(&proxy).await;
        let error = get(&client, "/cut").await.unwrap_err();
        assert!(error.is_reset(), "{error}");
        assert_eq!(get(&client, "/").await.unwrap(), (200, b"hello".to_vec()));
    });
    proxy.expect(HttpCounter::FailedUpstreamCut, 1);
    assert_eq!(client_errors(&proxy.finish()), 1);
}

#[test]
fn trailers_are_forwarded_as_trailers() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        while let Some(head) = peer.head() {
            assert_eq!(field(&head, "transfer-encoding").as_deref(), Some("chunked"));
            assert!(peer.read_until(|bytes| bytes.ends_with(b"\r\n\r\n")));
            assert_eq!(std::mem::take(&mut peer.received), b"2\r\nhi\r\n0\r\nx-sum: 7\r\n\r\n");
            peer.send(
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nx-check: 8\r\n\r\n",
            );
        }
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    run(async {
        let (mut client, _driver) = connect(&proxy).await;
        let (response, mut stream) = client.send_request(request(Method::POST, "/"), false).unwrap();
        stream.send_data(Bytes::from_static(b"hi"), false).unwrap();
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", "7".parse().unwrap());
        stream.send_trailers(trailers).unwrap();
        let (body, trailers) = read(response.await.unwrap().into_body()).await.unwrap();
        assert_eq!((body, trailers.unwrap()["x-check"].as_bytes()), (b"x".to_vec(), b"8".as_slice()));
    });
    proxy.finish();
}

#[test]
fn a_drain_answers_every_stream_under_way_and_says_goaway() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        while peer.head().is_some() {
            std::thread::sleep(Duration::from_millis(200));
            peer.send(HELLO);
        }
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    run(async {
        let (client, driver) = connect(&proxy).await;
        let asked: Vec<_> = (0..20)
            .map(|_| {
                let client = client.clone();
                tokio::spawn(async move { get(&client, "/").await })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(100)).await;
        proxy.proxy.drain();
        for answer in asked {
            assert_eq!(answer.await.unwrap().unwrap(), (200, b"hello".to_vec()));
        }
        drop(client);
        driver.await.unwrap().unwrap();
    });
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::Status2xx], 20);
}

#[test]
fn a_client_that_does_not_read_holds_back_the_upstream() {
    let (upstream, sent) = ScriptedUpstream::streaming(100_000);
    let mut proxy = TestHttpProxy::start(&upstream.upstream);
    run(async {
        let (mut client, _driver) = connect(&proxy).await;
        let (response, _) = client.send_request(request(Method::GET, "/"), true).unwrap();
        let body = response.await.unwrap().into_body();
        tokio::time::sleep(Duration::from_millis(300)).await;
        let held = sent.load(Ordering::Relaxed);
        assert!(held < 2_000_000, "{held} bytes were taken from the upstream");
        drop(body);
        tokio::time::sleep(Duration::from_millis(50)).await;
    });
    proxy.expect(HttpCounter::FailedClientGone, 1);
    proxy.finish();
}

#[test]
fn an_idle_http2_connection_gets_goaway_after_the_timeout() {
    let upstream = ScriptedUpstream::answering(HELLO);
    let proxy = TestHttpProxy::start_with(&upstream.upstream, |_, http| {
        http.limits.keep_alive_timeout = Duration::from_millis(200);
    });
    run(async {
        let (client, driver) = connect(&proxy).await;
        assert_eq!(get(&client, "/").await.unwrap().0, 200);
        driver.await.unwrap().unwrap();
    });
    proxy.finish();
}

#[test]
fn idle_connections_to_clients_and_upstreams_are_closed_while_memory_is_short() {
    let upstream = ScriptedUpstream::answering(HELLO);
    let mut proxy = TestHttpProxy::start_with(&upstream.upstream, |config, _| {
        let usage = MemoryUsage { used_bytes: 92, max_bytes: 100, bound: "the test" };
        config.memory = MemoryGauge::new(move |_| Some(usage));
    });
    run(async {
        let (client, driver) = connect(&proxy).await;
        assert_eq!(get(&client, "/").await.unwrap().0, 200);
        driver.await.unwrap().expect("it gets GOAWAY");
    });
    eventually("the upstream connection is closed", || proxy.collect().gauges.upstream_open == 0);
    assert_eq!(proxy.finish().counters[ProxyCounter::IdleClosed], 1);
}

#[test]
fn a_body_that_does_not_have_its_length_is_malformed() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        peer.head();
        peer.wait_for_end();
    });
    let mut proxy = TestHttpProxy::start(&upstream.upstream);
    run(async {
        let (mut client, _driver) = connect(&proxy).await;
        let mut request = request(Method::POST, "/");
        request.headers_mut().insert("content-length", "5".parse().unwrap());
        let (response, mut stream) = client.send_request(request, false).unwrap();
        stream.send_data(Bytes::from_static(b"hi"), true).unwrap();
        let error = response.await.unwrap_err();
        assert_eq!(error.reason(), Some(h2::Reason::PROTOCOL_ERROR));
    });
    proxy.expect(HttpCounter::FailedMalformed, 1);
    proxy.finish();
}

#[test]
fn failures_are_answered_on_their_stream() {
    let upstream = ScriptedUpstream::answering(HELLO);
    let proxy = TestHttpProxy::start_with(&upstream.upstream, |config, http| {
        http.routes = vec![format!("/api={}", upstream.upstream).parse().unwrap()];
        config.upstreams.clear();
        http.limits.body_bytes_max = 10;
    });
    run(async {
        let (mut client, _driver) = connect(&proxy).await;
        assert_eq!(get(&client, "/").await.unwrap().0, 404);
        let (response, mut stream) = client.send_request(request(Method::POST, "/api"), false).unwrap();
        stream.send_data(Bytes::from_static(b"more than ten bytes"), false).unwrap();
        assert_eq!(response.await.unwrap().status(), 413);
        drop(stream);
        assert_eq!(get(&client, "/api").await.unwrap().0, 200);
    });
    let total = proxy.finish();
    assert_eq!(total.counters[ProxyCounter::ClientBroken], 0);
    let http = total.http.unwrap();
    assert_eq!(http.counters[HttpCounter::FailedBodyTooLarge], 1);
    assert_eq!(http.counters[HttpCounter::Status4xx], 2);
}

#[test]
fn failures_of_head_have_the_fields_of_get_and_no_content() {
    let proxy = TestHttpProxy::start_with(&nowhere(), |config, http| {
        http.routes = vec![format!("/api={}", nowhere()).parse().unwrap()];
        config.upstreams.clear();
    });
    run(async {
        let (client, _driver) = connect(&proxy).await;
        for (path, status) in [("/", 404), ("/x/../api", 400), ("/api", 502)] {
            let length = get(&client, path).await.unwrap().1.len();
            let mut client = client.clone().ready().await.unwrap();
            let (response, _) = client.send_request(request(Method::HEAD, path), true).unwrap();
            let response = response.await.unwrap();
            assert_eq!(response.status(), status);
            assert_eq!(response.headers()["content-length"], length.to_string());
            assert!(response.body().is_end_stream(), "{path}");
        }
    });
    let mut client = proxy.connect();
    client.send("HEAD / HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n");
    let head = client.answer_to("HEAD");
    let get = client.answer();
    assert_eq!((head.status, get.status), (404, 404));
    assert_eq!(head.field("content-length"), Some(get.body.len().to_string()));
    proxy.finish();
}

#[test]
fn many_streams_that_nobody_reads_hold_a_bounded_number_of_bytes() {
    let (upstream, sent) = ScriptedUpstream::streaming(10_000);
    let mut proxy = TestHttpProxy::start(&upstream.upstream);
    run(async {
        let (client, _driver) = connect(&proxy).await;
        let mut bodies = Vec::new();
        for _ in 0..100 {
            let mut client = client.clone().ready().await.unwrap();
            let (response, _) = client.send_request(request(Method::GET, "/"), true).unwrap();
            bodies.push(response.await.unwrap().into_body());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        let held = sent.load(Ordering::Relaxed);
        // Each Unix socket holds about 200 kB in the kernel.
        assert!(held < 100 * 300_000, "{held} bytes were taken from the upstream");
    });
    proxy.expect(HttpCounter::FailedClientGone, 100);
    proxy.finish();
}

#[test]
fn a_stream_is_answered_while_others_have_closed_windows() {
    let upstream = echoing();
    let proxy = TestHttpProxy::start(&upstream.upstream);
    run(async {
        let mut settings = h2::client::Builder::new();
        settings.initial_connection_window_size(64 << 20);
        let (client, _driver) = connect_with(&proxy, &settings).await;
        let mut unread = Vec::new();
        for _ in 0..30 {
            let mut client = client.clone().ready().await.unwrap();
            let (response, _) = client.send_request(request(Method::GET, "/big"), true).unwrap();
            unread.push(response.await.unwrap().into_body());
        }
        for _ in 0..3 {
            let (status, body) = get(&client, "/big").await.unwrap();
            assert_eq!((status, body.len()), (200, 1_000_000));
        }
        // Those that waited go on.
        for body in unread {
            assert_eq!(read(body).await.unwrap().0.len(), 1_000_000);
        }
    });
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::Status2xx], 33);
}

#[test]
fn a_changed_setting_does_not_end_connections() {
    let upstream = ScriptedUpstream::answering(HELLO);
    let proxy = TestHttpProxy::start(&upstream.upstream);
    run(async {
        let (client, driver) = connect(&proxy).await;
        assert_eq!(get(&client, "/").await.unwrap().0, 200);
        proxy.proxy.set("proxy.queue-timeout", &records::setting::Value::Number(1.0)).unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!driver.is_finished());
        assert_eq!(get(&client, "/").await.unwrap().0, 200);
    });
    proxy.finish();
}

#[test]
fn a_client_without_requests_ends_cleanly() {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    let proxy = TestHttpProxy::start(&ScriptedUpstream::answering(HELLO).upstream);
    for sent in [Vec::new(), PREFACE.to_vec(), [PREFACE, SETTINGS].concat()] {
        for reads_settings in [false, true] {
            let mut client = proxy.connect_with("h2");
            client.send(&sent);
            if reads_settings && !sent.is_empty() {
                client.read_until(|bytes| bytes.len() >= 9).unwrap();
            }
            client.tls.conn.send_close_notify();
            client.send(b"");
            assert_eq!(client.read_until(|_| false), Err(false));
        }
    }
    let total = proxy.finish();
    let ends: Vec<_> = total.connections.iter().map(|it| (it.outcome, &it.detail)).collect();
    assert_eq!(total.counters[ProxyCounter::ClientBroken], 0, "{ends:?}");
    assert_eq!(total.counters[ProxyCounter::Accepted], 6);
}
