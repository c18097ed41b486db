//! A connection of HTTP/2 without its socket, for whoever wants to feed it what no server should send.

use std::sync::Arc;

use super::hpack::Numbers;
use super::session::{Ended, Outcome, Session};
use crate::config::Template;
use crate::ledger::{Over, Request};
use crate::request::Prepared;
use crate::worker::Requests;

/// Requests under way while the server's bytes are taken in.
const STREAMS: usize = 4;
/// Bytes of their bodies, more than windows are wide at first.
const BODY_BYTES: usize = 70_000;

/// Hands bytes of a server to HTTP/2 as a connection of a load does, but for the socket: for fuzzing and measuring.
#[derive(Debug)]
pub struct Http2Trial {
    requests: Requests,
}

/// What the bytes have led to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Http2Tried {
    /// Requests with a whole answer.
    pub answered: usize,
    /// Requests that failed.
    pub failed: usize,
    /// Requests that the server says it has not looked at.
    pub unheard: usize,
    /// The server broke the protocol, and nothing more was taken in.
    pub is_broken: bool,
    /// What was sent, the preface included.
    pub output: Vec<u8>,
    /// Bytes that were kept between the pieces, the most.
    pub kept_bytes_max: usize,
    /// Bytes that header blocks were decoded to.
    pub decoded_bytes: u64,
}

impl Default for Http2Trial {
    /// A trial whose requests have bodies.
    fn default() -> Self {
        let target = "https://example.org/".parse().expect("a target");
        let template = Template::post("/", BODY_BYTES);
        let prepared = Prepared::new(&template, &target, &mut Numbers::default()).expect("a plain request");
        Self { requests: Requests::new(Arc::new([prepared]), 0) }
    }
}

impl Http2Trial {
    /// Takes in what a server sends, in these pieces, while four requests are under way. Bodies go out before and after
    /// that, so that how wide windows are does not depend on the pieces.
    pub fn receive<'p>(&self, pieces: impl IntoIterator<Item = &'p [u8]>) -> Http2Tried {
        let (mut session, mut ended) = (Session::new(), Ended::new());
        let mut tried = Http2Tried::default();
        for _ in 0..STREAMS {
            let request = Request {
                template: 0,
                intended_ns: None,
                begun_ns: 0,
                sent_ns: None,
                deadline_ns: u64::MAX,
                retried: false,
                warmup: false,
                over: Over::Kept,
            };
            session.begin(request, &self.requests.at(0).http2);
        }
        send(&mut session, &mut tried.output);
        for piece in pieces {
            session.receive(piece, &self.requests, &mut ended);
            tried.kept_bytes_max = tried.kept_bytes_max.max(session.kept_bytes());
        }
        tried.decoded_bytes = session.decoded_bytes();
        tried.is_broken = session.broken().is_some();
        if tried.is_broken {
            session.close();
        }
        send(&mut session, &mut tried.output);
        for (_, outcome) in &ended {
            match outcome {
                Outcome::Answered(..) => tried.answered += 1,
                Outcome::Failed(_) => tried.failed += 1,
                Outcome::Unheard(_) => tried.unheard += 1,
            }
        }
        tried
    }
}

fn send(session: &mut Session, output: &mut Vec<u8>) {
    loop {
        session.pump();
        let out = session.output();
        if out.is_empty() {
            return;
        }
        output.extend_from_slice(out);
        session.note_sent(out.len());
    }
}
