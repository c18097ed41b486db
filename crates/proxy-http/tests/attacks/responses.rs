//! Responses of a hostile upstream: the client gets nothing that can be read in two ways, and no later request gets what
//! belongs to another.

use std::io::{BufReader, Write};
use std::time::{Duration, Instant};

use super::support::*;

/// What a GET over HTTP/1.1 is answered with, all of it.
fn get(site: &AttackTarget, target: &str) -> Vec<u8> {
    ask(site, &format!("GET {target}"))
}

fn ask(site: &AttackTarget, request: &str) -> Vec<u8> {
    let mut tls = site.connect("http/1.1");
    tls.write_all(format!("{request} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").as_bytes()).unwrap();
    read_to_end(&mut tls)
}

const MALFORMED: &[&[u8]] = &[
    b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok!",
    b"HTTP/1.1 200 OK\r\ncontent-length: 2, 2\r\n\r\nok",
    b"HTTP/1.1 200 OK\r\ncontent-length: +2\r\n\r\nok",
    b"HTTP/1.1 200 OK\r\ncontent-length: -2\r\n\r\nok",
    b"HTTP/1.1 200 OK\r\ncontent-length: \r\n\r\nok",
    b"HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551616\r\n\r\nok",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntransfer-encoding: identity\r\n\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nx: a\r\n b\r\ncontent-length: 2\r\n\r\nok",
    b"HTTP/1.1 200 OK\r\nx: a\0b\r\ncontent-length: 2\r\n\r\nok",
    b"HTTP/1.1 200 OK\r\nx: a\rb\r\ncontent-length: 2\r\n\r\nok",
    b"HTTP/1.1 200 OK\r\nx y: a\r\ncontent-length: 2\r\n\r\nok",
    b"HTTP/1.1 099 OK\r\ncontent-length: 2\r\n\r\nok",
    b"HTTP/1.1 2000 OK\r\ncontent-length: 2\r\n\r\nok",
    b"HTTP/1.1 abc OK\r\ncontent-length: 2\r\n\r\nok",
    b"HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    b"HTTP/2.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
    b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nok",
    b"SSH-2.0-OpenSSH_10.0\r\n\r\n",
];

#[test]
fn a_malformed_response_is_a_502_and_ends_its_connection() {
    let site = AttackTarget::start(|request| match request.target().split_once(" /malformed/") {
        Some((_, nth)) => UpstreamResponse::bytes(MALFORMED[nth.parse::<usize>().unwrap()]),
        None => respond_ok(request),
    });
    for (nth, response) in MALFORMED.iter().enumerate() {
        for method in ["GET", "HEAD"] {
            let answer = ask(&site, &format!("{method} /malformed/{nth}"));
            assert!(
                answer.starts_with(b"HTTP/1.1 502 "),
                "{method} {}: {}",
                response.escape_ascii(),
                answer.escape_ascii()
            );
            assert!(site.serves());
        }
    }
    // What follows had a connection of its own each time, as the one before was closed.
    assert!(site.upstream_connections() > 2 * MALFORMED.len());
}

#[test]
fn a_response_cut_short_never_looks_whole() {
    let site = AttackTarget::start(|request| {
        let response = match request.target() {
            "GET /length" => "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nok",
            "GET /chunk" => "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nok",
            "GET /chunks" => "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n",
            "GET /overflow" => {
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n10000000000000000\r\n"
            }
            "GET /bare" => "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nokX\r\n0\r\n\r\n",
            _ => return respond_ok(request),
        };
        UpstreamResponse::Last(response.into())
    });
    for target in ["/length", "/chunk", "/chunks", "/overflow", "/bare"] {
        let answer = get(&site, target);
        let is_whole =
            answer.ends_with(b"0\r\n\r\n") || answer.windows(17).any(|part| part == b"content-length: 2");
        assert!(!is_whole, "{target}: {}", answer.escape_ascii());
        assert!(site.serves());
    }
}

#[test]
fn excess_bytes_are_not_a_response_to_the_next_request() {
    const EXTRA: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\npoisoned!";
    let site = AttackTarget::start(|request| {
        let response = match request.target() {
            "GET /extra" => [b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", EXTRA].concat(),
            "GET /chunked" => {
                [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", EXTRA].concat()
            }
            "HEAD /head" => [b"HTTP/1.1 200 OK\r\ncontent-length: 52\r\n\r\n", EXTRA].concat(),
            "GET /204" => [b"HTTP/1.1 204 No Content\r\n\r\n", EXTRA].concat(),
            "GET /304" => [b"HTTP/1.1 304 Not Modified\r\n\r\n", EXTRA].concat(),
            _ => return respond_ok(request),
        };
        UpstreamResponse::Bytes(response)
    });
    for request in ["GET /extra", "GET /chunked", "HEAD /head", "GET /204", "GET /304"] {
        let mut tls = site.connect("http/1.1");
        tls.write_all(format!("{request} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").as_bytes())
            .unwrap();
        let answer = read_to_end(&mut tls);
        assert!(!answer.escape_ascii().to_string().contains("poisoned"), "{request}");
        for _ in 0..3 {
            assert!(get(&site, "/next").ends_with(b"\r\n\r\nok"), "{request}");
        }
    }
}

#[test]
fn interim_responses_are_dropped_and_the_final_one_comes_through() {
    let site = AttackTarget::start(|request| match request.target() {
        "GET /hints" => {
            let hints = b"HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n".repeat(3);
            UpstreamResponse::bytes([&hints[..], b"HTTP/1.1 102 Processing\r\n\r\n", OK].concat())
        }
        "GET /flood" => {
            UpstreamResponse::bytes(b"HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n".repeat(100_000))
        }
        _ => respond_ok(request),
    });
    let answer = get(&site, "/hints");
    assert!(
        answer.starts_with(b"HTTP/1.1 200 ") && answer.ends_with(b"\r\n\r\nok"),
        "{}",
        answer.escape_ascii()
    );
    assert!(get(&site, "/flood").starts_with(b"HTTP/1.1 502 "));
    assert!(site.serves());
}

#[test]
fn a_head_without_end_is_a_502_within_its_bound() {
    let site = AttackTarget::start(|request| match request.target() {
        "GET /long" => {
            UpstreamResponse::bytes([b"HTTP/1.1 200 OK\r\nx: ", &vec![b'a'; 1 << 20][..]].concat())
        }
        "GET /many" => {
            UpstreamResponse::bytes([b"HTTP/1.1 200 OK\r\n", &b"x: a\r\n".repeat(10_000)[..]].concat())
        }
        _ => respond_ok(request),
    });
    for target in ["/long", "/many"] {
        let began_at = Instant::now();
        assert!(get(&site, target).starts_with(b"HTTP/1.1 502 "), "{target}");
        assert!(began_at.elapsed() < Duration::from_secs(5));
        assert!(site.serves());
    }
}

#[test]
fn fields_of_the_upstreams_connection_stop_at_the_proxy() {
    let site = AttackTarget::start(|_| {
        let fields =
            "connection: x-secret\r\nx-secret: 1\r\nkeep-alive: timeout=5\r\nproxy-connection: x\r\n";
        UpstreamResponse::bytes(format!("HTTP/1.1 200 OK\r\n{fields}content-length: 2\r\n\r\nok"))
    });
    let mut tls = BufReader::new(site.connect("http/1.1"));
    tls.get_mut().write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
    let answer = read_message(&mut tls).unwrap();
    for name in ["x-secret", "keep-alive", "proxy-connection"] {
        assert_eq!(answer.values(name), [""; 0], "{name}");
    }
    assert_eq!(answer.framing(), ["content-length: 2"]);
}
