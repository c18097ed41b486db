use proptest::prelude::*;

use super::*;

/// A `ClientHello` in one record.
struct HelloBuilder {
    version: u16,
    session_id: Vec<u8>,
    suites: Vec<u16>,
    extensions: Vec<(u16, Vec<u8>)>,
}

impl HelloBuilder {
    /// The example of JA4's description, with GREASE among all values.
    fn example() -> Self {
        let suites = [
            0x1a1a, 0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013, 0xc014,
            0x009c, 0x009d, 0x002f, 0x0035,
        ];
        let schemes = [0x0403, 0x0804, 0x0401, 0x0503, 0x0805, 0x0501, 0x0806, 0x0601];
        let kinds = [
            0x4a4a, 0x001b, 0x0000, 0x0033, 0x0010, 0x4469, 0x0017, 0x002d, 0x000d, 0x0005, 0x0023, 0x0012,
            0x002b, 0xff01, 0x000b, 0x000a, 0xdada, 0x0015,
        ];
        let content = |kind| match kind {
            0x0000 => name("WWW.Example.org"),
            0x0010 => long(&[&short(b"h2")[..], &short(b"http/1.1")].concat()),
            0x000d => long(&numbers(&schemes)),
            0x002b => short(&numbers(&[0x7a7a, 0x0304, 0x0303])),
            0x000a => long(&numbers(&[0x8a8a, 0x11ec, 0x001d, 0x0017])),
            _ => Vec::new(),
        };
        Self {
            version: TLS12,
            session_id: vec![7; 32],
            suites: suites.to_vec(),
            extensions: kinds.map(|kind| (kind, content(kind))).to_vec(),
        }
    }

    fn set(&mut self, kind: u16, content: Vec<u8>) {
        self.extensions.retain(|(other, _)| *other != kind);
        self.extensions.push((kind, content));
    }

    fn body(&self) -> Vec<u8> {
        let mut extensions = Vec::new();
        for (kind, content) in &self.extensions {
            extensions.extend(kind.to_be_bytes());
            extensions.extend(long(content));
        }
        let parts = [
            &self.version.to_be_bytes()[..],
            &[9; 32],
            &short(&self.session_id),
            &long(&numbers(&self.suites)),
            &short(&[0]),
            &long(&extensions),
        ];
        parts.concat()
    }

    fn message(&self) -> Vec<u8> {
        let body = self.body();
        [&[1, 0][..], &long(&body)].concat()
    }

    fn parsed(&self) -> ClientHello {
        ClientHello::parse(&self.body()).unwrap()
    }

    fn fingerprint(&self) -> String {
        String::from_utf8(self.parsed().fingerprint.unwrap().as_bytes().to_vec()).unwrap()
    }
}

fn numbers(values: &[u16]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_be_bytes()).collect()
}

fn short(bytes: &[u8]) -> Vec<u8> {
    [&[bytes.len() as u8], bytes].concat()
}

fn long(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_be_bytes(), bytes].concat()
}

fn name(name: &str) -> Vec<u8> {
    long(&[&[0][..], &long(name.as_bytes())].concat())
}

fn record(bytes: &[u8]) -> Vec<u8> {
    [&[22, 3, 1][..], &long(bytes)].concat()
}

/// The message that a reader finds in these pieces.
fn read(pieces: impl IntoIterator<Item = Vec<u8>>) -> Option<ClientHello> {
    let mut reader = HelloReader::default();
    pieces.into_iter().find_map(|piece| reader.read(&piece))
}

#[test]
fn the_example_has_the_fingerprint_of_the_description() {
    let mut hello = HelloBuilder::example();
    for _ in 0..2 {
        assert_eq!(hello.fingerprint(), "t13d1516h2_8daaf6152771_e5627efa2ab1");
    }
    hello.set(extension::SIGNATURE_ALGORITHMS, long(&[]));
    assert_eq!(hello.fingerprint(), "t13d1516h2_8daaf6152771_6d807ffa2a79");
    hello.suites.reverse();
    hello.extensions.reverse();
    assert_eq!(hello.fingerprint(), "t13d1516h2_8daaf6152771_6d807ffa2a79", "order does not matter");
}

#[test]
fn a_client_that_offers_to_resume_has_the_fingerprint_of_its_first_visit() {
    let mut hello = HelloBuilder::example();
    let first = hello.fingerprint();
    hello.set(extension::SESSION_TICKET, vec![1]);
    hello.set(extension::EARLY_DATA, Vec::new());
    hello.set(extension::PRE_SHARED_KEY, Vec::new());
    assert!(hello.parsed().resumption.has_psk);
    assert_eq!(hello.fingerprint(), first);
    hello.set(0x0031, Vec::new());
    assert_ne!(hello.fingerprint(), first, "another extension makes another client");
}

#[test]
fn lists_that_are_empty_are_zeros_and_long_ones_have_no_fingerprint() {
    let mut hello =
        HelloBuilder { version: 0x0301, session_id: Vec::new(), suites: Vec::new(), extensions: Vec::new() };
    assert_eq!(hello.fingerprint(), "t10i000000_000000000000_000000000000");
    hello.suites = (1..200).map(|suite| suite * 0x0100).collect();
    assert!(hello.fingerprint().starts_with("t10i990000_"));
    hello.suites = (0..1_000).collect();
    assert_eq!(hello.parsed().fingerprint, None);
    hello.set(extension::SUPPORTED_VERSIONS, short(&numbers(&[0x0a0a])));
    assert!(!hello.parsed().choices.has_tls13());
}

#[test]
fn a_protocol_that_is_no_text_is_told_in_hexadecimal() {
    for (first, told) in [
        (&b"h2"[..], "h2"),
        (b"http/1.1", "h1"),
        (b"x", "xx"),
        (b"\xab", "ab"),
        (b"\xab\xcd", "ad"),
        (b"\x30\xab", "3b"),
        (b"\x30\x31\xab\xcd", "3d"),
        (b"\x30\xab\xcd\x31", "01"),
        (b"", "00"),
    ] {
        let mut hello = HelloBuilder::example();
        hello.set(extension::ALPN, long(&short(first)));
        assert_eq!(&hello.fingerprint()[8..10], told, "{first:?}");
    }
}

#[test]
fn what_is_offered_is_read() {
    let mut hello = HelloBuilder::example();
    let parsed = hello.parsed();
    assert_eq!(parsed.server_name.as_deref(), Some("www.example.org"));
    assert!(parsed.choices.has_tls13() && parsed.choices.has_mlkem());
    let offer = |has_psk, has_ticket| ResumptionOffer { has_psk, has_ticket, has_session_id: true };
    assert_eq!(parsed.resumption, offer(false, false), "an empty ticket is none");
    hello.set(extension::SESSION_TICKET, vec![1]);
    hello.set(extension::PRE_SHARED_KEY, Vec::new());
    assert_eq!(hello.parsed().resumption, offer(true, true));
    for (given, told) in [("127.0.0.1", Some("127.0.0.1")), ("a\nb", None), ("", None)] {
        hello.set(extension::SERVER_NAME, name(given));
        assert_eq!(hello.parsed().server_name.as_deref(), told);
    }
    let names = long(&[&[0][..], &long(b"a.test"), &[0], &long(b"b.test")].concat());
    hello.set(extension::SERVER_NAME, names);
    assert_eq!(ClientHello::parse(&hello.body()), None, "two names in one extension");
    hello.set(extension::SERVER_NAME, name("a.test"));
    hello.extensions.push((extension::SERVER_NAME, name("b.test")));
    assert_eq!(ClientHello::parse(&hello.body()), None, "and in two");
    hello.set(extension::SERVER_NAME, name("a.test"));
    hello.extensions.retain(|(kind, _)| *kind != extension::SUPPORTED_VERSIONS);
    let choices = hello.parsed().choices;
    assert!(!choices.has_tls13() && choices.single(choices, false).version);
}

#[test]
fn what_is_no_client_hello_is_not_read() {
    let message = HelloBuilder::example().message();
    assert!(read([record(&message)]).is_some());
    assert!(read([b"GET / HTTP/1.1\r\n\r\n".to_vec(), record(&message)]).is_none(), "it comes too late");
    assert!(read([record(&[&[2], &message[1..]].concat())]).is_none(), "a ServerHello");
    assert!(read([record(&[]), record(&message)]).is_none());
    assert!(read([record(&[1, 0, 0xff, 0xff]), record(&[0; 0x4000])]).is_none(), "too long");
    for (kind, content) in
        [(0, vec![0]), (10, long(&[1])), (13, vec![9]), (16, long(&[])), (43, vec![3, 0, 0]), (43, vec![])]
    {
        let mut hello = HelloBuilder::example();
        hello.set(kind, content);
        assert_eq!(ClientHello::parse(&hello.body()), None, "extension {kind}");
    }
    let body = HelloBuilder::example().body();
    assert_eq!(ClientHello::parse(&[&body[..], &[0]].concat()), None, "something is left over");
}

#[test]
fn only_the_first_one_is_read() {
    let mut reader = HelloReader::default();
    let bytes = record(&HelloBuilder::example().message());
    assert!(reader.read(&bytes).is_some());
    assert!(reader.read(&bytes).is_none());
}

proptest! {
    #[test]
    fn input_in_pieces_has_the_same_result_as_in_one_read(
        records in prop::collection::vec(1..400_usize, 1..20),
        reads in prop::collection::vec(1..400_usize, 1..20),
    ) {
        let message = HelloBuilder::example().message();
        let (mut rest, mut wire, mut sizes) = (&message[..], Vec::new(), records.iter().cycle());
        while !rest.is_empty() {
            let (part, behind) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
            wire.extend(record(part));
            rest = behind;
        }
        wire.extend(record(b"what follows"));
        let (mut rest, mut pieces, mut sizes) = (&wire[..], Vec::new(), reads.iter().cycle());
        while !rest.is_empty() {
            let (part, behind) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
            pieces.push(part.to_vec());
            rest = behind;
        }
        prop_assert_eq!(read(pieces), Some(HelloBuilder::example().parsed()));
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(
        garbage in prop::collection::vec(any::<u8>(), 0..300),
        at in 0..300_usize,
        step in 1..50_usize,
    ) {
        let mut body = HelloBuilder::example().body();
        let at = at.min(body.len());
        body.splice(at..(at + garbage.len()).min(body.len()), garbage.clone());
        let whole = ClientHello::parse(&body);
        let bytes = record(&[&[1, 0][..], &long(&body)].concat());
        prop_assert_eq!(read(bytes.chunks(step).map(<[_]>::to_vec)), whole);
        let _ = (ClientHello::parse(&garbage), read([garbage]));
    }
}
