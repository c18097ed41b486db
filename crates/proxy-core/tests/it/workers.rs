//! Workers: more and fewer of them while the proxy runs, and one inherited socket for all of them.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use proxy_core::{Certificate, Proxy, ProxyConfig};
use records::delta::ProxyDelta;
use records::metrics::{ProxyCounter, TlsLatency};
use records::setting::{Applies, Value};
use records::values::{WorkerCounts, WorkerList};

use crate::support::{
    PATIENCE, TLS13, TestProxy, TestUpstream, echo, end, eventually, read_all, serve_echo, tcp_to, tls_over,
};

fn set_workers(proxy: &Proxy, n: u32) {
    proxy.set("proxy.workers", &Value::Number(n.into())).unwrap();
}

/// Connects, is served, and ends, once.
fn visit(proxy: &TestProxy, config: &std::sync::Arc<rustls::ClientConfig>) {
    let mut tls = proxy.connect(config);
    echo(&mut tls, b"hello");
    end(&mut tls);
    assert_eq!(read_all(&mut tls), (Vec::new(), true));
}

#[test]
fn each_worker_counts_its_own_connections_and_handshakes() {
    let served = TestUpstream::unix(serve_echo);
    let mut proxy = TestProxy::start_with(&served.upstream, |config| config.workers = 3.try_into().unwrap());
    let config = proxy.client(&TLS13);
    (0..8).for_each(|_| visit(&proxy, &config));
    let mut held: Vec<_> = (0..24).map(|_| proxy.connect(&config)).collect();
    for tls in &mut held {
        echo(tls, b"hello");
    }
    proxy.expect(ProxyCounter::Closed, 8);
    let mut workers = WorkerList::default();
    proxy.total.workers.iter().for_each(|worker| workers.add(worker));
    let numbers: Vec<_> = workers.iter().map(|worker| worker.number).collect();
    assert_eq!(numbers, [0, 1, 2]);
    assert_eq!(workers.iter().map(|worker| worker.open).sum::<i64>(), 24);
    let delays = |worker: &WorkerCounts| (worker.handshakes() > 0, worker.loop_delay_us_max > 0);
    assert!(workers.iter().map(delays).all(|(shook_hands, waited)| shook_hands == waited), "{workers:?}");
    let of_all = [TlsLatency::WorkerFull, TlsLatency::WorkerResumed]
        .map(|class| proxy.total.tls.latencies[class].max_ns().div_ceil(1_000));
    assert_eq!(workers.iter().map(|worker| worker.loop_delay_us_max).max(), of_all.into_iter().max());
    drop(held);
    proxy.finish();
}

#[test]
fn no_connection_is_lost_while_workers_come_and_go() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start(&served.upstream);
    let config = proxy.client(&TLS13);
    let is_over = AtomicBool::new(false);
    let visits: usize = thread::scope(|scope| {
        let visitors: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut visits = 0;
                    while !is_over.load(Ordering::Relaxed) {
                        visit(&proxy, &config);
                        visits += 1;
                    }
                    visits
                })
            })
            .collect();
        for n in [4, 1, 3, 2, 5, 1, 1, 6, 2] {
            set_workers(&proxy.proxy, n);
            thread::sleep(Duration::from_millis(150));
        }
        is_over.store(true, Ordering::Relaxed);
        visitors.into_iter().map(|visitor| visitor.join().unwrap()).sum()
    });
    let total = proxy.finish();
    assert_eq!(total.counters[ProxyCounter::Accepted], visits as u64);
    assert_eq!(total.counters[ProxyCounter::BytesIn], 5 * visits as u64);
}

#[test]
fn a_worker_that_is_sent_away_serves_what_it_has() {
    let served = TestUpstream::unix(serve_echo);
    let mut proxy = TestProxy::start_with(&served.upstream, |config| config.workers = 4.try_into().unwrap());
    let config = proxy.client(&TLS13);
    let mut held: Vec<_> = (0..24).map(|_| proxy.connect(&config)).collect();
    for tls in &mut held {
        echo(tls, b"hello");
    }
    set_workers(&proxy.proxy, 1);
    let setting = proxy.proxy.settings().into_iter().find(|setting| setting.name == "proxy.workers").unwrap();
    assert_eq!((setting.value, setting.applies), (Value::Number(1.0), Applies::Live));
    for tls in &mut held {
        echo(tls, b"still served");
        end(tls);
        assert_eq!(read_all(tls), (Vec::new(), true));
    }
    visit(&proxy, &config);
    proxy.expect(ProxyCounter::Closed, 25);
    let mut ids: Vec<_> = proxy.finish().connections.iter().map(|record| record.conn).collect();
    let n = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), n, "no two connections have one number");
}

#[test]
fn workers_that_were_added_serve_too() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start_with(&served.upstream, |config| config.workers = 1.try_into().unwrap());
    let config = proxy.client(&TLS13);
    set_workers(&proxy.proxy, 3);
    for refused in [0.0, 257.0] {
        proxy.proxy.set("proxy.workers", &Value::Number(refused)).unwrap_err();
    }
    // The kernel spreads them by chance.
    for _ in 0..60 {
        visit(&proxy, &config);
    }
    assert_eq!(proxy.finish().counters[ProxyCounter::Closed], 60);
}

#[test]
fn workers_run_on_the_cores_that_are_given() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start_with(&served.upstream, |config| config.cpus = Some("0".parse().unwrap()));
    visit(&proxy, &proxy.client(&TLS13));
    assert!(proxy.proxy.take_notices().is_empty());
    proxy.finish();
    let config = ProxyConfig {
        cpus: Some("1023".parse().unwrap()),
        ..ProxyConfig::new(
            vec!["127.0.0.1:0".parse().unwrap()],
            served.upstream,
            Certificate::generate(&[]).unwrap(),
        )
    };
    let error = Proxy::start(config).unwrap_err().to_string();
    assert!(error.contains("core 1023"), "{error}");
}

/// A proxy on `socket`, as one that a service manager has handed over.
fn inheriting(served: &TestUpstream, socket: &TcpListener) -> TestProxy {
    let certificate = Certificate::generate(&[]).unwrap();
    let leaf = certificate.leaf_der().to_vec();
    let mut config = ProxyConfig::new(Vec::new(), served.upstream.clone(), certificate);
    config.workers = 3.try_into().unwrap();
    let bound = Proxy::bind_on(config, vec![socket.try_clone().unwrap()].into()).unwrap();
    TestProxy { proxy: bound.start().unwrap(), total: ProxyDelta::default(), certificate: leaf }
}

#[test]
fn an_inherited_socket_serves_all_workers_and_outlives_the_proxy() {
    let served = TestUpstream::unix(serve_echo);
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = socket.local_addr().unwrap();
    let first = inheriting(&served, &socket);
    assert_eq!(first.proxy.local_addrs(), [addr]);
    let config = first.client(&TLS13);
    let mut held: Vec<_> = (0..20).map(|_| first.connect(&config)).collect();
    for tls in &mut held {
        echo(tls, b"hello");
    }
    for n in [1, 4, 2] {
        set_workers(&first.proxy, n);
        visit(&first, &config);
    }
    // What comes during the drain waits for the next proxy.
    first.proxy.drain();
    eventually("the proxy accepts no more", || {
        let probe = TcpStream::connect(addr).unwrap();
        probe.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        let before = Instant::now();
        // Of a connection that was accepted the end would be noticed; that of one that waits is not.
        let _ = (&probe).read(&mut [0; 1]);
        before.elapsed() >= Duration::from_millis(50)
    });
    let waiting = tcp_to(addr);
    for tls in &mut held {
        echo(tls, b"still served");
        end(tls);
        read_all(tls);
    }
    first.finish();
    let second = inheriting(&served, &socket);
    let mut tls = tls_over(waiting, &second.client(&TLS13));
    echo(&mut tls, b"handed on");
    end(&mut tls);
    read_all(&mut tls);
    second.proxy.drain();
    assert!(second.proxy.wait(PATIENCE));
}
