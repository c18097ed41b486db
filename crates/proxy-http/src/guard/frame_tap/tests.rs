use std::time::Duration;

use http_codec::frame::flag::{END_HEADERS, END_STREAM, PRIORITY};
use http_codec::frame::kind::{
    CONTINUATION, DATA, GOAWAY, HEADERS, PING, RST_STREAM, SETTINGS, WINDOW_UPDATE,
};

use super::*;
use crate::guard::floods::REFILL_TIME;

/// GET / of https, from HPACK's static table.
const GET: [u8; 3] = [0x82, 0x87, 0x84];

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u32).to_be_bytes();
    [&len[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

fn preface() -> Vec<u8> {
    [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(SETTINGS, 0, 0, &[])].concat()
}

struct FrameTapHarness {
    tap: FrameTap,
    counters: Counters<HttpCounter>,
    passed: BytesMut,
    now: Instant,
}

impl FrameTapHarness {
    fn new() -> Self {
        let now = Instant::now();
        let limits = HttpLimits { resets_max: 100, control_frames_max: 200, ..HttpLimits::default() };
        let mut tapped = Self {
            tap: FrameTap::new(&limits, now),
            counters: Counters::default(),
            passed: BytesMut::new(),
            now,
        };
        assert_eq!(tapped.receive(&preface()), None);
        tapped
    }

    fn receive(&mut self, bytes: &[u8]) -> Option<Flood> {
        let (now, mut fields) = (self.now, BlockFields::default());
        self.tap.receive(bytes, &mut self.passed, now, &mut self.counters, &mut fields);
        self.tap.flood.take()
    }

    fn take_own(&mut self) -> Option<Vec<u8>> {
        self.tap.take_own(&mut self.counters)
    }

    fn send(&mut self, bytes: &[u8]) -> Option<Flood> {
        drop(self.tap.note_sent(bytes, self.now, &mut self.counters));
        self.tap.flood.take()
    }
}

#[test]
fn frames_are_counted_the_same_in_pieces_of_any_length() {
    // A GET with a field of another 27 bytes, and trailers of 7.
    let block = [&GET[..], b"\0\x01x\x17", &[b'y'; 23]].concat();
    let received = [
        frame(HEADERS, PRIORITY, 1, &[&[0; 5], &block[..20]].concat()),
        frame(CONTINUATION, END_HEADERS, 1, &block[20..]),
        frame(DATA, 0, 1, &[RST_STREAM; 300]),
        frame(HEADERS, END_STREAM | END_HEADERS, 1, b"\0\x01x\x03yyy"),
        frame(RST_STREAM, 0, 1, &[0, 0, 0, 8]),
        frame(HEADERS, END_STREAM | END_HEADERS, 3, &GET),
        frame(GOAWAY, 0, 0, &[0; 40]),
    ]
    .concat();
    let sent =
        [frame(HEADERS, 0, 1, &[0; 9]), frame(RST_STREAM, 0, 1, &[0, 0, 0, 8]), frame(GOAWAY, 0, 0, &[0; 8])]
            .concat();
    for step in [1, 2, 3, 9, 10, 13, 1_000] {
        let mut tapped = FrameTapHarness::new();
        received.chunks(step).for_each(|piece| assert_eq!(tapped.receive(piece), None));
        sent.chunks(step).for_each(|piece| assert_eq!(tapped.send(piece), None));
        for (counter, expected) in [
            (HttpCounter::Streams2, 2),
            (HttpCounter::HeaderBytesIn, 20 + 10 + 7 + 3),
            (HttpCounter::HeaderBytesOut, 9),
            (HttpCounter::ResetsIn, 1),
            (HttpCounter::ResetsOut, 1),
            (HttpCounter::GoawaysIn, 1),
            (HttpCounter::GoawaysOut, 1),
        ] {
            assert_eq!(tapped.counters[counter], expected, "{counter:?} in pieces of {step}");
        }
        assert!(tapped.tap.to_client.is_between_frames());
        assert_eq!(tapped.passed, [preface(), received.clone()].concat(), "in pieces of {step}");
    }
}

#[test]
fn a_malformed_block_is_replaced_and_frames_around_it_pass() {
    let malformed = [&GET[..], b"\0\x01X\x01y"].concat();
    let ping = frame(PING, 0, 0, &[0; 8]);
    let received = [&ping[..], &frame(HEADERS, END_STREAM | END_HEADERS, 1, &malformed), &ping].concat();
    for step in [1, 5, 1_000] {
        let mut tapped = FrameTapHarness::new();
        received.chunks(step).for_each(|piece| assert_eq!(tapped.receive(piece), None));
        let passed = tapped.passed.strip_prefix(&*[preface(), ping.clone()].concat()).unwrap();
        let replaced = passed.strip_suffix(&*ping).unwrap();
        let head = FrameHeader::read(*replaced.first_chunk().unwrap());
        assert_eq!((head.kind, head.flags, head.id), (HEADERS, END_STREAM | END_HEADERS, 1));
        assert!(replaced.len() == HEAD_BYTES + head.len && !replaced.contains(&b'X'), "{replaced:?}");
    }
}

#[test]
fn malformed_requests_beyond_the_budget_are_a_flood() {
    let mut tapped = FrameTapHarness::new();
    let malformed = |stream| frame(HEADERS, END_STREAM | END_HEADERS, stream, b"\0\x01X\x01y");
    let first = (0..1_000).position(|nth| tapped.receive(&malformed(2 * nth + 1)) == Some(Flood::Resets));
    assert!(first.is_some_and(|first| (100..150).contains(&first)), "{first:?}");
}

#[test]
fn a_client_that_waits_is_answered_between_frames_and_before_its_response() {
    let waits = [&GET[..], b"\0\x06expect\x0c100-continue"].concat();
    let mut tapped = FrameTapHarness::new();
    for stream in [1, 3, 5] {
        let flags = if stream == 5 { END_HEADERS | END_STREAM } else { END_HEADERS };
        tapped.receive(&frame(HEADERS, flags, stream, &waits));
    }
    tapped.send(&frame(DATA, 0, 9, &[0; 20])[..12]);
    assert_eq!(tapped.take_own(), None, "in the middle of a frame");
    tapped.send(&[0; 17]);
    tapped.send(&frame(HEADERS, END_HEADERS, 3, &[0x88]));
    let answer = frame(HEADERS, END_HEADERS, 1, b"\x08\x82\x08\x01");
    assert_eq!(tapped.take_own(), Some(answer), "neither the answered one nor one without content");
    assert_eq!(tapped.take_own(), None);
}

#[test]
fn a_malformed_request_is_reset_after_its_response() {
    let mut tapped = FrameTapHarness::new();
    for stream in [1, 3, 5] {
        tapped.receive(&frame(HEADERS, END_HEADERS | END_STREAM, stream, b"\0\x01X\x01y"));
    }
    tapped.receive(&frame(RST_STREAM, 0, 5, &[0, 0, 0, 8]));
    tapped.send(&frame(HEADERS, END_HEADERS, 1, &[0x8c]));
    assert_eq!(tapped.take_own(), None, "before the end of the response");
    tapped.send(&frame(DATA, END_STREAM, 1, b"no"));
    tapped.send(&frame(HEADERS, END_HEADERS | END_STREAM, 3, &[0x8c]));
    tapped.send(&frame(DATA, END_STREAM, 5, b"no"));
    let reset = |stream| frame(RST_STREAM, 0, stream, &[0, 0, 0, 1]);
    assert_eq!(
        tapped.take_own(),
        Some([reset(1), reset(3)].concat()),
        "one that the client has reset is not"
    );
}

#[test]
fn a_reset_behind_a_response_is_told_apart() {
    let mut tapped = FrameTapHarness::new();
    let response = frame(DATA, END_STREAM, 1, &[0; 30]);
    for (code, expected) in [(0, vec![response.len()]), (8, vec![])] {
        let sent = [&response[..], &frame(RST_STREAM, 0, 1, &[0, 0, 0, code])].concat();
        let resets = tapped.tap.note_sent(&sent, tapped.now, &mut tapped.counters);
        assert_eq!(resets, expected);
    }
}

#[test]
fn more_resets_than_the_budget_are_a_flood_and_time_fills_it() {
    let mut tapped = FrameTapHarness::new();
    let rapid: Vec<Vec<u8>> = (0..1_000)
        .map(|nth| {
            let stream = 2 * nth + 1;
            [frame(HEADERS, 5, stream, &GET), frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])].concat()
        })
        .collect();
    let first = rapid.iter().position(|bytes| tapped.receive(bytes).is_some());
    assert!(first.is_some_and(|first| (100..150).contains(&first)), "{first:?}");
    tapped.now += REFILL_TIME;
    assert_eq!(tapped.receive(&frame(RST_STREAM, 0, 1, &[0; 4])), None);
}

#[test]
fn only_resets_that_the_client_provoked_count_against_it() {
    let reset = |code: u8| frame(RST_STREAM, 0, 1, &[0, 0, 0, code]).repeat(1_000);
    for code in [0, 2, 7, 8] {
        assert_eq!(FrameTapHarness::new().send(&reset(code)), None, "{code}");
    }
    for code in [1, 3, 5, 6] {
        assert_eq!(FrameTapHarness::new().send(&reset(code)), Some(Flood::Resets), "{code}");
    }
}

#[test]
fn control_frames_beyond_the_budget_are_a_flood() {
    for kind in [2, SETTINGS, PING, WINDOW_UPDATE, 0x10, 0xff] {
        let one = frame(kind, 0, 0, &[0; 8]);
        let mut tapped = FrameTapHarness::new();
        assert_eq!(tapped.receive(&one.repeat(150)), None, "{kind}");
        assert_eq!(tapped.receive(&one.repeat(150)), Some(Flood::Control), "{kind}");
    }
}

#[test]
fn control_frames_that_content_explains_are_no_flood() {
    let mut tapped = FrameTapHarness::new();
    for stream in (1..20_000).step_by(2) {
        let request = [
            frame(HEADERS, 5, stream, &GET),
            frame(WINDOW_UPDATE, 0, stream, &[0; 4]),
            frame(0x10, 0, 0, &[0; 9]),
        ];
        assert_eq!(tapped.receive(&request.concat()), None);
        assert_eq!(tapped.send(&frame(DATA, 0, stream, &[0; 100]).repeat(5)), None);
        let taken = [frame(WINDOW_UPDATE, 0, 0, &[0; 4]), frame(WINDOW_UPDATE, 0, stream, &[0; 4])].concat();
        assert_eq!(tapped.receive(&taken.repeat(5)), None);
        // Every fifth request is given up.
        if stream % 10 == 1 {
            assert_eq!(tapped.receive(&frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])), None);
        }
    }
}

#[test]
fn a_client_that_pings_every_second_is_never_ended() {
    let mut tapped = FrameTapHarness::new();
    for _ in 0..10_000 {
        assert_eq!(tapped.receive(&frame(PING, 0, 0, &[0; 8])), None);
        tapped.now += Duration::from_secs(1);
    }
}

#[test]
fn a_goaway_names_the_last_stream_and_is_never_in_another_frame() {
    let mut tapped = FrameTapHarness::new();
    tapped.receive(&frame(HEADERS, 5, 7, &GET));
    tapped.send(&frame(DATA, 0, 7, &[0; 100])[..50]);
    assert_eq!(tapped.tap.goaway(), None);
    tapped.send(&[0; 59]);
    assert_eq!(tapped.tap.goaway(), Some(b"\0\0\x08\x07\0\0\0\0\0\0\0\0\x07\0\0\0\x0b".to_vec()));
}
