//! What each server did, beside what all of them did.

use std::net::SocketAddr;

use crate::recorded::{CAPTURES, Capture, PORTS, Piece};
use records::delta::{Delta as _, ProxyDelta};
use records::ids::RUN_PARTS_MAX;
use records::metrics::{Metric as _, ProxyCounter};
use wire::{WireCounter, WireOptions};

/// Counts a capture as if its servers listened on ports so much higher.
fn count(counter: &mut WireCounter, capture: &Capture, higher: u16) {
    let at = |addr: SocketAddr| {
        let is_server = PORTS.contains(&addr.port());
        SocketAddr::new(addr.ip(), if is_server { addr.port() + higher } else { addr.port() })
    };
    for piece in capture.pieces() {
        let (source, destination) = (at(piece.source), at(piece.destination));
        Piece { source, destination, ..piece }.count(counter);
    }
}

/// The sum of all services.
fn sum(whole: &ProxyDelta) -> ProxyDelta {
    let mut sum = ProxyDelta::default();
    whole.services.iter().for_each(|service| sum.add(&service.counted));
    sum
}

#[test]
fn each_server_has_its_counts_and_they_add_up() {
    let mut counter = WireCounter::new(WireOptions::default());
    for capture in &CAPTURES {
        count(&mut counter, capture, 0);
    }
    counter.counted.seal();
    let whole = &counter.counted.delta;
    let of = |delta: &ProxyDelta, counter| delta.counters[counter];
    let mut found: Vec<(&str, [u64; 4])> = whole
        .services
        .iter()
        .map(|service| {
            use ProxyCounter as P;
            let counters = [P::Accepted, P::HandshakesFull, P::HandshakesResumed, P::HandshakesFailed];
            (&*service.name, counters.map(|counter| of(&service.counted, counter)))
        })
        .collect();
    found.sort_unstable();
    let expected: Vec<(String, [u64; 4])> = PORTS
        .iter()
        .map(|port| (format!(":{port}"), by_port(*port)))
        .filter(|(_, counts)| counts[0] > 0)
        .collect();
    let expected: Vec<(&str, [u64; 4])> = expected.iter().map(|(name, counts)| (&**name, *counts)).collect();
    assert!(found.len() > 1);
    assert_eq!(found, expected);
    let parts = sum(whole);
    for &counter in ProxyCounter::ALL {
        let of_no_service = [ProxyCounter::Packets].contains(&counter);
        assert!(of_no_service || of(&parts, counter) == of(whole, counter), "{counter:?}");
    }
}

/// Connections, full, resumed and failed handshakes of the server at a port, counted alone.
fn by_port(port: u16) -> [u64; 4] {
    use ProxyCounter as P;
    let mut counter = WireCounter::new(WireOptions { ports: vec![port], ..WireOptions::default() });
    for capture in &CAPTURES {
        count(&mut counter, capture, 0);
    }
    counter.counted.seal();
    let counters = &counter.counted.delta.counters;
    [P::Accepted, P::HandshakesFull, P::HandshakesResumed, P::HandshakesFailed].map(|it| counters[it])
}

#[test]
fn clients_alone_take_no_place_of_a_service() {
    let mut counter = WireCounter::new(WireOptions::default());
    let hello = |port: u16, at: SocketAddr| {
        if PORTS.contains(&at.port()) { SocketAddr::new(at.ip(), port) } else { at }
    };
    // A scan: each port sees the ClientHello of one connection, and nobody answers.
    for port in 1_000..1_100 {
        for piece in CAPTURES[1].pieces().iter().filter(|piece| piece.is_from_client()).take(3) {
            let (source, destination) = (hello(port, piece.source), hello(port, piece.destination));
            Piece { source, destination, ..piece.clone() }.count(&mut counter);
        }
    }
    count(&mut counter, &CAPTURES[1], 0);
    counter.counted.seal();
    let names: Vec<&str> = counter.counted.delta.services.iter().map(|service| &*service.name).collect();
    assert_eq!(names.len(), 3, "{names:?}");
}

#[test]
fn servers_beyond_the_bound_count_in_the_whole_only() {
    let mut counter = WireCounter::new(WireOptions::default());
    let rounds = u16::from(RUN_PARTS_MAX) + 20;
    (0..rounds).for_each(|round| count(&mut counter, &CAPTURES[1], 10 * round));
    counter.counted.seal();
    let whole = &counter.counted.delta;
    assert_eq!(whole.services.len(), usize::from(RUN_PARTS_MAX));
    assert_eq!(whole.counters[ProxyCounter::Accepted], u64::from(rounds) * CAPTURES[1].counts.accepted);
}
