//! TLS that is passed to an upstream unread, beside requests that are served.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};

use proxy_core::proxy_protocol::ProxyProtocol;
use proxy_core::{Certificate, NameRoute, ProxyConfig, Tls, Upstream};
use proxy_http::HttpConfig;
use records::kinds::ConnectionOutcome;
use records::metrics::{Dimension, HttpCounter, ProxyCounter, UpstreamCounter, UsageCounter};
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};

use crate::common;
use crate::support::{Http1Client, PATIENCE, TestHttpProxy, eventually};
use crate::upstream::{HELLO, ScriptedUpstream};

const PASSED: &str = "passed.test";
const GET: &str = "GET / HTTP/1.1\r\nhost: localhost\r\n\r\n";

fn pass(host: &str, upstream: &Upstream) -> NameRoute {
    NameRoute::new(host, vec![upstream.clone()]).unwrap().passed()
}

/// A proxy that passes one name to `passed`, and serves requests for others from `served`.
fn passing(
    passed: &Upstream,
    served: &ScriptedUpstream,
    change: impl FnOnce(&mut ProxyConfig, &mut HttpConfig),
) -> TestHttpProxy {
    TestHttpProxy::start_with(&served.upstream, |config, http| {
        config.routes = vec![pass(PASSED, passed)];
        change(config, http);
    })
}

/// A proxy as the upstream that terminates TLS.
struct Inner {
    proxy: TestHttpProxy,
    upstream: Upstream,
    certificate: Vec<u8>,
}

impl Inner {
    fn start(served: &ScriptedUpstream) -> Self {
        let certificate = Certificate::generate(&[PASSED.to_owned(), "*.example.test".to_owned()]).unwrap();
        let leaf = certificate.leaf_der().to_vec();
        let proxy = TestHttpProxy::start_with(&served.upstream, |config, _| {
            config.tls = Tls { settings: config.tls.settings.clone(), ..certificate.into() };
        });
        let upstream = proxy.addr().to_string().parse().unwrap();
        Self { proxy, upstream, certificate: leaf }
    }

    /// A client that trusts it and connects to another proxy.
    fn client_of(&self, outer: &TestHttpProxy, name: &'static str) -> Http1Client {
        let config = common::client_config(&self.certificate, &["http/1.1"]);
        let connection = ClientConnection::new(config, ServerName::try_from(name).unwrap()).unwrap();
        Http1Client { tls: StreamOwned::new(connection, tcp(outer)), received: Vec::new() }
    }
}

fn tcp(proxy: &TestHttpProxy) -> TcpStream {
    let socket = TcpStream::connect(proxy.addr()).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn ask(client: &mut Http1Client) -> u16 {
    client.send(GET);
    client.answer().status
}

#[test]
fn a_passed_name_goes_to_its_terminator_and_others_are_served() {
    let served = ScriptedUpstream::answering(HELLO);
    let inner = Inner::start(&served);
    let mut outer = passing(&inner.upstream, &served, |_, _| {});
    for _ in 0..3 {
        let mut client = inner.client_of(&outer, PASSED);
        assert_eq!([ask(&mut client), ask(&mut client)], [200; 2]);
    }
    let mut client = outer.connect();
    assert_eq!(ask(&mut client), 200);
    for host in [PASSED, "PASSED.test.:443"] {
        client.send(format!("GET / HTTP/1.1\r\nhost: {host}\r\n\r\n"));
        assert_eq!(client.answer().status, 421, "{host}");
    }
    drop(client);
    eventually("all are closed", || {
        outer.collect();
        outer.total.counters[ProxyCounter::Closed] == 4
    });
    let total = outer.finish();
    let count = |counter| total.counters[counter];
    assert_eq!((count(ProxyCounter::Passed), count(ProxyCounter::HandshakesFull)), (3, 1));
    assert_eq!(count(ProxyCounter::Accepted), 4);
    let http = total.http.as_ref().unwrap();
    assert_eq!((http.counters[HttpCounter::Requests], http.counters[HttpCounter::FailedMisdirected]), (3, 2));
    let rows = total.tls.usage.iter().filter(|row| row.dimension == Dimension::Name && &*row.value == PASSED);
    assert_eq!(rows.map(|row| row.counters[UsageCounter::Passed]).sum::<u64>(), 3);
    // The one of requests, then that of passed TLS.
    let [of_requests, of_passed] = total.upstreams.all() else { panic!("two upstreams") };
    assert_eq!(of_requests.counters[UpstreamCounter::Exchanges], 1);
    let of_passed = |counter| of_passed.counters[counter];
    assert_eq!((of_passed(UpstreamCounter::Connections), of_passed(UpstreamCounter::TlsFull)), (3, 3));
    assert_eq!(total.upstreams.all().iter().map(|upstream| upstream.open_change).sum::<i64>(), 0);
    let passed = total.connections.iter().filter(|record| record.sni == PASSED);
    assert!(passed.clone().all(|record| record.outcome == ConnectionOutcome::Ended));
    let inner = inner.proxy.finish();
    assert_eq!(inner.http.unwrap().counters[HttpCounter::Requests], 6);
}

#[test]
fn the_host_of_a_route_is_served_although_its_domain_is_passed() {
    let served = ScriptedUpstream::answering(HELLO);
    let inner = Inner::start(&served);
    let outer = TestHttpProxy::start_with(&served.upstream, |config, http| {
        config.routes = vec![pass("*.example.test", &inner.upstream)];
        http.routes = vec![format!("a.example.test/={}", served.upstream).parse().unwrap()];
    });
    assert_eq!(ask(&mut inner.client_of(&outer, "b.example.test")), 200);
    let mut refused = inner.client_of(&outer, "a.example.test");
    assert!(refused.tls.write_all(GET.as_bytes()).is_err(), "the outer proxy has another certificate");
    let total = outer.finish();
    assert_eq!(total.counters[ProxyCounter::Passed], 1);
    assert_eq!(total.counters[ProxyCounter::HandshakesFailed], 1);
}

#[test]
fn without_routes_no_other_name_than_the_passed_ones_has_a_handshake() {
    let served = ScriptedUpstream::answering(HELLO);
    let inner = Inner::start(&served);
    let outer = passing(&inner.upstream, &served, |config, _| config.upstreams.clear());
    assert_eq!(ask(&mut inner.client_of(&outer, PASSED)), 200);
    let name = ServerName::try_from("localhost").unwrap();
    let mut refused = ClientConnection::new(outer.client_config(&["http/1.1"]), name).unwrap();
    let error = refused.complete_io(&mut tcp(&outer)).unwrap_err().to_string();
    assert!(error.contains("UnrecognisedName"), "{error}");
    outer.finish();
}

#[test]
fn a_drain_lets_a_passed_connection_go_on() {
    let served = ScriptedUpstream::answering(HELLO);
    let inner = Inner::start(&served);
    let mut outer = passing(&inner.upstream, &served, |_, _| {});
    let mut passed = inner.client_of(&outer, PASSED);
    assert_eq!(ask(&mut passed), 200);
    let mut kept = outer.connect();
    assert_eq!(ask(&mut kept), 200);
    outer.proxy.drain();
    assert_eq!(kept.read_until(|_| false), Err(false), "an idle connection of HTTP ends");
    eventually("only the passed one is left", || {
        outer.collect();
        outer.total.counters[ProxyCounter::Closed] == 1
    });
    assert_eq!(ask(&mut passed), 200);
    drop(passed);
    let total = outer.finish();
    assert_eq!(total.counters[ProxyCounter::Passed], 1);
    assert!(total.connections.iter().all(|record| record.outcome == ConnectionOutcome::Ended));
}

#[test]
fn the_limits_on_connections_hold_for_passed_ones() {
    let served = ScriptedUpstream::answering(HELLO);
    let inner = Inner::start(&served);
    let mut outer = passing(&inner.upstream, &served, |config, _| {
        config.limits.connections_per_client = Some(1);
    });
    let mut first = inner.client_of(&outer, PASSED);
    assert_eq!(ask(&mut first), 200);
    let mut second = inner.client_of(&outer, PASSED);
    assert!(second.tls.write_all(GET.as_bytes()).is_err(), "a second one is refused");
    drop(first);
    eventually("it is counted", || {
        outer.collect();
        outer.total.counters[ProxyCounter::Closed] == 2
    });
    let total = outer.finish();
    assert_eq!(total.counters[ProxyCounter::RefusedConnections], 1);

    let outer = passing(&inner.upstream, &served, |config, _| config.limits.connections_max = Some(1));
    let mut first = inner.client_of(&outer, PASSED);
    assert_eq!(ask(&mut first), 200);
    let (mut second, served) = (outer.connect(), std::sync::mpsc::channel());
    let waiting = std::thread::spawn(move || {
        let status = ask(&mut second);
        served.0.send(()).unwrap();
        status
    });
    assert_eq!(ask(&mut first), 200);
    assert!(served.1.try_recv().is_err(), "the next one waits in the backlog");
    drop(first);
    assert_eq!(waiting.join().unwrap(), 200);
    assert_eq!(outer.finish().counters[ProxyCounter::Passed], 1);
}

#[test]
fn a_proxy_header_goes_to_the_upstream_of_passed_tls_only() {
    let served = ScriptedUpstream::tcp(|mut peer| {
        while peer.head().is_some() {
            peer.send(HELLO);
        }
    });
    let raw = ScriptedUpstream::tcp(|mut peer| {
        peer.read_until(|_| false);
        let received = std::mem::take(&mut peer.received);
        peer.send(received);
    });
    let mut outer = passing(&raw.upstream, &served, |config, _| {
        config.proxy_protocol = Some(ProxyProtocol::V1);
        config.accept_proxy = "127.0.0.0/8".parse().unwrap();
        config.upstream_check = Some("http:/check,interval=100ms".parse().unwrap());
    });
    let header = b"PROXY TCP4 203.0.113.7 192.0.2.1 4711 443\r\n";
    let config = outer.client_config(&[]);
    let mut hello = Vec::new();
    let name = ServerName::try_from(PASSED).unwrap();
    ClientConnection::new(config, name).unwrap().write_tls(&mut hello).unwrap();
    let mut socket = tcp(&outer);
    socket.write_all(&[&header[..], &hello].concat()).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    let mut received = Vec::new();
    match socket.read_to_end(&mut received) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    assert!(received == [&header[..], &hello].concat(), "the client's own addresses, then its bytes");
    let mut socket = tcp(&outer);
    socket.write_all(header).unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(outer.client_config(&["http/1.1"]), name).unwrap();
    let mut client = Http1Client { tls: StreamOwned::new(connection, socket), received: Vec::new() };
    assert_eq!(ask(&mut client), 200);
    drop(client);
    eventually("it is checked", || served.heads().iter().any(|head| head.contains("/check")));
    assert!(served.heads().iter().all(|head| head.starts_with("GET ")), "{:?}", served.heads());
    outer.collect();
    outer.finish();
}
