//! Capture files of all formats, whole, cut and damaged.

use std::io::{self, Cursor, Read, Write as _};

use crate::captures::{MICROSECONDS, NANOSECONDS, Order, PcapNg, pcap};
use proptest::prelude::*;
use wire::capture::LinkLayer;
use wire::capture::{CaptureError, CaptureReader};

/// A frame, kept.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    time_ns: u64,
    interface: u32,
    is_outgoing: bool,
    link: LinkLayer,
    data: Vec<u8>,
}

/// What a capture gave.
#[derive(Debug)]
struct Captured {
    frames: Vec<Kept>,
    error: Option<CaptureError>,
    is_cut: bool,
    dropped: u64,
}

fn read(read: impl Read + Send + 'static) -> Captured {
    let mut captured = Captured { frames: Vec::new(), error: None, is_cut: false, dropped: 0 };
    let mut reader = match CaptureReader::new(read) {
        Ok(reader) => reader,
        Err(error) => return Captured { error: Some(error), ..captured },
    };
    loop {
        match reader.next_frame() {
            Ok(Some(frame)) => captured.frames.push(Kept {
                time_ns: frame.time_ns,
                interface: frame.interface,
                is_outgoing: frame.is_outgoing,
                link: frame.link,
                data: frame.data.to_vec(),
            }),
            Ok(None) => break,
            Err(error) => {
                captured.error = Some(error);
                break;
            }
        }
    }
    (captured.is_cut, captured.dropped) = (reader.is_cut(), reader.dropped());
    captured
}

/// The frames of a capture without a flaw.
fn frames(file: &[u8]) -> Vec<Kept> {
    let captured = read(Cursor::new(file.to_vec()));
    assert!(captured.error.is_none() && !captured.is_cut, "{captured:?}");
    captured.frames
}

fn error(file: &[u8]) -> String {
    read(Cursor::new(file.to_vec())).error.unwrap().to_string()
}

/// Times and bytes.
fn times(frames: &[Kept]) -> Vec<(u64, &[u8])> {
    frames.iter().map(|frame| (frame.time_ns, &frame.data[..])).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// A pcapng file with a block of each kind, of which some are passed over.
fn every_block(order: Order) -> Vec<u8> {
    let file = PcapNg::new(order);
    let (outgoing, nanoseconds) = (file.flags(2), file.option(9, &[9]));
    file.interface(1, 0, &[])
        .interface(113, 0, &nanoseconds)
        .block(4, b"names")
        .packet(0, 1_000_001, b"one", &[])
        .block(0xbad, &[7; 5_000])
        .packet(1, 2_000_000_002, b"two++", &outgoing)
        .simple(6, b"three.")
        .obsolete(1, 0xffff, 4_000_000_004, b"four")
        .statistics(0, 3, 4)
        .bytes
}

#[test]
fn pcap_of_both_resolutions_and_byte_orders_is_read() {
    let long = vec![3; 262_144];
    for order in [Order::Little, Order::Big] {
        for (magic, unit) in [(MICROSECONDS, 1_000), (NANOSECONDS, 1)] {
            let file = pcap(order, magic, 1, &[(1, 999_999, b"one"), (u32::MAX, 2, b""), (3, 3, &long)]);
            let frames = frames(&file);
            let far_ns = u64::from(u32::MAX) * 1_000_000_000 + 2 * unit;
            let expected: [(u64, &[u8]); 3] =
                [(1_000_000_000 + 999_999 * unit, b"one"), (far_ns, b""), (3_000_000_000 + 3 * unit, &long)];
            assert_eq!(times(&frames), expected);
            assert!(frames.iter().all(|frame| frame.interface == 0 && !frame.is_outgoing));
        }
    }
}

#[test]
fn link_types_are_known_by_number_and_others_are_named() {
    let known = [
        (0, LinkLayer::Loopback),
        (1, LinkLayer::Ethernet),
        (12, LinkLayer::Ip),
        (101, LinkLayer::Ip),
        (108, LinkLayer::Loopback),
        (113, LinkLayer::LinuxCooked),
        (228, LinkLayer::Ip),
        (229, LinkLayer::Ip),
        (276, LinkLayer::LinuxCooked2),
        // With a frame check sequence of four bytes.
        (0x4400_0001, LinkLayer::Ethernet),
    ];
    for (number, link) in known {
        assert_eq!(frames(&pcap(Order::Little, MICROSECONDS, number, &[(0, 0, b"")]))[0].link, link);
    }
    let wireless = error(&pcap(Order::Little, MICROSECONDS, 127, &[]));
    assert!(wireless.contains("link type 127"), "{wireless}");
    // An interface without frames is no hindrance.
    let file = PcapNg::new(Order::Little).interface(127, 0, &[]).interface(1, 0, &[]).packet(1, 0, b"", &[]);
    assert_eq!(frames(&file.bytes).len(), 1);
    assert!(error(&file.packet(0, 0, b"", &[]).bytes).contains("link type 127"));
}

#[test]
fn pcapng_blocks_of_each_kind_are_read_in_both_byte_orders() {
    for order in [Order::Little, Order::Big] {
        let captured = read(Cursor::new(every_block(order)));
        let expected: [(u64, &[u8]); 4] = [
            (1_000_001_000, b"one"),
            (2_000_000_002, b"two++"),
            (2_000_000_002, b"three."),
            (4_000_000_004, b"four"),
        ];
        assert_eq!(times(&captured.frames), expected);
        let interfaces: Vec<u32> = captured.frames.iter().map(|frame| frame.interface).collect();
        assert_eq!(interfaces, [0, 1, 0, 1]);
        let outgoing: Vec<bool> = captured.frames.iter().map(|frame| frame.is_outgoing).collect();
        assert_eq!(outgoing, [false, true, false, false]);
        assert_eq!(
            (captured.frames[0].link, captured.frames[1].link),
            (LinkLayer::Ethernet, LinkLayer::LinuxCooked)
        );
        assert_eq!((captured.dropped, captured.is_cut), (7, false));
    }
}

#[test]
fn each_interface_has_its_own_clock() {
    for order in [Order::Little, Order::Big] {
        let file = PcapNg::new(order);
        let resolution = |n: u8| file.option(9, &[n]);
        let offset = |seconds: i64| file.option(14, &order.u64(seconds as u64));
        let file = file
            .clone()
            .interface(1, 0, &[])
            .interface(1, 0, &resolution(0x8a))
            .interface(1, 0, &[resolution(3), offset(1_000)].concat())
            .interface(1, 0, &offset(-5))
            .interface(1, 0, &resolution(127))
            .interface(1, 0, &resolution(0));
        let packets = [(0, 7), (1, 1_536), (2, 1_500), (3, 6_000_000), (3, 0), (4, u64::MAX), (5, u64::MAX)];
        let file =
            packets.iter().fold(file, |file, (interface, time)| file.packet(*interface, *time, b"", &[]));
        let frames = frames(&file.bytes);
        let times_ns: Vec<u64> = frames.iter().map(|frame| frame.time_ns).collect();
        let second = 1_000_000_000;
        assert_eq!(times_ns, [7_000, 1_500_000_000, 1_001 * second + second / 2, second, 0, 0, u64::MAX]);
    }
}

#[test]
fn a_section_has_its_own_byte_order_and_interfaces() {
    let file = PcapNg::new(Order::Little)
        .interface(1, 0, &[])
        .statistics(0, 2, 0)
        .packet(0, 1, b"one", &[])
        .statistics(0, 5, 0)
        .section(Order::Big)
        .interface(101, 0, &[])
        .packet(0, 2, b"two", &[])
        .statistics(0, 1, 1);
    let captured = read(Cursor::new(file.bytes.clone()));
    assert_eq!(times(&captured.frames), [(1_000, &b"one"[..]), (2_000, b"two")]);
    assert_eq!(captured.frames[1].link, LinkLayer::Ip);
    assert_eq!(captured.dropped, 7, "totals of each interface, the last one said");
    assert!(error(&file.section(Order::Big).packet(0, 0, b"", &[]).bytes).contains("damaged at byte"));
}

#[test]
fn a_snap_length_tells_the_length_of_simple_packets() {
    let file = PcapNg::new(Order::Little).interface(1, 5, &[]).simple(1_500, b"12345").simple(3, b"123");
    let frames = frames(&file.bytes);
    assert_eq!(times(&frames), [(0, &b"12345"[..]), (0, b"123")]);
}

#[test]
fn cooked_frames_say_what_this_machine_sent() {
    let mut second = [0; 20];
    second[10] = 4;
    let first = [&[0, 4][..], &[0; 14]].concat();
    assert!(frames(&pcap(Order::Little, MICROSECONDS, 113, &[(0, 0, &first)]))[0].is_outgoing);
    assert!(frames(&pcap(Order::Little, MICROSECONDS, 276, &[(0, 0, &second)]))[0].is_outgoing);
    assert!(!frames(&pcap(Order::Little, MICROSECONDS, 113, &[(0, 0, &second)]))[0].is_outgoing);
    assert!(!frames(&pcap(Order::Little, MICROSECONDS, 1, &[(0, 0, &first)]))[0].is_outgoing);
}

#[test]
fn gzip_and_zstd_are_read_through_also_in_several_members() {
    let file = every_block(Order::Little);
    let plain = frames(&file);
    let (start, end) = file.split_at(file.len() / 2);
    assert_eq!(frames(&gzip(&file)), plain);
    assert_eq!(frames(&zstd(&file)), plain);
    assert_eq!(frames(&[gzip(start), gzip(end)].concat()), plain);
    assert_eq!(frames(&[zstd(start), zstd(end)].concat()), plain);
}

#[test]
fn what_is_no_capture_says_so() {
    assert_eq!(error(b""), "the capture is empty");
    assert_eq!(error(&gzip(b"")), "the capture is empty");
    for other in [
        &b"GET"[..],
        b"GET / HTTP/1.1\r\n\r\n",
        &pcap(Order::Big, MICROSECONDS, 1, &[])[..23],
        &gzip(&[0; 99]),
    ] {
        assert!(error(other).starts_with("not a capture"));
    }
}

#[test]
fn damage_names_its_offset_and_costs_no_memory() {
    let mut file = pcap(Order::Little, MICROSECONDS, 1, &[(0, 0, b"one"), (0, 0, b"two")]);
    file[24 + 16 + 3 + 8..][..4].copy_from_slice(&u32::MAX.to_le_bytes());
    let captured = read(Cursor::new(file));
    assert_eq!(captured.frames.len(), 1);
    assert!(captured.error.unwrap().to_string().contains("at byte 43, or has a block of 4294967295 bytes"));

    let good = PcapNg::new(Order::Little).interface(1, 0, &[]);
    let offset = good.bytes.len();
    let packet = good.clone().packet(0, 0, b"one", &[]).bytes;
    // The block's length: too short for anything, too short for the frame, too long. Then a frame that is longer.
    for (at, value) in [(4, 11_u32), (4, 32), (4, 300_000), (20, 5), (20, u32::MAX)] {
        let mut file = packet.clone();
        file[offset + at..][..4].copy_from_slice(&value.to_le_bytes());
        file.resize(file.len() + 400_000, 0);
        assert!(error(&file).contains(&format!("damaged at byte {offset}")), "{at} {value}");
    }
    let crowded = (0..=4_096).fold(good, |file, _| file.interface(1, 0, &[]));
    assert!(error(&crowded.bytes).contains("too many interfaces"));
}

#[test]
fn other_blocks_are_passed_over_whatever_their_length() {
    let file = PcapNg::new(Order::Big).interface(1, 0, &[]);
    let whole = file.block(10, &vec![1; 3 << 20]).packet(0, 1, b"one", &[]);
    assert_eq!(times(&frames(&whole.bytes)), [(1_000, &b"one"[..])]);
    let cut = read(Cursor::new(whole.bytes[..1 << 20].to_vec()));
    assert!(cut.is_cut && cut.error.is_none() && cut.frames.is_empty());
}

#[test]
fn an_error_of_the_reader_is_passed_on() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("no such tape"))
        }
    }
    let start = pcap(Order::Little, MICROSECONDS, 1, &[(0, 0, b"one")]);
    let captured = read(Cursor::new(start).chain(Broken));
    assert_eq!(captured.frames.len(), 1);
    assert_eq!(captured.error.unwrap().to_string(), "cannot read the capture: no such tape");
}

/// Gives a byte at a time, as a slow pipe may.
struct Dribble(Cursor<Vec<u8>>);

impl Read for Dribble {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = buffer.len().min(1);
        self.0.read(&mut buffer[..len])
    }
}

#[test]
fn a_pipe_may_give_bytes_one_by_one() {
    let files =
        [every_block(Order::Big), pcap(Order::Big, MICROSECONDS, 1, &[(0, 0, b"one"), (0, 1, b"two")])];
    for file in files {
        for form in [file.clone(), gzip(&file), zstd(&file)] {
            assert_eq!(read(Dribble(Cursor::new(form))).frames, frames(&file));
        }
    }
}

/// Captures to take apart.
fn samples() -> Vec<Vec<u8>> {
    let many: Vec<Vec<u8>> = (0..200_u32).map(|n| vec![n as u8; (n as usize * 37) % 3_000]).collect();
    let many: Vec<(u32, u32, &[u8])> = many.iter().map(|bytes| (7, 7, &bytes[..])).collect();
    let many = pcap(Order::Big, NANOSECONDS, 101, &many);
    let plain = [every_block(Order::Little), every_block(Order::Big), many];
    plain.iter().flat_map(|file| [file.clone(), gzip(file), zstd(file)]).collect()
}

proptest! {
    #[test]
    fn a_cut_file_gives_a_prefix_of_its_frames(nth in 0..9_usize, at in any::<prop::sample::Index>()) {
        let file = &samples()[nth];
        let at = at.index(file.len());
        let (whole, cut) = (frames(file), read(Cursor::new(file[..at].to_vec())));
        prop_assert!(whole.starts_with(&cut.frames));
        match cut.error {
            // Without its header a file says nothing.
            Some(error) => prop_assert!(cut.frames.is_empty() && matches!(error, CaptureError::Empty | CaptureError::NotACapture)),
            None => prop_assert!(cut.is_cut || nth % 3 == 0),
        }
    }

    #[test]
    fn damaged_files_never_panic(nth in 0..9_usize, damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut file = samples()[nth].clone();
        for (at, byte) in damage {
            let at = at.index(file.len().min(600));
            file[at] = byte;
        }
        read(Cursor::new(file));
    }

    #[test]
    fn any_bytes_never_panic(start in 0..6_usize, bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let starts: [&[u8]; 6] = [
            b"",
            &pcap(Order::Little, MICROSECONDS, 1, &[]),
            &PcapNg::new(Order::Little).interface(1, 0, &[]).bytes,
            &PcapNg::new(Order::Big).interface(1, 0, &[]).bytes,
            &[0x1f, 0x8b, 8],
            &[0x28, 0xb5, 0x2f, 0xfd],
        ];
        read(Cursor::new([starts[start], &bytes].concat()));
    }
}
