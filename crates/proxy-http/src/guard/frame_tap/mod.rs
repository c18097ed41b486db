//! Reads the frames of an HTTP/2 connection as they pass (RFC 9113, section 4.1): hyper reports no count of frames, resets
//! or compressed header bytes. The client's header blocks pass through a [`HeaderGuard`]; all else is passed on unchanged.

mod field_kind;
mod frame_reader;
mod header_guard;
mod own_frames;
mod received_frames;

use std::time::Instant;

use bytes::BytesMut;
use http_codec::frame::{self, ErrorCode, FrameHeader, HEAD_BYTES, flag, kind};
use hyper::Response;
use hyper::header::{DATE, HeaderMap};
use proxy_core::handler::{ClientSession, ConnEnd, WorkerContext};
use records::kinds::ConnectionOutcome;
use records::metrics::{Counters, HttpCounter};

pub(crate) use self::field_kind::VERDICT;
use self::frame_reader::FrameReader;
use self::header_guard::{BlockError, BlockKind, HeaderGuard};
pub(crate) use self::header_guard::{BlockFields, Refusal, Verdict};
use self::own_frames::OwnFrames;
use self::received_frames::{HeaderFrames, Received, ReceivedFrames};
use crate::config::limits::HttpLimits;
use crate::guard::floods::{Flood, FloodBudgets};

/// Short DATA frames that h2 gets at once: it ends a connection for twice as many that no request has taken.
const SHORT_FRAMES_MAX: usize = 256;
/// Data below which h2 counts a frame as short.
const SHORT_BYTES: usize = 256;

/// Counts the frames of one connection, in both directions.
#[derive(Debug)]
pub(crate) struct FrameTap {
    received: ReceivedFrames,
    guard: HeaderGuard,
    to_client: FrameReader,
    /// DATA frames of a few bytes that h2 has not read.
    short_frames: usize,
    /// The highest stream that the client has opened.
    last_stream: u32,
    budgets: FloodBudgets,
    flood: Option<Flood>,
    /// Whether the client was sent a GOAWAY.
    is_told: bool,
    own: OwnFrames,
}

impl FrameTap {
    /// Begins at `now`, with the connection's first byte.
    pub(crate) fn new(limits: &HttpLimits, now: Instant) -> Self {
        Self {
            received: ReceivedFrames::new(limits.header_bytes_max),
            guard: HeaderGuard::new(limits.header_bytes_max),
            to_client: FrameReader::default(),
            short_frames: 0,
            last_stream: 0,
            budgets: FloodBudgets::new(limits, now),
            flood: None,
            is_told: false,
            own: OwnFrames::default(),
        }
    }

    /// Takes what a client has sent, in order, counts it, and passes it on to `out`. Returns how much was taken: not all if
    /// h2 has many short DATA frames to read first.
    pub(crate) fn receive(
        &mut self,
        mut bytes: &[u8],
        out: &mut BytesMut,
        now: Instant,
        counters: &mut Counters<HttpCounter>,
        fields: &mut BlockFields,
    ) -> usize {
        let len = bytes.len();
        if out.is_empty() {
            self.short_frames = 0;
        }
        while self.short_frames < SHORT_FRAMES_MAX
            && let Some(received) = self.received.next(&mut bytes, out)
        {
            let found = match received {
                Received::Frame(head) => self.note_received(head, now, counters),
                Received::Headers(frames) => self.receive_headers(&frames, out, now, counters, fields),
                Received::EndlessHeaders => Some(Flood::Headers),
            };
            self.flood = self.flood.or(found);
        }
        len - bytes.len()
    }

    fn note_received(
        &mut self,
        head: FrameHeader,
        now: Instant,
        counters: &mut Counters<HttpCounter>,
    ) -> Option<Flood> {
        match head.kind {
            kind::DATA => {
                self.budgets.earn_data_received(head.len > 0);
                self.short_frames += usize::from(head.len < SHORT_BYTES);
                None
            }
            kind::RST_STREAM => {
                counters[HttpCounter::ResetsIn] += 1;
                self.own.note_reset(head.id);
                self.budgets.spend_reset(now)
            }
            kind::GOAWAY => {
                counters[HttpCounter::GoawaysIn] += 1;
                None
            }
            // PRIORITY, SETTINGS, PING, WINDOW_UPDATE, and what is unknown.
            _ => self.budgets.spend_control(now),
        }
    }

    /// Passes a whole header block on, or another in its place.
    fn receive_headers(
        &mut self,
        frames: &HeaderFrames<'_>,
        out: &mut BytesMut,
        now: Instant,
        counters: &mut Counters<HttpCounter>,
        fields: &mut BlockFields,
    ) -> Option<Flood> {
        let (head, ends) = (frames.head(), frames.head().has(flag::END_STREAM));
        counters[HttpCounter::HeaderBytesIn] += frames.block_bytes();
        // A block of trailers has the stream of its request.
        let is_request = head.id > self.last_stream;
        if is_request {
            self.last_stream = head.id;
            counters[HttpCounter::Streams2] += 1;
            self.budgets.earn_stream();
        }
        let block_kind = if is_request { BlockKind::Request { ends } } else { BlockKind::Trailers };
        let checked = match frames.block().map(|block| self.guard.check(&block, block_kind, fields)) {
            Some(Ok(checked)) => checked,
            Some(Err(BlockError::TooLarge)) => return Some(Flood::Headers),
            Some(Err(BlockError::Hpack)) | None => {
                out.extend_from_slice(frames.bytes());
                self.received.pass_all();
                return None;
            }
        };
        if is_request {
            counters[HttpCounter::PlainHeaderBytesIn] += checked.plain_bytes;
        }
        match checked.replacement {
            Some(block) => {
                let mut replaced = Vec::new();
                frame::headers(&mut replaced, head.id, &block, ends);
                out.extend_from_slice(&replaced);
            }
            None => out.extend_from_slice(frames.bytes()),
        }
        if checked.expects_continue && is_request && !ends {
            self.own.note_expecting(head.id);
        }
        if checked.is_malformed && is_request {
            self.own.note_malformed(head.id);
        }
        // An answer takes as much work as a reset.
        if checked.is_malformed { self.budgets.spend_reset(now) } else { None }
    }

    /// Counts what a client is sent, in order. Returns where a reset begins that follows a whole response: it must be in a
    /// TLS record of its own, since curl up to 7.88 drops what it has read of the response with it.
    pub(crate) fn note_sent(
        &mut self,
        bytes: &[u8],
        now: Instant,
        counters: &mut Counters<HttpCounter>,
    ) -> Vec<usize> {
        const RESET_BYTES: usize = HEAD_BYTES + 4;
        let (mut rest, mut resets) = (bytes, Vec::new());
        while let Some(head) = self.to_client.next(&mut rest) {
            match head.kind {
                kind::DATA => {
                    self.budgets.earn_data_sent();
                    self.own.note_response(head);
                }
                kind::HEADERS => {
                    counters[HttpCounter::HeaderBytesOut] += block_bytes(head);
                    self.own.note_response(head);
                }
                kind::CONTINUATION => counters[HttpCounter::HeaderBytesOut] += block_bytes(head),
                kind::RST_STREAM => {
                    counters[HttpCounter::ResetsOut] += 1;
                    self.own.note_reset(head.id);
                    let code = self.to_client.kept(head);
                    if is_provoked(code) {
                        let found = self.budgets.spend_reset(now);
                        self.flood = self.flood.or(found);
                    }
                    let ends = bytes.len() - rest.len();
                    resets.extend(ends.checked_sub(RESET_BYTES).filter(|at| *at > 0 && code == [0; 4]));
                }
                kind::GOAWAY => {
                    counters[HttpCounter::GoawaysOut] += 1;
                    self.is_told = true;
                    let found = Flood::of_goaway(self.to_client.kept(head));
                    self.flood = self.flood.or(found);
                }
                _ => {}
            }
        }
        resets
    }

    /// What the proxy sends beside h2, if it can go out now.
    pub(crate) fn take_own(&mut self, counters: &mut Counters<HttpCounter>) -> Option<Vec<u8>> {
        if self.to_client.is_between_frames() { self.own.take(counters) } else { None }
    }

    pub(crate) fn is_flood(&self) -> bool {
        self.flood.is_some()
    }

    /// # Errors
    /// How the connection ends, if its frames are a flood. The client gets a GOAWAY.
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
    fn goaway(&self) -> Option<Vec<u8>> {
        let mut frame = Vec::new();
        frame::goaway(&mut frame, self.last_stream, ErrorCode::ENHANCE_YOUR_CALM);
        (!self.is_told && self.to_client.is_between_frames()).then_some(frame)
    }
}

/// Length of the part of a header block, padding included.
fn block_bytes(head: FrameHeader) -> u64 {
    const PRIORITY_BYTES: usize = 5;
    let has_priority = head.kind == kind::HEADERS && head.has(flag::PRIORITY);
    head.len.saturating_sub(if has_priority { PRIORITY_BYTES } else { 0 }) as u64
}

/// Whether the proxy resets a stream for what its client did (RFC 9113, section 7), as in `MadeYouReset`. `NO_ERROR`,
/// `INTERNAL_ERROR` and CANCEL come from upstreams, and `REFUSED_STREAM` from a client that does not yet know how many
/// streams it may open.
fn is_provoked(error_code: &[u8]) -> bool {
    let code = error_code.try_into().map(|code| ErrorCode(u32::from_be_bytes(code)));
    matches!(
        code,
        Ok(ErrorCode::PROTOCOL_ERROR
            | ErrorCode::FLOW_CONTROL_ERROR
            | ErrorCode::STREAM_CLOSED
            | ErrorCode::FRAME_SIZE_ERROR)
    )
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
