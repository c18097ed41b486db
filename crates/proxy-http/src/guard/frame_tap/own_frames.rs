//! Frames that the proxy sends beside h2's: `100 Continue` (RFC 9110, section 10.1.1), and the reset of a stream whose
//! request is malformed (RFC 9113, section 8.1.1), after the response that says why.

use http_codec::frame::{self, ErrorCode, FrameHeader, flag, kind};
use http_codec::hpack::{Indexing, encode_field};
use records::metrics::{Counters, HttpCounter};

/// Streams of a kind at once. Clients of others wait until they lose patience, or get the response alone.
const STREAMS_MAX: usize = 1_000;

/// The streams of one connection that wait for such a frame.
#[derive(Debug, Default)]
pub(super) struct OwnFrames {
    /// Streams whose clients wait for `100 Continue`.
    expecting: Vec<u32>,
    /// Streams with a malformed request whose response has not ended.
    malformed: Vec<u32>,
    /// Streams with a malformed request whose response has ended.
    answered: Vec<u32>,
}

impl OwnFrames {
    /// Notes that the client waits for `100 Continue`.
    pub(super) fn note_expecting(&mut self, stream: u32) {
        if self.expecting.len() < STREAMS_MAX {
            self.expecting.push(stream);
        }
    }

    pub(super) fn note_malformed(&mut self, stream: u32) {
        if self.malformed.len() + self.answered.len() < STREAMS_MAX {
            self.malformed.push(stream);
        }
    }

    /// Notes that the client or the proxy has reset a stream.
    pub(super) fn note_reset(&mut self, stream: u32) {
        self.malformed.retain(|malformed| *malformed != stream);
    }

    /// Notes that the client is sent a part of a response.
    pub(super) fn note_response(&mut self, head: FrameHeader) {
        if head.kind == kind::HEADERS {
            self.expecting.retain(|stream| *stream != head.id);
        }
        if head.has(flag::END_STREAM)
            && let Some(place) = self.malformed.iter().position(|stream| *stream == head.id)
        {
            self.answered.push(self.malformed.swap_remove(place));
        }
    }

    /// Takes what can go out now, between two frames of h2.
    pub(super) fn take(&mut self, counters: &mut Counters<HttpCounter>) -> Option<Vec<u8>> {
        if self.expecting.is_empty() && self.answered.is_empty() {
            return None;
        }
        let (mut block, mut out) = (Vec::new(), Vec::new());
        encode_field(b":status", b"100", Indexing::Plain, &mut block);
        for stream in self.expecting.drain(..) {
            frame::headers(&mut out, stream, &block, false);
            counters[HttpCounter::HeaderBytesOut] += block.len() as u64;
        }
        for stream in self.answered.drain(..) {
            frame::rst_stream(&mut out, stream, ErrorCode::PROTOCOL_ERROR);
            counters[HttpCounter::ResetsOut] += 1;
        }
        Some(out)
    }
}
