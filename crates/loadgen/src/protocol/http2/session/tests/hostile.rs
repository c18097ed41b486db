//! Frames that no server should send.

use super::super::receive::LIST_BYTES_MAX;
use super::*;

#[test]
fn a_connection_error_ends_the_connection_with_its_code() {
    let headers = |flags, block: &[u8]| frame(kind::HEADERS, flags, 1, block);
    let flood = [headers(0, OK), frame(kind::CONTINUATION, 0, 1, b"").repeat(100)].concat();
    let long = [headers(0, OK), frame(kind::CONTINUATION, 0, 1, &[0; 16_384]).repeat(5)].concat();
    let ping = frame(kind::PING, 0, 0, &[7; 8]);
    for (bytes, code, why) in [
        (b"HTTP/1.1 400 Bad Request\r\n".to_vec(), 6, "another protocol"),
        (frame(kind::DATA, 0, 1, &vec![0; 16_385]), 6, "a frame that is too long"),
        (frame(kind::DATA, 0, 0, b"x"), 1, "data of no stream"),
        (frame(kind::DATA, 0, 3, b"x"), 1, "data on an idle stream"),
        (frame(kind::DATA, 0, 2, b"x"), 1, "data on a stream of the server's"),
        (frame(kind::DATA, flag::PADDED, 1, b"\x05abc"), 1, "more padding than payload"),
        (frame(kind::DATA, flag::PADDED, 1, b""), 6, "padding without a length"),
        (answer(5), 1, "an answer to nothing"),
        (headers(flag::END_HEADERS, &[0xff; 10]), 9, "no header block"),
        (headers(flag::END_HEADERS | flag::PRIORITY, b"abc"), 6, "a priority that is cut"),
        ([headers(0, OK), ping.clone()].concat(), 1, "a header block that is interrupted"),
        ([headers(0, OK), frame(kind::CONTINUATION, 4, 3, OK)].concat(), 1, "another stream's continuation"),
        (frame(kind::CONTINUATION, flag::END_HEADERS, 1, OK), 1, "a continuation of nothing"),
        (flood, 11, "a flood of continuations"),
        (long, 11, "an endless header block"),
        (frame(kind::PUSH_PROMISE, flag::END_HEADERS, 1, &[0, 0, 0, 2, 0x82]), 1, "a push"),
        (frame(kind::RST_STREAM, 0, 1, &[0; 3]), 6, "a reset that is cut"),
        (frame(kind::RST_STREAM, 0, 9, &[0; 4]), 1, "a reset of an idle stream"),
        (frame(kind::SETTINGS, 0, 1, &[]), 1, "settings of a stream"),
        (frame(kind::SETTINGS, 0, 0, &[0; 5]), 6, "settings that are cut"),
        (frame(kind::SETTINGS, flag::ACK, 0, &[0; 6]), 6, "an acknowledgement that says something"),
        (settings(&[(setting::ENABLE_PUSH, 1)]), 1, "a server that wants pushes"),
        (settings(&[(setting::MAX_FRAME_SIZE, 16_383)]), 1, "frames that are too small"),
        (settings(&[(setting::INITIAL_WINDOW_SIZE, 1 << 31)]), 3, "a window that is too large"),
        (wider(0, 0), 1, "a window wider by nothing"),
        (wider(0, (1 << 31) - 1), 3, "a connection's window that is too large"),
        (wider(9, 1), 1, "a wider window of an idle stream"),
        (frame(kind::WINDOW_UPDATE, 0, 0, &[0; 3]), 6, "a wider window that is cut"),
        (frame(kind::PING, 0, 0, &[0; 7]), 6, "a ping that is cut"),
        (frame(kind::PING, 0, 1, &[0; 8]), 1, "a ping on a stream"),
        (frame(kind::GOAWAY, 0, 0, &[0; 7]), 6, "a farewell that is cut"),
        (frame(kind::PRIORITY, 0, 1, &[0; 4]), 6, "a priority of the wrong size"),
        (ping.repeat(2_000), 11, "a flood of pings"),
        (settings(&[]).repeat(2_000), 11, "a flood of settings"),
    ] {
        let mut played = SessionHarness::begun(&Template::get("/"), 1);
        played.receive(&bytes);
        let broken = played.session.broken().unwrap_or_else(|| panic!("{why} is taken"));
        assert_eq!(broken.code, ErrorCode(code), "{why}: {broken:?}");
        assert_eq!(broken.failure().event, E::Protocol);
        played.session.close();
        played.send();
        assert_eq!(played.sent_of(kind::GOAWAY)[0].2[4..], code.to_be_bytes(), "{why}");
        played.receive(&answer(1));
        assert_eq!(played.outcomes(), [("failed", Some(E::Protocol))], "{why}: nothing more is heard");
    }
    let mut played = SessionHarness::new(&Template::get("/"));
    played.receive(&frame(kind::PING, 0, 0, &[0; 8]));
    assert!(played.session.broken().is_some(), "settings come first");
}

/// A header block that adds a field of almost the table's size, which each 0xbe behind it names.
fn filling(again: usize) -> Vec<u8> {
    let field = [&[0x88, 0x40, 0x01, b'a', 0x7f, 0xa1, 0x1e][..], &[b'b'; 4_000]].concat();
    [field, vec![0xbe; again]].concat()
}

#[test]
fn a_block_that_repeats_a_long_field_is_not_decoded_to_its_end() {
    // 64 KiB that would be decoded to 240 MB.
    let block = filling(60_000);
    let (first, rest) = block.split_at(16_000);
    let pieces = rest.chunks(16_000).map(|piece| frame(kind::CONTINUATION, 0, 1, piece));
    let end = frame(kind::CONTINUATION, flag::END_HEADERS, 1, &[]);
    let bytes = [frame(kind::HEADERS, 0, 1, first), pieces.collect::<Vec<_>>().concat(), end].concat();
    let mut played = SessionHarness::begun(&Template::get("/"), 2);
    played.receive(&bytes);
    let broken = played.session.broken().expect("the end of the connection");
    assert_eq!(broken.code, ErrorCode::ENHANCE_YOUR_CALM, "{broken:?}");
    let decoded = played.session.decoded_bytes();
    assert!(decoded <= LIST_BYTES_MAX, "{decoded} bytes were looked at");
}

#[test]
fn header_blocks_on_closed_streams_are_bounded_in_sum() {
    let requests = 3;
    let mut played = SessionHarness::begun(&Template::get("/"), requests);
    let headers = |block: &[u8]| frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1, block);
    played.receive(&headers(&filling(0)));
    assert_eq!(played.outcomes(), [("answered", None)]);
    // Each of them refers to 240 KB; 10,000 would be 2.4 GB.
    played.receive(&headers(&[0xbe; 60]).repeat(10_000));
    let broken = played.session.broken().expect("the end of the connection");
    assert_eq!(broken.code, ErrorCode::ENHANCE_YOUR_CALM, "{broken:?}");
    let decoded = played.session.decoded_bytes();
    assert!(decoded <= requests as u64 * LIST_BYTES_MAX, "{decoded} bytes were looked at");
}

#[test]
fn a_stream_error_leaves_other_streams_alone() {
    let block = |id: u32, block: &[u8]| frame(kind::HEADERS, flag::END_HEADERS, id, block);
    let field = |name: &str, value: &str| {
        let mut bytes = vec![0x88, 0x00, name.len() as u8];
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(value.len() as u8);
        bytes.extend_from_slice(value.as_bytes());
        bytes
    };
    let many = frame(kind::HEADERS, flag::END_HEADERS, 1, &[0x08, 0x03, b'1', b'0', b'0']).repeat(20);
    let end = frame(kind::DATA, flag::END_STREAM, 1, b"four");
    for (bytes, why) in [
        (frame(kind::DATA, 0, 1, b"x"), "a body before its answer"),
        (block(1, &[0x08, 0x03, b'2', b'x', b'0']), "a status that is none"),
        (block(1, &[0x08, 0x03, b'1', b'0', b'1']), "an upgrade"),
        (block(1, &[0x88, 0x88]), "two of them"),
        (block(1, &[0x00, 0x01, b'x', 0x01, b'y', 0x88]), "a status that is not first"),
        (block(1, &[0x00, 0x01, b'x', 0x01, b'y']), "none at all"),
        (block(1, &field("Upper", "x")), "upper case"),
        (block(1, &field("connection", "close")), "a field of the connection"),
        (block(1, &field(":path", "/")), "a field of requests"),
        (block(1, &field("x", "a\r\nb")), "a line end"),
        (block(1, &field("content-length", "-1")), "no length"),
        ([block(1, &field("content-length", "5")), end].concat(), "another length"),
        ([answer_begins(1), answer_begins(1)].concat(), "a second answer"),
        (many, "interim answers without an end"),
        (wider(1, 0), "a window wider by nothing"),
        (wider(1, (1 << 31) - 1), "a window that is too large"),
    ] {
        let mut played = SessionHarness::begun(&Template::get("/"), 2);
        played.receive(&bytes);
        assert_eq!(played.outcomes(), [("failed", Some(E::Protocol))], "{why}");
        assert_eq!(played.sent_of(kind::RST_STREAM), [(0, 1, &1_u32.to_be_bytes()[..])], "{why}");
        played.receive(&answer(3));
        assert_eq!(played.outcomes()[1].0, "answered", "{why}");
        assert!(played.session.broken().is_none(), "{why}");
    }
}
