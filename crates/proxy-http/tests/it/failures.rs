//! What fails: each with its status, its counter, and a text that names no address.

use std::thread;
use std::time::Duration;

use records::metrics::{HttpCounter, ProxyCounter, UpstreamCounter};

use crate::http2_server::Http2Upstream;
use crate::support::{TestHttpProxy, client_errors};
use crate::upstream::{HELLO, ScriptedUpstream};

#[test]
fn a_malformed_response_head_is_a_502_with_its_cause() {
    let scripts: [(&str, &str, HttpCounter); 6] = [
        ("/closes", "", HttpCounter::FailedUpstreamClosed),
        // A fatal alert of TLS, decode_error.
        ("/tls", "\x15\x03\x03\0\x02\x02\x32", HttpCounter::FailedUpstreamInvalid),
        ("/garbage", "SSH-2.0-x\r\n\r\n", HttpCounter::FailedUpstreamInvalid),
        ("/half", "HTTP/1.1 200 OK\r\ncontent-le", HttpCounter::FailedUpstreamInvalid),
        (
            "/both",
            "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
            HttpCounter::FailedUpstreamInvalid,
        ),
        (
            "/101",
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n",
            HttpCounter::FailedUpstreamInvalid,
        ),
    ];
    let upstream = ScriptedUpstream::unix(move |mut peer| {
        let Some(head) = peer.head() else { return };
        let script = scripts.iter().find(|(path, ..)| head.contains(path)).unwrap();
        peer.send(script.1);
    });
    let mut proxy = TestHttpProxy::start(&upstream.upstream);
    for (path, _, counter) in scripts {
        let before = proxy.count(counter);
        let answer = proxy.get(path);
        assert_eq!(answer.status, 502, "{path}");
        assert!(answer.text().starts_with("the upstream") && !answer.text().contains('/'), "{answer:?}");
        proxy.expect(counter, before + 1);
    }
    proxy.expect(HttpCounter::Status5xx, 6);
    let notices: Vec<_> = proxy.proxy.take_notices().into_iter().map(|notice| notice.text).collect();
    assert!(notices.len() == 1 && notices[0].contains("answers with TLS"), "{notices:?}");
    proxy.finish();
}

#[test]
fn a_connection_whose_content_nobody_reads_ends_announced_or_goes_on() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        if peer.head().is_some_and(|head| head.contains("/early")) {
            peer.send(HELLO);
        }
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let head = |path: &str| format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\n");
    for (path, status) in [("/closes", 502), ("/early", 200)] {
        let mut client = proxy.connect();
        client.send(head(path));
        let answer = client.answer();
        let announced = answer.field("connection");
        assert_eq!((answer.status, announced.as_deref()), (status, Some("close")), "{path}");
    }
    let mut client = proxy.connect();
    for _ in 0..2 {
        client.send(head("/closes") + "hello");
        let answer = client.answer();
        assert_eq!((answer.status, answer.field("connection")), (502, None));
    }
    proxy.finish();
}

#[test]
fn an_early_answer_of_an_upstream_that_reads_no_more_ends_the_connection_announced() {
    let http1 = ScriptedUpstream::unix(|mut peer| {
        if peer.head().is_some() {
            peer.read_no_more();
            thread::sleep(Duration::from_millis(100));
            peer.send(HELLO);
        }
    });
    let http2 = Http2Upstream::start(|request| async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        request.respond(&[], "hello", None).await;
    });
    for upstream in [&http1.upstream, &http2.upstream] {
        let proxy = TestHttpProxy::start(upstream);
        let mut client = proxy.connect();
        // More than the window of a stream, less than there is.
        client.send("POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 200000\r\n\r\n");
        client.send(vec![b'x'; 100_000]);
        let answer = client.answer();
        let announced = answer.field("connection");
        assert_eq!((answer.status, announced.as_deref()), (200, Some("close")), "{upstream}");
        proxy.finish();
    }
}

#[test]
fn a_response_head_that_is_too_long_is_refused_in_one_piece_too() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        if peer.head().is_some() {
            let value = "x".repeat(60_000);
            peer.send(format!("HTTP/1.1 200 OK\r\na: {value}\r\nb: {value}\r\ncontent-length: 0\r\n\r\n"));
        }
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    for _ in 0..5 {
        assert_eq!(proxy.get("/").status, 502);
    }
    proxy.finish();
}

#[test]
fn the_text_of_a_failure_is_not_the_upstreams() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        if peer.head().is_some_and(|head| head.contains("/101")) {
            peer.send("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n");
        }
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let sent: usize = ["/", "/101"].map(|path| proxy.get(path).body.len()).iter().sum();
    let total = proxy.finish();
    assert_eq!(total.http.unwrap().counters[HttpCounter::BodyOut], sent as u64);
    let of_upstream = &total.upstreams.all()[0].counters;
    assert_eq!(of_upstream[UpstreamCounter::BytesOut], 0);
    assert_eq!(of_upstream[UpstreamCounter::Broken], 2);
}

#[test]
fn an_upstream_that_breaks_in_mid_body_leaves_no_whole_answer() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        let head = peer.head().unwrap_or_default();
        let framing = if head.contains("/chunked") {
            "transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n"
        } else {
            "content-length: 10\r\n\r\nhello"
        };
        peer.send(format!("HTTP/1.1 200 OK\r\n{framing}"));
    });
    let mut proxy = TestHttpProxy::start(&upstream.upstream);
    for path in ["/chunked", "/length"] {
        let mut client = proxy.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n"));
        assert!(client.head().starts_with("http/1.1 200"));
        assert_eq!(client.read_until(|_| false), Err(true), "{path}: the end is not said by a close_notify");
        assert!(!String::from_utf8_lossy(&client.received).contains("0\r\n"), "{path}: no last chunk");
    }
    proxy.expect(HttpCounter::FailedUpstreamCut, 2);
    let total = proxy.finish();
    assert_eq!(total.counters[ProxyCounter::UpstreamBroken], 2);
    assert_eq!(client_errors(&total), 2, "each once");
    assert_eq!(total.http.unwrap().counters[HttpCounter::Status2xx], 2, "the status was sent");
}

#[test]
fn heads_that_hyper_refuses_itself_are_counted() {
    let upstream = ScriptedUpstream::answering(HELLO);
    let mut proxy = TestHttpProxy::start(&upstream.upstream);
    let long_path = format!("GET /{} HTTP/1.1\r\nhost: a\r\n\r\n", "x".repeat(40_000));
    let large = format!("GET / HTTP/1.1\r\nhost: a\r\nx: {}\r\n\r\n", "x".repeat(70_000));
    let bad_chunk = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nx\r\n".to_owned();
    let many = (0..101).fold(String::new(), |head, n| head + &format!("x{n}: y\r\n"));
    let many = format!("GET / HTTP/1.1\r\nhost: a\r\n{many}\r\n");
    for (request, status, counter) in [
        ("GET /\0 HTTP/1.1\r\nhost: a\r\n\r\n".to_owned(), 400, HttpCounter::FailedMalformed),
        (bad_chunk, 400, HttpCounter::FailedMalformed),
        (large, 431, HttpCounter::FailedHeaderTooLarge),
        (many, 431, HttpCounter::FailedHeaderTooLarge),
        (long_path, 200, HttpCounter::Status2xx),
    ] {
        let before = proxy.count(counter);
        assert_eq!(proxy.ask(&request).status, status, "{counter:?}");
        proxy.expect(counter, before + 1);
    }
    assert_eq!(client_errors(&proxy.finish()), 4);
}

#[test]
fn a_client_that_goes_away_cancels_its_request() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        while let Some(head) = peer.head() {
            if head.contains("/begun") {
                peer.send("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhello");
            }
            peer.wait_for_end();
        }
    });
    let mut proxy = TestHttpProxy::start(&upstream.upstream);
    for (n, path) in ["/waiting", "/begun"].into_iter().enumerate() {
        let mut client = proxy.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n"));
        crate::support::eventually("the upstream has the request", || upstream.heads().len() == n + 1);
        if path == "/begun" {
            client.head();
        }
        client.reset();
        proxy.expect(HttpCounter::FailedClientGone, n as u64 + 1);
    }
    // Without a reset: nobody can tell a client that is gone from one that only ends its side.
    let mut client = proxy.connect();
    client.send("GET /waiting HTTP/1.1\r\nhost: localhost\r\n\r\n");
    crate::support::eventually("the upstream has the request", || upstream.heads().len() == 3);
    drop(client);
    proxy.expect(HttpCounter::FailedClientGone, 3);
    let http = proxy.collect();
    assert_eq!(http.counters[HttpCounter::Unanswered], 2);
    assert_eq!(http.gauges.upstream_open, 0, "the upstream's connections are closed at once");
    proxy.finish();
}

#[test]
fn bodies_beyond_their_bound_are_refused() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        while peer.head().is_some() {
            peer.wait_for_end();
        }
    });
    let proxy = TestHttpProxy::start_with(&upstream.upstream, |_, http| http.limits.body_bytes_max = 1 << 20);
    let announced = proxy.ask("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1048577\r\n\r\n");
    assert_eq!(announced.status, 413);
    let mut client = proxy.connect();
    client.send("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n");
    let chunk = [b"100000\r\n".as_slice(), &vec![b'x'; 1 << 20], b"\r\n"].concat();
    client.send(&chunk);
    client.send("1\r\nx\r\n");
    assert_eq!(client.answer().status, 413);
    let total = proxy.finish();
    assert_eq!(client_errors(&total), 2);
    assert_eq!(total.http.unwrap().counters[HttpCounter::FailedBodyTooLarge], 2);
}

#[test]
fn a_response_that_waits_for_a_body_beyond_its_bound_is_cut() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        peer.head();
        peer.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n");
        peer.wait_for_end();
    });
    let mut proxy = TestHttpProxy::start_with(&upstream.upstream, |_, http| http.limits.body_bytes_max = 10);
    let mut client = proxy.connect();
    client.send("POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1\r\nb\r\n");
    assert!(client.head().starts_with("http/1.1 200 "));
    client.send("b\r\nbbbbbbbbbbb\r\n");
    assert!(client.read_until(|_| false).is_err());
    assert!(!client.received.ends_with(b"0\r\n\r\n"), "it looks complete");
    proxy.expect(HttpCounter::FailedBodyTooLarge, 1);
    assert_eq!(proxy.finish().http.unwrap().counters[HttpCounter::FailedUpstreamCut], 0);
}

#[test]
fn a_client_that_aborts_its_body_counts_as_unanswered() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        peer.head();
        peer.wait_for_end();
    });
    let mut proxy = TestHttpProxy::start(&upstream.upstream);
    let mut client = proxy.connect();
    client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nhalf");
    crate::support::eventually("the upstream has the request", || upstream.heads().len() == 1);
    drop(client);
    proxy.expect(HttpCounter::FailedClientGone, 1);
    proxy.expect(HttpCounter::Unanswered, 1);
    proxy.finish();
}
