//! The session of an HTTP/1.1 or echo connection: one request at a time.

use records::values::LoadEvent;

use super::{CompleteResponse, Parser};
use crate::clock::now_ns;
use crate::protocol::{
    ConnectionEnd, ConnectionReuse, EncodedRequest, EncodedRequests, EndedRequests, Failure, ProtocolSession,
    Request, RequestOutcome, ResponseTimes, cut_off, timed_out,
};
use crate::tls::Alpn;

/// Bytes of a malformed answer that its failure quotes.
const SAMPLE_BYTES: usize = 60;

#[derive(Debug, Default)]
pub(crate) struct Http1Session {
    parser: Parser,
    request: Option<Request>,
    /// Bytes of it that were sent.
    sent_bytes: usize,
    /// It asks the server to close.
    is_last: bool,
    /// When its answer began; 0 before that.
    first_byte_ns: u64,
    carried: u32,
    answers: u32,
    fate: ConnectionReuse,
}

impl Http1Session {
    fn answered(&mut self, answer: CompleteResponse, done_ns: u64, ended: &mut EndedRequests) {
        let Some(request) = self.request.take() else { return };
        self.answers += 1;
        ended.push((
            request,
            RequestOutcome::Answered(answer, ResponseTimes { first_ns: self.first_byte_ns, done_ns }),
        ));
    }

    /// The connection's next state after a complete answer.
    fn fate_after(&self, answer: CompleteResponse, prepared: &EncodedRequest) -> ConnectionReuse {
        let is_sent = self.sent_bytes == prepared.bytes(self.is_last).len();
        if !is_sent || (self.is_last && prepared.expected.is_raw) {
            // An answer before the end of its request: the framing cannot be trusted. A raw server also does not know
            // that this request was the last.
            ConnectionReuse::ClientCloses
        } else if self.is_last || !answer.keep_alive {
            // The server is better placed to close first: the side that does keeps the pair of ports for a minute.
            ConnectionReuse::ServerCloses
        } else {
            ConnectionReuse::Open
        }
    }
}

impl ProtocolSession for Http1Session {
    const IS_MULTIPLEXED: bool = false;

    fn new() -> Self {
        Self::default()
    }

    fn can_follow(_alpn: Option<Alpn>) -> bool {
        true
    }

    fn carried(&self) -> u32 {
        self.carried
    }

    fn answers(&self) -> u32 {
        self.answers
    }

    fn fate(&self) -> ConnectionReuse {
        self.fate
    }

    fn has_room(&self) -> bool {
        self.request.is_none() && self.fate == ConnectionReuse::Open
    }

    fn begin(&mut self, request: Request, prepared: &EncodedRequest, is_last: bool) {
        self.parser.expect(&prepared.expected);
        self.request = Some(request);
        self.sent_bytes = 0;
        self.is_last = is_last;
        self.first_byte_ns = 0;
        self.carried += 1;
    }

    fn early_data_rejected(&mut self) {
        self.sent_bytes = 0;
    }

    fn output<'a>(&'a mut self, requests: &'a EncodedRequests) -> &'a [u8] {
        let Some(request) = &self.request else { return &[] };
        &requests.at(request.template).bytes(self.is_last)[self.sent_bytes..]
    }

    fn note_sent(&mut self, bytes: usize) {
        self.sent_bytes += bytes;
    }

    fn receive(&mut self, plaintext: &[u8], requests: &EncodedRequests, ended: &mut EndedRequests) {
        let Some(request) = &self.request else {
            if self.fate != ConnectionReuse::Lost {
                // It would be taken for the answer to the next request.
                self.fate = ConnectionReuse::ClientCloses;
            }
            return;
        };
        let had_begun = self.parser.has_begun();
        let fed = self.parser.feed(plaintext);
        if !had_begun && self.parser.has_begun() {
            self.first_byte_ns = now_ns();
        }
        let Ok(fed) = fed else {
            // An alert: the server takes a request without TLS for a broken ClientHello.
            let sample = match plaintext {
                [0x15, 3, ..] => "the server answers with TLS: ask for https://".into(),
                other => String::from_utf8_lossy(&other[..other.len().min(SAMPLE_BYTES)]),
            };
            let failure = Failure::new(LoadEvent::Protocol, sample);
            ended.extend(self.request.take().map(|request| (request, RequestOutcome::Failed(failure))));
            self.fate = ConnectionReuse::Lost;
            return;
        };
        if let Some(answer) = fed.answer {
            let has_excess = fed.consumed < plaintext.len();
            let fate = self.fate_after(answer, requests.at(request.template));
            self.fate = if has_excess { ConnectionReuse::ClientCloses } else { fate };
            // Most answers come in one piece, whose time is known.
            let done_ns = if had_begun { now_ns() } else { self.first_byte_ns };
            self.answered(answer, done_ns, ended);
        }
    }

    fn expire(&mut self, now_ns: u64, ended: &mut EndedRequests) {
        if let Some(request) = self.request.take_if(|request| request.deadline_ns <= now_ns) {
            ended.push((request, timed_out(self.parser.has_begun())));
            self.fate = ConnectionReuse::Lost;
        }
    }

    fn end(&mut self, end: ConnectionEnd, ended: &mut EndedRequests) {
        if self.request.is_none() {
            return;
        }
        if end == ConnectionEnd::Clean
            && let Some(answer) = self.parser.end()
        {
            return self.answered(answer, now_ns(), ended);
        }
        let outcome = cut_off(end, self.answers, self.parser.has_begun());
        ended.extend(self.request.take().map(|request| (request, outcome)));
    }

    fn give_up(&mut self) -> impl Iterator<Item = Request> {
        self.request.take().into_iter()
    }

    fn templates(&self) -> impl Iterator<Item = usize> {
        self.request.iter().map(|request| request.template)
    }
}
