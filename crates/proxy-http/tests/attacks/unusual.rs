//! What clients send that is unusual and no attack: it is served as other servers serve it.

use std::io::{BufReader, Write};

use records::metrics::HttpCounter;

use super::http2_client::*;
use super::support::*;

/// What servers take in a target, although no URI has it.
const ODD_PATH: &str = "/a<b>`\"{c}|\\^?q={\"x\":<y>}`|\\^";

/// Sends requests of HTTP/1.1 on one connection, and returns their statuses.
fn ask_http1(site: &AttackTarget, requests: &str, n: usize) -> Vec<String> {
    let mut tls = BufReader::new(site.connect("http/1.1"));
    tls.get_mut().write_all(requests.as_bytes()).unwrap();
    let status = |answer: RawRequest| String::from_utf8(answer.head[9..12].to_vec()).unwrap();
    (0..n).map_while(|_| read_message(&mut tls)).map(status).collect()
}

#[test]
fn characters_that_clients_do_not_encode_reach_the_upstream() {
    let site = AttackTarget::start(respond_ok);
    let post = format!("POST {ODD_PATH} HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n<x>");
    let get = format!("GET {ODD_PATH} HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(ask_http1(&site, &format!("{post}{get}{get}"), 3), ["200"; 3]);
    let received = site.take_received();
    assert_eq!((received.len(), &*received[0].content), (3, &b"<x>"[..]));
    let mut client = Http2Client::connect(&site);
    let block = block(&pseudo(b"GET", ODD_PATH.as_bytes()));
    client.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &block));
    assert_eq!(client.read_stream(1)[0].payload[0], 0x88);
    for request in received.iter().chain(&site.take_received()) {
        assert!(request.target().ends_with(&format!(" {ODD_PATH}")), "{}", request.target());
        assert_eq!(request.values("~"), [""; 0]);
    }
}

#[test]
fn a_later_minor_version_is_served_as_1_1() {
    let site = AttackTarget::start(respond_ok);
    assert_eq!(
        ask_http1(&site, "GET / HTTP/1.2\r\nHost: a\r\n\r\nGET / HTTP/1.9\r\nHost: a\r\n\r\n", 2),
        ["200"; 2]
    );
}

#[test]
fn a_client_of_http2_that_waits_for_100_is_told_to_continue() {
    let site = AttackTarget::start(respond_ok);
    let mut client = Http2Client::connect(&site);
    let head =
        [&pseudo(b"POST", b"/")[..], &[(b"expect", b"100-continue"), (b"content-length", b"2")]].concat();
    client.send(&frame(HEADERS, END_HEADERS, 1, &block(&head)));
    let mut frames = std::iter::from_fn(|| client.next()).filter(|frame| frame.stream == 1);
    let interim = frames.next().unwrap();
    drop(frames);
    assert_eq!((interim.kind, interim.flags & END_STREAM), (HEADERS, 0));
    client.send(&frame(DATA, END_STREAM, 1, b"hi"));
    assert_eq!(client.read_stream(1)[0].payload[0], 0x88);
    let received = site.take_received();
    assert_eq!((&*received[0].content, received[0].values("expect")), (&b"hi"[..], vec![]));
}

#[test]
fn streams_go_on_beside_a_malformed_request() {
    let mut site = AttackTarget::start(|request| match request.target() {
        "GET /slow" => {
            std::thread::sleep(std::time::Duration::from_millis(100));
            respond_ok(request)
        }
        _ => respond_ok(request),
    });
    for (name, value) in [(&b"Upper"[..], &b"x"[..]), (b"a b", b"x"), (b"x", b"\0"), (b":other", b"x")] {
        let mut client = Http2Client::connect(&site);
        let slow = block(&pseudo(b"GET", b"/slow"));
        client.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &slow));
        let malformed = block(&[&pseudo(b"GET", b"/")[..], &[(name, value)]].concat());
        client.send(&frame(HEADERS, END_HEADERS | END_STREAM, 3, &malformed));
        let refused = client.read_stream(3);
        // 400, from HPACK's static table.
        assert_eq!(refused[0].payload[0], 0x8c, "{refused:?}");
        assert_eq!(client.read_stream(1)[0].payload[0], 0x88);
    }
    eventually("they are counted", || site.count(HttpCounter::FailedMalformed) == 4);
    assert_eq!((site.count(HttpCounter::Status4xx), site.count(HttpCounter::ResetsOut)), (4, 4));
}

#[test]
fn malformed_trailers_end_their_request_alone() {
    let mut site = AttackTarget::start(respond_ok);
    let mut client = Http2Client::connect(&site);
    let long = vec![b'y'; 17_000];
    for (n, trailers) in
        [&[(&b"Upper"[..], &b"x"[..])][..], &[(b":path", b"/")], &[(b"x", &long)]].into_iter().enumerate()
    {
        let stream = 2 * n as u32 + 1;
        client.send(&frame(HEADERS, END_HEADERS, stream, &block(&pseudo(b"POST", b"/"))));
        client.send(&frame(DATA, 0, stream, b"hi"));
        let trailers = block(trailers);
        let (first, rest) = trailers.split_at(trailers.len().min(16_000));
        client.send(&frame(
            HEADERS,
            END_STREAM | if rest.is_empty() { END_HEADERS } else { 0 },
            stream,
            first,
        ));
        if !rest.is_empty() {
            client.send(&frame(CONTINUATION, END_HEADERS, stream, rest));
        }
        let answer = client.read_stream(stream);
        assert_eq!(answer[0].payload[0], 0x8c, "{answer:?}");
    }
    eventually("they are counted", || site.count(HttpCounter::FailedMalformed) == 3);
    assert!(site.take_received().is_empty());
}

#[test]
fn the_pieces_of_a_cookie_are_one_field() {
    let site = AttackTarget::start(respond_ok);
    let crumbs: Vec<String> = (0..120).map(|n| format!("c{n}={n}")).collect();
    let cookies = crumbs.iter().map(|crumb| (&b"cookie"[..], crumb.as_bytes()));
    let fields: Vec<_> =
        pseudo(b"GET", b"/").into_iter().chain(cookies).chain([(&b"x"[..], &b"y"[..])]).collect();
    let mut client = Http2Client::connect(&site);
    client.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &block(&fields)));
    assert_eq!(client.read_stream(1)[0].payload[0], 0x88);
    let received = site.take_received();
    assert_eq!(
        (received[0].values("cookie"), received[0].values("x")),
        (vec![&*crumbs.join("; ")], vec!["y"])
    );
    // Over HTTP/1.1 a client's fields are as it sent them.
    assert_eq!(
        ask_http1(&site, "GET / HTTP/1.1\r\nHost: a\r\nCookie: a=1\r\nCookie: b=2\r\n\r\n", 1),
        ["200"]
    );
    assert_eq!(site.take_received()[0].values("cookie"), ["a=1", "b=2"]);
}

#[test]
fn an_empty_response_of_http2_has_no_length() {
    let site = AttackTarget::start(|request| {
        let status = if request.target().ends_with("/204") { "204 No Content" } else { "304 Not Modified" };
        UpstreamResponse::Last(format!("HTTP/1.1 {status}\r\ncontent-length: 3\r\n\r\nno\n").into())
    });
    let mut client = Http2Client::connect(&site);
    for (stream, path) in [(1, &b"/204"[..]), (3, b"/304")] {
        client.send(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &block(&pseudo(b"GET", path))));
        let answer = client.read_stream(stream);
        let (name, _) = http_codec::hpack::STATIC[27];
        assert_eq!((answer.len(), name), (1, &b"content-length"[..]));
        // The number of the name, in front of a value that is kept or not.
        assert!(!answer[0].payload.windows(2).any(|at| at == [0x5c, 1] || at == [0x0f, 0x0d]), "{answer:?}");
    }
}
