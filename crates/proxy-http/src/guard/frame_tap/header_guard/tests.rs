//! Each block is decoded as h2 would: what it gets must always be acceptable, and its table must have room for the same.

use proptest::prelude::*;

use super::*;

const REQUEST: BlockKind = BlockKind::Request { ends: true };
const LIST_BYTES_MAX: usize = 16 << 10;

type Fields<'a> = &'a [(&'a [u8], &'a [u8])];

/// A guard, and a decoder in the place of h2's.
struct GuardedPair {
    guard: HeaderGuard,
    behind: Decoder<()>,
}

impl GuardedPair {
    fn new() -> Self {
        Self { guard: HeaderGuard::new(LIST_BYTES_MAX), behind: Decoder::default() }
    }

    /// What h2 gets for a block.
    fn pass(&mut self, block: &[u8], kind: BlockKind) -> (CheckedBlock, Vec<(String, String)>) {
        let checked = self.guard.check(block, kind, &mut BlockFields::default()).unwrap();
        let mut fields = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let decoded =
            self.behind.decode(checked.replacement.as_deref().unwrap_or(block), u64::MAX, |field| {
                let kind = FieldKind::of(field.name, field.value);
                let is_verdict = field.name == VERDICT.as_bytes();
                assert!(is_verdict || !kind.is_never_seen(), "{field:?}");
                fields.push((text(field.name), text(field.value)));
            });
        assert_eq!(decoded, Ok(()));
        (checked, fields)
    }

    /// The verdict on a request of these fields, and the fields that go on.
    fn verdict(&mut self, block: &[u8], kind: BlockKind) -> (Option<String>, Vec<(String, String)>) {
        let (_, fields) = self.pass(block, kind);
        let mut verdicts = fields.iter().filter(|(name, _)| name == VERDICT);
        let verdict = verdicts.next_back().map(|(_, value)| value.clone());
        (verdict, fields.into_iter().filter(|(name, _)| name != VERDICT).collect())
    }
}

fn block(indexing: Indexing, fields: Fields<'_>) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        encode_field(name, value, indexing, &mut block);
    }
    block
}

const fn get<'a>(path: &'a [u8], name: &'a [u8], value: &'a [u8]) -> [(&'a [u8], &'a [u8]); 4] {
    [(b":method", b"GET"), (b":scheme", b"https"), (b":path", path), (name, value)]
}

#[test]
fn what_breaks_the_protocol_is_refused_and_the_next_request_passes() {
    let malformed: [&[(&[u8], &[u8])]; 20] = [
        &get(b"/", b"Upper", b"x"),
        &get(b"/", b"a b", b"x"),
        &get(b"/", b"a:b", b"x"),
        &get(b"/", b"", b"x"),
        &get(b"/", b"x-a", b"a\0b"),
        &get(b"/", b"x-a", b"a\nb"),
        &get(b"/", b"x-a", b"\x01"),
        &get(b"/", b"x-a", b"\x7f"),
        &get(b"/", b":unknown", b"x"),
        &get(b"/", b":status", b"200"),
        &get(b"/", b":path", b"/twice"),
        &get(b"/\xff", b"x-a", b"x"),
        &get(b"/a b", b"x-a", b"x"),
        &get(b"", b"x-a", b"x"),
        &get(b"a", b"x-a", b"x"),
        &get(b"/", b":authority", b"\xff"),
        &get(b"/", b"connection", b"close"),
        &get(b"/", b"te", b"gzip"),
        &get(b"/", VERDICT.as_bytes(), b"/admin"),
        &[(b"x-a", b"x"), (b":method", b"GET"), (b":scheme", b"https"), (b":path", b"/")],
    ];
    let others: [&[(&[u8], &[u8])]; 4] = [
        &[(b":method", b""), (b":scheme", b"https"), (b":path", b"/")],
        &[(b":method", b"G T"), (b":scheme", b"https"), (b":path", b"/")],
        &[(b":method", b"GET"), (b":scheme", b"https")],
        &[(b":method", b"GET"), (b":scheme", b"https"), (b":path", b"/"), (b"content-length", b"5")],
    ];
    for indexing in [Indexing::Plain, Indexing::Added] {
        let mut pair = GuardedPair::new();
        for fields in malformed.into_iter().chain(others) {
            let (verdict, _) = pair.verdict(&block(indexing, fields), REQUEST);
            assert_eq!(verdict.as_deref(), Some("malformed"), "{indexing:?} {fields:?}");
            // The newest field of the table.
            let again = [&[0x82, 0x87, 0x84][..], &[0xbe]].concat();
            if indexing == Indexing::Added {
                pair.verdict(&again, REQUEST);
            }
            let next = get(b"/next", b"x-a", b"ok");
            let (verdict, passed) = pair.verdict(&block(indexing, &next), REQUEST);
            assert_eq!((verdict, passed.len()), (None, 4), "after {fields:?}");
        }
    }
}

#[test]
fn a_field_that_h2_does_not_know_can_be_named_by_its_number() {
    let mut pair = GuardedPair::new();
    let first = block(Indexing::Added, &get(b"/a<b", b"x-a", b"\x01"));
    assert_eq!(pair.verdict(&first, REQUEST).0.as_deref(), Some("malformed"));
    // The path is the second of the table, and the name of the first goes on to be used.
    let mut second = vec![0x82, 0x87, 0xbf, 0x7e];
    second.extend_from_slice(b"\x02ok");
    let (verdict, passed) = pair.verdict(&second, REQUEST);
    assert_eq!(verdict.as_deref(), Some("/a<b"));
    assert_eq!(passed.last().map(|(name, value)| (&**name, &**value)), Some(("x-a", "ok")));
    assert!(passed.contains(&(":path".to_owned(), "/a_b".to_owned())));
    // That was added, in front of the two.
    let third = [0x82, 0x87, 0x84, 0xbe];
    let (verdict, passed) = pair.verdict(&third, REQUEST);
    assert_eq!((verdict, passed.len()), (None, 4));
}

#[test]
fn a_clean_block_passes_as_it_is() {
    let mut pair = GuardedPair::new();
    for indexing in [Indexing::Added, Indexing::Plain] {
        let (checked, _) =
            pair.pass(&block(indexing, &get(b"/?q={\\|}^", b"expect", b"100-continue")), REQUEST);
        let plain_bytes = ":method:scheme:pathexpectGEThttps/?q={\\|}^100-continue".len() + 4 * 4;
        let expected = CheckedBlock {
            expects_continue: true,
            plain_bytes: plain_bytes as u64,
            ..CheckedBlock::default()
        };
        assert_eq!(checked, expected);
    }
}

#[test]
fn each_refusal_has_its_verdict() {
    let long = vec![b'a'; LIST_BYTES_MAX];
    let mut guard = HeaderGuard::new(1 << 20);
    let mut verdict = |fields: Fields<'_>, kind| {
        let checked =
            guard.check(&block(Indexing::Plain, fields), kind, &mut BlockFields::default()).unwrap();
        let mut last = None;
        let replacement = checked.replacement.expect("it is replaced");
        let mut decoder = <Decoder>::default();
        decoder.decode(&replacement, u64::MAX, |field| last = Some(field.value.to_vec())).unwrap();
        last.unwrap()
    };
    let uri = [b"/".as_slice(), &vec![b'a'; target_text::PATH_BYTES_MAX]].concat();
    assert_eq!(verdict(&get(&uri, b"x", b"y"), REQUEST), b"uri");
    assert_eq!(verdict(&[(b":method", b"CONNECT"), (b":authority", b"a:1")], REQUEST), b"connect");
    assert_eq!(verdict(&[(b"x", &long)], BlockKind::Trailers), b"malformed");
    assert_eq!(verdict(&[(b":path", b"/")], BlockKind::Trailers), b"malformed");
    let mut pair = GuardedPair::new();
    let fields = get(b"/", b"x", &long);
    assert_eq!(pair.verdict(&block(Indexing::Plain, &fields), REQUEST).0.as_deref(), Some("header"));
    let flood = [block(Indexing::Added, &get(b"/", b"x", &long[..4_000])), vec![0xbe; 20]].concat();
    let checked = pair.guard.check(&flood, REQUEST, &mut BlockFields::default());
    assert_eq!(checked, Err(BlockError::TooLarge));
    assert_eq!(pair.guard.check(&[0xff], REQUEST, &mut BlockFields::default()), Err(BlockError::Hpack));
}

/// A field of any sort, valid or not.
fn any_field() -> impl Strategy<Value = (Vec<u8>, Vec<u8>)> {
    let name = prop_oneof![
        prop::sample::select(vec![
            ":method",
            ":scheme",
            ":path",
            ":authority",
            ":protocol",
            ":x",
            "x-a",
            "Bad",
            "te",
            VERDICT
        ])
        .prop_map(|name| name.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..4),
    ];
    let value = prop_oneof![
        prop::sample::select(vec![
            "GET",
            "CONNECT",
            "websocket",
            "https",
            "/",
            "/a<",
            "/b",
            "a",
            "",
            "trailers",
            "\u{1}"
        ])
        .prop_map(|value| value.as_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..200),
    ];
    (name, value)
}

proptest! {
    #[test]
    fn whatever_a_client_sends_h2_gets_blocks_that_it_takes(
        blocks in prop::collection::vec(
            (prop::collection::vec((any_field(), any::<bool>(), any::<Option<u8>>()), 0..8), any::<bool>()), 1..20,
        ),
    ) {
        let mut pair = GuardedPair::new();
        // What the client knows of the table.
        let mut plain = <Decoder>::default();
        for (fields, is_trailers) in blocks {
            let mut bytes = Vec::new();
            for ((name, value), is_added, number) in fields {
                let number = number.map(|number| 62 + number % 20).map(|number| vec![0x80 | number]);
                // It may have left the table by then.
                if let Some(number) = number.filter(|number| plain.decode(number, u64::MAX, |_| ()).is_ok()) {
                    bytes.extend_from_slice(&number);
                    continue;
                }
                let indexing = if is_added { Indexing::Added } else { Indexing::Plain };
                let begins = bytes.len();
                encode_field(&name, &value, indexing, &mut bytes);
                plain.decode(&bytes[begins..], u64::MAX, |_| ()).unwrap();
            }
            let kind = if is_trailers { BlockKind::Trailers } else { REQUEST };
            let mut sent = Vec::new();
            let checked = pair.guard.check(&bytes, kind, &mut BlockFields::default()).unwrap();
            let passed = checked.replacement.as_deref().unwrap_or(&bytes);
            let decoded = pair.behind.decode(passed, u64::MAX, |field| {
                sent.push((field.name.to_vec(), FieldKind::of(field.name, field.value)));
            });
            prop_assert_eq!(decoded, Ok(()));
            let verdicts = |(name, kind): &&(Vec<u8>, FieldKind)| *kind == FieldKind::Malformed && name == VERDICT.as_bytes();
            let bad = sent.iter().filter(|field| field.1.is_never_seen() && !verdicts(field)).count();
            prop_assert_eq!(bad, 0);
            let pseudo: Vec<_> = sent.iter().filter_map(|(_, kind)| kind.pseudo()).collect();
            prop_assert!(!pseudo.contains(&PseudoField::Protocol));
            if is_trailers {
                prop_assert!(pseudo.is_empty());
            } else {
                prop_assert!(sent.iter().take(pseudo.len()).all(|(_, kind)| kind.pseudo().is_some()));
                for field in [PseudoField::Method, PseudoField::Scheme, PseudoField::Path] {
                    prop_assert_eq!(pseudo.iter().filter(|other| **other == field).count(), 1);
                }
            }
        }
    }
}

#[test]
fn an_extended_connect_for_a_websocket_goes_on_as_a_get() {
    const OPEN: BlockKind = BlockKind::Request { ends: false };
    let connect = |protocol, path| -> [(&'static [u8], &[u8]); 6] {
        [
            (b":method", CONNECT),
            (b":protocol", protocol),
            (b":scheme", b"https"),
            (b":path", path),
            (b":authority", b"a"),
            (b"x-a", b"x"),
        ]
    };
    for indexing in [Indexing::Plain, Indexing::Added] {
        let mut pair = GuardedPair::new();
        for (protocol, path, expected, passed_path) in [
            (&b"websocket"[..], &b"/chat"[..], "websocket", Some("/chat")),
            (b"WebSocket", b"/a<b", "websocket/a<b", Some("/a_b")),
            (b"connect-udp", b"/", "protocol", None),
            (b"web socket", b"/", "malformed", None),
        ] {
            let (verdict, passed) = pair.verdict(&block(indexing, &connect(protocol, path)), OPEN);
            assert_eq!(verdict.as_deref(), Some(expected), "{indexing:?}");
            assert!(passed.iter().all(|(name, value)| name != ":protocol" && value != "CONNECT"));
            let value = |name| passed.iter().find(|(other, _)| other == name).map(|(_, value)| &**value);
            if let Some(path) = passed_path {
                let expected = [Some("GET"), Some(path), Some("https"), Some("a"), Some("x")];
                assert_eq!([":method", ":path", ":scheme", ":authority", "x-a"].map(value), expected);
            }
        }
        let parts = connect(b"websocket", b"/");
        for missing in 2..5 {
            let fields: Vec<_> =
                parts.iter().enumerate().filter(|(at, _)| *at != missing).map(|(_, field)| *field).collect();
            assert_eq!(pair.verdict(&block(indexing, &fields), OPEN).0.as_deref(), Some("malformed"));
        }
        for (at, field) in
            [(0, (&b":method"[..], &b"GET"[..])), (5, (b"content-length", b"0")), (5, parts[1])]
        {
            let mut fields = parts;
            fields[at] = field;
            assert_eq!(pair.verdict(&block(indexing, &fields), OPEN).0.as_deref(), Some("malformed"));
        }
        let (verdict, passed) = pair.verdict(&block(indexing, &get(b"/next", b"x-a", b"ok")), REQUEST);
        assert_eq!((verdict, passed.len()), (None, 4));
    }
    for (value, is_websocket, path) in
        [("websocket", true, None), ("websocket/a<b", true, Some("/a<b")), ("/a<b", false, Some("/a<b"))]
    {
        assert_eq!(Verdict::parse(value.as_bytes()), Verdict::Passed { is_websocket, path });
    }
}
