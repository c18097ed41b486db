use proptest::prelude::*;

use super::*;

/// Feeds an input in pieces of these sizes, again and again from the first.
fn feed(
    parser: &mut Parser,
    input: &[u8],
    sizes: &[usize],
) -> Result<(usize, Option<CompleteResponse>), MalformedResponse> {
    let mut consumed = 0;
    for size in sizes.iter().cycle() {
        let end = (consumed + size).min(input.len());
        let fed = parser.feed(&input[consumed..end])?;
        consumed += fed.consumed;
        if fed.answer.is_some() || consumed == input.len() {
            return Ok((consumed, fed.answer));
        }
    }
    unreachable!("the sizes are above zero")
}

fn parse(input: &[u8]) -> Result<(usize, Option<CompleteResponse>), MalformedResponse> {
    let mut parser = Parser::default();
    parser.expect(&ExpectedResponse::default());
    feed(&mut parser, input, &[usize::MAX / 2])
}

fn kept(input: &str) -> bool {
    parse(input.as_bytes()).unwrap().1.unwrap().keep_alive
}

#[test]
fn the_answer_ends_where_its_body_does() {
    let input = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 ...";
    let (consumed, answer) = parse(input).unwrap();
    assert_eq!(consumed, input.len() - b"HTTP/1.1 ...".len());
    let CompleteResponse { status, keep_alive, body_bytes, .. } = answer.unwrap();
    assert_eq!((status, keep_alive, body_bytes), (Some(200), true, 3));
}

#[test]
fn bytes_without_a_request_are_not_parsed() {
    let mut parser = Parser::default();
    assert_eq!(parser.feed(b"HTTP/1.1 408 \r\n"), Ok(FeedResult { consumed: 0, answer: None }));
}

#[test]
fn keep_alive_follows_version_and_connection_field() {
    assert!(kept("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
    assert!(!kept("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: foo, Close\r\n\r\n"));
    assert!(!kept("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"));
    assert!(kept("HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: Keep-Alive\r\n\r\n"));
    // Both framings: the coding wins, and the connection is not used again (RFC 9112, section 6.3).
    assert!(!kept("HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"));
}

#[test]
fn odd_heads_are_taken_as_curl_takes_them() {
    let many = "Set-Cookie: c=x\r\n".repeat(499);
    for (head, status) in [
        ("HTTP/1.1 999 Request Denied\r\n", 999),
        ("HTTP/1.1 600\r\n", 600),
        ("HTTP/1.1 200 OK\r\nX-A: a\r\n b\r\n", 200),
        (&format!("HTTP/1.1 200 OK\r\n{many}"), 200),
    ] {
        let input = format!("{head}Content-Length:\r\n\t3\r\n\r\nok\n");
        let (consumed, answer) = parse(input.as_bytes()).unwrap();
        let CompleteResponse { status: of_answer, body_bytes, .. } = answer.unwrap();
        assert_eq!((consumed, of_answer, body_bytes), (input.len(), Some(status), 3), "{head}");
    }
    for head in ["HTTP/1.1 99 Low\r\n", "HTTP/1.1 099 Low\r\n", "HTTP/1.1 1000 High\r\n"] {
        assert_eq!(parse(format!("{head}\r\n").as_bytes()), Err(MalformedResponse), "{head}");
    }
    assert_eq!(parse(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n 2\r\n\r\n"), Err(MalformedResponse));
}

#[test]
fn a_body_without_a_length_ends_with_the_connection() {
    let mut parser = Parser::default();
    parser.expect(&ExpectedResponse::default());
    let input = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nanything";
    assert_eq!(feed(&mut parser, input, &[7]), Ok((input.len(), None)));
    assert!(matches!(
        parser.end(),
        Some(CompleteResponse { status: Some(200), keep_alive: false, body_bytes: 8, .. })
    ));
    assert_eq!(parser.end(), None);
}

#[test]
fn an_end_in_the_middle_completes_nothing() {
    let cases = ["", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab"];
    for input in cases {
        let mut parser = Parser::default();
        parser.expect(&ExpectedResponse::default());
        parser.feed(input.as_bytes()).unwrap();
        assert_eq!(parser.end(), None, "{input:?}");
        assert_eq!(parser.has_begun(), !input.is_empty());
    }
}

#[test]
fn a_list_of_equal_lengths_is_one_length() {
    let same = b"HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\nContent-Length: 3\r\n\r\nabc";
    assert_eq!(parse(same).unwrap().0, same.len());
    assert_eq!(parse(b"HTTP/1.1 200 OK\r\nContent-Length: 3, 4\r\n\r\nabc"), Err(MalformedResponse));
    assert_eq!(
        parse(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n"),
        Err(MalformedResponse)
    );
    assert_eq!(parse(b"HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\nabc"), Err(MalformedResponse));
}

#[test]
fn the_size_of_a_head_is_bounded() {
    let mut input = b"HTTP/1.1 200 OK\r\nX: ".to_vec();
    input.resize(2 * HEAD_BYTES_MAX, b'y');
    for size in [1, 1_000, HEAD_BYTES_MAX, 2 * HEAD_BYTES_MAX] {
        let mut parser = Parser::default();
        parser.expect(&ExpectedResponse::default());
        assert_eq!(feed(&mut parser, &input, &[size]), Err(MalformedResponse), "in pieces of {size}");
        assert!(parser.head.len() <= HEAD_BYTES_MAX + 1);
    }
    // Also a complete one.
    input.extend_from_slice(b"\r\n\r\n");
    assert_eq!(parse(&input), Err(MalformedResponse));
}

#[test]
fn line_ends_of_chunks_and_trailers_have_a_bound() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for begin in ["1\r\nx", "0\r\n", "0\r\nX: y", "1;x"] {
        let input = format!("{head}{begin}{}", "\r".repeat(2 * HEAD_BYTES_MAX));
        assert_eq!(parse(input.as_bytes()), Err(MalformedResponse), "{begin:?}");
    }
}

/// An answer in chunks, written out with the sizes given, and its length.
fn chunked(sizes: &[usize], extension: &str, trailer: &str) -> Vec<u8> {
    let mut input = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for size in sizes {
        input.extend_from_slice(format!("{size:x}{extension}\r\n").as_bytes());
        input.resize(input.len() + size, b'\n');
        input.extend_from_slice(b"\r\n");
    }
    input.extend_from_slice(format!("0\r\n{trailer}\r\n").as_bytes());
    input
}

#[test]
fn a_body_is_compared_with_the_expected_one() {
    let is_right = |body: &str, expected: ExpectedResponse| {
        let mut parser = Parser::default();
        parser.expect(&expected);
        let input = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        feed(&mut parser, input.as_bytes(), &[2]).unwrap().1.unwrap().body_is_right
    };
    let same =
        |body: &str| ExpectedResponse { body: Some(body.as_bytes().into()), ..ExpectedResponse::default() };
    assert!(is_right("hello", same("hello")));
    for other in ["hellp", "hell", "helloo", ""] {
        assert!(!is_right(other, same("hello")), "{other}");
    }
    let long = |bytes| ExpectedResponse { body_bytes: Some(bytes), ..ExpectedResponse::default() };
    assert!(is_right("hello", long(5)));
    assert!(!is_right("hello", long(6)));
}

#[test]
fn an_echo_is_a_body_alone() {
    let mut parser = Parser::default();
    parser.expect(&ExpectedResponse {
        body: Some(b"ping"[..].into()),
        is_raw: true,
        ..ExpectedResponse::default()
    });
    let (consumed, answer) = feed(&mut parser, b"pingpong", &[3]).unwrap();
    let answer = answer.unwrap();
    assert_eq!((consumed, answer.status, answer.body_is_right), (4, None, true));
    assert!(answer.keep_alive);
}

proptest! {
    #[test]
    fn pieces_make_no_difference(
        chunks in proptest::collection::vec(1_usize..300, 0..6),
        body in 0_usize..500,
        extension in prop_oneof![Just(""), Just(";a=b"), Just(" ; a=\"b\"")],
        trailer in prop_oneof![Just(""), Just("A: b\r\nC: d\r\n")],
        pieces in proptest::collection::vec(1_usize..40, 1..20),
    ) {
        let mut counted = format!("HTTP/1.1 404 No\r\nContent-Length: {body}\r\n\r\n").into_bytes();
        counted.resize(counted.len() + body, b'\r');
        let interim = [b"HTTP/1.1 100 Continue\r\n\r\n".to_vec(), counted.clone()].concat();
        let in_chunks = chunks.iter().sum::<usize>();
        let cases = [
            (chunked(&chunks, extension, trailer), 200, in_chunks),
            (counted, 404, body),
            (interim, 404, body),
        ];
        for (input, status, body_bytes) in cases {
            let mut parser = Parser::default();
            parser.expect(&ExpectedResponse::default());
            let excess = [input.clone(), b"HTTP/1.1".to_vec()].concat();
            let (consumed, answer) = feed(&mut parser, &excess, &pieces).unwrap();
            prop_assert_eq!(consumed, input.len());
            prop_assert_eq!(parse(&excess), Ok((consumed, answer)));
            let answer = answer.unwrap();
            prop_assert_eq!((answer.status, answer.keep_alive), (Some(status), true));
            prop_assert_eq!(answer.body_bytes, body_bytes as u64);
        }
    }

    #[test]
    fn no_input_makes_the_parser_panic_or_take_too_much(
        head in prop_oneof![
            Just(&b""[..]),
            Just(&b"HTTP/1.1 200 OK\r\n"[..]),
            Just(&b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"[..]),
        ],
        noise in proptest::collection::vec(prop_oneof![any::<u8>(), Just(b'\r'), Just(b'\n'), Just(b'0')], 1..300),
        pieces in proptest::collection::vec(1_usize..40, 1..20),
    ) {
        let input = [head, &noise].concat();
        let mut parser = Parser::default();
        parser.expect(&ExpectedResponse::default());
        if let Ok((consumed, _)) = feed(&mut parser, &input, &pieces) {
            prop_assert!(consumed <= input.len());
        }
    }
}
