//! A proxy that replaces another one on the same sockets.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use proxy_core::{Certificate, ListenerSource, Proxy, ProxyConfig, TicketKeySnapshot};
use records::delta::ProxyDelta;
use records::metrics::ProxyCounter;
use rustls::SupportedProtocolVersion;
use zeroize::Zeroizing;

use crate::support::{PATIENCE, TLS12, TLS13, TestProxy, TestUpstream, echo, end, read_all, serve_echo};

/// A proxy with this certificate and so many workers, on a port of its own or the sockets of another.
fn start(
    served: &TestUpstream,
    certificate: &Certificate,
    workers: usize,
    former: Option<&Proxy>,
) -> TestProxy {
    let listen = vec!["127.0.0.1:0".parse().unwrap()];
    let mut config = ProxyConfig::new(listen, served.upstream.clone(), certificate.clone());
    config.workers = workers.try_into().unwrap();
    let source = former
        .map_or(ListenerSource::Bind, |former| ListenerSource::Predecessor(former.listeners().unwrap()));
    let mut bound = Proxy::bind_on(config, source).unwrap();
    if let Some(former) = former {
        let keys = former.hold_ticket_keys();
        let copy = Zeroizing::new(keys.as_bytes().to_vec());
        bound.restore_ticket_keys(&TicketKeySnapshot::parse(copy).unwrap()).unwrap();
    }
    let leaf = certificate.leaf_der().to_vec();
    TestProxy { proxy: bound.start().unwrap(), total: ProxyDelta::default(), certificate: leaf }
}

fn replace(version: &'static SupportedProtocolVersion, before: usize, after: usize) {
    let served = TestUpstream::unix(serve_echo);
    let certificate = Certificate::generate(&[]).unwrap();
    let first = start(&served, &certificate, before, None);
    let addr = first.addr();
    let mut held: Vec<_> = (0..12).map(|_| first.connect(&first.client(version))).collect();
    for tls in &mut held {
        echo(tls, b"hello");
    }
    let config = first.client(version);
    let is_over = AtomicBool::new(false);
    let (second, visits) = thread::scope(|scope| {
        let visitor = scope.spawn(|| {
            let mut visits = 0;
            while !is_over.load(Ordering::Relaxed) {
                let mut tls = crate::support::tls_over(crate::support::tcp_to(addr), &config);
                echo(&mut tls, b"hello");
                end(&mut tls);
                assert_eq!(read_all(&mut tls), (Vec::new(), true));
                visits += 1;
            }
            visits
        });
        thread::sleep(Duration::from_millis(200));
        let second = start(&served, &certificate, after, Some(&first.proxy));
        first.proxy.hand_over(vec![addr]);
        thread::sleep(Duration::from_millis(300));
        is_over.store(true, Ordering::Relaxed);
        (second, visitor.join().unwrap())
    });
    assert_eq!(second.addr(), addr);
    for tls in &mut held {
        echo(tls, b"still served");
        end(tls);
        assert_eq!(read_all(tls), (Vec::new(), true));
    }
    assert!(first.proxy.wait(PATIENCE));
    let (first, second) = (first.finish().counters, second.finish().counters);
    let both = |counter| first[counter] + second[counter];
    assert!(second[ProxyCounter::Accepted] > 0);
    assert_eq!(both(ProxyCounter::Accepted), visits + 12);
    assert_eq!(both(ProxyCounter::HandshakesFull), 1 + 12, "every further visit resumes, in both processes");
    assert_eq!(both(ProxyCounter::HandshakesResumed), visits - 1);
}

#[test]
fn no_connection_and_no_session_is_lost_with_tls13() {
    replace(&TLS13, 2, 2);
}

#[test]
fn no_connection_and_no_session_is_lost_with_tls12() {
    replace(&TLS12, 2, 2);
}

#[test]
fn the_next_proxy_may_have_fewer_workers_or_more() {
    replace(&TLS13, 4, 1);
    replace(&TLS13, 1, 4);
}
