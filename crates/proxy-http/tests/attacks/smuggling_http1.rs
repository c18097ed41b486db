//! Request smuggling over HTTP/1.1: each vector is refused, or reaches the upstream framed in one way.

use std::io::{BufReader, Write};

use super::http2_client::*;
use super::support::*;

/// What becomes of a vector.
#[derive(Clone, Copy, Debug)]
enum VectorOutcome {
    /// Nothing reaches the upstream.
    Refused,
    /// One request reaches it, with this framing field and content.
    Forwarded(&'static [&'static str], &'static [u8]),
}
use VectorOutcome::{Forwarded, Refused};

const CHUNKED: &[&str] = &["transfer-encoding: chunked"];

/// What stands in front of the vector's fields.
const POST: &str = "POST /vector HTTP/1.1\r\nHost: a\r\n";

/// Sends a vector and an ordinary request behind it; what comes to the upstream is as expected, and nothing else.
fn check(site: &AttackTarget, vector: &[u8], expected: VectorOutcome) {
    let shown = vector.escape_ascii();
    let mut tls = BufReader::new(site.connect("http/1.1"));
    let stream = tls.get_mut();
    stream.write_all(vector).unwrap();
    stream.flush().unwrap();
    let answer = read_message(&mut tls);
    let status = answer.as_ref().and_then(|answer| answer.head.get(9..12)).unwrap_or(b"no answer").to_vec();
    // If a part of the vector waited to be a request, this would be its content, or come after its answer.
    let _ = tls.get_mut().write_all(b"GET /after HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    let after = read_to_end(&mut tls);
    let mut received = site.take_received();
    received.retain(|request| request.target() != "GET /after");
    match expected {
        Refused => {
            assert!(status[0] != b'2', "{shown}: {}", status.escape_ascii());
            assert!(received.is_empty(), "{shown}: {received:?}");
            let goes_on = after.starts_with(b"HTTP/1.1 200");
            assert!(!goes_on || matches!(&*status, b"405" | b"421"), "{shown}: the connection goes on");
        }
        Forwarded(framing, content) => {
            assert_eq!(received.len(), 1, "{shown}: {received:?}");
            let request = &received[0];
            assert_eq!(request.framing(), framing, "{shown}");
            assert_eq!(request.content, content, "{shown}: {}", request.content.escape_ascii());
            assert_eq!(request.values("host"), ["a"], "{shown}");
            assert_eq!(status, b"200", "{shown}");
        }
    }
}

fn check_fields(vectors: &[(&str, VectorOutcome)]) {
    let site = AttackTarget::start(respond_ok);
    for (fields_and_content, expected) in vectors {
        check(&site, format!("{POST}{fields_and_content}").as_bytes(), *expected);
    }
}

#[test]
fn length_and_transfer_encoding_together_become_chunks_alone() {
    const EMPTY: VectorOutcome = Forwarded(CHUNKED, b"0\r\n\r\n");
    let site = AttackTarget::start(respond_ok);
    for fields in [
        "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n",
        "Content-Length: 0\r\nTransfer-Encoding: CHUNKED\r\nContent-Length: 40\r\n",
    ] {
        // The connection is closed behind it, so that what follows is no request (RFC 9112, section 6.1).
        let smuggled = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";
        check(&site, format!("{POST}{fields}\r\n0\r\n\r\n{smuggled}").as_bytes(), EMPTY);
    }
}

#[test]
fn lengths_that_are_not_one_number_are_refused() {
    check_fields(&[
        ("Content-Length: 5\r\n\r\nhello", Forwarded(&["content-length: 5"], b"hello")),
        ("Content-Length: 005\r\n\r\nhello", Forwarded(&["content-length: 5"], b"hello")),
        ("Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", Forwarded(&["content-length: 5"], b"hello")),
        ("Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", Refused),
        ("Content-Length: 5, 5\r\n\r\nhello", Refused),
        ("Content-Length: +5\r\n\r\nhello", Refused),
        ("Content-Length: -5\r\n\r\nhello", Refused),
        ("Content-Length: 5 5\r\n\r\nhello", Refused),
        ("Content-Length: 0x5\r\n\r\nhello", Refused),
        ("Content-Length: 5;\r\n\r\nhello", Refused),
        ("Content-Length: \r\n\r\nhello", Refused),
        ("Content-Length: \u{ff15}\r\n\r\nhello", Refused),
        ("Content-Length: 18446744073709551616\r\n\r\nhello", Refused),
    ]);
}

#[test]
fn transfer_encoding_is_chunked_alone_or_refused() {
    check_fields(&[
        (
            "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            Forwarded(CHUNKED, b"5\r\nhello\r\n0\r\n\r\n"),
        ),
        ("Transfer-Encoding: \t chunked \t\r\n\r\n0\r\n\r\n", Forwarded(CHUNKED, b"0\r\n\r\n")),
        ("Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", Refused),
        ("Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n", Refused),
        ("Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", Refused),
        ("Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", Refused),
        ("Transfer-Encoding: chunkedx\r\n\r\n0\r\n\r\n", Refused),
        ("Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", Refused),
        ("Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n", Refused),
        ("Transfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello", Refused),
        ("Transfer-Encoding:\r\nContent-Length: 5\r\n\r\nhello", Refused),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", Refused),
        ("Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", Refused),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", Refused),
        ("Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\nhello", Refused),
        ("Transfer_Encoding: chunked\r\nContent-Length: 5\r\n\r\nhello", Refused),
        (
            "Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            Forwarded(CHUNKED, b"0\r\n\r\n"),
        ),
        (
            "Connection: Content-Length\r\nContent-Length: 2\r\n\r\nok",
            Forwarded(&["content-length: 2"], b"ok"),
        ),
    ]);
    let site = AttackTarget::start(respond_ok);
    let old = b"POST /vector HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    check(&site, old, Refused);
}

#[test]
fn chunks_are_framed_anew_or_refused() {
    let site = AttackTarget::start(respond_ok);
    let vector = |content: &[u8]| [POST.as_bytes(), b"Transfer-Encoding: chunked\r\n\r\n", content].concat();
    for (content, expected) in [
        (&b"5;a=b\r\nhello\r\n0\r\n\r\n"[..], Forwarded(CHUNKED, b"5\r\nhello\r\n0\r\n\r\n")),
        (b"0005\r\nhello\r\n000\r\n\r\n", Forwarded(CHUNKED, b"5\r\nhello\r\n0\r\n\r\n")),
    ] {
        check(&site, &vector(content), expected);
    }
    // An upstream may have begun a request that breaks behind its first chunk, and has nothing of the others.
    let mut connections = site.upstream_connections();
    for content in [
        &b"10000000000000000\r\nhello\r\n0\r\n\r\n"[..],
        b"ffffffffffffffff1\r\nhello\r\n0\r\n\r\n",
        b"-5\r\nhello\r\n0\r\n\r\n",
        b"+5\r\nhello\r\n0\r\n\r\n",
        b"0x5\r\nhello\r\n0\r\n\r\n",
        b"5\nhello\r\n0\r\n\r\n",
        b"5\rhello\r\n0\r\n\r\n",
        b"5\r\nhello0\r\n\r\n",
        b"5\r\nhello\n0\r\n\r\n",
        b"5;a=\n\r\nhello\r\n0\r\n\r\n",
        b"\r\nhello\r\n0\r\n\r\n",
        b"g\r\nhello\r\n0\r\n\r\n",
    ] {
        let mut tls = site.connect("http/1.1");
        tls.write_all(&vector(content)).unwrap();
        let _ = tls.write_all(b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
        let answer = read_to_end(&mut tls);
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{}", content.escape_ascii());
        let received = site.take_received();
        assert!(received.is_empty(), "{}: {received:?}", content.escape_ascii());
        let begun = usize::from(content.starts_with(b"5\r\nhello"));
        assert!(site.upstream_connections() <= connections + begun, "{}", content.escape_ascii());
        connections += begun;
    }
}

#[test]
fn malformed_fields_are_refused_or_end_in_one_line() {
    check_fields(&[
        ("X: a\r\n b\r\n\r\n", Refused),
        ("X: a\r\n\tTransfer-Encoding: chunked\r\n\r\n", Refused),
        (" X: a\r\n\r\n", Refused),
        ("X: a\rTransfer-Encoding: chunked\r\n\r\n", Refused),
        ("X: a\0b\r\n\r\n", Refused),
        ("X: a\u{1}b\r\n\r\n", Refused),
        ("X: a\u{7f}b\r\n\r\n", Refused),
        ("X\0: a\r\n\r\n", Refused),
        ("X y: a\r\n\r\n", Refused),
        ("X(: a\r\n\r\n", Refused),
        (": a\r\n\r\n", Refused),
        ("X\r\n\r\n", Refused),
        ("Host: b\r\n\r\n", Refused),
        ("Host: a\r\n\r\n", Refused),
        // Such a line ends for some servers, and not for others: behind the proxy, both read CR LF.
        ("X: a\nContent-Length: 2\n\nok", Forwarded(&["content-length: 2"], b"ok")),
    ]);
}

#[test]
fn request_lines_that_servers_read_differently_are_refused() {
    let site = AttackTarget::start(respond_ok);
    for vector in [
        &b"GET  /vector HTTP/1.1\r\nHost: a\r\n\r\n"[..],
        b"GET /vector  HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /vec tor HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /vec\0tor HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /vec\rtor HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET\t/vector\tHTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /vector\r\nHost: a\r\n\r\n",
        b"GET /vector HTTP/2.0\r\nHost: a\r\n\r\n",
        b"GET vector HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET * HTTP/1.1\r\nHost: a\r\n\r\n",
        b"G(T /vector HTTP/1.1\r\nHost: a\r\n\r\n",
        b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n",
        b"GET http://b/vector HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET http://a@b/vector HTTP/1.1\r\nHost: b\r\n\r\n",
        b"GET http://a?vector HTTP/1.1\r\nHost: b\r\n\r\n",
        b"GET /vector HTTP/1.1\r\n\r\n",
        b"GET /vector HTTP/1.1\r\nHost: a/b\r\n\r\n",
        b"GET /vector HTTP/1.1\r\nHost: a b\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        check(&site, vector, Refused);
    }
    check(&site, b"GET https://a/vector HTTP/1.1\r\nHost: a\r\n\r\n", Forwarded(&[], b""));
    // RFC 9112, section 3.2.2: the target counts, and the upstream sees no other host.
    check(&site, b"GET https://a/vector HTTP/1.1\r\nHost: b\r\n\r\n", Forwarded(&[], b""));
    // RFC 9112, section 2.2: an empty line in front is ignored.
    check(&site, b"\r\nGET /vector HTTP/1.1\r\nHost: a\r\n\r\n", Forwarded(&[], b""));
}

#[test]
fn fields_that_only_the_proxy_may_set_do_not_come_from_clients() {
    let site = AttackTarget::start(respond_ok);
    let hop_by_hop = "Connection: X-Secret, Upgrade, HTTP2-Settings\r\nX-Secret: 1\r\nUpgrade: h2c\r\n\
                      HTTP2-Settings: AAMAAABkAAQAAP__\r\nTE: trailers\r\nKeep-Alive: 1\r\nProxy-Connection: x\r\n";
    let mut tls = site.connect("http/1.1");
    tls.write_all(format!("GET / HTTP/1.1\r\nHost: a\r\n{hop_by_hop}\r\n").as_bytes()).unwrap();
    assert!(read_message(&mut BufReader::new(tls)).is_some());
    let received = site.take_received();
    for name in ["x-secret", "upgrade", "http2-settings", "keep-alive", "proxy-connection"] {
        assert_eq!(received[0].values(name), [""; 0], "{name}");
    }
}

#[test]
fn trailers_carry_nothing_that_a_server_could_take_for_a_field_of_the_header() {
    const FIELDS: &str = "X-TLS-Client-Name: admin\r\nx_tls_client_name: admin\r\nX-Forwarded-For: 192.0.2.6\r\n\
                          Forwarded: for=192.0.2.6\r\nAuthorization: x\r\nCookie: a\r\nHost: b\r\nContent-Length: 9\r\n\
                          X-Sum: 7\r\n";
    let site = AttackTarget::start_with(
        |_| {
            UpstreamResponse::bytes(format!(
                "HTTP/1.1 200 OK\r\ntrailer: cookie, x-tls-client-name, x-sum\r\ntransfer-encoding: chunked\r\n\r\n0\r\n{FIELDS}\r\n"
            ))
        },
        |_, http| http.trusted_forwarders = "127.0.0.0/8".parse().unwrap(),
    );
    let chunks = format!(
        "Transfer-Encoding: chunked\r\nTE: trailers\r\nConnection: close\r\n\r\n1\r\nx\r\n0\r\n{FIELDS}\r\n"
    );
    let mut tls = site.connect("http/1.1");
    tls.write_all(format!("{POST}{chunks}").as_bytes()).unwrap();
    let answer = read_to_end(&mut tls).to_ascii_lowercase();
    let mut client = Http2Client::connect(&site);
    client.send(&frame(HEADERS, END_HEADERS, 1, &block(&pseudo(b"POST", b"/"))));
    client.send(&frame(DATA, 0, 1, b"x"));
    let trailers =
        block(&[(b"x-tls-client-name", b"admin"), (b"x-forwarded-for", b"192.0.2.6"), (b"x-sum", b"7")]);
    client.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &trailers));
    client.read_stream(1);
    let received = site.take_received();
    assert_eq!(received.len(), 2);
    for (sent, content) in [("HTTP/1.1", &received[0].content), ("HTTP/2", &received[1].content)] {
        assert_eq!(
            content.to_ascii_lowercase().escape_ascii().to_string(),
            "1\\r\\nx\\r\\n0\\r\\nx-sum: 7\\r\\n\\r\\n",
            "{sent}"
        );
    }
    assert!(answer.ends_with(b"\r\n0\r\nx-sum: 7\r\n\r\n"), "{}", answer.escape_ascii());
}
