//! Hands any bytes to the reader of capture files, whole and in pieces, and every frame to the reader of packets: nothing
//! panics, no file asks for much memory, and pieces lead to what the whole leads to.

#![no_main]

#[path = "../../wire/tests/captures/mod.rs"]
mod captures;

use std::io::{Cursor, Read};
use std::path::Path;

use captures::{MICROSECONDS, NANOSECONDS, Order, PcapNg, pcap};
use fuzz::seeds_if_asked;
use libfuzzer_sys::fuzz_target;
use wire::capture::CaptureReader;
use wire::packet::Packet;

fuzz_target!(init: seeds_if_asked(write_seeds), |input: &[u8]| {
    let Some((&step, file)) = input.split_first() else { return };
    let file = Cursor::new(file.to_vec());
    let whole = outcome(file.clone());
    let pieces = outcome(Pieces { file, bytes_max: usize::from(step) + 1 });
    // How much a decompressor gives before it finds damage depends on how much it was asked for.
    if ![&whole, &pieces].iter().any(|outcome| outcome.error.starts_with("cannot read")) {
        assert_eq!(whole, pieces);
    }
});

/// What a file came to.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    frames: u64,
    payload_bytes: u64,
    time_ns_sum: u64,
    is_cut: bool,
    dropped: u64,
    error: String,
}

/// Gives few bytes at a time.
struct Pieces {
    file: Cursor<Vec<u8>>,
    bytes_max: usize,
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let len = buffer.len().min(self.bytes_max);
        self.file.read(&mut buffer[..len])
    }
}

fn outcome(file: impl Read + Send + 'static) -> Outcome {
    let mut outcome = Outcome {
        frames: 0,
        payload_bytes: 0,
        time_ns_sum: 0,
        is_cut: false,
        dropped: 0,
        error: String::new(),
    };
    let mut reader = match CaptureReader::new(file) {
        Ok(reader) => reader,
        Err(error) => return Outcome { error: error.to_string(), ..outcome },
    };
    loop {
        match reader.next_frame() {
            Ok(Some(frame)) => {
                outcome.frames += 1;
                outcome.time_ns_sum = outcome.time_ns_sum.wrapping_add(frame.time_ns);
                if let Packet::Tcp(segment) = Packet::parse(&frame) {
                    assert!(segment.payload.len() <= frame.data.len());
                    assert!(segment.payload.len() <= segment.len as usize);
                    outcome.payload_bytes += segment.payload.len() as u64;
                }
            }
            Ok(None) => break,
            Err(error) => {
                outcome.error = error.to_string();
                break;
            }
        }
    }
    Outcome { is_cut: reader.is_cut(), dropped: reader.dropped(), ..outcome }
}

/// A segment with a payload of five bytes over IPv4, and one over IPv6 with a header of destination options.
const IPV4: &[u8] =
    b"\x45\0\0\x2d\0\x01\0\0\x40\x06\0\0\x0a\0\0\x01\x0a\0\0\x02\x01\xbb\xc3\x50\0\0\0\x07\0\0\0\x09\x50\x18\
    \x03\xe8\0\0\0\0hello";
const IPV6: &[u8] = b"\x60\0\0\0\0\x21\x3c\x40\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x01\x02\x02\x02\x02\
    \x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x06\0\x01\x04\0\0\0\0\x01\xbb\xc3\x50\0\0\0\x07\0\0\0\x09\x50\x12\x03\xe8\0\0\
    \0\0hello";

/// Writes captures of all formats and link layers, to be read whole and in small pieces.
fn write_seeds(folder: &Path) -> std::io::Result<()> {
    let mut files = Vec::new();
    for (order, magic) in [(Order::Little, MICROSECONDS), (Order::Big, NANOSECONDS)] {
        for (link, head) in
            [(1, &b"\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02\x02"[..]), (113, &[0; 14]), (101, b"")]
        {
            let four = [head, if head.is_empty() { b"" } else { b"\x08\0" }, IPV4].concat();
            let six = [head, if head.is_empty() { b"" } else { b"\x81\0\0\x07\x86\xdd" }, IPV6].concat();
            files.push(pcap(order, magic, link, &[(1, 2, &four), (3, 4, &six)]));
        }
        let cooked = [&b"\x08\0"[..], &[0; 8], &[4], &[0; 9], IPV4].concat();
        files.push(pcap(order, magic, 276, &[(1, 2, &cooked)]));
        files.push(pcap(order, magic, 0, &[(1, 2, &[b"\x02\0\0\0", IPV4].concat())]));
        let file = PcapNg::new(order);
        let (clock, flags) =
            ([file.option(9, &[0x8a]), file.option(14, &order.u64(1_000))].concat(), file.flags(2));
        let file = file
            .interface(101, 60, &clock)
            .packet(0, 1, IPV4, &flags)
            .simple(90, IPV4)
            .obsolete(0, 1, 2, IPV6);
        files.push(file.block(4, b"names").statistics(0, 1, 2).bytes);
    }
    for (nth, file) in files.iter().enumerate() {
        let compressed = zstd::encode_all(&file[..], 1)?;
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut gzip, file)?;
        for (form, bytes) in [("plain", file), ("zstd", &compressed), ("gzip", &gzip.finish()?)] {
            for step in [0, 99] {
                std::fs::write(folder.join(format!("{nth}-{form}-{step}")), [&[step], &bytes[..]].concat())?;
            }
        }
    }
    Ok(())
}
