//! A session against a server whose frames the test writes.

mod hostile;

use std::sync::Arc;

use proptest::prelude::*;
use records::values::LoadEvent as E;

use super::*;
use crate::protocol::http2::fields::FieldNumbers;
use crate::protocol::{CompleteResponse, EncodedRequest, EncodedRequests, ProtocolSession as _};
use crate::target::{Expect, RequestBody, Template};
use http_codec::frame::{HEAD_BYTES, flag, head, kind, setting};

/// `:status: 200` and nothing else.
const OK: &[u8] = &[0x88];

fn frame(kind: u8, flags: u8, id: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    head(&mut out, payload.len(), kind, flags, id);
    out.extend_from_slice(payload);
    out
}

fn settings(values: &[(u16, u32)]) -> Vec<u8> {
    let pair = |(setting, value): &(u16, u32)| [&setting.to_be_bytes()[..], &value.to_be_bytes()].concat();
    frame(kind::SETTINGS, 0, 0, &values.iter().flat_map(pair).collect::<Vec<_>>())
}

fn wider(id: u32, bytes: u32) -> Vec<u8> {
    frame(kind::WINDOW_UPDATE, 0, id, &bytes.to_be_bytes())
}

fn answer(id: u32) -> Vec<u8> {
    frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, id, OK)
}

fn answer_begins(id: u32) -> Vec<u8> {
    frame(kind::HEADERS, flag::END_HEADERS, id, OK)
}

fn goaway(last_id: u32, code: u32) -> Vec<u8> {
    frame(kind::GOAWAY, 0, 0, &[last_id.to_be_bytes(), code.to_be_bytes()].concat())
}

/// A session and the server's view of it.
struct SessionHarness {
    session: Http2Session,
    requests: EncodedRequests,
    ended: EndedRequests,
    /// The frames sent after the preface.
    seen: Vec<(u8, u8, u32, Vec<u8>)>,
    unread: Vec<u8>,
}

impl SessionHarness {
    fn new(template: &Template) -> Self {
        let target = "http://localhost/".parse().unwrap();
        let prepared = EncodedRequest::new(template, &target, &mut FieldNumbers::default()).unwrap();
        let requests = EncodedRequests::new(Arc::new([prepared]), 0);
        let session = Http2Session::new();
        let mut played = Self { session, requests, ended: Vec::new(), seen: Vec::new(), unread: Vec::new() };
        played.send();
        played.unread.drain(..24);
        played.send();
        assert_eq!(played.seen.len(), 2, "settings and a window");
        played.seen.clear();
        played
    }

    /// A session that has received the server's settings.
    fn begun(template: &Template, requests: usize) -> Self {
        let mut played = Self::new(template);
        played.receive(&settings(&[]));
        (0..requests).for_each(|_| played.begin());
        played.seen.clear();
        played
    }

    fn begin(&mut self) {
        let request = Request {
            template: 0,
            intended_ns: None,
            begun_ns: 0,
            sent_ns: None,
            deadline_ns: 1_000,
            retried: false,
            warmup: false,
        };
        self.session.begin(request, self.requests.at(0), false);
        self.send();
    }

    fn send(&mut self) {
        loop {
            let output = self.session.output(&self.requests);
            if output.is_empty() {
                break;
            }
            let len = output.len();
            self.unread.extend_from_slice(output);
            self.session.note_sent(len);
        }
        if self.unread.starts_with(b"PRI") {
            return;
        }
        while let Some(bytes) = self.unread.first_chunk() {
            let head = frame::FrameHeader::read(*bytes);
            let payload = self.unread[HEAD_BYTES..HEAD_BYTES + head.len].to_vec();
            self.unread.drain(..HEAD_BYTES + head.len);
            self.seen.push((head.kind, head.flags, head.id, payload));
        }
    }

    fn receive(&mut self, bytes: &[u8]) {
        self.session.receive(bytes, &self.requests, &mut self.ended);
        self.send();
    }

    /// How the requests have ended, in short.
    fn outcomes(&self) -> Vec<(&'static str, Option<E>)> {
        let short = |(_, outcome): &(Request, RequestOutcome)| match outcome {
            RequestOutcome::Answered(..) => ("answered", None),
            RequestOutcome::Failed(failure) => ("failed", Some(failure.event)),
            RequestOutcome::Unprocessed(failure) => ("unprocessed", Some(failure.event)),
        };
        self.ended.iter().map(short).collect()
    }

    fn only_answer(&self) -> CompleteResponse {
        match &self.ended[..] {
            [(_, RequestOutcome::Answered(answer, _))] => *answer,
            other => panic!("{other:?}"),
        }
    }

    fn sent_of(&self, kind: u8) -> Vec<(u8, u32, &[u8])> {
        let of = self.seen.iter().filter(|(other, ..)| *other == kind);
        of.map(|(_, flags, id, payload)| (*flags, *id, &payload[..])).collect()
    }
}

#[test]
fn padding_priority_interim_responses_and_trailers_are_accepted() {
    let mut played = SessionHarness::begun(&Template::get("/"), 1);
    let early_hints = [0x08, 0x03, b'1', b'0', b'3'];
    let mut fields = vec![2, 0, 0, 0, 0, 16];
    // content-length: 5
    fields.extend_from_slice(&[0x88, 0x0f, 0x0d, 0x01, b'5', 0xff, 0xff]);
    let flags = flag::END_HEADERS | flag::PADDED | flag::PRIORITY;
    for bytes in [
        frame(kind::HEADERS, flag::END_HEADERS, 1, &early_hints),
        frame(kind::HEADERS, flags, 1, &fields),
        frame(kind::DATA, flag::PADDED, 1, &[&[3][..], b"hel", &[0; 3]].concat()),
        frame(0xbb, 0xff, 1, b"nobody knows this frame"),
        frame(kind::PRIORITY, 0, 7, &[0; 5]),
        frame(kind::DATA, 0, 1, b"lo"),
        frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1, &[0x00, 0x01, b'x', 0x01, b'y']),
    ] {
        assert!(played.ended.is_empty());
        played.receive(&bytes);
    }
    let answer = played.only_answer();
    assert_eq!((answer.status, answer.body_bytes, answer.body_is_right), (Some(200), 5, true));
    assert_eq!(answer.head_bytes as usize, early_hints.len() + 5 + 5, "padding and priority are not of it");
    assert_eq!(answer.head_plain_bytes as usize, 2 * ":status200".len() + "content-length5".len() + 2);
    assert!(played.session.broken().is_none() && played.session.is_idle());
}

#[test]
fn bodies_keep_within_windows_that_change_while_they_are_sent() {
    let mut played = SessionHarness::new(&Template::post("/", 200_000));
    played.receive(&settings(&[(setting::INITIAL_WINDOW_SIZE, 1_000)]));
    played.begin();
    played.begin();
    let sent = |played: &SessionHarness, id: u32| -> usize {
        let data = played.sent_of(kind::DATA);
        data.iter().filter(|(_, other, _)| *other == id).map(|(.., payload)| payload.len()).sum()
    };
    assert_eq!((sent(&played, 1), sent(&played, 3)), (1_000, 1_000));
    // The windows of streams under way follow, also to below nothing (RFC 9113, section 6.9.2).
    played.receive(&settings(&[(setting::INITIAL_WINDOW_SIZE, 100)]));
    played.receive(&wider(1, 900));
    assert_eq!(sent(&played, 1), 1_000);
    played.receive(&wider(1, 50));
    assert_eq!((sent(&played, 1), sent(&played, 3)), (1_050, 1_000));
    played.receive(&settings(&[(setting::INITIAL_WINDOW_SIZE, 1 << 20)]));
    assert_eq!(sent(&played, 1) + sent(&played, 3), 65_535, "the connection's window is full");
    assert!(sent(&played, 1).abs_diff(sent(&played, 3)) < 20_000, "both have their turn");
    assert!(played.sent_of(kind::DATA).iter().all(|(.., payload)| payload.len() <= 16_384));
    played.receive(&wider(0, 1 << 20));
    assert_eq!((sent(&played, 1), sent(&played, 3)), (200_000, 200_000));
    let ends: Vec<_> = played.sent_of(kind::DATA).into_iter().filter(|(flags, ..)| *flags == 1).collect();
    assert_eq!(ends.len(), 2);
    // An answer before the end of the body stops it.
    played.receive(&settings(&[(setting::INITIAL_WINDOW_SIZE, 10)]));
    played.begin();
    played.receive(&answer(5));
    assert_eq!(played.sent_of(kind::RST_STREAM), [(0, 5, &8_u32.to_be_bytes()[..])]);
    assert!(played.session.sending.iter().all(|id| *id != 5));
}

#[test]
fn the_servers_limit_on_streams_is_kept_and_may_change() {
    let mut played = SessionHarness::new(&Template::get("/"));
    while played.session.has_room() {
        played.begin();
    }
    assert_eq!(played.session.carried(), 100, "before it has said anything");
    played.receive(&settings(&[(setting::MAX_CONCURRENT_STREAMS, 102)]));
    played.begin();
    played.begin();
    assert!(!played.session.has_room());
    played.receive(&settings(&[(setting::MAX_CONCURRENT_STREAMS, 1)]));
    (0..101).for_each(|nth| played.receive(&answer(nth * 2 + 1)));
    assert!(!played.session.has_room());
    played.receive(&answer(203));
    assert!(played.session.has_room() && played.session.is_idle());
    assert_eq!(played.session.answers(), 102);
}

#[test]
fn a_connection_ends_when_its_stream_ids_run_out() {
    let mut played = SessionHarness::begun(&Template::get("/"), 0);
    played.session.next_id = frame::ID_MAX;
    assert!(!played.session.is_spent());
    played.begin();
    assert!(played.session.is_spent());
    played.receive(&answer(frame::ID_MAX));
    assert_eq!(played.outcomes(), [("answered", None)]);
}

#[test]
fn requests_that_a_server_did_not_process_are_marked_so() {
    let mut played = SessionHarness::begun(&Template::get("/"), 5);
    played.receive(&frame(kind::RST_STREAM, 0, 1, &7_u32.to_be_bytes()));
    played.receive(&frame(kind::RST_STREAM, 0, 3, &2_u32.to_be_bytes()));
    played.receive(&goaway(7, 11));
    assert!(played.session.is_spent());
    let reset = Some(E::Reset);
    assert_eq!(played.outcomes(), [("unprocessed", reset), ("failed", reset), ("unprocessed", reset)]);
    played.receive(&answer_begins(5));
    played.receive(&frame(kind::RST_STREAM, 0, 5, &7_u32.to_be_bytes()));
    assert_eq!(played.outcomes()[3], ("failed", Some(E::Short)), "it has begun to answer");
    played.session.end(ConnectionEnd::Cut, &mut played.ended);
    assert_eq!(played.outcomes()[4], ("unprocessed", reset));
}

#[test]
fn a_timed_out_request_is_reset_and_its_response_ignored() {
    let mut played = SessionHarness::begun(&Template::get("/"), 3);
    played.receive(&answer_begins(3));
    played.session.expire(999, &mut played.ended);
    assert!(played.ended.is_empty());
    played.session.expire(1_000, &mut played.ended);
    played.send();
    let mut outcomes = played.outcomes();
    outcomes.sort_by_key(|(_, event)| *event == Some(E::BodyTimeout));
    let late = ("failed", Some(E::AnswerTimeout));
    assert_eq!(outcomes, [late, late, ("failed", Some(E::BodyTimeout))]);
    assert_eq!(played.sent_of(kind::RST_STREAM).len(), 3);
    // A field that a late answer adds is known in later answers.
    let adding = [0x88, 0x40, 0x01, b'x', 0x03, b'a', b'b', b'c'];
    played.receive(&frame(kind::HEADERS, flag::END_HEADERS, 1, &adding));
    played.receive(&frame(kind::DATA, flag::END_STREAM, 1, b"late"));
    played.ended.clear();
    played.begin();
    played.receive(&frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 7, &[0x88, 0xbe]));
    assert_eq!(played.only_answer().head_plain_bytes, ":status200xabc".len() as u64);
}

#[test]
fn a_status_from_600_on_is_an_answer() {
    let mut played = SessionHarness::begun(&Template::get("/"), 1);
    let odd = [0x08, 0x03, b'9', b'9', b'9'];
    played.receive(&frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1, &odd));
    assert_eq!(played.only_answer().status, Some(999));
}

#[test]
fn a_body_is_compared_and_window_updates_are_sent() {
    let template = Template {
        body: RequestBody::Exact(b"ping"[..].into()),
        expect: Expect::Echo,
        ..Template::post("/", 0)
    };
    for (body, is_right) in [(&b"ping"[..], true), (b"pong", false), (b"pin", false), (b"pings", false)] {
        let mut played = SessionHarness::begun(&template, 1);
        played.receive(&answer_begins(1));
        played.receive(&frame(kind::DATA, 0, 1, &body[..2]));
        played.receive(&frame(kind::DATA, flag::END_STREAM, 1, &body[2..]));
        assert_eq!(played.only_answer().body_is_right, is_right, "{body:?}");
    }
    let mut played = SessionHarness::begun(&Template::get("/"), 1);
    played.receive(&answer_begins(1));
    let data = frame(kind::DATA, 0, 1, &[0; 16_384]);
    played.receive(&data);
    assert!(played.seen.is_empty());
    // As if half a GiB had come.
    played.session.inflow.unacknowledged += WINDOW_BYTES / 2 - 20_000;
    played.session.streams.get_mut(&1).unwrap().incoming.unacknowledged += WINDOW_BYTES / 2 - 20_000;
    played.receive(&data);
    let updates = played.sent_of(kind::WINDOW_UPDATE);
    let bytes = (WINDOW_BYTES / 2 - 20_000 + 2 * 16_384).to_be_bytes();
    assert_eq!(updates, [(0, 0, &bytes[..]), (0, 1, &bytes[..])]);
}

#[test]
fn a_long_header_block_uses_continuation_frames() {
    let headers = vec![("x-long".to_owned(), "~".repeat(40_000))];
    let mut played = SessionHarness::new(&Template { headers, ..Template::get("/") });
    played.begin();
    let frames: Vec<_> = played.seen.iter().map(|(kind, flags, id, _)| (*kind, *flags, *id)).collect();
    assert_eq!(frames, [(kind::HEADERS, 1, 1), (kind::CONTINUATION, 0, 1), (kind::CONTINUATION, 4, 1)]);
}

/// Frames of a well-behaved server, in any order, and of a hostile one.
fn anything() -> impl Strategy<Value = Vec<u8>> {
    let id = prop_oneof![Just(0_u32), Just(1), Just(3), 0..12_u32];
    let payload = proptest::collection::vec(any::<u8>(), 0..40);
    prop_oneof![
        (0..12_u8, any::<u8>(), id.clone(), payload)
            .prop_map(|(kind, flags, id, p)| frame(kind, flags, id, &p)),
        id.clone().prop_map(answer_begins),
        id.clone().prop_map(answer),
        id.clone().prop_map(|id| frame(kind::DATA, 0, id, b"data")),
        (id, 0..100_000_u32).prop_map(|(id, bytes)| wider(id, bytes)),
        (0..8_u16, 0..100_000_u32).prop_map(|setting| settings(&[setting])),
        proptest::collection::vec(any::<u8>(), 0..30),
    ]
}

proptest! {
    #[test]
    fn input_in_pieces_has_the_same_result_as_in_one_read(
        frames in proptest::collection::vec(anything(), 0..20),
        piece in 1..40_usize,
    ) {
        let bytes = frames.concat();
        let template = Template::post("/", 70_000);
        let (mut whole, mut pieces) = (SessionHarness::begun(&template, 4), SessionHarness::begun(&template, 4));
        whole.receive(&bytes);
        bytes.chunks(piece).for_each(|piece| pieces.receive(piece));
        prop_assert_eq!(whole.outcomes(), pieces.outcomes());
        prop_assert_eq!(whole.session.broken(), pieces.session.broken());
        prop_assert_eq!(whole.session.streams.len(), pieces.session.streams.len());
        // The frames sent in between depend on the pieces, but the allowed ones do not.
        let allowed = |played: &SessionHarness| {
            let sent: usize = played.sent_of(kind::DATA).iter().map(|(_, _, piece)| piece.len()).sum();
            played.session.send_window + sent as i64
        };
        prop_assert_eq!(allowed(&whole), allowed(&pieces));
    }
}
