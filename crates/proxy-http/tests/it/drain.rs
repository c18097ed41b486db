//! The end of a proxy: nothing that was asked is lost.

use std::time::{Duration, Instant};

use telemetry::HttpCounter;

use crate::support::{HELLO, Running, Scripted, eventually};

#[test]
fn a_drain_ends_a_kept_connection_with_its_next_answer() {
    let upstream = Scripted::answering(HELLO);
    let proxy = Running::start_with(&upstream.upstream, |config, _| {
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
    let upstream = Scripted::unix(|mut peer| {
        while peer.head().is_some() {
            std::thread::sleep(Duration::from_millis(500));
            peer.send(HELLO);
        }
    });
    let proxy = Running::start(&upstream.upstream);
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
    let upstream = Scripted::answering(HELLO);
    let proxy =
        Running::start_with(&upstream.upstream, |_, http| http.limits.requests_per_connection = Some(2));
    let mut client = proxy.connect();
    for expected in [None, Some("close")] {
        client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
        assert_eq!(client.answer().field("connection").as_deref(), expected);
    }
    assert_eq!(client.read_until(|_| false), Err(false));
    proxy.finish();
}

#[test]
fn no_request_under_load_is_lost_in_a_drain() {
    let upstream = Scripted::unix(|mut peer| {
        while peer.head().is_some() {
            std::thread::sleep(Duration::from_millis(3));
            peer.send(HELLO);
        }
    });
    let proxy = Running::start(&upstream.upstream);
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let mut client = proxy.connect();
            std::thread::spawn(move || {
                for n in 1.. {
                    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
                    let answer = client.answer();
                    assert_eq!(answer.text(), "hello");
                    if answer.field("connection").is_some() {
                        return n;
                    }
                }
                unreachable!("it says close at last")
            })
        })
        .collect();
    std::thread::sleep(Duration::from_millis(300));
    proxy.proxy.drain();
    let answered: u64 = clients.into_iter().map(|client| client.join().unwrap()).sum();
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::Status2xx], answered);
    assert_eq!(http.counters[HttpCounter::Requests], answered);
}
