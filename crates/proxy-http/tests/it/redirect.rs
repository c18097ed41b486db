//! Redirects from HTTP without TLS.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use proxy_http::{RedirectAnswers, RedirectServer};

use crate::common::PATIENCE;

fn server() -> RedirectServer {
    let answers = RedirectAnswers { https_port: 443, challenge: Box::new(|_| None) };
    RedirectServer::start(TcpListener::bind("127.0.0.1:0").unwrap(), answers).unwrap()
}

fn connect(addr: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(addr).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn ask(addr: SocketAddr, request: &[u8]) -> String {
    let mut socket = connect(addr);
    socket.write_all(request).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_request_in_pieces_is_redirected_and_its_content_dropped() {
    let server = server();
    let mut socket = connect(server.addr());
    for piece in ["POST /a HT", "TP/1.1\r\nHost: shop.example\r\nContent-Length: 100000\r\n", "\r\n"] {
        socket.write_all(piece.as_bytes()).unwrap();
    }
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 308 Permanent Redirect\r\nLocation: https://shop.example/a\r\n"),
        "{answer}"
    );
    socket.write_all(&vec![b'x'; 100_000]).unwrap();
}

#[test]
fn slow_clients_and_endless_heads_keep_nobody_out() {
    let server = server();
    let mut slow: Vec<_> = (0..200)
        .map(|_| {
            let mut socket = connect(server.addr());
            socket.write_all(b"GET / HTTP/1.1\r\nHo").unwrap();
            socket
        })
        .collect();
    let answer = ask(server.addr(), b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(answer.contains("Location: https://a/\r\n"), "{answer}");
    // The oldest had to make room.
    assert!(matches!(
        slow[0].read(&mut [0]).map_err(|error| error.kind()),
        Ok(0) | Err(ErrorKind::ConnectionReset)
    ));
    let endless = ask(server.addr(), &[b'x'; 8 << 10]);
    assert!(endless.starts_with("HTTP/1.1 4"), "{endless}");
    // Those that stay are closed after a time.
    assert!(matches!(
        slow[199].read(&mut [0]).map_err(|error| error.kind()),
        Ok(0) | Err(ErrorKind::ConnectionReset)
    ));
}

#[test]
fn a_server_that_is_dropped_gives_its_address_back() {
    let server = server();
    let addr = server.addr();
    drop(server);
    TcpListener::bind(addr).unwrap();
}
