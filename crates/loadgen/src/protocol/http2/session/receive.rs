//! Receiving: frames, header blocks and bodies.

use std::mem;

use records::values::LoadEvent;

use super::response::{HeaderBlock, StreamError};
use super::{ConnectionError, Http2Session, WINDOW_BYTES};
use crate::clock::now_ns;
use crate::protocol::response::ExpectedResponse;
use crate::protocol::{EncodedRequests, EndedRequests, Failure, RequestOutcome, ResponseTimes};
use http_codec::frame::{self, ErrorCode, FrameHeader, HEAD_BYTES, PAYLOAD_BYTES_MAX, flag, kind};
use http_codec::hpack::HpackDecodeError;

/// Longest header block, on the wire.
const BLOCK_BYTES_MAX: usize = 64 * 1024;
/// Longest decoded header list, in bytes of names and values; on average over the requests of a connection, too.
pub(super) const LIST_BYTES_MAX: u64 = 256 * 1024;
/// Most frames of a header block. A longer block would have almost empty frames.
const BLOCK_FRAMES_MAX: u32 = 32;
/// Most replies to settings and pings that wait to be sent.
const ANSWERS_MAX: u32 = 1_000;

/// State of the receiving side that is kept between two reads.
#[derive(Debug, Default)]
pub(super) struct ReceiveState {
    /// A frame that is not whole yet.
    partial: Vec<u8>,
    /// The server's settings have come.
    pub(super) has_settings: bool,
    /// A header block that is not whole yet.
    block: Option<PartialBlock>,
    /// Bytes received since the last window update.
    pub(super) unacknowledged: u32,
    /// Replies that wait to be sent.
    answers: u32,
}

#[derive(Debug)]
struct PartialBlock {
    id: u32,
    is_end: bool,
    bytes: Vec<u8>,
    frames: u32,
}

impl ReceiveState {
    /// Forgets the waiting replies, since all were sent.
    pub(super) fn clear_answers(&mut self) {
        self.answers = 0;
    }

    pub(super) fn kept_bytes(&self) -> usize {
        self.partial.len() + self.block.as_ref().map_or(0, |block| block.bytes.len())
    }

    /// Counts a reply that waits to be sent.
    pub(super) fn answer(&mut self) -> Result<(), ConnectionError> {
        self.answers += 1;
        let flood =
            ConnectionError { code: ErrorCode::ENHANCE_YOUR_CALM, what: "a flood of frames to be answered" };
        if self.answers > ANSWERS_MAX { Err(flood) } else { Ok(()) }
    }
}

pub(super) struct ReceiveContext<'a> {
    requests: &'a EncodedRequests,
    pub(super) ended: &'a mut EndedRequests,
    /// When the frames arrived; 0 until asked.
    now_ns: u64,
}

impl<'a> ReceiveContext<'a> {
    pub(super) fn new(requests: &'a EncodedRequests, ended: &'a mut EndedRequests) -> Self {
        Self { requests, ended, now_ns: 0 }
    }

    /// All frames of a piece arrived at the same time.
    fn now_ns(&mut self) -> u64 {
        if self.now_ns == 0 {
            self.now_ns = now_ns();
        }
        self.now_ns
    }
}

impl Http2Session {
    /// Processes bytes from the server.
    pub(super) fn process(
        &mut self,
        mut input: &[u8],
        taking: &mut ReceiveContext<'_>,
    ) -> Result<(), ConnectionError> {
        let mut partial = mem::take(&mut self.inflow.partial);
        while !partial.is_empty() {
            let wanted = partial.first_chunk().map_or(Ok(HEAD_BYTES), |head| frame_len(*head))?;
            let (piece, rest) = input.split_at(input.len().min(wanted - partial.len()));
            partial.extend_from_slice(piece);
            input = rest;
            if partial.len() < wanted {
                self.inflow.partial = partial;
                return Ok(());
            }
            if let Some((head, payload)) = partial.split_first_chunk()
                && frame_len(*head)? == wanted
            {
                self.on_frame(FrameHeader::read(*head), payload, taking)?;
                partial.clear();
            }
        }
        while let Some(head) = input.first_chunk()
            && let Some((frame, rest)) = input.split_at_checked(frame_len(*head)?)
        {
            self.on_frame(FrameHeader::read(*head), &frame[HEAD_BYTES..], taking)?;
            input = rest;
        }
        partial.extend_from_slice(input);
        self.inflow.partial = partial;
        Ok(())
    }

    fn on_frame(
        &mut self,
        head: FrameHeader,
        payload: &[u8],
        taking: &mut ReceiveContext<'_>,
    ) -> Result<(), ConnectionError> {
        if !self.inflow.has_settings && (head.kind != kind::SETTINGS || head.has(flag::ACK)) {
            return Err(ConnectionError::protocol("the server does not begin with its settings"));
        }
        if self.inflow.block.is_some() && head.kind != kind::CONTINUATION {
            return Err(ConnectionError::protocol("a header block that is not continued"));
        }
        match head.kind {
            kind::DATA => self.on_data(head, payload, taking),
            kind::HEADERS => self.on_headers(head, payload, taking),
            kind::CONTINUATION => self.on_continuation(head, payload, taking),
            kind::RST_STREAM => self.on_rst_stream(head, payload, taking),
            kind::SETTINGS => self.on_settings(head, payload),
            kind::PING => self.on_ping(head, payload),
            kind::GOAWAY => self.on_goaway(head, payload, taking),
            kind::WINDOW_UPDATE => self.on_window_update(head, payload, taking),
            kind::PUSH_PROMISE => Err(ConnectionError::protocol("a push, which nobody allows")),
            kind::PRIORITY if head.id == 0 => Err(ConnectionError::protocol("a priority of no stream")),
            kind::PRIORITY if payload.len() != 5 => {
                Err(ConnectionError::frame_size("a priority of the wrong size"))
            }
            // Unknown frames must be ignored (RFC 9113, section 5.5), and priorities may be.
            _ => Ok(()),
        }
    }

    /// A frame on an idle stream is an error; frames on a closed stream may still arrive.
    pub(super) fn check_begun(&self, id: u32) -> Result<(), ConnectionError> {
        let is_ours = id % 2 == 1 && id < self.next_id;
        if is_ours { Ok(()) } else { Err(ConnectionError::protocol("a frame on a stream that is not open")) }
    }

    fn on_data(
        &mut self,
        head: FrameHeader,
        payload: &[u8],
        taking: &mut ReceiveContext<'_>,
    ) -> Result<(), ConnectionError> {
        self.check_begun(head.id)?;
        let piece = unpadded(head, payload)?;
        self.inflow.unacknowledged += payload.len() as u32;
        if self.inflow.unacknowledged > WINDOW_BYTES / 2 {
            frame::window_update(&mut self.out, 0, mem::take(&mut self.inflow.unacknowledged));
        }
        let Some(stream) = self.streams.get_mut(&head.id) else { return Ok(()) };
        let expected = &taking.requests.at(stream.request.template).expected;
        if let Err(no_answer) = stream.incoming.add_body(piece, expected) {
            self.refuse(head.id, no_answer, taking);
            return Ok(());
        }
        if head.has(flag::END_STREAM) {
            self.finish(head.id, taking);
            return Ok(());
        }
        let unacknowledged = &mut stream.incoming.unacknowledged;
        *unacknowledged += payload.len() as u32;
        if *unacknowledged > WINDOW_BYTES / 2 {
            frame::window_update(&mut self.out, head.id, mem::take(unacknowledged));
        }
        Ok(())
    }

    fn on_headers(
        &mut self,
        head: FrameHeader,
        payload: &[u8],
        taking: &mut ReceiveContext<'_>,
    ) -> Result<(), ConnectionError> {
        self.check_begun(head.id)?;
        let mut block = unpadded(head, payload)?;
        if head.has(flag::PRIORITY) {
            block = block
                .get(5..)
                .ok_or_else(|| ConnectionError::frame_size("a header block that is too short"))?;
        }
        let is_end = head.has(flag::END_STREAM);
        if head.has(flag::END_HEADERS) {
            return self.on_block(head.id, block, is_end, taking);
        }
        self.inflow.block = Some(PartialBlock { id: head.id, is_end, bytes: block.to_vec(), frames: 1 });
        Ok(())
    }

    fn on_continuation(
        &mut self,
        head: FrameHeader,
        payload: &[u8],
        taking: &mut ReceiveContext<'_>,
    ) -> Result<(), ConnectionError> {
        let Some(mut block) = self.inflow.block.take().filter(|block| block.id == head.id) else {
            return Err(ConnectionError::protocol("a continuation of nothing"));
        };
        block.bytes.extend_from_slice(payload);
        block.frames += 1;
        if block.bytes.len() > BLOCK_BYTES_MAX || block.frames > BLOCK_FRAMES_MAX {
            let code = ErrorCode::ENHANCE_YOUR_CALM;
            return Err(ConnectionError { code, what: "a header block that is too long" });
        }
        if head.has(flag::END_HEADERS) {
            return self.on_block(head.id, &block.bytes, block.is_end, taking);
        }
        self.inflow.block = Some(block);
        Ok(())
    }

    fn on_block(
        &mut self,
        id: u32,
        bytes: &[u8],
        is_end: bool,
        taking: &mut ReceiveContext<'_>,
    ) -> Result<(), ConnectionError> {
        // Blocks on closed streams are decoded too, so a bound for each block alone would not bound their sum.
        let all_max = u64::from(self.carried) * LIST_BYTES_MAX;
        let list_max = all_max.saturating_sub(self.decoder.decoded_bytes()).min(LIST_BYTES_MAX);
        let block = HeaderBlock::decode(&mut self.decoder, bytes, list_max).map_err(|error| match error {
            HpackDecodeError::Malformed(_) => ConnectionError {
                code: ErrorCode::COMPRESSION_ERROR,
                what: "header fields that cannot be decoded",
            },
            HpackDecodeError::TooLong => ConnectionError {
                code: ErrorCode::ENHANCE_YOUR_CALM,
                what: "header fields that are too long",
            },
        })?;
        let Some(stream) = self.streams.get_mut(&id) else { return Ok(()) };
        let had_begun = stream.incoming.has_begun();
        if let Err(no_answer) = stream.incoming.add_header_block(block, bytes.len(), is_end) {
            self.refuse(id, no_answer, taking);
            return Ok(());
        }
        if !had_begun && stream.incoming.has_begun() {
            stream.incoming.first_ns = taking.now_ns();
        }
        if is_end {
            self.finish(id, taking);
        }
        Ok(())
    }

    /// The answer of a stream is whole.
    fn finish(&mut self, id: u32, taking: &mut ReceiveContext<'_>) {
        let Some(stream) = self.streams.get(&id) else { return };
        let expected: &ExpectedResponse = &taking.requests.at(stream.request.template).expected;
        let answer = match stream.incoming.finish(expected) {
            Ok(answer) => answer,
            Err(no_answer) => return self.refuse(id, no_answer, taking),
        };
        if !stream.body.is_empty() {
            // The server has answered before the end of the body, and does not need the rest.
            frame::rst_stream(&mut self.out, id, ErrorCode::CANCEL);
        }
        let arrived = ResponseTimes { first_ns: stream.incoming.first_ns, done_ns: taking.now_ns() };
        self.answers += 1;
        self.end_stream(id, RequestOutcome::Answered(answer, arrived), taking);
    }

    /// Ends a stream with an error. Other streams are not affected.
    pub(super) fn refuse(
        &mut self,
        id: u32,
        StreamError(what): StreamError,
        taking: &mut ReceiveContext<'_>,
    ) {
        frame::rst_stream(&mut self.out, id, ErrorCode::PROTOCOL_ERROR);
        let failure = Failure::new(LoadEvent::Protocol, what);
        self.end_stream(id, RequestOutcome::Failed(failure), taking);
    }

    pub(super) fn end_stream(&mut self, id: u32, outcome: RequestOutcome, taking: &mut ReceiveContext<'_>) {
        let Some(stream) = self.streams.remove(&id) else { return };
        if !stream.body.is_empty() {
            self.sending.retain(|sending| *sending != id);
        }
        taking.ended.push((stream.request, outcome));
    }
}

fn frame_len(head: [u8; HEAD_BYTES]) -> Result<usize, ConnectionError> {
    match FrameHeader::read(head).len {
        len @ ..=PAYLOAD_BYTES_MAX => Ok(HEAD_BYTES + len),
        _ => Err(ConnectionError::frame_size("a frame that is too long, if it is one")),
    }
}

/// A payload without its padding (RFC 9113, section 6.1).
fn unpadded(head: FrameHeader, payload: &[u8]) -> Result<&[u8], ConnectionError> {
    if !head.has(flag::PADDED) {
        return Ok(payload);
    }
    let too_much = ConnectionError::protocol("more padding than there is room for");
    let (padding, rest) =
        payload.split_first().ok_or_else(|| ConnectionError::frame_size("padding without a length"))?;
    let len = rest.len().checked_sub(usize::from(*padding)).ok_or(too_much)?;
    Ok(&rest[..len])
}
