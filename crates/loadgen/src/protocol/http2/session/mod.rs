//! The session of an HTTP/2 connection (RFC 9113): bytes in, bytes out, and the outcome of requests.
//!
//! The session keeps at most one incomplete frame, one header block, and a bounded number of replies. Bodies are
//! counted and compared as they arrive.

mod control;
mod receive;
mod response;
mod send;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use bytes::Bytes;
use records::values::LoadEvent;

use super::fields::EncoderTable;
use crate::protocol::{
    ConnectionEnd, ConnectionReuse, EncodedRequest, EncodedRequests, EndedRequests, Failure, ProtocolSession,
    Request, RequestOutcome, cut_off, timed_out,
};
use crate::tls::Alpn;
use http_codec::frame::{self, ErrorCode, kind, setting};
use http_codec::hpack::Decoder;
use response::Response;
pub(super) use response::is_connection_specific;

/// Receive window of a connection and of each stream, the same as h2load's: it must not hold back the server.
const WINDOW_BYTES: u32 = (1 << 30) - 1;
/// Most streams before the server's settings arrive: the least that RFC 9113 recommends.
const STREAMS_AT_FIRST: usize = 100;
/// Send window of a stream before the server's settings arrive.
const SEND_WINDOW_AT_FIRST: i64 = 65_535;

#[derive(Debug)]
pub(crate) struct Http2Session {
    inflow: receive::ReceiveState,
    decoder: Decoder,
    indexed: EncoderTable,
    streams: HashMap<u32, Stream, BuildHasherDefault<IdHasher>>,
    next_id: u32,
    /// The server's limits.
    streams_max: usize,
    stream_window: i64,
    /// Send window of the connection.
    send_window: i64,
    /// Streams with a body to be sent, in turn.
    sending: VecDeque<u32>,
    out: Vec<u8>,
    /// Requests that were begun.
    carried: u32,
    answers: u32,
    /// No more requests on this connection, by the server's decision or ours.
    is_going_away: bool,
    broken: Option<ConnectionError>,
}

/// A stream with a request in flight.
#[derive(Debug)]
struct Stream {
    request: Request,
    /// The part of its body that is not sent yet.
    body: Bytes,
    send_window: i64,
    incoming: Response,
}

/// The server broke a rule of the connection (RFC 9113, section 5.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionError {
    code: ErrorCode,
    what: &'static str,
}

impl ConnectionError {
    fn protocol(what: &'static str) -> Self {
        Self { code: ErrorCode::PROTOCOL_ERROR, what }
    }

    fn frame_size(what: &'static str) -> Self {
        Self { code: ErrorCode::FRAME_SIZE_ERROR, what }
    }

    fn flow_control(what: &'static str) -> Self {
        Self { code: ErrorCode::FLOW_CONTROL_ERROR, what }
    }

    /// The failure of the requests on the connection.
    pub(crate) fn failure(self) -> Failure {
        Failure::new(LoadEvent::Protocol, self.what)
    }
}

/// Hashes stream identifiers. We choose them, so no peer can make them collide.
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
        // The map uses both ends of a hash.
        self.0 = (self.0 ^ u64::from(id >> 1)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}

impl Http2Session {
    /// True if no request is under way.
    fn is_idle(&self) -> bool {
        self.streams.is_empty()
    }

    /// True if no more requests may begin.
    fn is_spent(&self) -> bool {
        self.is_going_away || self.broken.is_some() || self.next_id > frame::ID_MAX
    }

    /// The error that ends the connection, if any.
    pub(crate) fn broken(&self) -> Option<ConnectionError> {
        self.broken
    }

    /// Bytes from the server that wait for the rest of their frame or header block.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.inflow.kept_bytes()
    }

    /// Bytes of names and values that the server's header blocks were decoded to.
    pub(crate) fn decoded_bytes(&self) -> u64 {
        self.decoder.decoded_bytes()
    }
}

impl ProtocolSession for Http2Session {
    const IS_MULTIPLEXED: bool = true;

    fn new() -> Self {
        let mut out = Vec::new();
        write_preface(&mut out);
        Self {
            inflow: receive::ReceiveState::default(),
            decoder: Decoder::default(),
            indexed: EncoderTable::new(),
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

    fn can_follow(alpn: Option<Alpn>) -> bool {
        alpn == Some(Alpn::Http2)
    }

    fn carried(&self) -> u32 {
        self.carried
    }

    fn answers(&self) -> u32 {
        self.answers
    }

    fn fate(&self) -> ConnectionReuse {
        match (self.is_spent(), self.is_idle()) {
            (false, _) => ConnectionReuse::Open,
            (true, _) if self.broken.is_some() => ConnectionReuse::Broken,
            (true, false) => ConnectionReuse::Retired,
            (true, true) => ConnectionReuse::ClientCloses,
        }
    }

    fn has_room(&self) -> bool {
        !self.is_spent() && self.streams.len() < self.streams_max
    }

    fn retire(&mut self) {
        self.is_going_away = true;
    }

    fn begin(&mut self, request: Request, prepared: &EncodedRequest, _is_last: bool) {
        self.open_stream(request, &prepared.http2);
    }

    fn output<'a>(&'a mut self, _requests: &'a EncodedRequests) -> &'a [u8] {
        self.pump();
        &self.out
    }

    fn note_sent(&mut self, bytes: usize) {
        if bytes == self.out.len() {
            self.out.clear();
            self.inflow.clear_answers();
        } else {
            self.out.drain(..bytes);
        }
    }

    fn receive(&mut self, plaintext: &[u8], requests: &EncodedRequests, ended: &mut EndedRequests) {
        if self.broken.is_some() {
            return;
        }
        if let Err(broken) = self.process(plaintext, &mut receive::ReceiveContext::new(requests, ended)) {
            self.broken = Some(broken);
            let failed = |request| (request, RequestOutcome::Failed(broken.failure()));
            ended.extend(self.give_up().map(failed));
        }
    }

    fn expire(&mut self, now_ns: u64, ended: &mut EndedRequests) {
        let out = &mut self.out;
        self.streams.retain(|id, stream| {
            if stream.request.deadline_ns > now_ns {
                return true;
            }
            frame::rst_stream(out, *id, ErrorCode::CANCEL);
            ended.push((stream.request, timed_out(stream.incoming.has_begun())));
            false
        });
        let streams = &self.streams;
        self.sending.retain(|id| streams.contains_key(id));
    }

    fn end(&mut self, end: ConnectionEnd, ended: &mut EndedRequests) {
        let answers = self.answers;
        let cut =
            |(_, stream): (u32, Stream)| (stream.request, cut_off(end, answers, stream.incoming.has_begun()));
        ended.extend(self.streams.drain().map(cut));
    }

    fn give_up(&mut self) -> impl Iterator<Item = Request> {
        self.streams.drain().map(|(_, stream)| stream.request)
    }

    fn templates(&self) -> impl Iterator<Item = usize> {
        self.streams.values().map(|stream| stream.request.template)
    }

    fn close(&mut self) {
        self.is_going_away = true;
        let code = self.broken.map_or(ErrorCode::NO_ERROR, |broken| broken.code);
        // The server opens no streams.
        frame::goaway(&mut self.out, 0, code);
    }
}

/// Writes the client's preface: no pushes, and the windows of the connection and of each stream.
fn write_preface(out: &mut Vec<u8>) {
    out.extend_from_slice(frame::PREFACE);
    frame::head(out, 12, kind::SETTINGS, 0, 0);
    for (setting, value) in [(setting::ENABLE_PUSH, 0), (setting::INITIAL_WINDOW_SIZE, WINDOW_BYTES)] {
        out.extend_from_slice(&setting.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
    frame::window_update(out, 0, WINDOW_BYTES - 65_535);
}
