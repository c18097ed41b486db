//! Floods of segments that anybody can send cost bounded memory, and honest handshakes among them are counted.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics, also outside of its own function")]

mod recorded;

use std::net::{Ipv4Addr, SocketAddr};

use recorded::{CAPTURES, Counts, PORTS, Piece, split};
use records::metrics::ProxyCounter;
use wire::capture::{Frame, LinkLayer};
use wire::packet::Packet;
use wire::{WireCounter, WireOptions};

/// Between two honest segments come so many of the flood.
const BETWEEN: u32 = 100;
/// What this process takes at most, however long a flood is, in bytes. It follows 131,072 connections of less than 1 KiB, and
/// keeps 64 MiB of parts.
const MEMORY_BYTES_MAX: u64 = 192 << 20;
/// The part of a `ClientHello` that is sent, in bytes. All of them together would take 800 MB.
const HALF_HELLO_BYTES: usize = 8 << 10;
const BETWEEN_NS: u64 = 20_000;

/// Resident memory of this process.
fn memory_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * rustix::param::page_size() as u64
}

/// A segment of the client with this number to a server of the captures.
fn segment(client: u32, payload: &[u8]) -> Piece {
    let source = Ipv4Addr::from_bits((10 << 24) + (client >> 4));
    Piece {
        time_ns: 0,
        source: SocketAddr::from((source, 1_024 + (client & 15) as u16)),
        destination: SocketAddr::from((Ipv4Addr::LOCALHOST, PORTS[0])),
        sequence: client.wrapping_mul(0x9e37_79b9),
        acknowledged: None,
        is_syn: false,
        is_fin: false,
        is_reset: false,
        window: 512,
        payload: payload.to_vec(),
        cut_bytes: 0,
    }
}

/// A flood: what each of its clients sends.
type Flood = fn(u32) -> Piece;

fn syn(client: u32) -> Piece {
    Piece { is_syn: true, ..segment(client, &[]) }
}

/// The first half of a `ClientHello` of 16 KiB.
fn half_hello(client: u32) -> Piece {
    let mut payload = vec![7; HALF_HELLO_BYTES];
    payload[..11].copy_from_slice(&[22, 3, 1, 0x3f, 0xff, 1, 0, 0x3f, 0xfb, 3, 3]);
    Piece { acknowledged: Some(1), ..segment(client, &payload) }
}

/// The second half, without the first, of a connection whose SYN-ACK was seen.
fn late_half(client: u32) -> Piece {
    // Every second segment is that SYN-ACK, of the same connection.
    let first = segment(client / 2, &[]);
    if client.is_multiple_of(2) {
        let acknowledged = Some(first.sequence.wrapping_add(1));
        let (source, destination) = (first.destination, first.source);
        return Piece { source, destination, sequence: 0, acknowledged, is_syn: true, ..first };
    }
    let sequence = first.sequence.wrapping_add(1 + HALF_HELLO_BYTES as u32);
    Piece { sequence, acknowledged: Some(1), payload: vec![7; HALF_HELLO_BYTES], ..first }
}

/// Floods a counter while the clients of the captures shake hands, in segments of so many bytes. Gives the
/// memory of this process then.
fn flood(counter: &mut WireCounter, flood: Flood, count: u32) -> u64 {
    let honest: Vec<_> = CAPTURES.iter().flat_map(|capture| split(&capture.pieces(), 400, 0)).collect();
    let mut honest = honest.into_iter();
    let mut time_ns = honest.as_slice()[0].time_ns;
    for client in 0..count {
        time_ns += BETWEEN_NS;
        Piece { time_ns, ..flood(client) }.count(counter);
        if client % BETWEEN == 0
            && let Some(piece) = honest.next()
        {
            Piece { time_ns, ..piece }.count(counter);
        }
        // The publisher takes the counts once a second.
        if client % 50_000 == 0 {
            counter.counted.seal();
            counter.counted.delta.clients.clear();
            counter.counted.delta.tls.usage.clear();
            counter.counted.delta.connections.clear();
            counter.counted.delta.services.clear();
        }
    }
    assert_eq!(honest.next().map(|_| ()), None, "all honest segments were sent");
    memory_bytes()
}

/// Packets of QUIC of so many pairs of addresses and ports, among those of one that counts once. Gives the memory of this
/// process then.
fn flood_with_quic(counter: &mut WireCounter, count: u32) -> u64 {
    let destination = SocketAddr::from((Ipv4Addr::LOCALHOST, 443));
    let honest = SocketAddr::from(([192, 0, 2, 1], 50_000));
    for client in 0..count {
        let frame = Frame {
            time_ns: u64::from(client) * BETWEEN_NS,
            interface: 0,
            is_outgoing: false,
            link: LinkLayer::Ip,
            data: &[],
        };
        let source = if client % BETWEEN == 0 { honest } else { segment(client, &[]).source };
        counter.packet(&frame, &Packet::Quic { source, destination, len: 1_200 });
    }
    memory_bytes()
}

/// One test, so that nothing else takes memory meanwhile.
#[test]
fn floods_take_bounded_memory_and_hide_no_handshake() {
    let expected = CAPTURES.map(|capture| capture.counts);
    let [full, resumed] = [|counts: &Counts| counts.full, |counts: &Counts| counts.resumed]
        .map(|of: fn(&Counts) -> u64| expected.iter().map(of).sum::<u64>());
    let floods: [(&str, Flood, u32); 5] = [
        ("SYNs", syn, 100_000),
        ("SYNs", syn, 400_000),
        ("half hellos", half_hello, 100_000),
        ("late halves", late_half, 100_000),
        ("half hellos", half_hello, 200_000),
    ];
    for (name, of, count) in floods {
        let options = WireOptions { ports: PORTS.to_vec(), ..WireOptions::default() };
        let mut counter = WireCounter::new(options);
        let bytes = flood(&mut counter, of, count);
        counter.counted.seal();
        let delta = &counter.counted.delta;
        let counts = Counts::of(&delta.counters, &delta.tls.counters);
        assert_eq!((counts.full, counts.resumed), (full, resumed), "among {count} {name}: {counts:?}");
        println!("{count} {name}: {} MiB, {} connections followed", bytes >> 20, counter.flows());
        assert!(bytes < MEMORY_BYTES_MAX, "{count} {name}: {bytes}");
    }
    let (count, mut counter) = (2_000_000, WireCounter::new(WireOptions::default()));
    let bytes = flood_with_quic(&mut counter, count);
    let counters = &counter.counted.delta.counters;
    let [packets, connections] =
        [ProxyCounter::QuicPackets, ProxyCounter::QuicConnections].map(|at| counters[at]);
    assert_eq!((packets, connections), (u64::from(count), u64::from(count - count / BETWEEN + 1)));
    println!("{count} packets of QUIC: {} MiB", bytes >> 20);
    assert!(bytes < MEMORY_BYTES_MAX, "{count} packets of QUIC: {bytes}");
}
