//! A small HTTP server for tests.

use std::io::{BufRead, BufReader, Read};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The head of a request, and its content.
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) content: Vec<u8>,
}

/// Answers a request, or closes the connection with `None`.
type Answer<S> = fn(&mut TcpStream, Request, &Mutex<S>) -> Option<()>;

/// Starts a server, which ends with the tests; returns what it shares with them, and its address.
pub(crate) fn server<S: Default + Send + 'static>(answer: Answer<S>) -> (Arc<Mutex<S>>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let shared = Arc::<Mutex<S>>::default();
    let state = Arc::clone(&shared);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let state = Arc::clone(&state);
            std::thread::spawn(move || serve(stream.unwrap(), &state, answer));
        }
    });
    (shared, address)
}

fn serve<S>(mut stream: TcpStream, state: &Mutex<S>, answer: Answer<S>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let lower = head.to_lowercase();
        let length = lower.split("content-length: ").nth(1)?.split("\r\n").next()?.parse().ok()?;
        let mut content = vec![0; length];
        reader.read_exact(&mut content).ok()?;
        answer(&mut stream, Request { head, content }, state)?;
    }
}
