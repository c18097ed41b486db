//! Clients that hold on to a connection: nobody keeps descriptors or memory by sending a byte now and then, by reading
//! nothing, or by going away in the midst.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use proxy_core::Upstream;
use telemetry::{Outcome, ProxyCounter};

use crate::support::{Counted, Duplex, PATIENCE, Served, TLS13, Tls, eventually, pattern, read_all, reset};

/// Sends a byte now and then, whatever becomes of it, while `watch` runs.
fn while_dripping(mut tls: Tls, watch: impl FnOnce()) {
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let _ = tls.write_all(b".").and_then(|()| tls.flush());
                thread::sleep(Duration::from_millis(20));
            }
        });
        // Also when it panics, or the scope would wait for ever.
        let _ends = Ends(&is_done);
        watch();
    });
}

struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Sends until the proxy takes nothing more, since its upstream does not.
fn fill(tls: &mut Tls) {
    tls.sock.set_nonblocking(true).unwrap();
    let mut refused = 0;
    eventually("the client cannot send any more", || {
        match tls.write(&[1; 10_000]).and_then(|_| tls.flush()) {
            Ok(()) => refused = 0,
            Err(_) => refused += 1,
        }
        refused > 100
    });
}

fn read_one_byte(stream: &mut dyn Duplex, _: &AtomicU64) {
    let _ = stream.read(&mut [0]);
    thread::sleep(PATIENCE * 3);
}

#[test]
fn a_reset_is_noticed_while_the_upstream_takes_nothing() {
    for served in [Served::unix(read_one_byte), Served::tcp(read_one_byte)] {
        let mut proxy = Counted::start(&served.upstream);
        let mut tls = proxy.connect(&proxy.client(&TLS13));
        tls.write_all(b"go").unwrap();
        fill(&mut tls);
        reset(&tls.sock);
        drop(tls);
        proxy.expect(ProxyCounter::Closed, 1);
        assert_eq!(proxy.count(ProxyCounter::ClientBroken), 1);
    }
}

#[test]
fn what_a_client_sent_whole_before_a_reset_arrives() {
    static MAY_READ: AtomicBool = AtomicBool::new(false);
    fn read_when_told(stream: &mut dyn Duplex, received: &AtomicU64) {
        while !MAY_READ.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
        let mut buffer = [0; 10_000];
        while let Ok(n @ 1..) = stream.read(&mut buffer) {
            received.fetch_add(n as u64, Ordering::Relaxed);
        }
    }
    let served = Served::unix(read_when_told);
    let mut proxy = Counted::start(&served.upstream);
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    let piece = pattern(8 << 10);
    let mut sent = 0;
    // Until a part of it waits in the proxy, and no more than it takes.
    while proxy.count(ProxyCounter::BytesIn) == sent {
        let before = proxy.count(ProxyCounter::WireIn);
        tls.write_all(&piece).unwrap();
        sent += piece.len() as u64;
        proxy.expect_at_least(ProxyCounter::WireIn, before + piece.len() as u64);
    }
    let before = proxy.count(ProxyCounter::WireIn);
    tls.conn.send_close_notify();
    tls.flush().unwrap();
    proxy.expect_at_least(ProxyCounter::WireIn, before + 1);
    reset(&tls.sock);
    drop(tls);
    MAY_READ.store(true, Ordering::Relaxed);
    eventually("all of it has arrived", || served.received.load(Ordering::Relaxed) == sent);
    proxy.expect(ProxyCounter::Closed, 1);
}

fn end_and_read_on(stream: &mut dyn Duplex, _: &AtomicU64) {
    stream.end();
    let mut buffer = [0; 100];
    while let Ok(1..) = stream.read(&mut buffer) {}
}

#[test]
fn a_byte_now_and_then_does_not_prolong_the_half_closed_timeout() {
    let served = Served::unix(end_and_read_on);
    let mut proxy = Counted::start_with(&served.upstream, |config| {
        config.limits.half_closed_timeout = Duration::from_millis(500);
    });
    let tls = proxy.connect(&proxy.client(&TLS13));
    while_dripping(tls, || proxy.expect(ProxyCounter::Closed, 1));
    assert!(proxy.count(ProxyCounter::BytesIn) > 1, "the upstream took what was sent");
}

fn answer_and_leave(stream: &mut dyn Duplex, _: &AtomicU64) {
    let _ = stream.read_exact(&mut [0; 2]);
    let _ = stream.write_all(b"bye");
}

#[test]
fn a_client_whose_upstream_is_gone_for_good_is_let_go_at_once() {
    for served in [Served::unix(answer_and_leave), Served::tcp(answer_and_leave)] {
        let is_unix = matches!(served.upstream, Upstream::Unix(_));
        let mut proxy = Counted::start(&served.upstream);
        let mut tls = proxy.connect(&proxy.client(&TLS13));
        tls.write_all(b"go").unwrap();
        assert_eq!(read_all(&mut tls), (b"bye".to_vec(), true));
        if is_unix {
            // Such a socket tells it without being written to.
            proxy.expect(ProxyCounter::Closed, 1);
        } else {
            while_dripping(tls, || proxy.expect(ProxyCounter::Closed, 1));
        }
        let total = proxy.finish();
        assert!(total.connections.iter().all(|record| record.outcome == Outcome::Ended));
    }
}
