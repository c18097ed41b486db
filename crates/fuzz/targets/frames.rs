//! Hands any bytes to the tap on HTTP/2's frames, whole and in pieces: nothing panics, and pieces are counted as the whole.

#![no_main]

#[path = "../../loadgen/tests/frames/mod.rs"]
#[allow(dead_code, reason = "what a server sends")]
mod frames;

use std::path::Path;

#[allow(clippy::wildcard_imports, reason = "the names of frames")]
use frames::*;
use fuzz::seeds_if_asked;
use libfuzzer_sys::fuzz_target;
use proxy_http::harness::tap_frames;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fuzz_target!(init: seeds_if_asked(write_seeds), |input: &[u8]| {
    let Some((&step, bytes)) = input.split_first() else { return };
    let received = [PREFACE, bytes].concat();
    let whole = tap_frames([&received[..]], [bytes]);
    let step = usize::from(step) + 1;
    let pieces = tap_frames(received.chunks(step), bytes.chunks(step));
    assert_eq!(whole, pieces);
});

fn write_seeds(folder: &Path) -> std::io::Result<()> {
    let request = |stream| frame(HEADERS, END_HEADERS | END_STREAM, stream, b"\x82\x84\x87");
    let reset = |stream| frame(RST_STREAM, 0, stream, &[0, 0, 0, 8]);
    let goaway = [&[0, 0, 0, 1, 0, 0, 0, 11][..], b"too_many_resets"].concat();
    let seeds = [
        [frame(SETTINGS, 0, 0, &[]), request(1), frame(DATA, END_STREAM, 1, b"hello")].concat(),
        [request(1), reset(1)].concat().repeat(300),
        [frame(PING, 0, 0, &[0; 8]), frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 1])].concat().repeat(100),
        [frame(HEADERS, 0, 1, b"\x82"), frame(CONTINUATION, END_HEADERS, 1, b"\x84")].concat(),
        frame(GOAWAY, 0, 0, &goaway),
    ];
    for (nth, frames) in seeds.iter().enumerate() {
        for step in [1, 8, 255] {
            std::fs::write(folder.join(format!("{nth}-{step}")), [&[step], &frames[..]].concat())?;
        }
    }
    Ok(())
}
