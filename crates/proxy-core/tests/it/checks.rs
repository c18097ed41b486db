//! Active checks of upstreams: servers that answer wrongly, late, never, or with a bad certificate.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;
use std::time::Duration;

use proxy_core::proxy_protocol::ProxyProtocol;
use proxy_core::{ProxyConfig, Upstream, UpstreamTls};
use records::kinds::UpstreamState::{self, Down, Up};
use records::metrics::UpstreamCounter;

use crate::pki::{P256, Pki};
use crate::support::{TLS13, TestProxy, TestUpstream, echo, eventually, serve_echo};
use crate::upstream_tls::{Ending, server, tcp_upstream};

/// Answers each request with this status, as HTTP/1.1 does, and everything else with an echo.
fn http_upstream(status: &Arc<AtomicU16>) -> Upstream {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let status = Arc::clone(status);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, status) = (stream.unwrap(), Arc::clone(&status));
            thread::spawn(move || {
                let mut buffer = [0; 1024];
                while let Ok(n @ 1..) = stream.read(&mut buffer) {
                    let status = status.load(Ordering::Relaxed);
                    let answer = format!("HTTP/1.1 {status} x\r\n\r\n");
                    let is_check = buffer.starts_with(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:");
                    let _ = stream.write_all(if is_check { answer.as_bytes() } else { &buffer[..n] });
                }
            });
        }
    });
    addr.to_string().parse().unwrap()
}

fn start(upstreams: &[Upstream], check: &str, change: impl FnOnce(&mut ProxyConfig)) -> TestProxy {
    let check = format!("{check},rise=2,fall=2");
    TestProxy::start_with(&upstreams[0], |config| {
        config.upstreams = upstreams.to_vec();
        config.upstream_check = Some(check.parse().unwrap());
        change(config);
    })
}

fn await_states(proxy: &mut TestProxy, expected: &[UpstreamState]) {
    eventually(&format!("the states {expected:?}"), || {
        proxy.collect();
        let states = proxy.total.upstreams.all().iter().map(|delta| delta.status.as_ref().unwrap().state);
        states.eq(expected.iter().copied())
    });
}

/// Waits until each upstream was checked so often.
fn await_checks(proxy: &mut TestProxy, n: u64) {
    eventually("checks", || {
        proxy.collect();
        let checks = proxy.total.upstreams.all().iter().map(|delta| delta.counters[UpstreamCounter::Checks]);
        checks.min().is_some_and(|least| least >= n)
    });
}

fn reason(proxy: &TestProxy, index: usize) -> &str {
    &proxy.total.upstreams.all()[index].status.as_ref().unwrap().reason
}

#[test]
fn an_upstream_with_the_wrong_status_is_down_until_it_answers_well() {
    let status = [200, 200].map(AtomicU16::new).map(Arc::new);
    let upstreams = status.each_ref().map(http_upstream);
    let mut proxy = start(&upstreams, "http:/healthz,status=200-299,interval=200ms", |_| {});
    let config = proxy.client(&TLS13);
    await_checks(&mut proxy, 1);
    status[1].store(503, Ordering::Relaxed);
    await_states(&mut proxy, &[Up, Down]);
    assert_eq!(reason(&proxy, 1), "GET /healthz is answered with 503");
    let mut held: Vec<_> = (0..6).map(|_| proxy.connect(&config)).collect();
    for tls in &mut held {
        echo(tls, b"hello");
    }
    proxy.collect();
    let connections = |proxy: &TestProxy, index: usize| {
        proxy.total.upstreams.all()[index].counters[UpstreamCounter::Connections]
    };
    assert_eq!([0, 1].map(|index| connections(&proxy, index)), [6, 0]);
    let checks = proxy.total.upstreams.all()[1].counters;
    assert!(checks[UpstreamCounter::ChecksFailed] >= 2);
    assert!(checks[UpstreamCounter::Checks] > checks[UpstreamCounter::ChecksFailed]);
    status[1].store(204, Ordering::Relaxed);
    await_states(&mut proxy, &[Up, Up]);
    let mut tls = proxy.connect(&config);
    echo(&mut tls, b"hello");
    proxy.collect();
    assert_eq!(connections(&proxy, 1), 1);
}

#[test]
fn a_hanging_or_trickling_upstream_fails_and_delays_no_other_check() {
    let silent = TestUpstream::unix(|stream, _| {
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let trickling = TestUpstream::unix(|stream, _| {
        while stream.write_all(b"H").is_ok() {
            thread::sleep(Duration::from_millis(10));
        }
    });
    let other = TestUpstream::unix(|stream, _| drop(stream.write_all(b"220 mail.example ESMTP\r\n")));
    let status = Arc::new(AtomicU16::new(301));
    let upstreams = [
        silent.upstream,
        trickling.upstream,
        other.upstream,
        http_upstream(&status),
        http_upstream(&status),
        http_upstream(&status),
    ];
    let mut proxy = start(&upstreams, "http:/healthz,interval=200ms", |_| {});
    await_states(&mut proxy, &[Down, Down, Down, Up, Up, Up]);
    assert_eq!(reason(&proxy, 0), "timed out");
    assert_eq!(reason(&proxy, 2), "GET /healthz is not answered in HTTP/1.1");
    status.store(500, Ordering::Relaxed);
    await_states(&mut proxy, &[Down; 6]);
}

#[test]
fn an_expired_certificate_fails_a_check_of_tls_and_not_one_of_tcp() {
    let pki = Pki::new();
    pki.issue_until("expired", &P256, &["localhost"], 2021);
    pki.issue("good", &P256, &["localhost"]);
    let start = |check| {
        let upstream =
            |file| tcp_upstream(server(&pki, file, &[&TLS13], false), Ending::Clean).0.parse().unwrap();
        start(&[upstream("good"), upstream("expired")], check, |config| {
            config.tls.upstream = UpstreamTls { ca: Some(pki.client_ca()), ..UpstreamTls::default() };
        })
    };
    let mut proxy = start("tls,interval=3s");
    await_states(&mut proxy, &[Up, Down]);
    assert_eq!(
        reason(&proxy, 1),
        "the certificate has expired; renew it, or do not verify it with --upstream-tls-insecure"
    );
    let mut proxy = start("tcp,interval=100ms");
    await_checks(&mut proxy, 4);
    await_states(&mut proxy, &[Up, Up]);
}

#[test]
fn a_check_over_tls_asks_in_http_too() {
    let pki = Pki::new();
    pki.issue("app", &P256, &["localhost"]);
    // It echoes, which is no answer in HTTP.
    let (upstream, _seen) = tcp_upstream(server(&pki, "app", &[&TLS13], false), Ending::Clean);
    let mut proxy = start(&[upstream.parse().unwrap()], "http,interval=3s", |config| {
        config.tls.upstream = UpstreamTls { ca: Some(pki.client_ca()), ..UpstreamTls::default() };
    });
    await_states(&mut proxy, &[Down]);
    assert_eq!(reason(&proxy, 0), "GET / is not answered in HTTP/1.1");
}

#[test]
fn clients_are_served_even_if_all_upstreams_fail_their_checks() {
    let served = [(); 2].map(|()| TestUpstream::unix(serve_echo));
    let upstreams = served.each_ref().map(|served| served.upstream.clone());
    let mut proxy = start(&upstreams, "http:/healthz,interval=100ms", |config| {
        // A check sends one too.
        config.proxy_protocol = Some(ProxyProtocol::V1);
    });
    await_states(&mut proxy, &[Down, Down]);
    let config = proxy.client(&TLS13);
    for _ in 0..4 {
        let mut tls = proxy.connect(&config);
        tls.write_all(b"hello").unwrap();
        let mut first = [0; 5];
        tls.read_exact(&mut first).unwrap();
        assert_eq!(&first, b"PROXY");
    }
    let said: Vec<_> = proxy.proxy.take_notices().into_iter().map(|notice| notice.text).collect();
    assert!(said.iter().any(|text| text.starts_with("0 of the upstreams unix:")), "{said:?}");
    assert!(said.iter().filter(|text| text.contains("fails its checks")).count() == 2, "{said:?}");
    await_states(&mut proxy, &[Down, Down]);
}
