//! WebSocket over HTTP/1.1 and HTTP/2 (RFC 8441), between clients and upstreams of either.

use std::future::poll_fn;
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use h2::client::{Builder, SendRequest};
use h2::ext::Protocol;
use h2::{Reason, RecvStream, SendStream};
use http::{Method, Request, Response, StatusCode};
use proxy_core::Upstream;
use records::metrics::HttpCounter;

use crate::common::websocket_accept;
use crate::http2_client::{Bytes, connect, connect_with, get, read, request, run};
use crate::http2_server::{Behaviour, Http2Upstream, ServedRequest};
use crate::support::{Http1Client, TestHttpProxy, eventually, field};
use crate::upstream::{HELLO, ScriptedConn, ScriptedUpstream};

const TAKES_CONNECT: Behaviour = Behaviour {
    takes_connect: true,
    streams_max: None,
    connections_max: None,
    requests_max: None,
    alpn: None,
};

fn upgrade() -> String {
    "GET /ws?x HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
     sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n"
        .to_owned()
}

/// What a client of HTTP/1.1 must get for its key.
const ACCEPT: &str = "s3pplmbitxaq9kygzzhzrbk+xoo=";

fn extended_connect(protocol: &'static str) -> Request<()> {
    let mut request = request(Method::CONNECT, "/ws?x");
    request.extensions_mut().insert(Protocol::from_static(protocol));
    request.headers_mut().insert("sec-websocket-version", "13".parse().unwrap());
    request.headers_mut().insert("sec-websocket-protocol", "chat".parse().unwrap());
    request
}

/// An upstream that is either a script of HTTP/1.1 or one of HTTP/2.
enum AnyUpstream {
    Http1(ScriptedUpstream),
    Http2(Http2Upstream),
}

impl AnyUpstream {
    fn upstream(&self) -> &Upstream {
        match self {
            Self::Http1(upstream) => &upstream.upstream,
            Self::Http2(upstream) => &upstream.upstream,
        }
    }
}

/// Agrees to a WebSocket as RFC 6455 demands.
fn agree(peer: &mut ScriptedConn) -> String {
    let head = peer.head().unwrap();
    let key = field(&head, "sec-websocket-key").unwrap();
    let accept = websocket_accept(&key);
    peer.send(format!(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-accept: {accept}\r\nsec-websocket-protocol: chat\r\n\r\n"
    ));
    head
}

fn agree2(request: &mut ServedRequest) -> SendStream<Bytes> {
    assert_eq!(request.head.method(), Method::CONNECT);
    assert_eq!(request.head.extensions().get::<Protocol>().map(Protocol::as_str), Some("websocket"));
    let response = Response::builder().header("sec-websocket-protocol", "chat").body(()).unwrap();
    request.respond.send_response(response, false).unwrap()
}

/// Sends all of it as the window opens; false if the stream was reset.
async fn send(stream: &mut SendStream<Bytes>, bytes: impl Into<Bytes>) -> bool {
    let mut bytes = bytes.into();
    while !bytes.is_empty() {
        stream.reserve_capacity(bytes.len());
        let Some(Ok(room)) = poll_fn(|cx| stream.poll_capacity(cx)).await else { return false };
        if stream.send_data(bytes.split_to(room.min(bytes.len())), false).is_err() {
            return false;
        }
    }
    true
}

/// Reads the next bytes.
async fn next(body: &mut RecvStream) -> Option<Result<Bytes, h2::Error>> {
    let data = body.data().await?;
    if let Ok(data) = &data {
        body.flow_control().release_capacity(data.len()).unwrap();
    }
    Some(data)
}

async fn read_exactly(body: &mut RecvStream, length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < length {
        bytes.extend_from_slice(&next(body).await.expect("it has not ended").unwrap());
    }
    assert_eq!(bytes.len(), length);
    bytes
}

/// Sends back what comes, and once the client has ended `bye`.
fn echoing(is_http2: bool) -> AnyUpstream {
    if is_http2 {
        return AnyUpstream::Http2(Http2Upstream::start_with(TAKES_CONNECT, |mut request| async move {
            let mut stream = agree2(&mut request);
            while let Some(Ok(data)) = next(&mut request.body).await {
                send(&mut stream, data).await;
            }
            stream.send_data(Bytes::from_static(b"bye"), true).unwrap();
        }));
    }
    AnyUpstream::Http1(ScriptedUpstream::unix(|mut peer| {
        agree(&mut peer);
        loop {
            let received = std::mem::take(&mut peer.received);
            peer.send(received);
            if !peer.read_until(|bytes| !bytes.is_empty()) {
                return peer.send("bye");
            }
        }
    }))
}

/// Opens a WebSocket as a client of HTTP/2 does.
async fn open(client: &SendRequest<Bytes>) -> (SendStream<Bytes>, Response<RecvStream>) {
    let mut client = client.clone().ready().await.unwrap();
    let (response, stream) = client.send_request(extended_connect("websocket"), false).unwrap();
    (stream, response.await.unwrap())
}

/// Opens a WebSocket as a client of HTTP/1.1 does.
fn open1(proxy: &TestHttpProxy) -> Http1Client {
    let mut client = proxy.connect();
    client.send(upgrade());
    let head = client.head();
    assert!(head.starts_with("http/1.1 101"), "{head}");
    for (name, value) in [
        ("upgrade", "websocket"),
        ("connection", "upgrade"),
        ("sec-websocket-accept", ACCEPT),
        ("sec-websocket-protocol", "chat"),
    ] {
        assert_eq!(field(&head, name).as_deref(), Some(value), "{name}");
    }
    client
}

const MESSAGES: [usize; 3] = [5, 500_000, 1];

fn converse1(proxy: &TestHttpProxy) {
    let mut client = open1(proxy);
    for length in MESSAGES {
        let message: Vec<u8> = (0..length).map(|i| (i / 3 % 251) as u8).collect();
        client.send(&message);
        client.read_until(|received| received.len() >= length).unwrap();
        assert!(std::mem::take(&mut client.received) == message);
    }
    client.tls.conn.send_close_notify();
    client.tls.flush().unwrap();
    assert_eq!(client.read_until(|_| false), Err(false));
    assert_eq!(client.received, b"bye");
}

async fn converse2(proxy: &TestHttpProxy) {
    let (client, _driver) = connect(proxy).await;
    let (mut stream, response) = open(&client).await;
    assert!(client.is_extended_connect_protocol_enabled());
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["sec-websocket-protocol"], "chat");
    for name in ["sec-websocket-accept", "upgrade", "connection", "content-length"] {
        assert!(!response.headers().contains_key(name), "{name}");
    }
    let mut body = response.into_body();
    for length in MESSAGES {
        let message: Vec<u8> = (0..length).map(|i| (i / 3 % 251) as u8).collect();
        let (is_sent, received) =
            tokio::join!(send(&mut stream, message.clone()), read_exactly(&mut body, length));
        assert!(is_sent && received == message);
    }
    stream.send_data(Bytes::new(), true).unwrap();
    assert_eq!(read(body).await.unwrap(), (b"bye".to_vec(), None));
}

#[test]
fn messages_pass_both_ways_between_clients_and_upstreams_of_either_version() {
    for is_client_http2 in [false, true] {
        for is_upstream_http2 in [false, true] {
            let upstream = echoing(is_upstream_http2);
            let mut proxy = TestHttpProxy::start_with(upstream.upstream(), |_, http| {
                http.limits.body_bytes_max = 1_000;
            });
            if is_client_http2 {
                run(converse2(&proxy));
            } else {
                converse1(&proxy);
            }
            match &upstream {
                AnyUpstream::Http1(upstream) => {
                    let head = &upstream.heads()[0];
                    assert!(head.starts_with("GET /ws?x HTTP/1.1\r\nhost: localhost\r\n"), "{head}");
                    for (name, value) in [
                        ("upgrade", Some("websocket")),
                        ("connection", Some("upgrade")),
                        ("sec-websocket-version", Some("13")),
                        ("content-length", None),
                        ("transfer-encoding", None),
                        ("~", None),
                    ] {
                        assert_eq!(field(head, name).as_deref(), value, "{name}: {head}");
                    }
                }
                AnyUpstream::Http2(upstream) => {
                    let head = &upstream.heads()[0];
                    assert_eq!(head.uri(), "http://localhost/ws?x");
                    assert_eq!(head.headers()["sec-websocket-version"], "13");
                    for name in ["sec-websocket-key", "upgrade", "connection", "~"] {
                        assert!(!head.headers().contains_key(name), "{name}");
                    }
                }
            }
            proxy.expect(HttpCounter::Requests, 1);
            let http = proxy.finish().http.unwrap();
            let status = if is_client_http2 { HttpCounter::Status2xx } else { HttpCounter::Status1xx };
            let bytes = MESSAGES.iter().sum::<usize>() as u64;
            for (counter, n) in [
                (status, 1),
                (HttpCounter::BodyIn, bytes),
                (HttpCounter::BodyOut, bytes + 3),
                (HttpCounter::FailedClientGone, 0),
                (HttpCounter::FailedUpstreamCut, 0),
            ] {
                assert_eq!(http.counters[counter], n, "{counter:?} {is_client_http2} {is_upstream_http2}");
            }
        }
    }
}

/// An upstream that ends its side at once, and tells what it gets after that.
fn ending_first(is_http2: bool) -> (Upstream, AnyUpstream, mpsc::Receiver<Vec<u8>>) {
    let (told, learned) = mpsc::channel();
    if is_http2 {
        let upstream = Http2Upstream::start_with(TAKES_CONNECT, move |mut request| {
            let told = told.clone();
            async move {
                agree2(&mut request).send_data(Bytes::from_static(b"bye"), true).unwrap();
                told.send(request.content().await.0).unwrap();
            }
        });
        return (upstream.upstream.clone(), AnyUpstream::Http2(upstream), learned);
    }
    let told = Mutex::new(told);
    let upstream = ScriptedUpstream::unix(move |mut peer| {
        agree(&mut peer);
        peer.send("bye");
        peer.shut_down();
        peer.wait_for_end();
        told.lock().unwrap().send(std::mem::take(&mut peer.received)).unwrap();
    });
    (upstream.upstream.clone(), AnyUpstream::Http1(upstream), learned)
}

#[test]
fn a_client_of_http2_may_go_on_after_its_upstream_has_ended() {
    for is_upstream_http2 in [false, true] {
        let (address, _upstream, learned) = ending_first(is_upstream_http2);
        let mut proxy = TestHttpProxy::start(&address);
        run(async {
            let (client, _driver) = connect(&proxy).await;
            let (mut stream, response) = open(&client).await;
            assert_eq!(read(response.into_body()).await.unwrap().0, b"bye");
            assert_eq!(proxy.count(HttpCounter::Requests), 0, "the client has not ended");
            assert!(send(&mut stream, vec![7; 300_000]).await);
            stream.send_data(Bytes::new(), true).unwrap();
            while proxy.count(HttpCounter::Requests) == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        assert!(learned.recv().unwrap() == vec![7; 300_000]);
        let http = proxy.finish().http.unwrap();
        assert_eq!(http.counters[HttpCounter::FailedClientGone], 0);
        assert_eq!(http.counters[HttpCounter::BodyIn], 300_000);
    }
}

#[test]
fn over_tls_the_end_of_a_client_is_told_and_that_of_an_upstream_must_be() {
    let upstream = ScriptedUpstream::tls(|mut peer| {
        agree(&mut peer);
        let message = peer.content(5).unwrap();
        peer.send(message);
        peer.wait_for_end();
        // It closes without a close_notify.
        peer.send("bye");
    });
    let mut proxy = TestHttpProxy::start(&upstream.upstream);
    run(async {
        let (client, _driver) = connect(&proxy).await;
        let (mut stream, response) = open(&client).await;
        let mut body = response.into_body();
        assert!(send(&mut stream, "hello").await);
        assert_eq!(read_exactly(&mut body, 5).await, b"hello");
        stream.send_data(Bytes::new(), true).unwrap();
        assert_eq!(read_exactly(&mut body, 3).await, b"bye");
        let error = next(&mut body).await.unwrap().unwrap_err();
        assert_eq!(error.reason(), Some(Reason::CANCEL));
    });
    proxy.expect(HttpCounter::FailedUpstreamCut, 1);
    proxy.finish();
}

#[test]
fn what_an_upstream_answers_instead_passes() {
    let http1 = ScriptedUpstream::answering("HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno");
    let http2 = Http2Upstream::start_with(TAKES_CONNECT, |mut request| async move {
        let response = Response::builder().status(403).body(()).unwrap();
        let mut stream = request.respond.send_response(response, false).unwrap();
        stream.send_data(Bytes::from_static(b"no"), true).unwrap();
    });
    for upstream in [&http1.upstream, &http2.upstream] {
        let proxy = TestHttpProxy::start(upstream);
        let answer = proxy.ask(&upgrade());
        assert_eq!((answer.status, answer.text()), (403, "no"));
        assert_eq!(answer.field("connection").as_deref(), Some("close"));
        run(async {
            let (client, _driver) = connect(&proxy).await;
            for _ in 0..3 {
                let (mut stream, response) = open(&client).await;
                // The client may have sent something ahead.
                let _ = stream.send_data(Bytes::from_static(b"early"), false);
                assert_eq!(response.status(), 403);
                assert_eq!(read(response.into_body()).await.unwrap().0, b"no");
            }
            assert_eq!(get(&client, "/").await.unwrap(), (403, b"no".to_vec()), "it serves others");
        });
        let http = proxy.finish().http.unwrap();
        assert_eq!(http.counters[HttpCounter::Status4xx], 5);
        assert_eq!(http.counters[HttpCounter::BodyIn], 0);
    }
    assert_eq!(http1.connections(), 1, "it is kept");
    assert_eq!(http2.connections(), 1, "it is kept too");
}

#[test]
fn an_upstream_of_http1_must_prove_that_it_speaks_websocket() {
    for (answer, text) in [
        (HELLO, "the upstream does not accept WebSockets\n"),
        (
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
            "the upstream's response is malformed\n",
        ),
    ] {
        let upstream = ScriptedUpstream::answering(answer);
        let proxy = TestHttpProxy::start(&upstream.upstream);
        run(async {
            let (client, _driver) = connect(&proxy).await;
            let (_stream, response) = open(&client).await;
            assert_eq!(response.status(), 502);
            assert_eq!(read(response.into_body()).await.unwrap().0, text.as_bytes());
        });
        let http = proxy.finish().http.unwrap();
        assert_eq!(http.counters[HttpCounter::FailedUpstreamInvalid], 1);
    }
}

#[test]
fn an_upstream_that_does_not_announce_extended_connect_gets_none() {
    const TEXT: &str = "the upstream does not accept WebSockets\n";
    let upstream = Http2Upstream::start(|request| async { request.respond(&[], "hello", None).await });
    for has_begun in [false, true] {
        let proxy = TestHttpProxy::start(&upstream.upstream);
        if has_begun {
            assert_eq!(proxy.get("/").text(), "hello");
        }
        let answer = proxy.ask(&upgrade());
        assert_eq!((answer.status, answer.text()), (502, TEXT));
        run(async {
            let (client, _driver) = connect(&proxy).await;
            let (_stream, response) = open(&client).await;
            assert_eq!(response.status(), 502);
            assert_eq!(read(response.into_body()).await.unwrap().0, TEXT.as_bytes());
            assert_eq!(get(&client, "/").await.unwrap().0, 200);
        });
        let http = proxy.finish().http.unwrap();
        assert_eq!(http.counters[HttpCounter::FailedUpstreamInvalid], 2);
    }
    assert!(upstream.heads().iter().all(|head| head.method() == Method::GET));
    assert_eq!(upstream.connections(), 2, "each goes on to serve others");
}

#[test]
fn an_upstream_that_never_begins_http2_is_told_in_time() {
    let upstream = ScriptedUpstream::unix(|mut peer| peer.wait_for_end());
    let proxy =
        TestHttpProxy::start_with(&format!("h2c://{}", upstream.upstream).parse().unwrap(), |config, _| {
            config.limits.connect_timeout = Duration::from_millis(100);
        });
    assert_eq!(proxy.ask(&upgrade()).status, 502);
    proxy.finish();
}

#[test]
fn other_protocols_are_not_implemented() {
    let upstream = ScriptedUpstream::answering(HELLO);
    let mut proxy = TestHttpProxy::start(&upstream.upstream);
    run(async {
        let (client, _driver) = connect(&proxy).await;
        let ask = async |request| {
            let mut client = client.clone().ready().await.unwrap();
            let (response, _stream) = client.send_request(request, false).unwrap();
            let response = response.await.unwrap();
            (response.status().as_u16(), read(response.into_body()).await.map(|(body, _)| body))
        };
        let (status, body) = ask(extended_connect("connect-udp")).await;
        assert_eq!((status, body.unwrap()), (501, b"the protocol is not supported\n".to_vec()));
        let mut is_no_connect = extended_connect("websocket");
        *is_no_connect.method_mut() = Method::GET;
        assert_eq!(ask(is_no_connect).await.0, 400);
        let mut has_length = extended_connect("websocket");
        has_length.headers_mut().insert("content-length", "0".parse().unwrap());
        assert_eq!(ask(has_length).await.0, 400);
        assert_eq!(ask(Request::connect("localhost:443").body(()).unwrap()).await.0, 405);
        assert_eq!(get(&client, "/").await.unwrap().0, 200, "it serves others");
    });
    proxy.expect(HttpCounter::FailedMalformed, 4);
    assert_eq!(proxy.count(HttpCounter::Status5xx), 1);
    assert_eq!(upstream.heads().len(), 1);
    proxy.finish();
}

/// Agrees, and once it has got something breaks the connection or stream.
fn breaking(is_http2: bool) -> AnyUpstream {
    if is_http2 {
        return AnyUpstream::Http2(Http2Upstream::start_with(TAKES_CONNECT, |mut request| async move {
            let mut stream = agree2(&mut request);
            next(&mut request.body).await;
            stream.send_reset(Reason::INTERNAL_ERROR);
        }));
    }
    AnyUpstream::Http1(ScriptedUpstream::tcp(|mut peer| {
        agree(&mut peer);
        // Unread bytes make the close a reset.
        let _ = peer.stream.read(&mut [0]);
    }))
}

#[test]
fn an_upstream_that_breaks_resets_its_client() {
    for is_upstream_http2 in [false, true] {
        let upstream = breaking(is_upstream_http2);
        let mut proxy = TestHttpProxy::start(upstream.upstream());
        let mut client = open1(&proxy);
        client.send("more than a byte");
        assert_eq!(client.read_until(|_| false), Err(true), "without a close_notify");
        run(async {
            let (client, _driver) = connect(&proxy).await;
            let (mut stream, response) = open(&client).await;
            assert!(send(&mut stream, "more than a byte").await);
            let error = read(response.into_body()).await.unwrap_err();
            assert_eq!(error.reason(), Some(Reason::CANCEL));
        });
        proxy.expect(HttpCounter::FailedUpstreamCut, 2);
        proxy.finish();
    }
}

/// Tells how its client has ended: `None` if by a reset.
fn telling_the_end(is_http2: bool) -> (AnyUpstream, mpsc::Receiver<Option<Reason>>) {
    let (told, learned) = mpsc::channel();
    if is_http2 {
        let upstream = Http2Upstream::start_with(TAKES_CONNECT, move |mut request| {
            let told = told.clone();
            async move {
                let _stream = agree2(&mut request);
                while let Some(data) = next(&mut request.body).await {
                    if let Err(error) = data {
                        return told.send(error.reason()).unwrap();
                    }
                }
                told.send(None).unwrap();
            }
        });
        return (AnyUpstream::Http2(upstream), learned);
    }
    let told = Mutex::new(told);
    let upstream = ScriptedUpstream::unix(move |mut peer| {
        agree(&mut peer);
        peer.wait_for_end();
        told.lock().unwrap().send(None).unwrap();
    });
    (AnyUpstream::Http1(upstream), learned)
}

#[test]
fn a_client_that_leaves_ends_its_upstream() {
    for is_upstream_http2 in [false, true] {
        let (upstream, ends) = telling_the_end(is_upstream_http2);
        let mut proxy = TestHttpProxy::start(upstream.upstream());
        let reason = is_upstream_http2.then_some(Reason::CANCEL);
        let mut client = open1(&proxy);
        client.send("hello");
        client.reset();
        assert_eq!(ends.recv().unwrap(), reason);
        run(async {
            let (client, _driver) = connect(&proxy).await;
            let (mut stream, _response) = open(&client).await;
            send(&mut stream, "hello").await;
            stream.send_reset(Reason::CANCEL);
            while proxy.count(HttpCounter::FailedClientGone) < 2 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        assert_eq!(ends.recv().unwrap(), reason);
        proxy.expect(HttpCounter::FailedClientGone, 2);
        proxy.finish();
    }
}

/// Most that proxy and kernel hold of a tunnel in one direction.
const HELD_BYTES_MAX: usize = 4 << 20;

#[test]
fn a_client_that_does_not_read_is_still_heard() {
    for is_upstream_http2 in [false, true] {
        let (sent, heard) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (sending, hearing) = (Arc::clone(&sent), Arc::clone(&heard));
        let upstream = if is_upstream_http2 {
            AnyUpstream::Http2(Http2Upstream::start_with(TAKES_CONNECT, move |mut request| {
                let (sending, hearing) = (Arc::clone(&sending), Arc::clone(&hearing));
                async move {
                    let mut stream = agree2(&mut request);
                    tokio::task::spawn_local(async move {
                        while send(&mut stream, vec![7; 10_000]).await {
                            sending.fetch_add(10_000, Ordering::SeqCst);
                        }
                    });
                    while let Some(Ok(data)) = next(&mut request.body).await {
                        hearing.fetch_add(data.len(), Ordering::SeqCst);
                    }
                }
            }))
        } else {
            AnyUpstream::Http1(ScriptedUpstream::unix(move |mut peer| {
                agree(&mut peer);
                let mut writer = peer.writer();
                let sending = Arc::clone(&sending);
                std::thread::spawn(move || {
                    while writer.write_all(&[7; 10_000]).is_ok() {
                        sending.fetch_add(10_000, Ordering::SeqCst);
                    }
                });
                let mut bytes = [0; 1_000];
                while let Ok(n @ 1..) = peer.stream.read(&mut bytes) {
                    hearing.fetch_add(n, Ordering::SeqCst);
                }
            }))
        };
        let mut proxy = TestHttpProxy::start(upstream.upstream());
        let is_full = || {
            let before = sent.load(Ordering::SeqCst);
            assert!(before < HELD_BYTES_MAX, "{before} bytes were taken");
            std::thread::sleep(Duration::from_millis(100));
            before > 0 && before == sent.load(Ordering::SeqCst)
        };
        let mut client = open1(&proxy);
        eventually("the upstream is stopped", is_full);
        client.send("hello");
        eventually("it is heard", || heard.load(Ordering::SeqCst) == 5);
        drop(client);
        proxy.expect(HttpCounter::Requests, 1);
        sent.store(0, Ordering::SeqCst);
        run(async {
            let (client, _driver) = connect_with(&proxy, Builder::new().initial_window_size(1_000)).await;
            let (mut stream, mut response) = open(&client).await;
            while !is_full() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert!(send(&mut stream, vec![1; 50_000]).await);
            while heard.load(Ordering::SeqCst) < 50_005 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            // It goes on from where it was.
            let stopped_at = sent.load(Ordering::SeqCst);
            while sent.load(Ordering::SeqCst) == stopped_at {
                next(response.body_mut()).await.expect("it has not ended").unwrap();
            }
        });
        proxy.expect(HttpCounter::Requests, 2);
        proxy.finish();
    }
}

#[test]
fn an_upstream_that_does_not_read_stops_its_client() {
    for is_upstream_http2 in [false, true] {
        let upstream = if is_upstream_http2 {
            AnyUpstream::Http2(Http2Upstream::start_with(TAKES_CONNECT, |mut request| async move {
                let mut stream = agree2(&mut request);
                stream.send_data(Bytes::from_static(b"first"), false).unwrap();
                std::future::pending::<()>().await;
            }))
        } else {
            AnyUpstream::Http1(ScriptedUpstream::unix(|mut peer| {
                agree(&mut peer);
                peer.send("first");
                loop {
                    std::thread::park();
                }
            }))
        };
        let mut proxy = TestHttpProxy::start(upstream.upstream());
        run(async {
            let (client, _driver) = connect(&proxy).await;
            let (mut stream, response) = open(&client).await;
            let mut body = response.into_body();
            assert_eq!(read_exactly(&mut body, 5).await, b"first");
            let sending = tokio::time::timeout(
                Duration::from_millis(500),
                send(&mut stream, vec![1; 2 * HELD_BYTES_MAX]),
            );
            assert!(sending.await.is_err(), "the window closes");
        });
        proxy.expect(HttpCounter::FailedClientGone, 1);
        assert!(proxy.finish().http.unwrap().counters[HttpCounter::BodyIn] < HELD_BYTES_MAX as u64);
    }
}

#[test]
fn many_small_messages_are_no_flood() {
    for is_upstream_http2 in [false, true] {
        let upstream = echoing(is_upstream_http2);
        let proxy = TestHttpProxy::start(upstream.upstream());
        run(async {
            let (client, _driver) = connect(&proxy).await;
            let (mut stream, response) = open(&client).await;
            let mut body = response.into_body();
            for n in 0..300 {
                for _ in 0..100 {
                    stream.send_data(Bytes::from_static(b"ab"), false).unwrap();
                }
                assert_eq!(read_exactly(&mut body, 200).await, [&b"ab"[..]; 100].concat(), "{n}");
            }
            stream.send_data(Bytes::new(), true).unwrap();
            assert_eq!(read(body).await.unwrap().0, b"bye");
        });
        let http = proxy.finish().http.unwrap();
        assert_eq!(http.counters[HttpCounter::BodyIn], 60_000);
        assert_eq!(http.counters[HttpCounter::FloodEmpty] + http.counters[HttpCounter::FloodControl], 0);
    }
}

#[test]
fn the_time_for_a_response_is_that_for_an_agreement_and_not_for_messages() {
    const SHORT: Duration = Duration::from_millis(100);
    let asked = Arc::new(AtomicUsize::new(0));
    let upstream = Http2Upstream::start_with(TAKES_CONNECT, move |mut request| {
        let n = asked.fetch_add(1, Ordering::SeqCst);
        async move {
            if n == 0 {
                return std::future::pending().await;
            }
            let mut stream = agree2(&mut request);
            while let Some(Ok(data)) = next(&mut request.body).await {
                tokio::time::sleep(3 * SHORT).await;
                send(&mut stream, data).await;
            }
            stream.send_data(Bytes::new(), true).unwrap();
        }
    });
    let proxy = TestHttpProxy::start_with(&upstream.upstream, |_, http| {
        (http.limits.response_timeout, http.limits.body_timeout) = (SHORT, SHORT / 2);
    });
    run(async {
        let (client, _driver) = connect(&proxy).await;
        assert_eq!(open(&client).await.1.status(), 504);
        let (mut stream, response) = open(&client).await;
        let mut body = response.into_body();
        for _ in 0..2 {
            tokio::time::sleep(2 * SHORT).await;
            send(&mut stream, "hello").await;
            assert_eq!(read_exactly(&mut body, 5).await, b"hello");
        }
        stream.send_data(Bytes::new(), true).unwrap();
        assert_eq!(read(body).await.unwrap().0, b"");
    });
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::FailedUpstreamTimeout], 1);
    assert_eq!(http.counters[HttpCounter::Status2xx], 1);
}

#[test]
fn a_drain_lets_a_websocket_go_on_until_its_time_is_over() {
    let upstream = echoing(false);
    let mut proxy = TestHttpProxy::start_with(upstream.upstream(), |config, _| {
        config.limits.drain_timeout = Duration::from_millis(500);
    });
    run(async {
        let (client, _driver) = connect(&proxy).await;
        let (mut stream, response) = open(&client).await;
        let mut body = response.into_body();
        proxy.proxy.drain();
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(send(&mut stream, "hello").await);
        assert_eq!(read_exactly(&mut body, 5).await, b"hello");
        assert!(read(body).await.is_err());
    });
    proxy.expect(HttpCounter::FailedDrainTimeout, 1);
    proxy.finish();
}

#[test]
fn a_burst_of_small_messages_is_no_flood() {
    for is_upstream_http2 in [false, true] {
        let upstream = echoing(is_upstream_http2);
        let proxy = TestHttpProxy::start(upstream.upstream());
        run(async {
            let (client, _driver) = connect(&proxy).await;
            let (mut stream, response) = open(&client).await;
            let mut body = response.into_body();
            for _ in 0..5_000 {
                stream.send_data(Bytes::from_static(b"ab"), false).unwrap();
            }
            assert_eq!(read_exactly(&mut body, 10_000).await, b"ab".repeat(5_000));
        });
        let http = proxy.finish().http.unwrap();
        assert_eq!(http.counters[HttpCounter::FloodEmpty], 0);
    }
}

#[test]
fn a_tunnel_has_no_trailers() {
    for is_upstream_http2 in [false, true] {
        let upstream = echoing(is_upstream_http2);
        let mut proxy = TestHttpProxy::start(upstream.upstream());
        run(async {
            let (client, _driver) = connect(&proxy).await;
            let (mut stream, response) = open(&client).await;
            stream
                .send_trailers(http::HeaderMap::from_iter([("x-a".parse().unwrap(), "b".parse().unwrap())]))
                .unwrap();
            let error = read(response.into_body()).await.unwrap_err();
            assert_eq!(error.reason(), Some(Reason::CANCEL));
        });
        proxy.expect(HttpCounter::FailedMalformed, 1);
        proxy.finish();
    }
}

#[test]
fn what_comes_behind_a_refused_upgrade_is_no_request() {
    let http1 = ScriptedUpstream::answering(HELLO);
    let http2 = Http2Upstream::start(|request| async { request.respond(&[], "hello", None).await });
    let gone = Upstream::unix("/nonexistent/app.sock");
    for (upstream, status) in [(&http1.upstream, 200), (&http2.upstream, 502), (&gone, 502)] {
        let proxy = TestHttpProxy::start(upstream);
        let mut client = proxy.connect();
        client.send(format!("{}GET /behind HTTP/1.1\r\nhost: localhost\r\n\r\n", upgrade()));
        let answer = client.answer();
        assert_eq!(answer.status, status);
        assert_eq!(answer.field("connection").as_deref(), Some("close"));
        assert_eq!(client.read_until(|_| false), Err(false));
        assert_eq!(proxy.finish().http.unwrap().counters[HttpCounter::Requests], 1);
    }
}
