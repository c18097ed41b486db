//! Counts are exact, whoever adds them up.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use records::delta::CONNECTION_RECORDS_MAX;
use records::ids::ClientId;
use records::metrics::{ClientCounter, ProxyCounter};

use crate::support::{TLS12, TLS13, TestProxy, TestUpstream, echo, end, read_all, serve_echo, tls_over};

/// A connection from 127.0.0.`n`.
pub(crate) fn connect_from(n: u8, to: SocketAddr) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::new(127, 0, 0, n), 0)).into()).unwrap();
    socket.connect(&to.into()).unwrap();
    socket.into()
}

#[test]
fn each_client_has_exactly_what_it_did() {
    const THREADS: u8 = 4;
    const CONNECTIONS: u64 = 40;
    let served = TestUpstream::unix(serve_echo);
    let mut proxy = TestProxy::start(&served.upstream);
    let addr = proxy.addr();
    let client = proxy.client(&TLS13);
    thread::scope(|scope| {
        for n in 1..=THREADS {
            let client = &client;
            scope.spawn(move || {
                for i in 0..CONNECTIONS {
                    let mut tls = tls_over(connect_from(n, addr), client);
                    for _ in 0..=i % 3 {
                        echo(&mut tls, &vec![n; usize::from(n) * 100]);
                    }
                    end(&mut tls);
                    read_all(&mut tls);
                }
            });
        }
        for _ in 0..50 {
            proxy.collect();
            thread::sleep(Duration::from_millis(5));
        }
    });
    let total = proxy.finish();
    let mut by_client = HashMap::<_, records::metrics::Counters<ClientCounter>>::new();
    for delta in &total.clients {
        by_client.entry(delta.client).or_default().add(&delta.counters);
    }
    assert_eq!(by_client.len(), usize::from(THREADS));
    let requests: u64 = (0..CONNECTIONS).map(|i| i % 3 + 1).sum();
    for n in 1..=THREADS {
        let counters = &by_client[&ClientId::Addr(IpAddr::from([127, 0, 0, n]))];
        assert_eq!(counters[ClientCounter::Connections], CONNECTIONS);
        assert_eq!(counters[ClientCounter::BytesIn], requests * u64::from(n) * 100);
        assert_eq!(counters[ClientCounter::BytesOut], requests * u64::from(n) * 100);
        assert_eq!(counters[ClientCounter::Exchanges], requests);
        assert_eq!(counters[ClientCounter::Errors], 0);
        let handshakes = counters[ClientCounter::HandshakesFull] + counters[ClientCounter::HandshakesResumed];
        assert_eq!(handshakes, CONNECTIONS);
    }
    assert!(total.counters[ProxyCounter::HandshakesResumed] > 0);
}

#[test]
fn clients_beyond_the_table_are_other_and_the_sums_hold() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start_with(&served.upstream, |config| {
        config.clients_max = 5;
        config.workers = 1.try_into().unwrap();
    });
    let client = proxy.client(&TLS13);
    for n in 1..=20 {
        let mut tls = tls_over(connect_from(n, proxy.addr()), &client);
        echo(&mut tls, b"hello");
        end(&mut tls);
        read_all(&mut tls);
    }
    let total = proxy.finish();
    let other = total.clients.iter().find(|delta| delta.client == ClientId::Other).unwrap();
    assert_eq!(other.counters[ClientCounter::Connections], 15);
    assert_eq!(other.counters[ClientCounter::BytesIn], 75);
    assert_eq!(total.clients.len(), 6);
}

#[test]
fn errors_beyond_the_bound_on_records_are_counted_as_unrecorded() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start_with(&served.upstream, |config| config.workers = 1.try_into().unwrap());
    let errors = CONNECTION_RECORDS_MAX as u64 + 10;
    for _ in 0..errors {
        drop(proxy.tcp());
    }
    let total = proxy.finish();
    assert_eq!(total.connections.len(), CONNECTION_RECORDS_MAX);
    assert_eq!(total.counters[ProxyCounter::EventsUnrecorded], 10);
    assert_eq!(total.counters[ProxyCounter::FailedEof], errors);
}

#[test]
fn a_connection_is_recorded_with_what_it_negotiated() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start_with(&served.upstream, |config| {
        config.tls.settings.alpn = vec!["h2".into(), "http/1.1".into()];
        config.workers = 1.try_into().unwrap();
    });
    let mut client = (*proxy.client(&TLS13)).clone();
    client.alpn_protocols = vec![b"http/1.1".to_vec()];
    let mut tls = proxy.connect(&client.into());
    echo(&mut tls, b"hello");
    assert_eq!(tls.conn.alpn_protocol(), Some(&b"http/1.1"[..]));
    end(&mut tls);
    let total = proxy.finish();
    let record = &total.connections[0];
    assert_eq!((record.tls_version.as_str(), record.sni.as_str()), ("TLSv1.3", "localhost"));
    assert_eq!((record.alpn.as_str(), record.resumed), ("http/1.1", false));
    assert!(record.cipher.starts_with("TLS_AES_"), "{}", record.cipher);
    assert!(["X25519MLKEM768", "x25519"].contains(&record.group.as_str()), "{}", record.group);
    assert_eq!((record.bytes_in, record.bytes_out), (5, 5));
    assert!(record.conn.0 > 0 && record.lifetime_us > 0);
}

#[test]
fn version_group_and_cipher_are_counted_once_a_handshake() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start(&served.upstream);
    for version in [&TLS12, &TLS13] {
        let client = proxy.client(version);
        for _ in 0..3 {
            let mut tls = proxy.connect(&client);
            echo(&mut tls, b"hello");
            end(&mut tls);
            read_all(&mut tls);
        }
    }
    let total = proxy.finish();
    let ciphers = [
        ProxyCounter::CipherAes128,
        ProxyCounter::CipherAes256,
        ProxyCounter::CipherChacha,
        ProxyCounter::CipherOther,
    ];
    assert_eq!(total.counters.sum(&ciphers), 6);
    let groups = [
        ProxyCounter::GroupX25519,
        ProxyCounter::GroupP256,
        ProxyCounter::GroupP384,
        ProxyCounter::GroupMlkem,
        ProxyCounter::GroupOther,
    ];
    assert_eq!(total.counters.sum(&groups), 4, "a resumed TLS 1.2 handshake exchanges no keys");
}
