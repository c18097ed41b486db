//! Upstreams that speak TLS; `pooling` has what kept connections over TLS share with others.

use std::time::Duration;

use records::metrics::HttpCounter;

use crate::support::{TestHttpProxy, eventually};
use crate::upstream::{HELLO, ScriptedUpstream};

#[test]
fn long_bodies_pass_both_ways() {
    const LENGTH: usize = 3_000_000;
    let upstream = ScriptedUpstream::tls(|mut peer| {
        peer.head();
        let content = peer.content(LENGTH).unwrap();
        peer.send(format!("HTTP/1.1 200 OK\r\ncontent-length: {LENGTH}\r\n\r\n"));
        peer.send(content);
        peer.wait_for_end();
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let content: Vec<u8> = (0..LENGTH).map(|i| (i / 3 % 251) as u8).collect();
    let mut client = proxy.connect();
    client.send(format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {LENGTH}\r\n\r\n"));
    client.send(&content);
    assert!(client.answer().body == content, "what came back differs");
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::BodyIn], LENGTH as u64);
    assert_eq!(http.counters[HttpCounter::BodyOut], LENGTH as u64);
}

#[test]
fn an_idle_connection_is_closed_in_time() {
    let upstream = ScriptedUpstream::tls(|mut peer| {
        while peer.head().is_some() {
            peer.send(HELLO);
        }
    });
    let mut proxy = TestHttpProxy::start_with(&upstream.upstream, |_, http| {
        http.limits.upstream_idle_timeout = Duration::from_millis(100);
    });
    assert_eq!(proxy.get("/").status, 200);
    eventually("it is closed", || proxy.collect().gauges.upstream_open == 0);
    proxy.finish();
}

#[test]
fn an_answer_whose_end_nobody_vouches_for_is_cut() {
    // Its length is that of the connection, which ends without `close_notify`.
    let upstream = ScriptedUpstream::tls(|mut peer| {
        peer.head();
        peer.send("HTTP/1.0 200 OK\r\n\r\nhalf of a");
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let mut client = proxy.connect();
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    let head = client.head();
    assert!(head.contains("transfer-encoding: chunked"), "{head}");
    assert_eq!(client.read_until(|bytes| bytes.ends_with(b"0\r\n\r\n")), Err(true));
    assert_eq!(proxy.finish().http.unwrap().counters[HttpCounter::FailedUpstreamCut], 1);
}

#[test]
fn an_upstream_that_is_not_trusted_gets_no_request() {
    let upstream = ScriptedUpstream::tls(|mut peer| {
        while peer.head().is_some() {
            peer.send(HELLO);
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let ca = folder.path().join("ca.pem");
    std::fs::write(&ca, rcgen::generate_simple_self_signed(["other".to_owned()]).unwrap().cert.pem())
        .unwrap();
    let proxy = TestHttpProxy::start_with(&upstream.upstream, |config, _| {
        config.tls.upstream.is_insecure = false;
        config.tls.upstream.ca = Some(proxy_core::Authorities::load(&ca).unwrap());
    });
    assert_eq!(proxy.get("/").status, 502);
    let said = proxy.said();
    assert!(said.contains("cannot be reached: the certificate is not signed by"), "{said}");
    assert!(upstream.heads().is_empty());
    assert_eq!(proxy.finish().http.unwrap().counters[HttpCounter::FailedConnect], 1);
}
