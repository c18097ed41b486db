//! Clients that hold on to a connection: nobody keeps descriptors or memory by sending a byte now and then, by reading
//! nothing, or by going away in the midst.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use proxy_core::UpstreamAddr;
use records::kinds::ConnectionOutcome;
use records::metrics::ProxyCounter;
use records::setting::Value;

use crate::support::{
    PATIENCE, TLS13, TestProxy, TestStream, TestUpstream, Tls, echo, eventually, pattern, read_all, reset,
    serve_echo,
};

/// Sends a byte now and then, whatever becomes of it, while `watch` runs.
fn while_dripping(tls: &mut Tls, watch: impl FnOnce()) {
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                let _ = tls.write_all(b".").and_then(|()| tls.flush());
                thread::sleep(Duration::from_millis(20));
            }
        });
        // Also when it panics, or the scope would wait for ever.
        let _ends = StopOnDrop(&is_done);
        watch();
    });
}

struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
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

fn read_one_byte(stream: &mut dyn TestStream, _: &AtomicU64) {
    let _ = stream.read(&mut [0]);
    thread::sleep(PATIENCE * 3);
}

#[test]
fn a_reset_is_noticed_while_the_upstream_takes_nothing() {
    for served in [TestUpstream::unix(read_one_byte), TestUpstream::tcp(read_one_byte)] {
        let mut proxy = TestProxy::start(&served.upstream);
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
    fn read_when_told(stream: &mut dyn TestStream, received: &AtomicU64) {
        while !MAY_READ.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
        let mut buffer = [0; 10_000];
        while let Ok(n @ 1..) = stream.read(&mut buffer) {
            received.fetch_add(n as u64, Ordering::Relaxed);
        }
    }
    let served = TestUpstream::unix(read_when_told);
    let mut proxy = TestProxy::start(&served.upstream);
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

fn end_and_read_on(stream: &mut dyn TestStream, _: &AtomicU64) {
    stream.end();
    let mut buffer = [0; 100];
    while let Ok(1..) = stream.read(&mut buffer) {}
}

#[test]
fn a_byte_now_and_then_does_not_prolong_the_half_closed_timeout() {
    let served = TestUpstream::unix(end_and_read_on);
    let mut proxy = TestProxy::start_with(&served.upstream, |config| {
        config.limits.half_closed_timeout = Duration::from_millis(500);
    });
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    while_dripping(&mut tls, || proxy.expect(ProxyCounter::Closed, 1));
    assert!(proxy.count(ProxyCounter::BytesIn) > 1, "the upstream took what was sent");
}

#[test]
fn a_client_that_does_not_end_after_its_upstream_is_let_go() {
    let served = TestUpstream::unix(|stream, _| stream.end());
    let mut proxy = TestProxy::start_with(&served.upstream, |config| {
        config.limits.half_closed_timeout = Duration::from_millis(100);
    });
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    assert_eq!(read_all(&mut tls), (Vec::new(), true));
    proxy.expect(ProxyCounter::Closed, 1);
    assert_eq!(proxy.count(ProxyCounter::IdleTimeouts), 0, "the upstream has ended it, and well");
}

fn answer_and_leave(stream: &mut dyn TestStream, _: &AtomicU64) {
    let _ = stream.read_exact(&mut [0; 2]);
    let _ = stream.write_all(b"bye");
}

#[test]
fn a_client_whose_upstream_is_gone_for_good_is_let_go_at_once() {
    for served in [TestUpstream::unix(answer_and_leave), TestUpstream::tcp(answer_and_leave)] {
        let is_unix = matches!(served.upstream.addr, UpstreamAddr::Unix(_));
        let mut proxy = TestProxy::start(&served.upstream);
        let mut tls = proxy.connect(&proxy.client(&TLS13));
        tls.write_all(b"go").unwrap();
        assert_eq!(read_all(&mut tls), (b"bye".to_vec(), true));
        if is_unix {
            // Such a socket tells it without being written to.
            proxy.expect(ProxyCounter::Closed, 1);
        } else {
            while_dripping(&mut tls, || proxy.expect(ProxyCounter::Closed, 1));
        }
        let total = proxy.finish();
        assert!(total.connections.iter().all(|record| record.outcome == ConnectionOutcome::Ended));
    }
}

fn serve_endlessly(stream: &mut dyn TestStream, _: &AtomicU64) {
    let _ = stream.read(&mut [0]);
    let bytes = vec![1; 100_000];
    while stream.write_all(&bytes).is_ok() {}
}

#[test]
fn a_client_that_reads_nothing_is_cut_whatever_it_sends() {
    for served in [TestUpstream::unix(serve_endlessly), TestUpstream::tcp(serve_endlessly)] {
        let mut proxy = TestProxy::start_with(&served.upstream, |config| {
            config.limits.send_timeout = Duration::from_millis(500);
        });
        let mut tls = proxy.connect(&proxy.client(&TLS13));
        tls.write_all(b"go").unwrap();
        while_dripping(&mut tls, || proxy.expect(ProxyCounter::Closed, 1));
        assert!(tls.read_to_end(&mut Vec::new()).is_err(), "a truncated answer must not look whole");
        let total = proxy.finish();
        assert_eq!(total.counters[ProxyCounter::SendTimeouts], 1);
        assert_eq!(total.connections[0].outcome, ConnectionOutcome::SendTimeout);
    }
}

#[test]
fn a_slow_client_is_served_as_long_as_it_reads() {
    const SEND_TIMEOUT: Duration = Duration::from_secs(2);
    let served = TestUpstream::unix(serve_endlessly);
    let mut proxy =
        TestProxy::start_with(&served.upstream, |config| config.limits.send_timeout = SEND_TIMEOUT);
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    tls.write_all(b"go").unwrap();
    let (began_at, mut buffer) = (Instant::now(), vec![0; 100_000]);
    while began_at.elapsed() < SEND_TIMEOUT * 2 {
        tls.read_exact(&mut buffer).unwrap();
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(proxy.count(ProxyCounter::SendTimeouts), 0);
    // Lowered while it runs, it acts on what is open.
    proxy.proxy.set("proxy.send-timeout", &Value::Number(0.2)).unwrap();
    proxy.expect(ProxyCounter::SendTimeouts, 1);
}

#[test]
fn a_client_for_which_nothing_waits_may_be_silent() {
    const SEND_TIMEOUT: Duration = Duration::from_millis(100);
    let served = TestUpstream::unix(serve_echo);
    let mut proxy =
        TestProxy::start_with(&served.upstream, |config| config.limits.send_timeout = SEND_TIMEOUT);
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    for _ in 0..3 {
        echo(&mut tls, &pattern(300_000));
        thread::sleep(SEND_TIMEOUT * 3);
    }
    assert_eq!(proxy.count(ProxyCounter::SendTimeouts), 0);
}

#[test]
fn at_the_bound_those_that_have_waited_longest_are_cut_and_no_others() {
    const CLIENTS: usize = 40;
    let served = TestUpstream::unix(serve_endlessly);
    let mut proxy = TestProxy::start_with(&served.upstream, |config| {
        config.workers = 1.try_into().unwrap();
        config.limits.pending_bytes_max = 1 << 20;
    });
    let config = proxy.client(&TLS13);
    let mut reading = proxy.connect(&config);
    reading.write_all(b"go").unwrap();
    let mut stalled = Vec::new();
    for _ in 0..CLIENTS {
        let mut tls = proxy.connect(&config);
        tls.write_all(b"go").unwrap();
        stalled.push(tls);
        reading.read_exact(&mut vec![0; 1 << 20]).unwrap();
        // One after the other, so that it is known who has waited longest.
        let (mut before, mut stood_still) = (0, 0);
        eventually("its bytes wait", || {
            let now = proxy.count(ProxyCounter::WireOut);
            stood_still = if now == before { stood_still + 1 } else { 0 };
            before = now;
            stood_still == 5
        });
    }
    let cut = proxy.count(ProxyCounter::PendingCuts);
    assert!((10..CLIENTS as u64 - 5).contains(&cut), "{cut}");
    let is_cut = |tls: &Tls| matches!(tls.sock.take_error(), Ok(Some(_)));
    let first_left = stalled.iter().position(|tls| !is_cut(tls)).unwrap();
    assert_eq!(first_left as u64, cut, "the first ones are cut");
    assert!(!stalled[first_left..].iter().any(is_cut), "and no others");
    reading.read_exact(&mut vec![0; 10 << 20]).unwrap();
    let notices = proxy.proxy.take_notices();
    assert!(notices.iter().any(|notice| notice.text.contains(" hold 1 MiB ")), "{notices:?}");
    drop((reading, stalled));
    let total = proxy.finish();
    let outcomes =
        total.connections.iter().filter(|record| record.outcome == ConnectionOutcome::PendingBound);
    // Another one may have been cut while `reading` was not read for a moment.
    assert_eq!(outcomes.count() as u64, total.counters[ProxyCounter::PendingCuts]);
}
