//! Who may connect, and how often: address lists, rates of connections and handshakes.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::{fs, thread};

use proxy_core::AccessFiles;
use records::ids::ClientId;
use records::kinds::ConnectionOutcome;
use records::metrics::{ClientCounter, ProxyCounter};
use records::setting::Value;

use crate::proxy_header::header_of;
use crate::support::{
    TLS13, TestProxy, TestUpstream, echo, end, read_all, serve_echo, tcp_from, tls_over, try_tcp_from,
};

fn is_reset(mut socket: impl Read) -> bool {
    socket.read(&mut [0; 100]).is_err_and(|error| error.kind() == ErrorKind::ConnectionReset)
}

/// Whether a connection from this address is reset before TLS, maybe before its client knows that it was established.
pub(crate) fn is_refused(source: &str, addr: SocketAddr) -> bool {
    match try_tcp_from(source, addr) {
        Ok(socket) => is_reset(socket),
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

#[test]
fn connections_beyond_the_rate_are_reset_before_tls() {
    let served = TestUpstream::unix(serve_echo);
    let mut proxy = TestProxy::start_with(&served.upstream, |config| {
        config.limits.connection_rate = Some("1/m,burst=3".parse().unwrap());
    });
    let config = proxy.client(&TLS13);
    for _ in 0..3 {
        let mut tls = proxy.connect(&config);
        echo(&mut tls, b"hello");
        end(&mut tls);
        read_all(&mut tls);
    }
    assert!(is_refused("127.0.0.1", proxy.addr()), "nothing is said, not even by TLS");
    proxy.expect(ProxyCounter::RefusedConnectionRate, 1);
    let mut other = tls_over(tcp_from("127.0.0.9", proxy.addr()), &config);
    echo(&mut other, b"others are not affected");
    proxy.proxy.set("proxy.connection-rate", &Value::Text("off".to_owned())).unwrap();
    let mut unbounded = proxy.connect(&config);
    echo(&mut unbounded, b"hello");
    let refused = proxy.proxy.set("proxy.connection-rate", &Value::Text("fast".to_owned())).unwrap_err();
    assert!(refused.to_string().contains("such as 100/s, 6000/m or 100/s,burst=200"), "{refused}");
    drop((other, unbounded));
    let total = proxy.finish();
    let record =
        total.connections.iter().find(|one| one.outcome == ConnectionOutcome::ConnectionRate).unwrap();
    assert_eq!(record.detail, "the client may open 1/m,burst=3 connections, and no more");
    let errors = |one: &&records::delta::ClientDelta| one.counters[ClientCounter::Errors] > 0;
    let errors: Vec<_> = total.clients.iter().filter(errors).map(|one| one.client).collect();
    assert_eq!(errors, [ClientId::from(std::net::IpAddr::from(Ipv4Addr::LOCALHOST))]);
}

#[test]
fn handshakes_beyond_the_rate_are_reset_and_silent_connections_are_none() {
    let served = TestUpstream::unix(serve_echo);
    let mut proxy = TestProxy::start_with(&served.upstream, |config| {
        config.limits.handshake_rate = Some("1/m,burst=2".parse().unwrap());
    });
    let config = proxy.client(&TLS13);
    let silent = [proxy.tcp(), proxy.tcp(), proxy.tcp()];
    let mut served_ones = [proxy.connect(&config), proxy.connect(&config)];
    for tls in &mut served_ones {
        echo(tls, b"hello");
    }
    let mut beyond = proxy.tcp();
    // The rest of a ClientHello may come in pieces: the first one takes the token.
    beyond.write_all(&[22]).unwrap();
    assert!(is_reset(&beyond));
    proxy.expect(ProxyCounter::RefusedHandshakeRate, 1);
    echo(&mut served_ones[0], b"still served");
    drop((silent, served_ones));
    proxy.finish();
}

#[test]
fn the_client_of_a_proxy_header_is_limited_and_not_its_balancer() {
    let served = TestUpstream::unix(serve_echo);
    let mut proxy = TestProxy::start_with(&served.upstream, |config| {
        config.accept_proxy = "127.0.0.0/8".parse().unwrap();
        config.limits.connection_rate = Some("1/m".parse().unwrap());
    });
    let config = proxy.client(&TLS13);
    for client in ["192.0.2.7:1", "192.0.2.8:1", "[2001:db8::7]:1"] {
        let mut socket = proxy.tcp();
        socket.write_all(&header_of(client)).unwrap();
        let mut tls = tls_over(socket, &config);
        echo(&mut tls, b"hello");
    }
    // The second is another address of the same subscriber.
    for client in ["192.0.2.7:2", "[2001:db8::8]:1"] {
        let mut socket = proxy.tcp();
        socket.write_all(&header_of(client)).unwrap();
        assert!(is_reset(&socket), "{client}");
    }
    proxy.expect(ProxyCounter::RefusedConnectionRate, 2);
    proxy.finish();
}

#[test]
fn refused_addresses_are_reset_before_tls_and_lists_can_change() {
    let folder = tempfile::tempdir().unwrap();
    let deny = folder.path().join("deny");
    fs::write(&deny, "127.0.0.9\n192.0.2.0/24 # clients of the balancer").unwrap();
    let served = TestUpstream::unix(serve_echo);
    let mut proxy = TestProxy::start_with(&served.upstream, |config| {
        config.accept_proxy = "127.0.0.5".parse().unwrap();
        config.access = Arc::new(AccessFiles { allow: None, deny: Some(deny.clone()) }.load().unwrap());
    });
    let (addr, config) = (proxy.addr(), proxy.client(&TLS13));
    let mut admitted = proxy.connect(&config);
    echo(&mut admitted, b"hello");
    assert!(is_refused("127.0.0.9", addr));
    let behind_balancer = |client| {
        let mut socket = tcp_from("127.0.0.5", addr);
        socket.write_all(&header_of(client)).unwrap();
        socket
    };
    assert!(is_reset(behind_balancer("192.0.2.7:1")), "the client counts, not its balancer");
    echo(&mut tls_over(behind_balancer("198.51.100.7:1"), &config), b"hello");
    proxy.expect(ProxyCounter::RefusedAddress, 2);

    fs::write(&deny, "127.0.0.0/8").unwrap();
    proxy.proxy.set_access(proxy.proxy.access_files().read_again().unwrap());
    assert!(is_refused("127.0.0.1", addr));
    echo(&mut admitted, b"open connections go on");
    fs::write(&deny, "").unwrap();
    proxy.proxy.set_access(proxy.proxy.access_files().read_again().unwrap());
    echo(&mut tls_over(tcp_from("127.0.0.9", addr), &config), b"hello");
    proxy.expect(ProxyCounter::RefusedAddress, 3);
    drop(admitted);
    proxy.finish();
}

#[test]
fn good_clients_are_served_while_ten_thousand_addresses_flood() {
    const FLOODERS: u32 = 10_000;
    const GOOD: u8 = 100;
    let served = TestUpstream::unix(serve_echo);
    let mut proxy = TestProxy::start_with(&served.upstream, |config| {
        // Nobody else on this host connects there.
        config.listen = vec!["127.0.3.1:0".parse().unwrap()];
        config.limits.connection_rate = Some("1/m,burst=2".parse().unwrap());
    });
    let (addr, config) = (proxy.addr(), proxy.client(&TLS13));
    let connect = |n: u8| tls_over(tcp_from(&format!("127.0.2.{n}"), addr), &config);
    let mut good: Vec<_> = (0..GOOD).map(connect).collect();
    let flood = thread::spawn(move || {
        for n in 0..FLOODERS {
            let source = Ipv4Addr::from_bits(u32::from(Ipv4Addr::new(127, 1, 0, 0)) + n).to_string();
            for _ in 0..3 {
                let socket = try_tcp_from(&source, addr);
                assert!(socket.as_ref().err().is_none_or(|error| error.kind() == ErrorKind::ConnectionReset));
                let Ok(mut socket) = socket else { continue };
                // The connection may be reset before this.
                let _ = socket.write_all(b"not TLS");
                let _ = socket.read_to_end(&mut Vec::new());
            }
        }
    });
    let mut rounds = 0;
    while !flood.is_finished() || rounds == 0 {
        for tls in &mut good {
            echo(tls, b"still served");
        }
        rounds += 1;
    }
    flood.join().unwrap();
    for (n, tls) in (0..GOOD).zip(&mut good) {
        *tls = connect(n);
        echo(tls, b"new connections too");
    }
    drop(good);
    proxy.expect(ProxyCounter::RefusedConnectionRate, u64::from(FLOODERS));
    proxy.expect(ProxyCounter::FailedNotTls, 2 * u64::from(FLOODERS));
    proxy.finish();
}
