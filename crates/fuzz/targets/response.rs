//! Reads any bytes as an upstream's response, whole and in pieces: nothing panics, and pieces are understood as the whole.

#![no_main]

use std::path::Path;

use fuzz::seeds_if_asked;
use libfuzzer_sys::fuzz_target;
use proxy_http::harness::{ParsedResponse, parse_response};

fuzz_target!(init: seeds_if_asked(write_seeds), |input: &[u8]| {
    let Some((&step, bytes)) = input.split_first() else { return };
    let whole = parse_response([bytes]);
    let pieces = parse_response(bytes.chunks(usize::from(step) + 1));
    assert!(!(whole.is_complete && whole.is_refused), "{whole:?}");
    assert!(whole.content.len() <= bytes.len(), "{whole:?}");
    // What is refused is refused as soon as that is known.
    let outcome = |response: &ParsedResponse| {
        let content = response.is_complete.then(|| response.content.clone());
        (response.status, response.is_complete, response.is_refused, content)
    };
    assert_eq!(outcome(&whole), outcome(&pieces));
});

fn write_seeds(folder: &Path) -> std::io::Result<()> {
    let seeds: [&[u8]; 9] = [
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nx: y\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nlink: <x>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\nuntil the end",
        b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\netag: \"x\"\r\ncontent-length: 7\r\n\r\n",
        b"HTTP/1.1 200 OK\nx: y\ncontent-length: 2\n\nok",
    ];
    for (nth, response) in seeds.iter().enumerate() {
        for step in [0, 7, 255] {
            std::fs::write(folder.join(format!("{nth}-{step}")), [&[step], *response].concat())?;
        }
    }
    Ok(())
}
