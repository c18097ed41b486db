//! Serves a client that sends any bytes, over HTTP/2 or HTTP/1.1: nothing panics, what waits is bounded, and what an
//! upstream would be sent are requests that are framed in one way.

#![no_main]

#[path = "../../loadgen/tests/frames/mod.rs"]
#[allow(dead_code, reason = "what a server sends")]
mod frames;

use std::path::Path;

#[allow(clippy::wildcard_imports, reason = "the names of frames")]
use frames::*;
use fuzz::seeds_if_asked;
use libfuzzer_sys::fuzz_target;
use proxy_http::harness::serve;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// What may wait for the client: 64 KiB, and what hyper writes at once.
const WRITTEN_BYTES_MAX: usize = 256 << 10;

fuzz_target!(init: seeds_if_asked(write_seeds), |input: &[u8]| {
    let Some((&[options, step], bytes)) = input.split_first_chunk() else { return };
    let is_http2 = options & 1 != 0;
    let sent = if is_http2 { [PREFACE, &frame(SETTINGS, 0, 0, &[]), bytes].concat() } else { bytes.to_vec() };
    let session = serve(sent.chunks(usize::from(step) + 1), is_http2);
    assert!(session.written_bytes_max <= WRITTEN_BYTES_MAX, "{session:?}");
    session.heads.iter().for_each(|head| check_head(head));
});

/// A head is one request of HTTP/1.1 with at most one field that frames it.
fn check_head(head: &[u8]) {
    let shown = head.escape_ascii();
    let lines = head.strip_suffix(b"\r\n\r\n").unwrap_or_else(|| panic!("{shown}"));
    assert!(!lines.contains(&0), "{shown}");
    let mut framing = 0;
    for (nth, line) in lines.split(|&byte| byte == b'\n').enumerate() {
        let line = if let Some(line) = line.strip_suffix(b"\r") { line } else { line };
        assert!(!line.contains(&b'\r') && !line.is_empty(), "{shown}");
        if nth == 0 {
            assert_eq!(line.split(|&byte| byte == b' ').count(), 3, "{shown}");
            assert!(line.ends_with(b" HTTP/1.1"), "{shown}");
            continue;
        }
        let name = line.split(|&byte| byte == b':').next().unwrap_or_default();
        assert!(!name.is_empty() && name.len() < line.len() && !name.contains(&b' '), "{shown}");
        framing += usize::from(matches!(name, b"content-length" | b"transfer-encoding"));
    }
    assert!(framing <= 1, "{shown}");
    let line_ends = head.split(|&byte| byte == b'\n').count() - 1;
    assert_eq!(line_ends, head.windows(2).filter(|pair| pair == b"\r\n").count(), "{shown}");
}

fn write_seeds(folder: &Path) -> std::io::Result<()> {
    let field = |name: &str, value: &str| {
        [&[0, name.len() as u8], name.as_bytes(), &[value.len() as u8], value.as_bytes()].concat()
    };
    let head = |method: &str| {
        let fields = [(":method", method), (":scheme", "https"), (":authority", "a"), (":path", "/")];
        fields.map(|(name, value)| field(name, value)).concat()
    };
    let with_length = [head("POST"), field("content-length", "5")].concat();
    let http2 = [
        frame(HEADERS, END_HEADERS | END_STREAM, 1, &head("GET")),
        [frame(HEADERS, END_HEADERS, 1, &head("POST")), frame(DATA, END_STREAM, 1, b"hello")].concat(),
        [frame(HEADERS, END_HEADERS, 1, &with_length), frame(DATA, END_STREAM, 1, b"hello")].concat(),
        [frame(HEADERS, END_HEADERS, 1, &head("GET")), frame(RST_STREAM, 0, 1, &[0, 0, 0, 8])].concat(),
        [frame(HEADERS, 0, 1, &head("GET")), frame(CONTINUATION, END_HEADERS, 1, &field("x", "y"))].concat(),
        [frame(PING, 0, 0, &[0; 8]), frame(WINDOW_UPDATE, 0, 0, &[0, 0, 1, 0])].concat(),
        frame(GOAWAY, 0, 0, &[0; 8]),
    ];
    let http1: [&[u8]; 6] = [
        b"GET / HTTP/1.1\r\nhost: a\r\n\r\nGET /x HTTP/1.1\r\nhost: a\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello",
        b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nx: y\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET http://a/ HTTP/1.1\nhost: a\nexpect: 100-continue\n\n",
        b"HEAD / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n",
    ];
    let seeds = http2.iter().map(|bytes| (1, &bytes[..])).chain(http1.iter().map(|bytes| (0, *bytes)));
    for (nth, (options, bytes)) in seeds.enumerate() {
        for step in [0, 9, 255] {
            std::fs::write(folder.join(format!("{nth}-{step}")), [&[options, step], bytes].concat())?;
        }
    }
    Ok(())
}
