//! A packet socket on the loopback interface.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::MetadataExt as _;
use std::time::{Duration, Instant, SystemTime};

use records::metrics::{Counters, ProxyCounter};
use wire::capture::{Frame, LinkLayer};
use wire::capture::{PacketSocket, SocketError, SocketOptions};
use wire::packet::{Packet, Segment};
use wire::{WireCounter, WireOptions};

/// Longer than the kernel keeps back what it has captured.
const PATIENCE: Duration = Duration::from_millis(50);
const DEADLINE: Duration = Duration::from_secs(10);

/// A socket, unless this is no root's process, which is told how to become able to have one.
fn open(options: &SocketOptions) -> Option<PacketSocket> {
    let is_root = std::fs::metadata("/proc/self").unwrap().uid() == 0;
    match PacketSocket::open(options) {
        Ok(socket) => Some(socket),
        Err(error @ SocketError::NotPermitted { .. }) if !is_root => {
            assert!(error.to_string().contains("sudo setcap cap_net_raw+ep /"), "{error}");
            None
        }
        Err(error) => panic!("a test of root's needs CAP_NET_RAW: {error}"),
    }
}

fn of_ports(ports: &[u16]) -> SocketOptions {
    SocketOptions { interface: Some("lo".to_owned()), ports: ports.to_vec() }
}

/// Reads until `is_last` says so.
fn read_until(socket: &mut PacketSocket, mut is_last: impl FnMut(&Frame<'_>, Packet<'_>) -> bool) {
    let (start, mut is_over) = (Instant::now(), false);
    while !is_over {
        assert!(start.elapsed() < DEADLINE, "the last packet has not come");
        socket.read(PATIENCE, &mut |frame| is_over |= is_last(&frame, Packet::parse(&frame))).unwrap();
    }
}

/// The segments up to the one from the client that ends with these bytes, with their payload.
fn segments_until(socket: &mut PacketSocket, end: &[u8]) -> Vec<(u16, bool, u32, Vec<u8>)> {
    let mut segments = Vec::new();
    read_until(socket, |_, packet| {
        let Packet::Tcp(Segment { source, is_syn, len, payload, .. }) = packet else { panic!("{packet:?}") };
        segments.push((source.port(), is_syn, len, payload.to_vec()));
        payload.ends_with(end)
    });
    segments
}

fn listener(ip: &str) -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(SocketAddr::new(ip.parse().unwrap(), 0)).unwrap();
    let addr = listener.local_addr().unwrap();
    (listener, addr)
}

fn connect(ip: &str) -> (TcpListener, TcpStream, TcpStream) {
    let (listener, addr) = listener(ip);
    let client = TcpStream::connect(addr).unwrap();
    let server = listener.accept().unwrap().0;
    (listener, client, server)
}

#[test]
fn a_connection_on_loopback_is_seen_once_and_others_are_not() {
    for ip in ["127.0.0.1", "::1"] {
        let (listener, addr) = listener(ip);
        let Some(mut socket) = open(&of_ports(&[1, addr.port(), 2])) else { return };
        let (_other, mut noise, _) = connect(ip);
        noise.write_all(b"not for us").unwrap();
        let before = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
        let mut client = TcpStream::connect(addr).unwrap();
        client.write_all(b"to the server").unwrap();
        listener.accept().unwrap().0.write_all(b"to the client").unwrap();
        let client_port = client.local_addr().unwrap().port();

        let mut last_ns = before;
        let mut syns = Vec::new();
        let mut payloads = Vec::new();
        read_until(&mut socket, |frame, packet| {
            let Packet::Tcp(segment) = packet else { panic!("{packet:?}") };
            assert!([segment.source.ip(), segment.destination.ip()] == [ip.parse::<IpAddr>().unwrap(); 2]);
            assert_eq!((frame.link, frame.is_outgoing), (LinkLayer::Ip, false));
            assert!(frame.time_ns >= last_ns, "kernel's time, in order");
            last_ns = frame.time_ns;
            if segment.is_syn {
                syns.push((segment.source.port(), segment.acknowledged.is_some()));
            }
            if segment.len > 0 {
                payloads.push((segment.source.port(), segment.payload.to_vec()));
            }
            payloads.len() == 2
        });
        let after = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
        assert!(last_ns <= after);
        assert_eq!(syns, [(client_port, false), (addr.port(), true)]);
        assert_eq!(
            payloads,
            [(client_port, b"to the server".to_vec()), (addr.port(), b"to the client".to_vec())]
        );
        assert_eq!(socket.dropped(), 0);
    }
}

#[test]
fn many_ports_are_told_apart_by_the_kernel() {
    let (_listener, addr) = listener("127.0.0.1");
    let mut ports: Vec<u16> = (1..=256).collect();
    ports[255] = addr.port();
    let Some(mut socket) = open(&of_ports(&ports)) else { return };
    let _client = TcpStream::connect(addr).unwrap();
    let (_, is_syn, ..) = segments_until(&mut socket, b"")[0];
    assert!(is_syn);
    ports.push(257);
    assert!(matches!(PacketSocket::open(&of_ports(&ports)), Err(SocketError::TooManyPorts { count: 257 })));
}

#[test]
fn without_ports_all_tcp_and_quic_come_through() {
    let Some(mut socket) = open(&SocketOptions::default()) else { return };
    let (_listener, mut client, _server) = connect("127.0.0.1");
    // Nobody needs to listen there.
    let mut own = Vec::new();
    for ip in ["127.0.0.1", "::1"] {
        let ip: IpAddr = ip.parse().unwrap();
        let quic = UdpSocket::bind((ip, 0)).unwrap();
        own.push(quic.local_addr().unwrap());
        quic.send_to(&[7; 8], (ip, 9)).unwrap();
        quic.send_to(&[7; 1_000], (ip, 443)).unwrap();
    }
    client.write_all(b"the end").unwrap();
    let (port, mut lengths) = (client.local_addr().unwrap().port(), Vec::new());
    read_until(&mut socket, |_, packet| match packet {
        Packet::Tcp(segment) => segment.source.port() == port && segment.payload == b"the end",
        Packet::Quic { source, destination, len } => {
            assert!([source.port(), destination.port()].contains(&443));
            lengths.extend(own.contains(&source).then_some(len));
            false
        }
        Packet::Other => panic!(),
    });
    assert_eq!(lengths, [1_000, 1_000]);
}

#[test]
fn of_long_segments_handshakes_are_kept_whole() {
    for ip in ["127.0.0.1", "::1"] {
        let (listener, addr) = listener(ip);
        let Some(mut socket) = open(&of_ports(&[addr.port()])) else { return };
        let mut client = TcpStream::connect(addr).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let mut read = vec![0; 40_000];
        for kind in [22, 23] {
            read[0] = kind;
            client.write_all(&read).unwrap();
            server.read_exact(&mut read).unwrap();
        }
        client.write_all(b"the end").unwrap();
        let segments = segments_until(&mut socket, b"the end");
        let headers = if ip == "::1" { 72 } else { 52 };
        let mut whole = 0;
        for (_, _, len, payload) in &segments {
            // Of others the kernel keeps so much with their headers.
            let is_whole = *len <= 15 << 10 || payload.first() == Some(&22);
            assert_eq!(payload.len(), if is_whole { *len as usize } else { (16 << 10) - headers });
            whole += usize::from(is_whole && *len > 16 << 10);
        }
        assert_eq!(whole, 1, "{segments:?}");
        let sum: u32 =
            segments.iter().filter(|(port, ..)| *port != addr.port()).map(|(_, _, len, _)| len).sum();
        assert_eq!(sum, 80_007);
    }
}

#[test]
fn an_end_that_stops_reading_and_resets_is_counted() {
    use ProxyCounter as P;
    for is_client in [true, false] {
        let (listener, addr) = listener("127.0.0.1");
        let Some(mut socket) = open(&of_ports(&[addr.port()])) else { return };
        let options = WireOptions { ports: vec![addr.port()], ..WireOptions::default() };
        let mut counter = WireCounter::new(options);
        let client = TcpStream::connect(addr).unwrap();
        let server = listener.accept().unwrap().0;
        let (mut writer, silent) = if is_client { (server, client) } else { (client, server) };
        let [windows, resets] = if is_client {
            [[P::ClientWindowsFull, P::ServerWindowsFull], [P::ResetByClient, P::ResetByServer]]
        } else {
            [[P::ServerWindowsFull, P::ClientWindowsFull], [P::ResetByServer, P::ResetByClient]]
        };
        let mut count_until = |is_over: &mut dyn FnMut(&Counters<P>) -> bool| {
            read_until(&mut socket, |frame, packet| {
                let Packet::Tcp(segment) = packet else { panic!("{packet:?}") };
                counter.segment(frame, &segment);
                is_over(&counter.counted.counters())
            });
            counter.counted.counters()
        };
        writer.set_nonblocking(true).unwrap();
        let totals = count_until(&mut |totals| {
            while writer.write(&[23; 16 << 10]).is_ok() {}
            totals[windows[0]] > 0
        });
        assert_eq!(windows.map(|counter| totals[counter]), [1, 0]);
        // What it has not read makes the kernel reset the connection.
        drop(silent);
        let totals = count_until(&mut |totals| totals[P::Closed] > 0);
        assert_eq!(resets.map(|counter| totals[counter]), [1, 0]);
        assert_eq!(windows.map(|counter| totals[counter]), [1, 0]);
    }
}

#[test]
fn what_finds_no_room_is_counted_as_dropped() {
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let own = sender.local_addr().unwrap();
    let Some(mut socket) = open(&of_ports(&[443])) else { return };
    let send =
        |count: u32| (0..count).for_each(|_| _ = sender.send_to(&[7; 1_200], "127.0.0.1:443").unwrap());
    let (mut seen, read) = (0, |socket: &mut PacketSocket| {
        let mut count = 0;
        while socket.read(PATIENCE, &mut |frame| count += u64::from(is_quic_from(&frame, own))).unwrap() > 0 {
        }
        count
    });
    send(10);
    seen += read(&mut socket);
    assert_eq!((seen, socket.dropped()), (10, 0));
    // More than the ring holds, and one more.
    send(200_000);
    seen += read(&mut socket);
    send(1);
    seen += read(&mut socket);
    let dropped = socket.dropped();
    // Another test sends a few too.
    assert!(dropped > 10_000 && (200_011..200_020).contains(&(seen + dropped)), "{seen} and {dropped}");
    send(10);
    assert_eq!((read(&mut socket), socket.dropped()), (10, dropped));
}

fn is_quic_from(frame: &Frame<'_>, own: SocketAddr) -> bool {
    matches!(Packet::parse(frame), Packet::Quic { source, len: 1_200, .. } if source == own)
}

#[test]
fn without_packets_a_read_gives_none_in_time() {
    let Some(mut socket) = open(&of_ports(&[1])) else { return };
    for patience in [Duration::ZERO, Duration::from_millis(1), PATIENCE, Duration::ZERO] {
        let start = Instant::now();
        assert_eq!(socket.read(patience, &mut |_| panic!()).unwrap(), 0);
        assert!(start.elapsed() >= patience && start.elapsed() < DEADLINE);
    }
}

#[test]
fn an_interface_that_is_not_there_is_named() {
    let options = SocketOptions { interface: Some("nowhere0".to_owned()), ports: Vec::new() };
    let error = PacketSocket::open(&options).unwrap_err().to_string();
    assert!(error.starts_with("cannot capture on nowhere0: "), "{error}");
}
