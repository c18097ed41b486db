//! Handshakes that fail, each counted under its cause.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::Arc;

use records::kinds::ConnectionOutcome;
use records::metrics::ProxyCounter;
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore};

use crate::support::{TLS12, TLS13, TestProxy, TestUpstream, echo, read_all, serve_echo, tls_over};

/// Sends `bytes` and an end; returns the answer.
fn send(proxy: &TestProxy, bytes: &[u8]) -> Vec<u8> {
    let mut socket = proxy.tcp();
    socket.write_all(bytes).unwrap();
    socket.shutdown(Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer);
    answer
}

fn only_failure(
    mut proxy: TestProxy,
    counter: ProxyCounter,
    n: u64,
    outcome: ConnectionOutcome,
) -> Vec<String> {
    proxy.expect(counter, n);
    proxy.expect(ProxyCounter::Failed, n);
    let total = proxy.finish();
    assert_eq!(total.counters[ProxyCounter::HandshakesFailed], n);
    assert_eq!(total.counters[counter], n);
    assert_eq!(total.counters[ProxyCounter::UpstreamConnects], 0);
    assert!(total.connections.iter().all(|record| record.outcome == outcome), "{:?}", total.connections);
    total.connections.into_iter().map(|record| record.detail).collect()
}

#[test]
fn a_first_record_that_is_not_tls_has_its_own_outcome() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start(&served.upstream);
    let sent: [&[u8]; 5] = [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\n",
        &[0; 100],
        &[0x16, 0x09, 0x09, 0x00, 0x05, 1, 2, 3, 4, 5],
    ];
    for bytes in sent {
        let answer = send(&proxy, bytes);
        assert_eq!(answer.first(), Some(&21), "an alert: {answer:?}");
    }
    let details = only_failure(proxy, ProxyCounter::FailedNotTls, 5, ConnectionOutcome::NotTls);
    let of_http = details.iter().filter(|detail| *detail == "the client sent an HTTP request without TLS");
    assert_eq!(of_http.count(), 1, "{details:?}");
}

#[test]
fn an_eof_before_or_in_the_client_hello_has_its_own_outcome() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start(&served.upstream);
    assert_eq!(send(&proxy, b""), b"");
    assert_eq!(send(&proxy, &[22]), b"");
    assert_eq!(send(&proxy, &[22, 3, 1, 0, 200, 1, 0]), b"");
    only_failure(proxy, ProxyCounter::FailedEof, 3, ConnectionOutcome::HandshakeEof);
}

#[test]
fn a_handshake_that_is_done_counts_even_if_rubbish_comes_with_its_end() {
    let served = TestUpstream::unix(serve_echo);
    let mut proxy = TestProxy::start(&served.upstream);
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    tls.conn.write_tls(&mut tls.sock).unwrap();
    while tls.conn.is_handshaking() {
        tls.conn.read_tls(&mut tls.sock).unwrap();
        tls.conn.process_new_packets().unwrap();
    }
    tls.conn.writer().write_all(b"rubbish").unwrap();
    let mut last = Vec::new();
    while tls.conn.wants_write() {
        tls.conn.write_tls(&mut last).unwrap();
    }
    *last.last_mut().unwrap() ^= 1;
    tls.sock.write_all(&last).unwrap();
    proxy.expect(ProxyCounter::HandshakesFull, 1);
    proxy.expect(ProxyCounter::ClientBroken, 1);
    drop(tls);
    assert_eq!(proxy.finish().counters[ProxyCounter::HandshakesFailed], 0);
}

#[test]
fn a_malformed_client_hello_has_its_own_outcome() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start(&served.upstream);
    let answer = send(&proxy, &[22, 3, 1, 0, 5, 1, 0, 0, 1, 9]);
    assert_eq!(answer[..2], [21, 3], "an alert says so");
    only_failure(proxy, ProxyCounter::FailedOther, 1, ConnectionOutcome::HandshakeOther);
}

#[test]
fn a_client_that_refuses_the_certificate_is_counted_by_its_alert() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start(&served.upstream);
    let mut stranger = TestProxy::start(&served.upstream);
    stranger.certificate = proxy_core::Certificate::generate(&[]).unwrap().leaf_der().to_vec();
    for version in [&TLS12, &TLS13] {
        let mut tls = tls_over(proxy.tcp(), &stranger.client(version));
        tls.write_all(b"hello").and_then(|()| tls.flush()).unwrap_err();
    }
    let details = only_failure(proxy, ProxyCounter::FailedAlert, 2, ConnectionOutcome::HandshakeAlert);
    assert!(details.iter().all(|detail| detail.contains("received fatal alert")), "{details:?}");
}

#[test]
fn a_client_without_a_common_group_is_incompatible() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start(&served.upstream);
    let mut provider = aws_lc_rs::default_provider();
    provider.kx_groups = vec![aws_lc_rs::kx_group::MLKEM768];
    let config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let mut tls = tls_over(proxy.tcp(), &Arc::new(config));
    tls.write_all(b"hello").and_then(|()| tls.flush()).unwrap_err();
    only_failure(proxy, ProxyCounter::FailedIncompatible, 1, ConnectionOutcome::Incompatible);
}

#[test]
fn a_hostile_server_name_is_recorded_harmlessly() {
    // rustls only sends valid names, so the bytes of one that is escaped are patched on the wire.
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start(&served.upstream);
    let mut tls = proxy.connect(&proxy.client(&TLS12));
    let mut hello = Vec::new();
    tls.conn.write_tls(&mut hello).unwrap();
    let at = hello.windows(9).position(|window| window == b"localhost").unwrap();
    hello[at..at + 9].copy_from_slice(b"\x1b[2J\nX=\"\x7f");
    tls.sock.write_all(&hello).unwrap();
    let _ = read_all_raw(&mut tls.sock);
    drop(tls);
    let total = proxy.finish();
    for record in &total.connections {
        let printable = |text: &str| text.chars().all(|c| !c.is_control());
        assert!(printable(&record.sni) && printable(&record.detail), "{record:?}");
    }
    assert_eq!(total.connections.len(), 1);
}

fn read_all_raw(socket: &mut std::net::TcpStream) -> Vec<u8> {
    socket.shutdown(Shutdown::Write).unwrap();
    let mut bytes = Vec::new();
    let _ = socket.read_to_end(&mut bytes);
    bytes
}

#[test]
fn failures_leave_others_alone() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start(&served.upstream);
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    for _ in 0..50 {
        send(&proxy, b"GET / HTTP/1.0\r\n\r\n");
        echo(&mut tls, b"hello");
    }
    tls.conn.send_close_notify();
    assert_eq!(read_all(&mut tls), (Vec::new(), true));
    assert_eq!(proxy.finish().counters[ProxyCounter::FailedNotTls], 50);
}
