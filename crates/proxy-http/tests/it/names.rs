//! Upstreams with a name, whose addresses change while connections are kept.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use proxy_core::{Resolver, Upstream};
use records::metrics::HttpCounter;

use crate::http2_server::{Behaviour, Http2Upstream};
use crate::support::{TestHttpProxy, eventually};
use crate::upstream::{HELLO, ScriptedUpstream, nowhere};

/// The addresses of every name.
#[derive(Clone)]
struct NameService(Arc<Mutex<Vec<SocketAddr>>>);

impl NameService {
    fn with(upstreams: &[&Upstream]) -> Self {
        let names = Self(Arc::default());
        names.set(upstreams);
        names
    }

    fn set(&self, upstreams: &[&Upstream]) {
        let addr = |upstream: &&Upstream| upstream.to_string().parse().unwrap();
        *self.0.lock().unwrap() = upstreams.iter().map(addr).collect();
    }

    /// A proxy in front of `app:80`.
    fn proxy(&self) -> TestHttpProxy {
        self.proxy_to("app:80")
    }

    fn proxy_to(&self, upstream: &str) -> TestHttpProxy {
        let addrs = Arc::clone(&self.0);
        TestHttpProxy::start_with(&upstream.parse().unwrap(), |config, _| {
            config.resolver = Resolver::new(move |_, _| Ok(addrs.lock().unwrap().clone()));
        })
    }
}

fn answering() -> ScriptedUpstream {
    ScriptedUpstream::tcp(|mut peer| {
        while peer.head().is_some() {
            peer.send(HELLO);
        }
    })
}

#[test]
fn kept_connections_to_a_vanished_address_are_closed() {
    let (begun, has_begun) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel();
    let may_go_on = Mutex::new(may_go_on);
    let old = ScriptedUpstream::tcp(move |mut peer| {
        while let Some(head) = peer.head() {
            if head.contains("/slow") {
                begun.send(()).unwrap();
                may_go_on.lock().unwrap().recv().unwrap();
            }
            peer.send(HELLO);
        }
    });
    let new = answering();
    let names = NameService::with(&[&old.upstream]);
    let mut proxy = names.proxy();
    let mut slow = proxy.connect();
    slow.send("GET /slow HTTP/1.1\r\nhost: a\r\n\r\n");
    has_begun.recv().unwrap();
    assert_eq!(proxy.get("/").status, 200);
    let gauges = proxy.collect().gauges;
    assert_eq!((gauges.upstream_open, gauges.upstream_idle), (2, 1));

    names.set(&[&new.upstream]);
    proxy.proxy.resolve_upstreams();
    eventually("the idle connection is closed", || proxy.collect().gauges.upstream_open == 1);
    assert_eq!(proxy.get("/").status, 200);
    assert_eq!(new.connections(), 1);
    // The request in flight ends, and its connection with it.
    go_on.send(()).unwrap();
    assert_eq!(slow.answer().text(), "hello");
    eventually("its connection is closed", || proxy.collect().gauges.upstream_open == 1);
    assert_eq!((proxy.get("/").status, old.connections(), new.connections()), (200, 2, 1));
    drop(slow);
    proxy.finish();
}

#[test]
fn a_connection_that_opens_while_its_address_vanishes_serves_one_request() {
    let behaviour = Behaviour { alpn: Some("h2"), ..Behaviour::default() };
    let start = || Http2Upstream::start_with(behaviour, |request| request.respond(&[], "hello", None));
    let (old, new) = (start(), start());
    let addr = |upstream: &Upstream| upstream.to_string().replace("h2://", "");
    // The TLS handshake with the old address waits.
    let slow = TcpListener::bind("127.0.0.1:0").unwrap();
    let slow_addr = slow.local_addr().unwrap().to_string();
    let (opened, is_opening) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let old_addr = addr(&old.upstream);
    thread::spawn(move || {
        let near = slow.accept().unwrap().0;
        opened.send(()).unwrap();
        may_go_on.recv().unwrap();
        let far = TcpStream::connect(old_addr).unwrap();
        let (mut read, mut write) = (near.try_clone().unwrap(), far.try_clone().unwrap());
        thread::spawn(move || std::io::copy(&mut read, &mut write));
        std::io::copy(&mut &far, &mut &near)
    });
    let names = NameService::with(&[&slow_addr.parse().unwrap()]);
    let proxy = names.proxy_to("h2://app:443");
    let mut first = proxy.connect();
    first.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    is_opening.recv().unwrap();
    names.set(&[&addr(&new.upstream).parse().unwrap()]);
    proxy.proxy.resolve_upstreams();
    eventually("the name has moved", || proxy.said().contains("has the address"));
    go_on.send(()).unwrap();
    assert_eq!(first.answer().status, 200);
    assert_eq!(proxy.get("/").status, 200);
    assert_eq!((old.connections(), new.connections()), (1, 1));
    proxy.finish();
}

#[test]
fn changes_under_load_fail_no_request() {
    let upstreams = [0; 3].map(|_| answering());
    let [a, b, c] = [0, 1, 2].map(|i: usize| &upstreams[i].upstream);
    let names = NameService::with(&[a]);
    let proxy = names.proxy();
    let is_over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (mut client, is_over) = (proxy.connect(), Arc::clone(&is_over));
            thread::spawn(move || {
                let mut answered = 0;
                while !is_over.load(Ordering::Relaxed) {
                    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
                    assert_eq!(client.answer().status, 200);
                    answered += 1;
                }
                answered
            })
        })
        .collect();
    for (present, added) in [(vec![b], 1), (vec![c], 2)] {
        names.set(&present);
        proxy.proxy.resolve_upstreams();
        eventually("the change is followed", || upstreams[added].connections() > 0);
    }
    is_over.store(true, Ordering::Relaxed);
    let answered: u64 = clients.into_iter().map(|client| client.join().unwrap()).sum();
    let http = proxy.finish().http.unwrap();
    assert_eq!(http.counters[HttpCounter::Status2xx], answered);
    assert_eq!(http.counters[HttpCounter::Requests], answered);
    assert_eq!(http.counters[HttpCounter::Retried], 0);
}

#[test]
fn an_address_that_refuses_costs_no_request() {
    let here = answering();
    let names = NameService::with(&[&nowhere(), &here.upstream]);
    let proxy = names.proxy();
    for _ in 0..10 {
        let close = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
        assert_eq!(proxy.ask(close).status, 200);
    }
    let delta = proxy.finish();
    assert_eq!(delta.counters[records::metrics::ProxyCounter::UpstreamConnectsFailed], 0);
}
