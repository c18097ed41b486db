//! Clients that do what they should not, many at once: nothing is lost, leaked or left open.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use records::metrics::ProxyCounter;
use rustls::ClientConfig;

use crate::dice::SeededRandom;
use crate::support::{
    TLS12, TLS13, TestProxy, TestUpstream, echo, end, pattern, read_all, serve_echo, tcp_to, tls_over,
};

fn misbehave(dice: &mut SeededRandom, addr: std::net::SocketAddr, configs: &[Arc<ClientConfig>; 2]) {
    let mut socket = tcp_to(addr);
    match dice.roll(9) {
        0 => return,
        1 => {
            socket.write_all(&pattern(dice.roll(2_000))).unwrap();
            return;
        }
        2 => {
            let mut tls = tls_over(socket, &configs[0]);
            let mut hello = Vec::new();
            tls.conn.write_tls(&mut hello).unwrap();
            hello.truncate(dice.roll(hello.len()));
            tls.sock.write_all(&hello).unwrap();
            return;
        }
        _ => socket.set_nodelay(dice.roll(2) == 0).unwrap(),
    }
    let mut tls = tls_over(socket, &configs[dice.roll(2)]);
    echo(&mut tls, &pattern(1 + dice.roll(200_000)));
    match dice.roll(5) {
        0 => {
            end(&mut tls);
            read_all(&mut tls);
        }
        1 => socket2::SockRef::from(&tls.sock).set_linger(Some(Duration::ZERO)).unwrap(),
        2 => {
            // More than it will wait for the answer to.
            tls.write_all(&pattern(500_000)).unwrap_or_default();
            let _ = tls.sock.shutdown(Shutdown::Both);
        }
        3 => tls.sock.write_all(&pattern(100)).unwrap_or_default(),
        _ => {}
    }
}

#[test]
fn whatever_clients_do_is_counted_and_comes_to_an_end() {
    const THREADS: u64 = 4;
    const CONNECTIONS: u64 = 150;
    for served in [TestUpstream::unix(serve_echo), TestUpstream::tcp(serve_echo)] {
        let mut proxy = TestProxy::start_with(&served.upstream, |config| {
            config.limits.half_closed_timeout = Duration::from_secs(1);
            config.limits.connections_max = Some(40);
        });
        let configs = [proxy.client(&TLS12), proxy.client(&TLS13)];
        let addr = proxy.addr();
        thread::scope(|scope| {
            for seed in 1..=THREADS {
                let configs = &configs;
                scope.spawn(move || {
                    let mut dice = SeededRandom(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                    for _ in 0..CONNECTIONS {
                        misbehave(&mut dice, addr, configs);
                    }
                });
            }
        });
        proxy.expect(ProxyCounter::Closed, THREADS * CONNECTIONS);
        let total = proxy.finish();
        assert_eq!(total.counters[ProxyCounter::Accepted], THREADS * CONNECTIONS);
        for counter in [ProxyCounter::FailedEof, ProxyCounter::FailedNotTls, ProxyCounter::ClientBroken] {
            assert!(total.counters[counter] > 0, "{counter:?} did not happen, so the test does not test it");
        }
    }
}

#[test]
fn a_slow_client_does_not_slow_others() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start_with(&served.upstream, |config| config.workers = 1.try_into().unwrap());
    let config = proxy.client(&TLS13);
    let mut slow = proxy.connect(&config);
    slow.sock.set_nonblocking(true).unwrap();
    let mut other = proxy.connect(&config);
    echo(&mut other, b"hello");
    let mut buffer = pattern(100_000);
    for _ in 0..100 {
        // Until nothing fits any more, and without reading the echo.
        let _ = slow.write(&buffer);
        let began_at = Instant::now();
        echo(&mut other, b"hello");
        assert!(began_at.elapsed() < Duration::from_secs(2));
    }
    slow.sock.set_nonblocking(false).unwrap();
    slow.read_exact(&mut buffer[..1000]).unwrap();
}
