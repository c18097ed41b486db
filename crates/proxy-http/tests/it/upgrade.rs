//! WebSocket by HTTP/1.1 upgrade: a tunnel begins only once the upstream has agreed.

use records::metrics::HttpCounter;

use crate::support::{Http1Client, TestHttpProxy, client_errors, field};
use crate::upstream::{HELLO, ScriptedConn, ScriptedUpstream};

const UPGRADE: &str = "GET /ws HTTP/1.1\r\nhost: a\r\nconnection: keep-alive, Upgrade\r\nupgrade: websocket\r\n\
                       sec-websocket-key: x\r\n\r\n";
const AGREED: &str = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
                      sec-websocket-accept: y\r\n\r\n";

/// Sends back whatever comes, until the proxy ends.
fn echo(mut peer: ScriptedConn) {
    loop {
        let received = std::mem::take(&mut peer.received);
        peer.send(received);
        if !peer.read_until(|bytes| !bytes.is_empty()) {
            return;
        }
    }
}

fn exchange(client: &mut Http1Client, bytes: &[u8]) {
    client.send(bytes);
    client.read_until(|received| received.len() >= bytes.len()).unwrap();
    assert!(client.received == bytes, "what came back differs");
    client.received.clear();
}

#[test]
fn an_upgrade_that_the_upstream_accepts_becomes_a_tunnel() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        let head = peer.head().unwrap();
        assert_eq!(field(&head, "connection").as_deref(), Some("upgrade"));
        assert_eq!(field(&head, "upgrade").as_deref(), Some("websocket"));
        // The first frame comes with the answer.
        peer.send(format!("{AGREED}first"));
        echo(peer);
    });
    let mut proxy = TestHttpProxy::start(&upstream.upstream);
    let mut client = proxy.connect();
    client.send(UPGRADE);
    let head = client.head();
    assert!(head.starts_with("http/1.1 101"), "{head}");
    assert_eq!(field(&head, "sec-websocket-accept").as_deref(), Some("y"));
    assert_eq!(field(&head, "upgrade").as_deref(), Some("websocket"));
    client.read_until(|bytes| bytes.len() >= 5).unwrap();
    assert_eq!(std::mem::take(&mut client.received), b"first");
    exchange(&mut client, b"hello");
    exchange(&mut client, &vec![7; 500_000]);
    assert_eq!(proxy.count(HttpCounter::Requests), 0, "it goes on");
    drop(client);
    proxy.expect(HttpCounter::Status1xx, 1);
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::BodyIn], 500_005);
    assert_eq!(http.counters[HttpCounter::BodyOut], 500_010);
}

#[test]
fn bytes_sent_ahead_of_the_answer_wait_for_it() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        peer.head().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(peer.received.is_empty(), "nothing is passed before 101");
        peer.send(AGREED);
        echo(peer);
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let mut client = proxy.connect();
    client.send(format!("{UPGRADE}early"));
    assert!(client.head().starts_with("http/1.1 101"));
    client.read_until(|bytes| bytes.len() >= 5).unwrap();
    assert_eq!(std::mem::take(&mut client.received), b"early");
    exchange(&mut client, b"late");
    drop(client);
    proxy.finish();
}

#[test]
fn a_refused_upgrade_ends_the_connection_and_passes_nothing() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        while peer.head().is_some() {
            peer.send("HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno");
        }
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let mut client = proxy.connect();
    client.send(format!("{UPGRADE}GET /smuggled HTTP/1.1\r\nhost: a\r\n\r\n"));
    let answer = client.answer();
    assert_eq!((answer.status, answer.text()), (403, "no"));
    assert_eq!(answer.field("connection").as_deref(), Some("close"));
    assert_eq!(client.read_until(|_| false), Err(false));
    assert_eq!(upstream.heads().len(), 1);
    proxy.finish();
}

#[test]
fn a_request_with_content_switches_to_no_other_protocol() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        let head = peer.head().unwrap();
        assert_eq!((field(&head, "upgrade"), field(&head, "connection")), (None, None));
        assert_eq!(peer.content(3).as_deref(), Some(&b"abc"[..]));
        peer.send(HELLO);
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let mut client = proxy.connect();
    client.send(UPGRADE.replace("sec-websocket-key: x", "content-length: 3"));
    client.send("abc");
    assert_eq!(client.answer().text(), "hello");
    proxy.finish();
}

#[test]
fn only_get_asks_for_a_websocket() {
    let upstream = ScriptedUpstream::answering(HELLO);
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let mut client = proxy.connect();
    for _ in 0..2 {
        client.send(UPGRADE.replace("GET", "DELETE"));
        assert_eq!(client.answer().text(), "hello");
    }
    for head in upstream.heads() {
        assert_eq!((field(&head, "upgrade"), field(&head, "connection")), (None, None), "{head}");
    }
    proxy.finish();
}

#[test]
fn an_upstream_that_ends_a_tunnel_ends_the_client() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        peer.head().unwrap();
        peer.send(format!("{AGREED}bye"));
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let mut client = proxy.connect();
    client.send(UPGRADE);
    client.head();
    assert_eq!(client.read_until(|_| false), Err(false));
    assert_eq!(client.received, b"bye");
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::FailedClientGone], 0);
}

#[test]
fn an_upstream_that_breaks_a_tunnel_is_counted() {
    let upstream = ScriptedUpstream::tcp(|mut peer| {
        peer.head().unwrap();
        peer.send(AGREED);
        // Unread bytes make the close a reset.
        let mut byte = [0];
        let _ = peer.stream.read(&mut byte);
    });
    let mut proxy = TestHttpProxy::start(&upstream.upstream);
    let mut client = proxy.connect();
    client.send(UPGRADE);
    client.head();
    client.send("more than a byte");
    assert_eq!(client.read_until(|_| false), Err(true), "without a close_notify");
    proxy.expect(HttpCounter::FailedUpstreamCut, 1);
    assert_eq!(client_errors(&proxy.finish()), 1);
}
