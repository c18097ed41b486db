//! What frames of all link layers hold.

use std::net::{IpAddr, SocketAddr};

use etherparse::{IpFragOffset, Ipv4Header, Ipv6FragmentHeader, PacketBuilder, ip_number};
use proptest::prelude::*;
use wire::capture::{Frame, LinkLayer};
use wire::packet::{Packet, Segment};

const HELLO: &[u8] = b"hello";

fn parse(link: LinkLayer, data: &[u8]) -> Packet<'_> {
    Packet::parse(&Frame { time_ns: 0, interface: 0, is_outgoing: false, link, data })
}

fn segment(link: LinkLayer, data: &[u8]) -> Segment<'_> {
    match parse(link, data) {
        Packet::Tcp(segment) => segment,
        other => panic!("{other:?}"),
    }
}

/// Whether it is the segment that `tcp4` or `tcp6` makes.
fn is_hello(segment: &Segment<'_>) -> bool {
    (segment.source.port(), segment.destination.port()) == (443, 50_000)
        && (segment.payload, segment.len) == (HELLO, 5)
}

fn tcp4(payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).tcp(443, 50_000, 7, 1_000);
    let mut bytes = Vec::new();
    builder.ack(9).options_raw(&[1; 8]).unwrap().write(&mut bytes, payload).unwrap();
    bytes
}

fn tcp6(payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ipv6([1; 16], [2; 16], 64).tcp(443, 50_000, 7, 1_000);
    let mut bytes = Vec::new();
    builder.fin().rst().syn().write(&mut bytes, payload).unwrap();
    bytes
}

fn udp(source: u16, destination: u16) -> Vec<u8> {
    let mut bytes = Vec::new();
    PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .udp(source, destination)
        .write(&mut bytes, HELLO)
        .unwrap();
    bytes
}

/// A frame of Ethernet, with tags.
fn ethernet(tags: &[u16], protocol: u16, bytes: &[u8]) -> Vec<u8> {
    let tags: Vec<u8> = tags.iter().flat_map(|tag| [tag.to_be_bytes(), [0, 7]].concat()).collect();
    [&[2; 12][..], &tags, &protocol.to_be_bytes(), bytes].concat()
}

fn cooked(protocol: u16, bytes: &[u8]) -> Vec<u8> {
    [&[0; 14], &protocol.to_be_bytes()[..], bytes].concat()
}

fn cooked2(protocol: u16, bytes: &[u8]) -> Vec<u8> {
    [&protocol.to_be_bytes()[..], &[0; 18], bytes].concat()
}

#[test]
fn a_segment_has_what_its_headers_say() {
    let (four, six) = (tcp4(HELLO), tcp6(b""));
    let expected = Segment {
        source: "10.0.0.1:443".parse().unwrap(),
        destination: "10.0.0.2:50000".parse().unwrap(),
        sequence: 7,
        acknowledged: Some(9),
        is_syn: false,
        is_fin: false,
        is_reset: false,
        window: 1_000,
        payload: HELLO,
        len: 5,
    };
    assert_eq!(segment(LinkLayer::Ip, &four), expected);
    let expected = Segment {
        source: SocketAddr::new(IpAddr::from([1; 16]), 443),
        destination: SocketAddr::new(IpAddr::from([2; 16]), 50_000),
        acknowledged: None,
        is_syn: true,
        is_fin: true,
        is_reset: true,
        payload: b"",
        len: 0,
        ..expected
    };
    assert_eq!(segment(LinkLayer::Ip, &six), expected);
}

#[test]
fn every_link_layer_is_taken_off() {
    for (protocol, ip) in [(0x0800, tcp4(HELLO)), (0x86dd, tcp6(HELLO))] {
        for tags in [&[][..], &[0x8100], &[0x88a8, 0x8100], &[0x9100, 0x8100, 0x8100, 0x8100]] {
            assert!(is_hello(&segment(LinkLayer::Ethernet, &ethernet(tags, protocol, &ip))), "{tags:?}");
        }
        assert!(is_hello(&segment(LinkLayer::LinuxCooked, &cooked(protocol, &ip))));
        assert!(is_hello(&segment(LinkLayer::LinuxCooked2, &cooked2(protocol, &ip))));
        let tagged = [&[0, 7][..], &u16::to_be_bytes(protocol), &ip].concat();
        assert!(is_hello(&segment(LinkLayer::LinuxCooked2, &cooked2(0x8100, &tagged))));
        for family in [[2, 0, 0, 0], [0, 0, 0, 30]] {
            assert!(is_hello(&segment(LinkLayer::Loopback, &[&family[..], &ip].concat())));
        }
    }
}

#[test]
fn other_protocols_are_other() {
    let tls = tcp4(HELLO);
    assert_eq!(parse(LinkLayer::Ethernet, &ethernet(&[], 0x0806, &tls)), Packet::Other);
    assert_eq!(parse(LinkLayer::Ethernet, &ethernet(&[0x8100], 0x8847, &tls)), Packet::Other);
    assert_eq!(parse(LinkLayer::LinuxCooked, &cooked(4, &tls)), Packet::Other);
    assert_eq!(parse(LinkLayer::Ip, &udp(53, 50_000)), Packet::Other);
    let mut ping = Vec::new();
    let builder = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).icmpv4_echo_request(1, 1);
    builder.write(&mut ping, HELLO).unwrap();
    assert_eq!(parse(LinkLayer::Ip, &ping), Packet::Other);
}

#[test]
fn udp_of_port_443_is_quic() {
    for (source, destination) in [(443, 50_000), (50_000, 443)] {
        let bytes = udp(source, destination);
        let Packet::Quic { source: from, destination: to, len } = parse(LinkLayer::Ip, &bytes) else {
            panic!()
        };
        assert_eq!((from.port(), to.port(), len), (source, destination, 5));
        let Packet::Quic { len, .. } = parse(LinkLayer::Ip, &bytes[..24]) else { panic!() };
        assert_eq!(len, 5, "cut, but long on the wire");
    }
}

#[test]
fn padding_is_no_payload() {
    let padded = ethernet(&[], 0x0800, &[tcp4(b""), vec![0; 6]].concat());
    assert_eq!(
        (segment(LinkLayer::Ethernet, &padded).payload, segment(LinkLayer::Ethernet, &padded).len),
        (&b""[..], 0)
    );
    let padded = [tcp6(HELLO), vec![0; 6]].concat();
    assert!(is_hello(&segment(LinkLayer::Ip, &padded)));
}

#[test]
fn a_snap_length_cuts_the_payload_and_not_its_length() {
    for (whole, headers) in [(tcp4(HELLO), 48), (tcp6(HELLO), 60)] {
        for len in 0..whole.len() {
            let packet = parse(LinkLayer::Ip, &whole[..len]);
            // What counts of a TCP header are its first 20 bytes.
            let fixed = if headers == 48 { 40 } else { 60 };
            if len < fixed {
                assert_eq!(packet, Packet::Other);
            } else {
                let Packet::Tcp(segment) = packet else { panic!("{len} {packet:?}") };
                assert_eq!((segment.payload, segment.len), (&HELLO[..len.saturating_sub(headers)], 5));
            }
        }
    }
}

#[test]
fn a_length_of_0_means_the_rest_of_the_frame() {
    let (mut four, mut six) = (tcp4(HELLO), tcp6(HELLO));
    four[2..4].fill(0);
    six[4..6].fill(0);
    assert!(is_hello(&segment(LinkLayer::Ip, &four)) && is_hello(&segment(LinkLayer::Ip, &six)));
}

#[test]
fn ip_options_and_extension_headers_are_passed_over() {
    let four = tcp4(HELLO);
    let mut header = Ipv4Header::from_slice(&four).unwrap().0;
    header.options = [1; 8].into();
    header.total_len += 8;
    let mut bytes = header.to_bytes().to_vec();
    bytes.extend(&four[20..]);
    assert!(is_hello(&segment(LinkLayer::Ip, &bytes)));

    let six = tcp6(HELLO);
    // Hop by hop, then destination options, of eight bytes each.
    let mut bytes = [&six[..40], &[60, 0, 1, 4, 0, 0, 0, 0], &[6, 0, 1, 4, 0, 0, 0, 0], &six[40..]].concat();
    bytes[6] = 0;
    bytes[5] += 16;
    assert!(is_hello(&segment(LinkLayer::Ip, &bytes)));
    assert_eq!(
        (segment(LinkLayer::Ip, &bytes[..76]).payload, segment(LinkLayer::Ip, &bytes[..76]).len),
        (&b""[..], 5)
    );
}

#[test]
fn fragments_are_other() {
    let four = tcp4(HELLO);
    for (offset, more) in [(0, true), (5, true), (5, false)] {
        let mut header = Ipv4Header::from_slice(&four).unwrap().0;
        (header.fragment_offset, header.more_fragments) = (IpFragOffset::try_new(offset).unwrap(), more);
        assert_eq!(parse(LinkLayer::Ip, &[&header.to_bytes(), &four[20..]].concat()), Packet::Other);

        let six = tcp6(HELLO);
        let fragment = Ipv6FragmentHeader::new(ip_number::TCP, header.fragment_offset, more, 1);
        let mut bytes = [&six[..40], &fragment.to_bytes(), &six[40..]].concat();
        (bytes[5], bytes[6]) = (bytes[5] + 8, 44);
        assert_eq!(parse(LinkLayer::Ip, &bytes), Packet::Other);
    }
}

#[test]
fn a_mapped_address_stays_what_it_is() {
    let mapped = IpAddr::from([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1]);
    let mut six = tcp6(HELLO);
    let IpAddr::V6(address) = mapped else { unreachable!() };
    six[8..24].copy_from_slice(&address.octets());
    assert_eq!(segment(LinkLayer::Ip, &six).source.ip(), mapped);
}

#[test]
fn a_header_that_says_to_be_too_short_or_too_long_is_other() {
    for words in [0, 4, 15] {
        let mut four = tcp4(HELLO);
        four[32] = words << 4;
        assert_eq!(parse(LinkLayer::Ip, &four), Packet::Other);
    }
}

const LINKS: [LinkLayer; 5] = [
    LinkLayer::Ethernet,
    LinkLayer::Ip,
    LinkLayer::LinuxCooked,
    LinkLayer::LinuxCooked2,
    LinkLayer::Loopback,
];

proptest! {
    #[test]
    fn any_bytes_never_panic(link in 0..5_usize, bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        parse(LINKS[link], &bytes);
    }

    #[test]
    fn changed_packets_never_have_more_payload_than_bytes(
        six: bool,
        changes in prop::collection::vec((0..70_usize, any::<u8>()), 0..6),
        len in 0..70_usize,
    ) {
        let mut bytes = if six { tcp6(HELLO) } else { tcp4(HELLO) };
        for (at, byte) in changes {
            if let Some(changed) = bytes.get_mut(at) {
                *changed = byte;
            }
        }
        bytes.truncate(len);
        if let Packet::Tcp(segment) = parse(LinkLayer::Ip, &bytes) {
            prop_assert!(segment.payload.len() <= bytes.len() - 40 && segment.payload.len() <= segment.len as usize);
        }
    }
}
