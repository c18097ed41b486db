//! Connections that this machine opens, and those that it accepts.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::recorded::{CAPTURES, PORTS, Piece};
use records::ids::ClientId;
use records::metrics::ClientCounter;
use wire::{WireCounter, WireOptions};

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));

/// The clients that are counted, with their connections, if this machine is one of the ends.
fn clients(outgoing: Option<bool>, is_client: bool) -> Vec<(ClientId, u64)> {
    let mut counter = WireCounter::new(WireOptions { outgoing, ..WireOptions::default() });
    for piece in CAPTURES[1].pieces() {
        let is_of_client = PORTS.contains(&piece.destination.port());
        let at = |addr: SocketAddr| {
            let ip = if PORTS.contains(&addr.port()) { SERVER } else { CLIENT };
            SocketAddr::new(ip, addr.port())
        };
        let (source, destination) = (at(piece.source), at(piece.destination));
        Piece { source, destination, ..piece }.count_in(&mut counter, is_of_client == is_client);
    }
    counter.counted.seal();
    let mut clients: BTreeMap<ClientId, u64> = BTreeMap::new();
    for row in &counter.counted.delta.clients {
        *clients.entry(row.client).or_default() += row.counters[ClientCounter::Connections];
    }
    clients.into_iter().collect()
}

#[test]
fn connections_of_one_direction_are_counted_by_the_peer() {
    assert_eq!(clients(Some(false), false), [(ClientId::from(CLIENT), 12)], "accepted");
    assert_eq!(clients(Some(true), true), [(ClientId::from(SERVER), 12)], "opened, by peer");
    assert_eq!([clients(Some(false), true), clients(Some(true), false)], [vec![], vec![]], "the other way");
    assert_eq!(clients(None, true), [(ClientId::from(CLIENT), 12)], "both");
}
