//! Hands any bytes to HTTP/2 as a server's, whole and in pieces: nothing panics, nothing is kept beyond its bound, what
//! is said in answer are frames, and pieces lead to what the whole leads to.

#![no_main]

#[path = "../../loadgen/tests/frames/mod.rs"]
mod frames;

use std::path::Path;
use std::sync::LazyLock;

#[allow(clippy::wildcard_imports, reason = "the names of frames")]
use frames::*;
use fuzz::seeds_if_asked;
use libfuzzer_sys::fuzz_target;
use loadgen::Http2Harness;

/// What is kept of a frame and a header block that are not whole, in bytes at most.
const KEPT_BYTES_MAX: usize = (16 << 10) + 9 + (64 << 10);
/// What header blocks are decoded to, in bytes at most: so much for each of the four requests.
const DECODED_BYTES_MAX: u64 = 4 * (256 << 10);
/// Longest payload of a frame, and what a connection begins with.
const PAYLOAD_BYTES_MAX: usize = 16_384;
const PREFACE_BYTES: usize = 24;

static HARNESS: LazyLock<Http2Harness> = LazyLock::new(Http2Harness::default);

fuzz_target!(init: seeds_if_asked(write_seeds), |input: &[u8]| {
    let Some((&step, frames)) = input.split_first() else { return };
    // Most of what a server can do wrong comes after its settings.
    let begun = [&frame(SETTINGS, 0, 0, &[]), frames].concat();
    let server = if step % 2 == 0 { frames } else { &begun };
    let whole = HARNESS.receive([server]);
    let pieces = HARNESS.receive(server.chunks(usize::from(step) + 1));
    for tried in [&whole, &pieces] {
        assert!(tried.kept_bytes_max <= KEPT_BYTES_MAX, "{tried:?}");
        assert!(tried.decoded_bytes <= DECODED_BYTES_MAX, "{tried:?}");
        assert!(tried.answered + tried.failed + tried.unprocessed <= 4, "{tried:?}");
        assert!(are_frames(&tried.output[PREFACE_BYTES..]), "{tried:?}");
    }
    let outcome = |tried: &loadgen::Http2HarnessResult| (tried.answered, tried.failed, tried.unprocessed, tried.is_broken);
    assert_eq!(outcome(&whole), outcome(&pieces), "{whole:?} {pieces:?}");
});

/// Whether `output` is made of whole frames of a length that every server takes.
fn are_frames(mut output: &[u8]) -> bool {
    while let Some((head, rest)) = output.split_first_chunk::<9>() {
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        if len > PAYLOAD_BYTES_MAX || len > rest.len() {
            return false;
        }
        output = &rest[len..];
    }
    output.is_empty()
}

/// Writes answers of servers that mean well, which the fuzzer takes apart, each whole and in small pieces.
fn write_seeds(folder: &Path) -> std::io::Result<()> {
    // RFC 7541, appendices C.5.1 and C.6.1: fields that are added to the table, plain and coded.
    let plain =
        b"\x48\x03302\x58\x07private\x61\x1dMon, 21 Oct 2013 20:13:21 GMT\x6e\x17https://www.example.com";
    let coded = b"\x48\x82\x64\x02\x58\x85\xae\xc3\x77\x1a\x4b\x61\x96\xd0\x7a\xbe\x94\x10\x54\xd4\x44\xa8\x20\x05\x95\
        \x04\x0b\x81\x66\xe0\x82\xa6\x2d\x1b\xff\x6e\x91\x9d\x29\xad\x17\x18\x63\xc7\x8f\x0b\x97\xc8\xe9\xae\x82\xae\
        \x43\xd3";
    let answer = |block: &[u8]| {
        [
            frame(HEADERS, END_HEADERS, 1, block),
            frame(DATA, 0, 1, b"hello, "),
            frame(DATA, END_STREAM, 1, b"world"),
            frame(HEADERS, END_HEADERS | END_STREAM, 3, b"\x48\x83\x64\x0e\xff\xc1\xc0\xbf"),
        ]
        .concat()
    };
    let window =
        [frame(WINDOW_UPDATE, 0, 0, &[0, 1, 0, 0]), frame(WINDOW_UPDATE, 0, 5, &[0, 1, 0, 0])].concat();
    // A table of 256 bytes, 7 streams, windows of 100 and frames of 16,384 bytes.
    let settings = b"\0\x01\0\0\x01\0\0\x03\0\0\0\x07\0\x04\0\0\0\x64\0\x05\0\0\x40\0";
    let continued =
        [frame(HEADERS, END_STREAM, 1, &plain[..20]), frame(CONTINUATION, END_HEADERS, 1, &plain[20..])];
    let trailers = [
        frame(HEADERS, END_HEADERS, 5, b"\x08\x03103"),
        frame(HEADERS, END_HEADERS, 5, b"\x88\x0f\x0d\x015"),
        frame(DATA, 8, 5, b"\x03hello\0\0\0"),
        frame(HEADERS, END_HEADERS | END_STREAM, 5, b"\0\x01x\x01y"),
    ];
    let ends = [
        frame(PING, 0, 0, b"12345678"),
        frame(RST_STREAM, 0, 7, &[0, 0, 0, 7]),
        frame(GOAWAY, 0, 0, &[0, 0, 0, 5, 0, 0, 0, 0]),
    ];
    // A field that fills the table, and blocks that name it again and again on a stream that is over.
    let filling = [b"\x88\x40\x01a\x7f\xa0\x1e", &[b'b'; 3999][..]].concat();
    let repeated = [
        frame(HEADERS, END_HEADERS | END_STREAM, 1, &filling),
        frame(HEADERS, END_HEADERS | END_STREAM, 1, &[0xbe; 30]).repeat(10),
    ];
    let seeds = [
        repeated.concat(),
        answer(plain),
        answer(coded),
        [frame(SETTINGS, 0, 0, settings), window, answer(coded)].concat(),
        continued.concat(),
        trailers.concat(),
        [ends.concat(), answer(plain)].concat(),
    ];
    for (nth, frames) in seeds.iter().enumerate() {
        for step in [1, 7, 255] {
            std::fs::write(folder.join(format!("{nth}-{step}")), [&[step], &frames[..]].concat())?;
        }
    }
    Ok(())
}
