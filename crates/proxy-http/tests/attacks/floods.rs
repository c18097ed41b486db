//! Floods of HTTP/2: each ends its connection, is counted once, and leaves other clients served.

use std::time::{Duration, Instant};

use proxy_core::ProxyConfig;
use proxy_http::HttpConfig;
use records::metrics::{HttpCounter, ProxyCounter};

use super::http2_client::*;
use super::support::*;

const RESETS_MAX: usize = 50;
const CONTROL_FRAMES_MAX: usize = 100;

fn site(respond: Respond) -> AttackTarget {
    AttackTarget::start_with(respond, |_: &mut ProxyConfig, http: &mut HttpConfig| {
        http.limits.resets_max = RESETS_MAX;
        http.limits.control_frames_max = CONTROL_FRAMES_MAX;
    })
}

/// An upstream that answers nothing for a while.
fn respond_late(request: &RawRequest) -> UpstreamResponse {
    if request.target() != "GET /alive" {
        std::thread::sleep(Duration::from_millis(200));
    }
    respond_ok(request)
}

/// Sends what `nth` gives so many times. Returns the error code with which the connection is ended.
fn flood(site: &AttackTarget, times: usize, nth: impl Fn(u32) -> Vec<u8>) -> Option<u32> {
    let mut client = Http2Client::connect(site);
    let _ = (0..times as u32).all(|n| client.send(&nth(n)));
    client.read_goaway()
}

/// The flood ends its connection, which is counted under `counter` alone.
fn check(mut site: AttackTarget, goaway: Option<u32>, counter: HttpCounter) {
    assert_eq!(goaway, Some(ENHANCE_YOUR_CALM));
    eventually("the flood is counted", || site.count(counter) == 1);
    for other in [
        HttpCounter::FloodResets,
        HttpCounter::FloodControl,
        HttpCounter::FloodHeaders,
        HttpCounter::FloodEmpty,
    ] {
        assert_eq!(site.count(other), u64::from(other == counter), "{other:?}");
    }
    eventually("the connection is closed", || site.count_of_proxy(ProxyCounter::ClientBroken) == 1);
    assert!(site.serves());
}

#[test]
fn rapid_reset_ends_the_connection_and_bounds_upstream_work() {
    let site = site(respond_late);
    let goaway = flood(&site, 4 * RESETS_MAX, |n| {
        let stream = 2 * n + 1;
        [get(stream), frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes())].concat()
    });
    // A quarter of the streams may be reset beyond the budget.
    assert!(site.upstream_connections() <= 2 * RESETS_MAX, "{}", site.upstream_connections());
    check(site, goaway, HttpCounter::FloodResets);
}

#[test]
fn resets_one_by_one_of_requests_in_work_are_a_flood_too() {
    let site = site(respond_late);
    let mut client = Http2Client::connect(&site);
    for n in 0..4 * RESETS_MAX as u32 {
        let stream = 2 * n + 1;
        client.send(&get(stream));
        std::thread::sleep(Duration::from_millis(1));
        if !client.send(&frame(RST_STREAM, 0, stream, &CANCEL.to_be_bytes())) {
            break;
        }
    }
    let goaway = client.read_goaway();
    check(site, goaway, HttpCounter::FloodResets);
}

/// A request on a stream that makes the proxy reset it.
type Provoke = fn(u32) -> Vec<u8>;

#[test]
fn made_you_reset_ends_the_connection() {
    let malformed = |stream| frame(HEADERS, END_HEADERS, stream, &block(&[(b"no", b"pseudo")]));
    let provocations: [(&str, Provoke); 3] = [
        ("a window beyond 2^31 - 1", |stream| {
            [get(stream), frame(WINDOW_UPDATE, 0, stream, &[0x7f, 0xff, 0xff, 0xff])].concat()
        }),
        ("content of another length", |stream| {
            let head = block(&[&pseudo(b"POST", b"/")[..], &[(b"content-length", b"5")]].concat());
            [frame(HEADERS, END_HEADERS, stream, &head), frame(DATA, END_STREAM, stream, b"x")].concat()
        }),
        ("a malformed header", malformed),
    ];
    for (what, provoke) in provocations {
        println!("{what}");
        let site = site(respond_late);
        let goaway = flood(&site, 4 * RESETS_MAX, |n| provoke(2 * n + 1));
        check(site, goaway, HttpCounter::FloodResets);
    }
}

#[test]
fn continuations_without_end_end_the_connection() {
    for payload in [&b""[..], &block(&[(b"x", b"y")])] {
        let site = site(respond_ok);
        let goaway = flood(&site, 500, |n| match n {
            0 => frame(HEADERS, END_STREAM, 1, &block(&pseudo(b"GET", b"/"))),
            _ => frame(CONTINUATION, 0, 1, payload),
        });
        check(site, goaway, HttpCounter::FloodHeaders);
    }
}

#[test]
fn control_frames_in_masses_end_the_connection() {
    for (kind, payload) in [
        (PING, &[0; 8][..]),
        (SETTINGS, &[][..]),
        (SETTINGS, &[0, 4, 0, 0, 1, 0][..]),
        (PRIORITY, &[0, 0, 0, 0, 1][..]),
        (WINDOW_UPDATE, &[0, 0, 0, 1][..]),
        (0xfe, &[][..]),
    ] {
        let site = site(respond_ok);
        let stream = if kind == PRIORITY { 3 } else { 0 };
        let goaway = flood(&site, 4 * CONTROL_FRAMES_MAX, |_| frame(kind, 0, stream, payload));
        check(site, goaway, HttpCounter::FloodControl);
    }
}

#[test]
fn empty_data_in_masses_ends_the_connection() {
    let site = site(respond_ok);
    let goaway = flood(&site, 500, |n| match n {
        0 => frame(HEADERS, END_HEADERS, 1, &block(&pseudo(b"POST", b"/"))),
        _ => frame(DATA, 0, 1, &[]),
    });
    check(site, goaway, HttpCounter::FloodEmpty);
}

/// A request that puts a field of 4,000 bytes into the table (RFC 7541, section 6.2.1), and names it so many times.
fn header_bomb(stream: u32, times: usize) -> Vec<u8> {
    let mut bomb = block(&pseudo(b"GET", b"/bomb"));
    bomb.extend_from_slice(b"\x40\x01x\x7f\xa1\x1e");
    bomb.extend_from_slice(&[b'a'; 4_000]);
    bomb.extend_from_slice(&vec![0xbe; times]);
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &bomb)
}

#[test]
fn a_header_beyond_the_bound_is_refused_and_its_connection_goes_on() {
    let site = AttackTarget::start(respond_ok);
    let mut client = Http2Client::connect(&site);
    client.send(&header_bomb(1, 20));
    let frames = client.read_stream(1);
    assert!(!frames.is_empty() && frames[0].payload.first() != Some(&0x88), "{frames:?}");
    assert!(site.take_received().is_empty());
    client.send(&get(3));
    assert_eq!(client.read_stream(3)[0].payload[0], 0x88);
}

#[test]
fn a_header_bomb_ends_the_connection_before_it_unfolds() {
    let site = site(respond_ok);
    let goaway = flood(&site, 1, |_| header_bomb(1, 4_000));
    assert!(site.take_received().is_empty());
    check(site, goaway, HttpCounter::FloodHeaders);
}

/// Two MiB for each request but one.
fn respond_large(request: &RawRequest) -> UpstreamResponse {
    if request.target() == "GET /alive" {
        return respond_ok(request);
    }
    let content = vec![b'a'; 2 << 20];
    UpstreamResponse::bytes([b"HTTP/1.1 200 OK\r\ncontent-length: 2097152\r\n\r\n", &content[..]].concat())
}

#[test]
fn streams_that_nobody_reads_end_with_the_send_timeout() {
    // Closed windows; open ones, and a socket that nobody reads.
    for window in [0, 0x7fff_ffff] {
        let mut site = AttackTarget::start_with(respond_large, |config, http| {
            config.limits.send_timeout = Duration::from_millis(300);
            http.limits.control_frames_max = 1_000_000;
        });
        let mut client = Http2Client::connect_with(&site, &[(INITIAL_WINDOW_SIZE, window)]);
        client.send(&frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0, 0, 0]));
        for n in 0..128 {
            client.send(&get(2 * n + 1));
        }
        // Its other frames change nothing.
        eventually("the connection is ended", || {
            client.send(&frame(PING, 0, 0, &[0; 8]));
            std::thread::sleep(Duration::from_millis(5));
            site.count_of_proxy(ProxyCounter::SendTimeouts) == 1
        });
        assert!(site.serves());
    }
}

#[test]
fn a_slow_reader_is_served_to_the_end() {
    // Longer than a busy machine keeps a thread waiting.
    const SEND_TIMEOUT: Duration = Duration::from_secs(2);
    let site = AttackTarget::start_with(respond_large, |config, _| {
        config.limits.send_timeout = SEND_TIMEOUT;
    });
    let began_at = Instant::now();
    let mut client = Http2Client::connect(&site);
    client.send(&get(1));
    let mut received = 0;
    while received < 2 << 20 {
        let frame_in = client.next().expect("a frame");
        if frame_in.kind == DATA {
            received += frame_in.payload.len();
            let increment = (frame_in.payload.len() as u32).to_be_bytes();
            std::thread::sleep(Duration::from_millis(20));
            client.send(
                &[frame(WINDOW_UPDATE, 0, 0, &increment), frame(WINDOW_UPDATE, 0, 1, &increment)].concat(),
            );
        }
    }
    assert!(began_at.elapsed() > SEND_TIMEOUT);
}

#[test]
fn a_busy_client_is_never_taken_for_a_flood() {
    let mut site = site(respond_ok);
    let mut client = Http2Client::connect(&site);
    for n in 0..500 {
        let stream = 2 * n + 1;
        client.send(&get(stream));
        client.send(&frame(WINDOW_UPDATE, 0, stream, &[0, 0, 1, 0]));
        client.send(&frame(PING, 0, 0, &[0; 8]));
        let ended_at = client.read_stream(stream).pop().unwrap();
        assert_eq!((ended_at.kind, ended_at.flags & END_STREAM), (DATA, END_STREAM), "stream {stream}");
        client.send(&frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 2]));
    }
    eventually("all streams are counted", || site.count(HttpCounter::Streams2) == 500);
    assert_eq!(site.count(HttpCounter::Connections2), 1);
    assert_eq!(site.count(HttpCounter::FloodControl), 0);
    let (bytes_in, bytes_out) =
        (site.count(HttpCounter::HeaderBytesIn), site.count(HttpCounter::HeaderBytesOut));
    assert_eq!(bytes_in, 500 * block(&pseudo(b"GET", b"/")).len() as u64);
    assert!(bytes_out > 500, "{bytes_out}");
    // Names, values, and 4 bytes for each of four fields.
    let plain = ":method:scheme:authority:path".len() + "GEThttpsa/".len() + 4 * 4;
    assert_eq!(site.count(HttpCounter::PlainHeaderBytesIn), 500 * plain as u64);
    assert!(site.count(HttpCounter::PlainHeaderBytesOut) > bytes_out);
}

#[test]
fn an_upstream_that_breaks_does_not_make_its_client_a_flood() {
    let mut site = site(|request| match request.target() {
        "GET /alive" => respond_ok(request),
        _ => UpstreamResponse::Last(Vec::new()),
    });
    let mut client = Http2Client::connect(&site);
    for n in 0..4 * RESETS_MAX as u32 {
        assert!(client.send(&get(2 * n + 1)));
        assert!(!client.read_stream(2 * n + 1).is_empty());
    }
    assert_eq!(site.count(HttpCounter::FloodResets), 0);
}
