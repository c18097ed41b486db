//! Several upstreams: the choice between them, and what happens when some or all of them are gone.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use proxy_core::{Upstream, UpstreamChange};
use records::delta::NamedDelta as _;
use records::kinds::{ConnectionOutcome, UpstreamState};
use records::metrics::{ProxyCounter, UpstreamCounter, UpstreamLatency};
use socket2::{SockRef, Socket};

use crate::support::{
    TLS13, TestProxy, TestUpstream, Tls, echo, end, eventually, read_all, reserved_address, serve_echo,
};

/// Answers every connection with its name.
fn named(path: &Path, name: &'static [u8]) {
    let listener = UnixListener::bind(path).unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || {
                while stream.read(&mut [0; 1]).is_ok_and(|n| n > 0) {
                    stream.write_all(name).unwrap();
                }
            });
        }
    });
}

fn ask(tls: &mut Tls) -> char {
    tls.write_all(b"?").unwrap();
    let mut name = [0];
    tls.read_exact(&mut name).unwrap();
    name[0].into()
}

#[test]
fn connections_go_to_the_upstream_that_has_the_least() {
    let dir = tempfile::tempdir().unwrap();
    let paths = [dir.path().join("a"), dir.path().join("b")];
    named(&paths[0], b"a");
    named(&paths[1], b"b");
    let [first, second] = paths.map(Upstream::unix);
    let proxy = TestProxy::start_with(&first, |config| config.upstreams.push(second));
    let config = proxy.client(&TLS13);
    let mut held: Vec<_> = (0..20).map(|_| proxy.connect(&config)).collect();
    // Over both workers together they are even.
    let names: Vec<_> = held.iter_mut().map(ask).collect();
    assert_eq!(names.iter().filter(|&&name| name == 'a').count(), 10);
    // Those of one upstream leave; the next ones all go there.
    for (tls, _) in held.iter_mut().zip(&names).filter(|(_, name)| **name == 'a') {
        end(tls);
        read_all(tls);
    }
    eventually("it is known that they have left", || {
        let mut tls = proxy.connect(&config);
        ask(&mut tls) == 'a'
    });
    let mut next: Vec<_> = (0..5).map(|_| proxy.connect(&config)).collect();
    assert!(next.iter_mut().all(|tls| ask(tls) == 'a'));
}

#[test]
fn a_drained_upstream_keeps_its_connections_and_gets_no_new_ones() {
    let served = TestUpstream::unix(serve_echo);
    let mut proxy = TestProxy::start(&served.upstream);
    let config = proxy.client(&TLS13);
    let mut open = proxy.connect(&config);
    echo(&mut open, b"hello");
    let name = served.upstream.to_string();
    assert_eq!(proxy.proxy.change_upstream(&name, UpstreamChange::Drain), Ok(true));
    let mut turned_away = proxy.connect(&config);
    assert_eq!(read_all(&mut turned_away), (Vec::new(), true));
    proxy.expect(ProxyCounter::UpstreamConnectsFailed, 1);
    echo(&mut open, b"still here");
    assert_eq!(proxy.proxy.change_upstream(&name, UpstreamChange::Return), Ok(true));
    echo(&mut proxy.connect(&config), b"hello");
}

#[test]
fn where_one_upstream_is_gone_another_is_tried_and_no_client_notices() {
    let served = TestUpstream::unix(serve_echo);
    let (reserved, gone) = reserved_address();
    let mut proxy = TestProxy::start_with(&gone.to_string().parse().unwrap(), |config| {
        config.upstreams.push(Upstream::unix("/nonexistent/app.sock"));
        config.upstreams.push(served.upstream.clone());
    });
    let config = proxy.client(&TLS13);
    for _ in 0..20 {
        let mut tls = proxy.connect(&config);
        echo(&mut tls, b"hello");
        end(&mut tls);
        read_all(&mut tls);
    }
    proxy.expect(ProxyCounter::UpstreamConnects, 20);
    assert_eq!(proxy.count(ProxyCounter::UpstreamConnectsFailed), 0);
    let said = proxy.proxy.take_notices();
    assert_eq!(said.len(), 2, "once an upstream and episode: {said:?}");

    // Once it is back it is found without a restart.
    reserved.listen(128).unwrap();
    let back = TcpListener::from(reserved);
    thread::spawn(move || {
        for stream in back.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(
                move || while stream.write_all(b"back").is_ok() && stream.read(&mut [0; 9]).is_ok() {},
            );
        }
    });
    eventually("the upstream that is back is used", || {
        let mut tls = proxy.connect(&config);
        tls.write_all(b"hello").unwrap();
        let mut answer = [0; 4];
        tls.read_exact(&mut answer).unwrap();
        &answer == b"back"
    });
}

#[test]
fn each_upstream_has_its_own_counts_and_state_and_they_add_up() {
    let served = TestUpstream::unix(serve_echo);
    let mut proxy = TestProxy::start_with(&Upstream::unix("/nonexistent/app.sock"), |config| {
        config.workers = 1.try_into().unwrap();
        config.upstreams.push(served.upstream.clone());
    });
    let config = proxy.client(&TLS13);
    for _ in 0..10 {
        let mut tls = proxy.connect(&config);
        echo(&mut tls, b"hello");
        echo(&mut tls, b"again");
        end(&mut tls);
        read_all(&mut tls);
    }
    proxy.expect(ProxyCounter::Closed, 10);
    let total = proxy.finish();
    let [gone, there] = total.upstreams.all() else { panic!("two upstreams") };
    let status = gone.status.as_ref().unwrap();
    assert_eq!(status.state, UpstreamState::Down);
    assert!(status.reason.contains("No such file"), "{}", status.reason);
    assert!(gone.counters[UpstreamCounter::Refused] > 0, "{:?}", gone.counters);
    assert_eq!((gone.counters[UpstreamCounter::Connections], gone.open_change), (0, 0));

    assert_eq!(there.status.as_ref().unwrap().state, UpstreamState::Up);
    for (of_upstream, of_proxy) in [
        (UpstreamCounter::Connections, ProxyCounter::UpstreamConnects),
        (UpstreamCounter::Exchanges, ProxyCounter::Exchanges),
        (UpstreamCounter::BytesIn, ProxyCounter::BytesIn),
        (UpstreamCounter::BytesOut, ProxyCounter::BytesOut),
    ] {
        assert_eq!(there.counters[of_upstream], total.counters[of_proxy], "{of_upstream:?}");
    }
    assert_eq!(there.counters[UpstreamCounter::BytesIn], 100);
    assert_eq!(there.open_change, 0, "all of them have ended");
    let samples = UpstreamLatency::FirstByte;
    assert_eq!(there.latency(samples).count(), there.counters[UpstreamCounter::Exchanges]);
}

/// An address at which connections are neither accepted nor refused, as on a host that is gone. Linux drops what
/// comes when the backlog is full.
fn black_hole() -> (Socket, Vec<std::net::TcpStream>, SocketAddr) {
    let (socket, addr) = reserved_address();
    socket.listen(0).unwrap();
    let mut fillers = Vec::new();
    while let Ok(filler) = std::net::TcpStream::connect_timeout(&addr, Duration::from_millis(200)) {
        fillers.push(filler);
        assert!(fillers.len() < 10, "the backlog never fills");
    }
    (socket, fillers, addr)
}

#[test]
fn an_upstream_that_does_not_answer_leaves_time_for_the_others() {
    let served = TestUpstream::unix(serve_echo);
    let (_socket, _fillers, hole) = black_hole();
    let mut proxy = TestProxy::start_with(&hole.to_string().parse().unwrap(), |config| {
        config.workers = 1.try_into().unwrap();
        config.upstreams.push(served.upstream.clone());
        config.limits.connect_timeout = Duration::from_secs(1);
    });
    let config = proxy.client(&TLS13);
    for _ in 0..10 {
        let mut tls = proxy.connect(&config);
        echo(&mut tls, b"hello");
    }
    proxy.expect(ProxyCounter::UpstreamConnects, 10);
    assert_eq!(proxy.proxy.take_notices().len(), 1);
}

#[test]
fn where_no_upstream_answers_clients_are_turned_away_within_a_second() {
    let (_socket, fillers, hole) = black_hole();
    let mut proxy = TestProxy::start_with(&hole.to_string().parse().unwrap(), |config| {
        config.workers = 1.try_into().unwrap();
        config.limits.connect_timeout = Duration::from_secs(2);
    });
    let config = proxy.client(&TLS13);
    // The first one finds out; while it is known, nobody waits as long.
    let mut first = proxy.connect(&config);
    assert_eq!(read_all(&mut first), (Vec::new(), true));
    let began_at = Instant::now();
    let mut second = proxy.connect(&config);
    assert_eq!(read_all(&mut second), (Vec::new(), true));
    assert!(began_at.elapsed() < Duration::from_secs(1), "{:?}", began_at.elapsed());
    proxy.expect(ProxyCounter::UpstreamConnectsFailed, 2);
    drop(fillers);
    assert!(
        proxy.finish().connections.iter().all(|record| record.outcome == ConnectionOutcome::UpstreamConnect)
    );
}

#[test]
fn upstreams_that_restart_lose_no_connection_while_one_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let paths = [dir.path().join("a"), dir.path().join("b")];
    let [first, second] = paths.clone().map(Upstream::unix);
    let is_over = Arc::new(AtomicBool::new(false));
    let restarting: Vec<_> = paths
        .into_iter()
        .enumerate()
        .map(|(i, path)| {
            let is_over = Arc::clone(&is_over);
            let mut listener = Some(UnixListener::bind(&path).unwrap());
            thread::spawn(move || {
                let began_at = Instant::now();
                while !is_over.load(Ordering::Relaxed) {
                    // Each is gone for half of the time, and never both. It takes what waits before it goes.
                    let now_ms = began_at.elapsed().as_millis();
                    let wanted = (now_ms / 100 % 2) as usize == i || now_ms % 100 < 30;
                    match (&listener, wanted) {
                        (None, true) => listener = Some(UnixListener::bind(&path).unwrap()),
                        (Some(_), false) => {
                            std::fs::remove_file(&path).unwrap();
                            let last = listener.take().unwrap();
                            // Connections that have yet to begin are refused from here on.
                            SockRef::from(&last).shutdown(Shutdown::Read).unwrap();
                            last.set_nonblocking(true).unwrap();
                            last.incoming().take_while(Result::is_ok).flatten().for_each(serve);
                        }
                        (Some(listener), true) => {
                            listener.set_nonblocking(true).unwrap();
                            listener.incoming().take_while(Result::is_ok).flatten().for_each(serve);
                        }
                        (None, false) => {}
                    }
                    thread::sleep(Duration::from_millis(1));
                }
            })
        })
        .collect();
    let proxy = TestProxy::start_with(&first, |config| config.upstreams.push(second));
    let config = proxy.client(&TLS13);
    let began_at = Instant::now();
    let mut served = 0;
    while began_at.elapsed() < Duration::from_millis(1500) {
        let mut tls = proxy.connect(&config);
        echo(&mut tls, b"hello");
        end(&mut tls);
        read_all(&mut tls);
        served += 1;
    }
    is_over.store(true, Ordering::Relaxed);
    for thread in restarting {
        thread.join().unwrap();
    }
    assert_eq!(proxy.finish().counters[ProxyCounter::UpstreamConnects], served);
}

fn serve(mut stream: std::os::unix::net::UnixStream) {
    thread::spawn(move || {
        stream.set_nonblocking(false).unwrap();
        serve_echo(&mut stream, &AtomicU64::new(0));
    });
}

#[test]
fn a_clients_connections_go_to_the_same_upstream_until_it_is_drained() {
    let dir = tempfile::tempdir().unwrap();
    let paths = [dir.path().join("a"), dir.path().join("b")];
    named(&paths[0], b"a");
    named(&paths[1], b"b");
    let [first, second] = paths.map(Upstream::unix);
    let proxy = TestProxy::start_with(&first, |config| {
        config.upstreams.push(second);
        config.balance = "hash-client".parse().unwrap();
    });
    let config = proxy.client(&TLS13);
    let mut held: Vec<_> = (0..10).map(|_| proxy.connect(&config)).collect();
    let names: Vec<_> = held.iter_mut().map(ask).collect();
    assert!(names.iter().all(|name| *name == names[0]), "{names:?}");
    let upstream = format!("unix:{}", dir.path().join(names[0].to_string()).display());
    proxy.proxy.change_upstream(&upstream, UpstreamChange::Drain).unwrap();
    assert_ne!(ask(&mut proxy.connect(&config)), names[0]);
    proxy.proxy.change_upstream(&upstream, UpstreamChange::Return).unwrap();
    assert_eq!(ask(&mut proxy.connect(&config)), names[0]);
}
