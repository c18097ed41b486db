//! Reads the frame headers of an HTTP/2 connection as they pass (RFC 9113, section 4.1), and changes nothing: hyper
//! reports no count of frames, resets or compressed header bytes.

use std::time::Instant;

use hyper::header::{DATE, HeaderMap};
use hyper::{Request, Response};
use proxy_core::handler::{ClientSession, ConnEnd, WorkerContext};
use telemetry::{ConnectionOutcome, Counters, HttpCounter};

use crate::floods::{Flood, FloodBudgets};
use crate::limits::HttpLimits;

/// The connection preface of a client (RFC 9113, section 3.4).
const PREFACE_BYTES: usize = 24;
const HEAD_BYTES: usize = 9;
/// Length of the priority in a HEADERS frame that has one.
const PRIORITY_BYTES: u64 = 5;
/// What is kept of the payload of `RST_STREAM` and GOAWAY: stream, error code, and the longest word that h2 adds.
const KEPT_BYTES: usize = 8 + 25;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;

const PRIORITY: u8 = 0x20;

/// Counts the frames of one connection, in both directions.
#[derive(Debug)]
pub(crate) struct FrameTap {
    from_client: FrameReader,
    to_client: FrameReader,
    /// The highest stream that the client has opened.
    last_stream: u32,
    budgets: FloodBudgets,
    /// The first flood that was found.
    flood: Option<Flood>,
    /// Whether the client was sent a GOAWAY.
    is_told: bool,
}

/// Reads frame headers of one direction; keeps its state between two chunks.
#[derive(Debug)]
struct FrameReader {
    /// What has come of a frame's header, and of the payload that is kept.
    partial: [u8; HEAD_BYTES + KEPT_BYTES],
    partial_len: usize,
    /// Bytes of payload to pass over.
    payload_left: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FrameHead {
    kind: u8,
    flags: u8,
    stream: u32,
    payload_bytes: usize,
}

impl FrameTap {
    /// Begins at `now`, with the connection's first byte.
    pub(crate) fn new(limits: &HttpLimits, now: Instant) -> Self {
        Self {
            from_client: FrameReader::after(PREFACE_BYTES),
            to_client: FrameReader::after(0),
            last_stream: 0,
            budgets: FloodBudgets::new(limits, now),
            flood: None,
            is_told: false,
        }
    }

    /// Counts what a client has sent, in order.
    pub(crate) fn note_received(
        &mut self,
        mut bytes: &[u8],
        now: Instant,
        counters: &mut Counters<HttpCounter>,
    ) {
        while let Some(head) = self.from_client.next(&mut bytes) {
            let found = match head.kind {
                DATA => {
                    self.budgets.earn_data_received(head.payload_bytes > 0);
                    None
                }
                HEADERS | CONTINUATION => {
                    counters[HttpCounter::HeaderBytesIn] += head.block_bytes();
                    self.note_stream(head, counters);
                    None
                }
                RST_STREAM => {
                    counters[HttpCounter::ResetsIn] += 1;
                    self.budgets.spend_reset(now)
                }
                GOAWAY => {
                    counters[HttpCounter::GoawaysIn] += 1;
                    None
                }
                // PRIORITY, SETTINGS, PING, WINDOW_UPDATE, and what is unknown.
                _ => self.budgets.spend_control(now),
            };
            self.flood = self.flood.or(found);
        }
    }

    fn note_stream(&mut self, head: FrameHead, counters: &mut Counters<HttpCounter>) {
        // A block of trailers has the stream of its request.
        if head.kind == HEADERS && head.stream > self.last_stream {
            self.last_stream = head.stream;
            counters[HttpCounter::Streams2] += 1;
            self.budgets.earn_stream();
        }
    }

    /// Counts what a client is sent, in order.
    pub(crate) fn note_sent(&mut self, mut bytes: &[u8], now: Instant, counters: &mut Counters<HttpCounter>) {
        while let Some(head) = self.to_client.next(&mut bytes) {
            match head.kind {
                DATA => self.budgets.earn_data_sent(),
                HEADERS | CONTINUATION => counters[HttpCounter::HeaderBytesOut] += head.block_bytes(),
                RST_STREAM => {
                    counters[HttpCounter::ResetsOut] += 1;
                    if is_provoked(self.to_client.kept(head)) {
                        let found = self.budgets.spend_reset(now);
                        self.flood = self.flood.or(found);
                    }
                }
                GOAWAY => {
                    counters[HttpCounter::GoawaysOut] += 1;
                    self.is_told = true;
                    let found = Flood::of_goaway(self.to_client.kept(head));
                    self.flood = self.flood.or(found);
                }
                _ => {}
            }
        }
    }

    /// Whether what has passed is a flood.
    pub(crate) fn is_flood(&self) -> bool {
        self.flood.is_some()
    }

    /// # Errors
    /// How the connection ends, if its frames are a flood. The client is told.
    #[inline]
    pub(crate) fn check(
        &self,
        session: &mut ClientSession,
        context: &mut WorkerContext,
        counters: &mut Counters<HttpCounter>,
    ) -> Result<(), ConnEnd> {
        self.flood.map_or(Ok(()), |flood| Err(self.end(flood, session, context, counters)))
    }

    #[cold]
    fn end(
        &self,
        flood: Flood,
        session: &mut ClientSession,
        context: &mut WorkerContext,
        counters: &mut Counters<HttpCounter>,
    ) -> ConnEnd {
        counters[flood.counter()] += 1;
        if let Some(frame) = self.goaway() {
            counters[HttpCounter::GoawaysOut] += 1;
            if let Err(end) = session.send(&frame, context) {
                return end;
            }
        }
        session.close_notify(context);
        ConnEnd::after_sending(ConnectionOutcome::ClientBroken, flood.detail())
    }

    /// A GOAWAY frame with `ENHANCE_YOUR_CALM`; `None` after another, or in the middle of a frame.
    fn goaway(&self) -> Option<[u8; 17]> {
        const ENHANCE_YOUR_CALM: u8 = 11;
        let mut frame = [0, 0, 8, GOAWAY, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ENHANCE_YOUR_CALM];
        frame[HEAD_BYTES..HEAD_BYTES + 4].copy_from_slice(&self.last_stream.to_be_bytes());
        (!self.is_told && self.to_client.is_between_frames()).then_some(frame)
    }
}

/// Whether the proxy resets a stream for what its client did (RFC 9113, section 7), as in `MadeYouReset`. `NO_ERROR`,
/// `INTERNAL_ERROR` and CANCEL come from upstreams, and `REFUSED_STREAM` from a client that does not yet know how many
/// streams it may open.
fn is_provoked(error_code: &[u8]) -> bool {
    const PROTOCOL_ERROR: u8 = 1;
    const FLOW_CONTROL_ERROR: u8 = 3;
    const STREAM_CLOSED: u8 = 5;
    const FRAME_SIZE_ERROR: u8 = 6;
    matches!(error_code, [0, 0, 0, PROTOCOL_ERROR | FLOW_CONTROL_ERROR | STREAM_CLOSED | FRAME_SIZE_ERROR])
}

impl FrameReader {
    /// Skips `bytes` bytes first.
    fn after(bytes: usize) -> Self {
        Self { partial: [0; HEAD_BYTES + KEPT_BYTES], partial_len: 0, payload_left: bytes }
    }

    /// Takes the next frame's header off `bytes`, and what there is of payload before it.
    #[inline]
    fn next(&mut self, bytes: &mut &[u8]) -> Option<FrameHead> {
        let passed = self.payload_left.min(bytes.len());
        *bytes = &bytes[passed..];
        self.payload_left -= passed;
        // Nearly always a header is whole.
        if self.partial_len == 0
            && let Some((head, rest)) = bytes.split_first_chunk()
            && let head = FrameHead::parse(head)
            && head.kept_bytes() == 0
        {
            *bytes = rest;
            self.payload_left = head.payload_bytes;
            return Some(head);
        }
        self.next_partial(bytes)
    }

    #[cold]
    fn next_partial(&mut self, bytes: &mut &[u8]) -> Option<FrameHead> {
        loop {
            let head =
                self.partial.first_chunk().map(FrameHead::parse).filter(|_| self.partial_len >= HEAD_BYTES);
            let wanted = HEAD_BYTES + head.map_or(0, FrameHead::kept_bytes);
            if let Some(head) = head
                && self.partial_len == wanted
            {
                self.payload_left = head.payload_bytes - head.kept_bytes();
                self.partial_len = 0;
                return Some(head);
            }
            let taken = (wanted - self.partial_len).min(bytes.len());
            if taken == 0 {
                return None;
            }
            self.partial[self.partial_len..self.partial_len + taken].copy_from_slice(&bytes[..taken]);
            *bytes = &bytes[taken..];
            self.partial_len += taken;
        }
    }

    /// What is kept of the payload of the frame that [`FrameReader::next`] has just returned.
    fn kept(&self, head: FrameHead) -> &[u8] {
        &self.partial[HEAD_BYTES..HEAD_BYTES + head.kept_bytes()]
    }

    fn is_between_frames(&self) -> bool {
        self.partial_len == 0 && self.payload_left == 0
    }
}

impl FrameHead {
    #[inline]
    fn parse(head: &[u8; HEAD_BYTES]) -> Self {
        let [a, b, c, kind, flags, s0, s1, s2, s3] = *head;
        Self {
            kind,
            flags,
            stream: u32::from_be_bytes([s0 & 0x7f, s1, s2, s3]),
            payload_bytes: u32::from_be_bytes([0, a, b, c]) as usize,
        }
    }

    #[inline]
    fn kept_bytes(self) -> usize {
        if matches!(self.kind, RST_STREAM | GOAWAY) { self.payload_bytes.min(KEPT_BYTES) } else { 0 }
    }

    /// Length of the part of a header block, padding included.
    fn block_bytes(self) -> u64 {
        let has_priority = self.kind == HEADERS && self.flags & PRIORITY != 0;
        (self.payload_bytes as u64).saturating_sub(if has_priority { PRIORITY_BYTES } else { 0 })
    }
}

/// What the header of a request had before compression, as [`HttpCounter::PlainHeaderBytesIn`] counts it.
pub(crate) fn request_header_bytes<B>(request: &Request<B>) -> u64 {
    let uri = request.uri();
    let pseudo = [
        (":method", request.method().as_str().len()),
        (":scheme", uri.scheme_str().map_or(0, str::len)),
        (":authority", uri.authority().map_or(0, |authority| authority.as_str().len())),
        (":path", uri.path_and_query().map_or(0, |path| path.as_str().len())),
    ];
    header_bytes(pseudo.into_iter().filter(|(_, len)| *len > 0), request.headers())
}

/// What the header of a response has before compression, with the date that hyper adds.
pub(crate) fn response_header_bytes<B>(response: &Response<B>) -> u64 {
    const DATE_BYTES: usize = 29;
    let date = (!response.headers().contains_key(DATE)).then_some(("date", DATE_BYTES));
    header_bytes([(":status", 3)].into_iter().chain(date), response.headers())
}

fn header_bytes<'a>(others: impl Iterator<Item = (&'a str, usize)>, headers: &HeaderMap) -> u64 {
    const FIELD_BYTES: usize = 4;
    let others = others.map(|(name, value_len)| name.len() + value_len + FIELD_BYTES);
    let fields = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + FIELD_BYTES);
    others.chain(fields).sum::<usize>() as u64
}

#[cfg(test)]
mod tests;
