//! One connection's HTTP/2 (RFC 9113), without its socket: bytes in, bytes out, and what becomes of requests.
//!
//! What a server sends is answered where the protocol wants that, and bounded: an incomplete frame, one header block,
//! and the answers that wait to be sent are all that is ever kept of it. Bodies are counted and compared as they come.

mod answer;
mod control;
mod receive;
mod send;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use bytes::Bytes;
use telemetry::LoadEvent;

use super::frame::{self, Code};
use super::hpack::{Decoder, Indexed};
use crate::http1::Answer;
use crate::ledger::{Arrived, Failure, Request};
use answer::Incoming;
pub(super) use answer::is_of_the_connection;

/// Window for data of a connection and of each of its streams, as h2load offers it: the load is not to be held back.
const WINDOW_BYTES: u32 = (1 << 30) - 1;
/// Streams that are opened before the server has said how many it takes, the least that RFC 9113 recommends to take.
const STREAMS_AT_FIRST: usize = 100;
/// Window of a stream to send into before the server has said otherwise.
const SEND_WINDOW_AT_FIRST: i64 = 65_535;

/// One connection.
#[derive(Debug)]
pub(crate) struct Session {
    inflow: receive::Inflow,
    decoder: Decoder,
    indexed: Indexed,
    streams: HashMap<u32, Stream, BuildHasherDefault<IdHasher>>,
    next_id: u32,
    /// What the server allows.
    streams_max: usize,
    stream_window: i64,
    /// What may be sent on all streams together.
    send_window: i64,
    /// Streams with a body to be sent, in turn.
    sending: VecDeque<u32>,
    out: Vec<u8>,
    /// Requests that were begun.
    carried: u32,
    answers: u32,
    /// The server, or we, want nothing more to be begun.
    is_going_away: bool,
    broken: Option<Broken>,
}

/// A request under way.
#[derive(Debug)]
struct Stream {
    request: Request,
    /// What is not sent yet of its body.
    body: Bytes,
    send_window: i64,
    incoming: Incoming,
}

/// The connection cannot go on, because of what the server has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken {
    code: Code,
    what: &'static str,
}

impl Broken {
    fn protocol(what: &'static str) -> Self {
        Self { code: Code::PROTOCOL_ERROR, what }
    }

    fn frame_size(what: &'static str) -> Self {
        Self { code: Code::FRAME_SIZE_ERROR, what }
    }

    fn flow_control(what: &'static str) -> Self {
        Self { code: Code::FLOW_CONTROL_ERROR, what }
    }

    /// What it means for a request.
    pub(crate) fn failure(self) -> Failure {
        Failure::new(LoadEvent::Protocol, self.what)
    }
}

/// What became of a request.
#[derive(Debug)]
pub(crate) enum Outcome {
    Answered(Answer, Arrived),
    Failed(Failure),
    /// The server says itself that it has not looked at it (RFC 9113, section 8.7).
    Unheard(Failure),
}

/// Requests that are over, each with what became of it.
pub(crate) type Ended = Vec<(Request, Outcome)>;

/// The numbers of streams are our own choice, and odd: nobody can make them collide.
#[derive(Debug, Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, id: u32) {
        // Both ends of a hash are made use of.
        self.0 = (self.0 ^ u64::from(id >> 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}

impl Session {
    /// A connection that begins now.
    pub(crate) fn new() -> Self {
        let mut out = Vec::new();
        frame::preface(&mut out, WINDOW_BYTES);
        Self {
            inflow: receive::Inflow::default(),
            decoder: Decoder::default(),
            indexed: Indexed::new(),
            streams: HashMap::default(),
            next_id: 1,
            streams_max: STREAMS_AT_FIRST,
            stream_window: SEND_WINDOW_AT_FIRST,
            send_window: SEND_WINDOW_AT_FIRST,
            sending: VecDeque::new(),
            out,
            carried: 0,
            answers: 0,
            is_going_away: false,
            broken: None,
        }
    }

    /// Requests that it carries or has carried.
    pub(crate) fn carried(&self) -> u32 {
        self.carried
    }

    /// Answers that were whole.
    pub(crate) fn answers(&self) -> u32 {
        self.answers
    }

    /// True if no request is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.streams.is_empty()
    }

    /// True if no request may be begun any more.
    pub(crate) fn is_spent(&self) -> bool {
        self.is_going_away || self.broken.is_some() || self.next_id > frame::ID_MAX
    }

    /// True if a request may be begun now.
    pub(crate) fn has_room(&self) -> bool {
        !self.is_spent() && self.streams.len() < self.streams_max
    }

    /// Why it cannot go on, if so.
    pub(crate) fn broken(&self) -> Option<Broken> {
        self.broken
    }

    /// Bytes of the server's that are kept because more of them has to come.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.inflow.kept_bytes()
    }

    /// Bytes of header fields, names and values, that the server's header blocks were decoded to.
    pub(crate) fn decoded_bytes(&self) -> u64 {
        self.decoder.decoded_bytes()
    }

    /// Ends what has lasted too long.
    pub(crate) fn expire(&mut self, now_ns: u64, ended: &mut Ended) {
        let out = &mut self.out;
        self.streams.retain(|id, stream| {
            if stream.request.deadline_ns > now_ns {
                return true;
            }
            frame::rst_stream(out, *id, Code::CANCEL);
            let event =
                if stream.incoming.has_begun() { LoadEvent::BodyTimeout } else { LoadEvent::AnswerTimeout };
            ended.push((stream.request, Outcome::Failed(Failure::new(event, ""))));
            false
        });
        let streams = &self.streams;
        self.sending.retain(|id| streams.contains_key(id));
    }

    /// The connection has ended, as `how` tells: so have its requests.
    pub(crate) fn cut(&mut self, how: &str, ended: &mut Ended) {
        for (_, stream) in self.streams.drain() {
            let outcome = if stream.incoming.has_begun() {
                Outcome::Failed(Failure::new(LoadEvent::Short, how))
            } else {
                Outcome::Unheard(Failure::new(LoadEvent::Reset, how))
            };
            ended.push((stream.request, outcome));
        }
    }

    /// Takes all requests away, whatever has become of them.
    pub(crate) fn give_up(&mut self) -> impl Iterator<Item = Request> + '_ {
        self.streams.drain().map(|(_, stream)| stream.request)
    }

    /// The templates of the requests under way.
    pub(crate) fn templates(&self) -> impl Iterator<Item = usize> + '_ {
        self.streams.values().map(|stream| stream.request.template)
    }
}
