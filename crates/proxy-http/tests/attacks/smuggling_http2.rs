//! Request smuggling over HTTP/2: each vector is refused, or becomes one request of HTTP/1.1 that is framed in one way.

use records::metrics::HttpCounter;

use super::http2_client::*;
use super::support::*;

type Fields<'a> = &'a [(&'a [u8], &'a [u8])];

/// Sends a request with this header and content, and an ordinary one behind it, which is answered whatever became of the
/// first (RFC 9113, section 8.1.1). Returns what reaches the upstream of the first, and whether it was answered with 200.
fn send(site: &mut AttackTarget, fields: Fields<'_>, content: Option<&[u8]>) -> (Vec<RawRequest>, bool) {
    let mut client = Http2Client::connect(site);
    let end = if content.is_none() { END_STREAM } else { 0 };
    client.send(&frame(HEADERS, END_HEADERS | end, 1, &block(fields)));
    if let Some(content) = content {
        client.send(&frame(DATA, END_STREAM, 1, content));
    }
    let answer = client.read_stream(1);
    client.send(&get(3));
    let next = client.read_stream(3);
    assert_eq!(next.first().and_then(|frame| frame.payload.first()), Some(&0x88), "{fields:?}: {next:?}");
    // A part of the first request that waited at the upstream would come before this one.
    assert!(site.serves(), "{fields:?}");
    let mut received = site.take_received();
    received.retain(|request| !["GET /alive", "GET /"].contains(&request.target()));
    let is_ok = answer.iter().any(|frame| frame.kind == HEADERS && frame.payload.first() == Some(&0x88));
    (received, is_ok)
}

/// The request is refused, and counted once.
fn check_refused(site: &mut AttackTarget, fields: Fields<'_>, content: Option<&[u8]>) {
    let before = site.count(HttpCounter::Requests);
    let (received, is_ok) = send(site, fields, content);
    let shown: Vec<String> = fields
        .iter()
        .map(|(name, value)| format!("{}: {}", name.escape_ascii(), value.escape_ascii()))
        .collect();
    assert!(!is_ok && received.is_empty(), "{shown:?}: {received:?}");
    // Beside the one behind it, and that of another client.
    eventually("all are counted", || site.count(HttpCounter::Requests) >= before + 3);
    assert_eq!(site.count(HttpCounter::Requests), before + 3, "{shown:?}");
}

#[test]
fn fields_that_would_split_a_request_are_refused() {
    let mut site = AttackTarget::start(respond_ok);
    for (name, value) in [
        (&b"x"[..], &b"a\r\nTransfer-Encoding: chunked"[..]),
        (b"x", b"a\nb"),
        (b"x", b"a\rb"),
        (b"x", b"a\0b"),
        (b"x", b"a\x7fb"),
        (b"x\r\ny", b"a"),
        (b"x: a\r\ny", b"b"),
        (b"x\0", b"a"),
        (b"x y", b"a"),
        (b"x:", b"a"),
        (b"", b"a"),
        (b"X", b"a"),
        (b":x", b"a"),
        (b":path", b"/other"),
        (b"host", b"b"),
        (b"host", b"a\r\nx: y"),
        (b"content_length", b"5"),
        (b"x_forwarded_for", b"127.0.0.1"),
    ] {
        let fields = [&pseudo(b"GET", b"/vector")[..], &[(name, value)]].concat();
        check_refused(&mut site, &fields, None);
    }
}

#[test]
fn fields_of_one_connection_are_refused() {
    let mut site = AttackTarget::start(respond_ok);
    for (name, value) in [
        (&b"transfer-encoding"[..], &b"chunked"[..]),
        (b"transfer-encoding", b"identity"),
        (b"connection", b"close"),
        (b"connection", b"x"),
        (b"keep-alive", b"1"),
        (b"proxy-connection", b"close"),
        (b"upgrade", b"websocket"),
        (b"te", b"chunked"),
    ] {
        let fields = [&pseudo(b"POST", b"/vector")[..], &[(name, value)]].concat();
        check_refused(&mut site, &fields, Some(b"hello"));
    }
}

#[test]
fn pseudo_fields_that_would_split_a_request_line_are_refused() {
    let mut site = AttackTarget::start(respond_ok);
    let header = |method, scheme, authority, path| -> [(&[u8], &[u8]); 4] {
        [(b":method", method), (b":scheme", scheme), (b":authority", authority), (b":path", path)]
    };
    for [method, scheme, authority, path] in [
        [&b"GET / HTTP/1.1\r\nx: y"[..], b"https", b"a", b"/vector"],
        [b"GET /", b"https", b"a", b"/vector"],
        [b"", b"https", b"a", b"/vector"],
        [b"CONNECT", b"https", b"a", b"/vector"],
        [b"GET", b"https", b"a", b"/vector HTTP/1.1\r\nx: y\r\n\r\nGET /smuggled"],
        [b"GET", b"https", b"a", b"/vec tor"],
        [b"GET", b"https", b"a", b"/vec\0tor"],
        [b"GET", b"https", b"a", b"/vec\x7ftor"],
        [b"GET", b"https", b"a", b"vector"],
        [b"GET", b"https", b"a", b""],
        [b"GET", b"https", b"a", b"*"],
        [b"GET", b"https", b"a", b"?vector"],
        [b"GET", b"https", b"a", b"https://b/vector"],
        [b"GET", b"https", b"a\r\nx: y", b"/vector"],
        [b"GET", b"https", b"a b", b"/vector"],
        [b"GET", b"https", b"a/b", b"/vector"],
        [b"GET", b"https", b"user@a", b"/vector"],
        [b"GET", b"https", b"", b"/vector"],
        [b"GET", b"https://b/x?", b"a", b"/vector"],
    ] {
        check_refused(&mut site, &header(method, scheme, authority, path), None);
    }
    for fields in [
        &[(&b":method"[..], &b"GET"[..]), (b":scheme", b"https"), (b":authority", b"a")][..],
        &[(b":scheme", b"https"), (b":authority", b"a"), (b":path", b"/vector")],
        &[(b":method", b"GET"), (b":scheme", b"https"), (b":path", b"/vector")],
        &[
            (b":method", b"GET"),
            (b":path", b"/vector"),
            (b":scheme", b"https"),
            (b"host", b"a"),
            (b"host", b"a"),
        ],
        &[
            (b":method", b"GET"),
            (b":scheme", b"https"),
            (b"x", b"y"),
            (b":authority", b"a"),
            (b":path", b"/vector"),
        ],
        &[(b":method", b"GET"), (b":scheme", b"https"), (b":path", b"/vector"), (b":status", b"200")],
    ] {
        check_refused(&mut site, fields, None);
    }
}

#[test]
fn lengths_that_do_not_match_the_content_are_never_a_whole_request() {
    let mut site = AttackTarget::start(respond_ok);
    for (length, content) in [
        (&b"5"[..], Some(&b"hello!"[..])),
        (b"6", Some(b"hello")),
        (b"5", Some(b"")),
        (b"5", None),
        (b"5, 5", Some(b"hello")),
        (b"+5", Some(b"hello")),
        (b"-5", Some(b"hello")),
        (b" 5", Some(b"hello")),
        (b"x", Some(b"hello")),
        (b"18446744073709551616", Some(b"hello")),
    ] {
        let fields = [&pseudo(b"POST", b"/vector")[..], &[(b"content-length", length)]].concat();
        check_refused(&mut site, &fields, content);
    }
    // The head says that it is whole; the content never goes anywhere.
    let empty = [&pseudo(b"POST", b"/vector")[..], &[(b"content-length", b"0")]].concat();
    for request in send(&mut site, &empty, Some(b"hello")).0 {
        assert!(request.content.is_empty() && request.values("transfer-encoding").is_empty(), "{request:?}");
    }
    let twice =
        [&pseudo(b"POST", b"/vector")[..], &[(b"content-length", b"5"), (b"content-length", b"6")]].concat();
    check_refused(&mut site, &twice, Some(b"hello"));
}

#[test]
fn content_is_framed_in_one_way() {
    let mut site = AttackTarget::start(respond_ok);
    let smuggled = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
    let chunks = [format!("{:x}\r\n", smuggled.len()).as_bytes(), smuggled, b"\r\n0\r\n\r\n"].concat();
    let length = smuggled.len().to_string();
    let with_length = [&pseudo(b"POST", b"/vector")[..], &[(b"content-length", length.as_bytes())]].concat();
    for (fields, framing, content) in [
        (&pseudo(b"POST", b"/vector")[..], "transfer-encoding: chunked".to_owned(), &chunks[..]),
        (&with_length, format!("content-length: {length}"), &smuggled[..]),
    ] {
        let (received, is_ok) = send(&mut site, fields, Some(smuggled));
        assert!(is_ok);
        assert_eq!(received.len(), 1, "{received:?}");
        assert_eq!(received[0].framing(), [framing]);
        assert_eq!(received[0].content, content);
        assert_eq!(received[0].values("host"), ["a"]);
    }
    let (received, is_ok) = send(&mut site, &pseudo(b"GET", b"/vector"), None);
    assert!(is_ok && received[0].framing().is_empty(), "{received:?}");
}
