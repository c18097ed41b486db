//! Clients that do not read: the proxy stops reading their upstreams, however little it reads at a time.

use std::sync::atomic::Ordering;

use super::http2_client::*;
use super::support::*;

/// More than kernel and proxy hold for a client.
const HELD_BYTES_MAX: usize = 12 << 20;

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n";
const SWITCHED: &[u8] =
    b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";

fn respond_endlessly(request: &RawRequest) -> UpstreamResponse {
    let head = if request.target() == "GET /tunnel" { SWITCHED } else { HEAD };
    UpstreamResponse::Endless(head.to_vec(), vec![b'x'; 4_000])
}

/// Waits until the upstream can send nothing more on any of its connections.
fn expect_stopped(site: &AttackTarget, connections: usize) {
    let endless = site.endless();
    eventually("the proxy takes nothing more", || {
        let sent = endless.sent_bytes.load(Ordering::Relaxed);
        assert!(sent < connections * HELD_BYTES_MAX, "{sent} bytes were taken from the upstream");
        endless.stopped.load(Ordering::Relaxed) == connections
    });
}

#[test]
fn a_client_of_http1_that_does_not_read_stops_its_upstream() {
    for request in [
        "GET / HTTP/1.1\r\nhost: a\r\n\r\n",
        "GET /tunnel HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
    ] {
        let site = AttackTarget::start(respond_endlessly);
        let mut client = site.connect("http/1.1");
        std::io::Write::write_all(&mut client, request.as_bytes()).unwrap();
        expect_stopped(&site, 1);
    }
}

#[test]
fn a_client_of_http2_that_does_not_read_stops_its_upstreams() {
    for streams in [1, 8] {
        let site = AttackTarget::start(respond_endlessly);
        let mut client = Http2Client::connect_with(&site, &[(INITIAL_WINDOW_SIZE, 0x7fff_ffff)]);
        client.send(&frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0, 0, 0]));
        for n in 0..streams {
            client.send(&get(2 * n + 1));
        }
        expect_stopped(&site, streams as usize);
    }
}
