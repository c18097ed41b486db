//! The examples of RFC 7541, appendix C, and invalid blocks.

use proptest::prelude::*;

use super::table::DynamicTable;
use super::*;

type List = Vec<(String, String)>;

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let text = |pair: &[u8]| std::str::from_utf8(pair).unwrap().to_owned();
    digits.chunks(2).map(|pair| u8::from_str_radix(&text(pair), 16).unwrap()).collect()
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<List, HpackError> {
    let mut list = List::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match decoder.decode(block, u64::MAX, |field| list.push((text(field.name), text(field.value)))) {
        Ok(()) => Ok(list),
        Err(HpackDecodeError::Malformed(error)) => Err(error),
        Err(HpackDecodeError::TooLong) => unreachable!("it may be as long as it likes"),
    }
}

fn list(fields: &[(&str, &str)]) -> List {
    fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn single_fields_are_read_as_in_appendix_c_2() {
    for (hex, name, value) in [
        ("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572", "custom-key", "custom-header"),
        ("040c 2f73 616d 706c 652f 7061 7468", ":path", "/sample/path"),
        ("1008 7061 7373 776f 7264 0673 6563 7265 74", "password", "secret"),
        ("82", ":method", "GET"),
    ] {
        let read = decode(&mut <Decoder>::default(), &bytes(hex));
        assert_eq!(read, Ok(list(&[(name, value)])), "{hex}");
    }
}

#[test]
fn requests_are_read_as_in_appendix_c_3_and_c_4() {
    let plain = [
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ];
    let coded = [
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ];
    let authority = (":authority", "www.example.com");
    let get = [(":method", "GET"), (":scheme", "http"), (":path", "/"), authority];
    for blocks in [plain, coded] {
        let mut decoder = <Decoder>::default();
        let mut read = |block: &str| decode(&mut decoder, &bytes(block)).unwrap();
        assert_eq!(read(blocks[0]), list(&get));
        assert_eq!(read(blocks[1]), list(&[&get[..], &[("cache-control", "no-cache")]].concat()));
        let https = [(":method", "GET"), (":scheme", "https"), (":path", "/index.html"), authority];
        assert_eq!(read(blocks[2]), list(&[&https[..], &[("custom-key", "custom-value")]].concat()));
    }
}

#[test]
fn answers_are_read_and_entries_leave_as_in_appendix_c_5_and_c_6() {
    let plain = [
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 \
         3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
        "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 \
         7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 \
         6765 3d33 3630 303b 2076 6572 7369 6f6e 3d31",
    ];
    let coded = [
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad \
         1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
        "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 \
         e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
    ];
    let (private, site) = (("cache-control", "private"), ("location", "https://www.example.com"));
    let date = ("date", "Mon, 21 Oct 2013 20:13:21 GMT");
    let cookie = "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";
    for blocks in [plain, coded] {
        let mut decoder = Decoder { added: DynamicTable::new(256), ..Decoder::default() };
        let mut read = |block: &str| decode(&mut decoder, &bytes(block)).unwrap();
        assert_eq!(read(blocks[0]), list(&[(":status", "302"), private, date, site]));
        assert_eq!(read(blocks[1]), list(&[(":status", "307"), private, date, site]));
        let later = ("date", "Mon, 21 Oct 2013 20:13:22 GMT");
        let last =
            [(":status", "200"), private, later, site, ("content-encoding", "gzip"), ("set-cookie", cookie)];
        assert_eq!(read(blocks[2]), list(&last));
        assert_eq!(decoder.added.get(2), Some((&b"date"[..], &b"Mon, 21 Oct 2013 20:13:22 GMT"[..], ())));
        assert_eq!(decoder.added.get(3), None);
    }
}

#[test]
fn a_malformed_header_block_is_refused() {
    for (hex, why) in [
        ("80", "a field numbered 0"),
        ("be", "a number that nothing has"),
        ("7f80 8080 8001 00", "an integer that is too long"),
        ("8220", "a new size behind a field"),
        ("3fe2 1f", "a table larger than we allow"),
        ("400a 6375", "a name that is cut"),
        ("0481 ff", "a path that is only padding of eight bits"),
        ("40", "a name that is missing"),
    ] {
        assert_eq!(decode(&mut <Decoder>::default(), &bytes(hex)), Err(HpackError), "{why}");
    }
}

#[test]
fn decoding_stops_at_its_bound() {
    // A field of 2,001 bytes that is added to the table, and then named in each byte of the block.
    let added = [b"\x40\x01a\x7f\xd1\x0e", &[b'b'; 2_000][..]].concat();
    // The same name with an empty value, once more, and added again.
    for again in [&[0xbe][..], &[0x0f, 0x2f, 0x00], &[0x7e, 0x00]] {
        let mut decoder = <Decoder>::default();
        let mut handed_on = 0;
        let block = [&added[..], &again.repeat(60_000 / again.len())].concat();
        let outcome =
            decoder.decode(&block, 10_000, |field| handed_on += field.name.len() + field.value.len());
        assert_eq!(outcome, Err(HpackDecodeError::TooLong), "{again:?}");
        assert!(handed_on <= 10_000, "{handed_on} bytes of {again:?}");
        assert_eq!(decoder.decoded_bytes(), handed_on as u64);
    }
}

#[test]
fn a_table_of_size_zero_keeps_nothing() {
    let mut decoder = <Decoder>::default();
    let added = bytes("4003 6162 6303 7879 7a");
    decode(&mut decoder, &added).unwrap();
    assert!(decode(&mut decoder, &[0xbe]).is_ok());
    decode(&mut decoder, &[0x20]).unwrap();
    assert_eq!(decode(&mut decoder, &[0xbe]), Err(HpackError));
    decode(&mut decoder, &added).unwrap();
    assert_eq!(decode(&mut decoder, &[0xbe]), Err(HpackError));
    // And up to what we allow again.
    decode(&mut decoder, &bytes("3fe1 1f")).unwrap();
    decode(&mut decoder, &added).unwrap();
    assert!(decode(&mut decoder, &[0xbe]).is_ok());
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(blocks in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..100), 1..5)) {
        let mut decoder = <Decoder>::default();
        for block in blocks {
            let before = decoder.decoded_bytes();
            let _ = decoder.decode(&block, 300, |_| ());
            prop_assert!(decoder.decoded_bytes() - before <= 300);
            prop_assert!(decoder.added.get(TABLE_BYTES / 32).is_none());
        }
    }
}
