//! An HTTP/2 session for fuzzing and benchmarks.

use std::sync::Arc;

use super::fields::FieldNumbers;
use super::session::Http2Session;
use crate::protocol::{
    EncodedRequest, EncodedRequests, EndedRequests, ProtocolSession as _, Request, RequestOutcome,
};
use crate::target::Template;

/// Requests in flight.
const STREAMS: usize = 4;
/// Size of their bodies: more than the initial windows allow.
const BODY_BYTES: usize = 70_000;

/// Feeds a server's bytes to an HTTP/2 session, as a connection does.
#[derive(Debug)]
pub struct Http2Harness {
    requests: EncodedRequests,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Http2HarnessResult {
    /// Requests with a whole answer.
    pub answered: usize,
    pub failed: usize,
    /// Requests that the server reports as not processed.
    pub unprocessed: usize,
    /// The server broke the protocol, and the rest was ignored.
    pub is_broken: bool,
    /// The bytes sent, the preface included.
    pub output: Vec<u8>,
    /// Most bytes kept between two pieces.
    pub kept_bytes_max: usize,
    /// Bytes that header blocks were decoded to.
    pub decoded_bytes: u64,
}

impl Default for Http2Harness {
    /// A harness whose requests have bodies.
    fn default() -> Self {
        let target = "https://example.org/".parse().expect("a target");
        let template = Template::post("/", BODY_BYTES);
        let prepared =
            EncodedRequest::new(&template, &target, &mut FieldNumbers::default()).expect("a plain request");
        Self { requests: EncodedRequests::new(Arc::new([prepared]), 0) }
    }
}

impl Http2Harness {
    /// Receives these pieces while four requests are in flight. Bodies are sent before and after, so windows do not
    /// depend on the pieces.
    pub fn receive<'p>(&self, pieces: impl IntoIterator<Item = &'p [u8]>) -> Http2HarnessResult {
        let (mut session, mut ended) = (Http2Session::new(), EndedRequests::new());
        let mut tried = Http2HarnessResult::default();
        for _ in 0..STREAMS {
            let request = Request {
                template: 0,
                intended_ns: None,
                begun_ns: 0,
                sent_ns: None,
                deadline_ns: u64::MAX,
                retried: false,
                warmup: false,
            };
            session.begin(request, self.requests.at(0), false);
        }
        self.send(&mut session, &mut tried.output);
        for piece in pieces {
            session.receive(piece, &self.requests, &mut ended);
            tried.kept_bytes_max = tried.kept_bytes_max.max(session.kept_bytes());
        }
        tried.decoded_bytes = session.decoded_bytes();
        tried.is_broken = session.broken().is_some();
        if tried.is_broken {
            session.close();
        }
        self.send(&mut session, &mut tried.output);
        for (_, outcome) in &ended {
            match outcome {
                RequestOutcome::Answered(..) => tried.answered += 1,
                RequestOutcome::Failed(_) => tried.failed += 1,
                RequestOutcome::Unprocessed(_) => tried.unprocessed += 1,
            }
        }
        tried
    }

    fn send(&self, session: &mut Http2Session, output: &mut Vec<u8>) {
        loop {
            let out = session.output(&self.requests);
            let len = out.len();
            if len == 0 {
                return;
            }
            output.extend_from_slice(out);
            session.note_sent(len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_codec::frame::{flag, head, kind};

    fn headers(block: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        head(&mut out, block.len(), kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1);
        out.extend_from_slice(block);
        out
    }

    #[test]
    fn the_number_of_decoded_bytes_is_returned() {
        let mut settings = Vec::new();
        head(&mut settings, 0, kind::SETTINGS, 0, 0);
        // As a seed of the fuzz target: a field that fills the table, and blocks that name it again and again.
        let filling = [&b"\x88\x40\x01a\x7f\xa0\x1e"[..], &[b'b'; 3_999]].concat();
        let server = [settings, headers(&filling), headers(&[0xbe; 30]).repeat(10)].concat();
        let tried = Http2Harness::default().receive([&server[..]]);
        let bound = STREAMS as u64 * (256 << 10);
        assert!(tried.is_broken && tried.answered == 1, "{} bytes", tried.decoded_bytes);
        assert!((bound - 4_000..=bound).contains(&tried.decoded_bytes), "{} bytes", tried.decoded_bytes);
    }
}
