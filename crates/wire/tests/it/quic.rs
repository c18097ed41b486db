//! QUIC is counted by its packets, and not judged.

use std::net::SocketAddr;

use records::metrics::ProxyCounter as P;
use wire::capture::{Frame, LinkLayer};
use wire::packet::Packet;
use wire::{WireCounter, WireOptions};

const SECOND_NS: u64 = 1_000_000_000;

fn addr(last: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, last], port))
}

/// Counts a packet of 1,200 bytes on an interface at a time in seconds.
fn count(counter: &mut WireCounter, [source, destination]: [SocketAddr; 2], interface: u32, at_s: u64) {
    let frame = Frame {
        time_ns: at_s * SECOND_NS,
        interface,
        is_outgoing: source == addr(1, 443),
        link: LinkLayer::Ip,
        data: &[],
    };
    counter.packet(&frame, &Packet::Quic { source, destination, len: 1_200 });
}

fn totals(counter: &WireCounter) -> [u64; 4] {
    [P::QuicConnections, P::QuicPackets, P::QuicBytes, P::Accepted]
        .map(|metric| counter.counted.delta.counters[metric])
}

#[test]
fn both_directions_of_two_addresses_and_ports_are_one_connection() {
    let mut counter = WireCounter::new(WireOptions::default());
    let (server, client) = (addr(1, 443), addr(7, 50_000));
    for at_s in 0..10 {
        count(&mut counter, [client, server], 2, at_s);
        count(&mut counter, [server, client], 2, at_s);
        count(&mut counter, [client, server], 3, at_s);
    }
    assert_eq!(totals(&counter), [1, 20, 24_000, 0], "another interface shows the same again");
    count(&mut counter, [addr(7, 50_001), server], 2, 10);
    assert_eq!(totals(&counter)[0], 2);
    count(&mut counter, [client, server], 2, 100);
    assert_eq!(totals(&counter)[0], 2);
    count(&mut counter, [client, server], 3, 300);
    assert_eq!(totals(&counter), [3, 23, 27_600, 0], "it was silent for too long to be the same");
}

#[test]
fn only_connections_that_are_looked_at_count() {
    let packets = [[addr(7, 50_000), addr(1, 443)], [addr(1, 443), addr(7, 50_000)]];
    for (options, connections) in [
        (WireOptions { ports: vec![8_443], ..WireOptions::default() }, 0),
        (WireOptions { ports: vec![443], ..WireOptions::default() }, 1),
        (WireOptions { outgoing: Some(false), ..WireOptions::default() }, 1),
        (WireOptions { outgoing: Some(true), ..WireOptions::default() }, 0),
    ] {
        let mut counter = WireCounter::new(options);
        for ends in packets {
            count(&mut counter, ends, 2, 1);
        }
        assert_eq!(totals(&counter)[..2], [connections, 2 * connections]);
    }
}
