//! The end of a proxy: nothing that was asked is lost.

use std::time::{Duration, Instant};

use records::metrics::HttpCounter;

use crate::support::{TestHttpProxy, eventually};
use crate::upstream::{HELLO, ScriptedUpstream};

#[test]
fn a_drain_ends_a_kept_connection_with_its_next_answer() {
    let upstream = ScriptedUpstream::answering(HELLO);
    let proxy = TestHttpProxy::start_with(&upstream.upstream, |config, _| {
        config.limits.drain_quiet = Duration::from_secs(5);
    });
    let mut client = proxy.connect();
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    assert_eq!(client.answer().field("connection"), None);
    proxy.proxy.drain();
    std::thread::sleep(Duration::from_millis(100));
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    let answer = client.answer();
    assert_eq!((answer.status, answer.field("connection").as_deref()), (200, Some("close")));
    assert_eq!(client.read_until(|_| false), Err(false), "the end is said by a close_notify");
    proxy.finish();
}

#[test]
fn a_drain_waits_for_answers_and_closes_idle_connections_after_a_grace() {
    let upstream = ScriptedUpstream::unix(|mut peer| {
        while peer.head().is_some() {
            std::thread::sleep(Duration::from_millis(500));
            peer.send(HELLO);
        }
    });
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let (mut busy, mut idle) = (proxy.connect(), proxy.connect());
    idle.tls.conn.complete_io(&mut idle.tls.sock).unwrap();
    busy.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    eventually("the upstream has it", || upstream.heads().len() == 1);
    proxy.proxy.drain();
    let began_at = Instant::now();
    assert_eq!(idle.read_until(|_| false), Err(false));
    assert!(began_at.elapsed() < Duration::from_millis(450), "before the slow answer");
    assert_eq!(busy.answer().text(), "hello");
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::Status2xx], 1);
}

#[test]
fn a_connection_ends_after_its_number_of_requests() {
    let upstream = ScriptedUpstream::answering(HELLO);
    let proxy = TestHttpProxy::start_with(&upstream.upstream, |_, http| {
        http.limits.requests_per_connection = Some(2);
    });
    let mut client = proxy.connect();
    for expected in [None, Some("close")] {
        client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
        assert_eq!(client.answer().field("connection").as_deref(), expected);
    }
    assert_eq!(client.read_until(|_| false), Err(false));
    proxy.finish();
}

/// A frame of HTTP/2: its type, its flags, its stream and its payload.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    [&[0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream], payload].concat()
}

#[test]
fn goaway_comes_in_two_steps_and_a_stream_between_them_is_answered() {
    const HEADERS: u8 = 1;
    const PING: u8 = 6;
    const GOAWAY: u8 = 7;
    // GET, https, `/` and the authority `a`, from HPACK's static table.
    const GET: &[u8] = &[0x82, 0x84, 0x87, 0x41, 1, b'a'];
    let upstream = ScriptedUpstream::answering(HELLO);
    let proxy = TestHttpProxy::start(&upstream.upstream);
    let mut client = proxy.connect_with("h2");
    client.send(
        [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &frame(4, 0, 0, b""), &frame(4, 1, 0, b"")].concat(),
    );
    client.send(frame(HEADERS, 5, 1, GET));
    let next = |client: &mut crate::support::Http1Client, wanted: u8| loop {
        client.read_until(|bytes| bytes.len() >= 9).unwrap();
        let n = usize::from(client.received[1]) << 8 | usize::from(client.received[2]);
        client.read_until(|bytes| bytes.len() >= 9 + n).unwrap();
        let frame: Vec<u8> = client.received.drain(..9 + n).collect();
        if frame[3] == wanted {
            return frame;
        }
    };
    assert_eq!(next(&mut client, HEADERS)[8], 1);
    proxy.proxy.drain();
    assert_eq!(next(&mut client, GOAWAY)[9..13], [0x7f, 0xff, 0xff, 0xff], "no stream is left out yet");
    let ping = next(&mut client, PING);
    // On its way before the client has seen the GOAWAY.
    client.send(frame(HEADERS, 5, 3, GET));
    client.send(frame(PING, 1, 0, &ping[9..]));
    let goaway = next(&mut client, GOAWAY);
    assert_eq!(goaway[9..13], [0, 0, 0, 3], "it was begun, so it is answered");
    assert_eq!(client.read_until(|_| false), Err(false));
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::Status2xx], 2);
}

#[test]
fn a_request_that_outlasts_the_drain_is_counted_as_cut_by_it() {
    let upstream = ScriptedUpstream::unix(|mut peer| peer.wait_for_end());
    let mut proxy = TestHttpProxy::start_with(&upstream.upstream, |config, _| {
        config.limits.drain_timeout = Duration::from_millis(200);
    });
    let mut client = proxy.connect();
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    eventually("the request is under way", || proxy.collect().gauges.requests == 1);
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::FailedDrainTimeout], 1);
    assert_eq!(http.counters[HttpCounter::FailedClientGone], 0);
}
