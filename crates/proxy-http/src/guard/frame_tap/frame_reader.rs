//! Reads the frame headers of what the client is sent.

use http_codec::frame::{FrameHeader, HEAD_BYTES, kind};

/// What is kept of the payload of `RST_STREAM` and GOAWAY: stream, error code, and the longest word that h2 adds.
const KEPT_BYTES: usize = 8 + 25;

/// Reads frame headers; keeps its state between two chunks.
#[derive(Debug)]
pub(super) struct FrameReader {
    /// The received part of a frame's header and of the payload that is kept.
    partial: [u8; HEAD_BYTES + KEPT_BYTES],
    partial_len: usize,
    /// Bytes of payload to pass over.
    payload_left: usize,
}

impl Default for FrameReader {
    fn default() -> Self {
        Self { partial: [0; HEAD_BYTES + KEPT_BYTES], partial_len: 0, payload_left: 0 }
    }
}

impl FrameReader {
    /// Takes the next frame's header off `bytes`, and what there is of payload before it.
    #[inline]
    pub(super) fn next(&mut self, bytes: &mut &[u8]) -> Option<FrameHeader> {
        let passed = self.payload_left.min(bytes.len());
        *bytes = &bytes[passed..];
        self.payload_left -= passed;
        // Nearly always a header is whole.
        if self.partial_len == 0
            && let Some((head, rest)) = bytes.split_first_chunk()
            && let head = FrameHeader::read(*head)
            && kept_bytes(head) == 0
        {
            *bytes = rest;
            self.payload_left = head.len;
            return Some(head);
        }
        self.next_partial(bytes)
    }

    #[cold]
    fn next_partial(&mut self, bytes: &mut &[u8]) -> Option<FrameHeader> {
        loop {
            let head = self
                .partial
                .first_chunk()
                .map(|head| FrameHeader::read(*head))
                .filter(|_| self.partial_len >= HEAD_BYTES);
            let wanted = HEAD_BYTES + head.map_or(0, kept_bytes);
            if let Some(head) = head
                && self.partial_len == wanted
            {
                self.payload_left = head.len - kept_bytes(head);
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
    pub(super) fn kept(&self, head: FrameHeader) -> &[u8] {
        &self.partial[HEAD_BYTES..HEAD_BYTES + kept_bytes(head)]
    }

    pub(super) fn is_between_frames(&self) -> bool {
        self.partial_len == 0 && self.payload_left == 0
    }
}

#[inline]
fn kept_bytes(head: FrameHeader) -> usize {
    if matches!(head.kind, kind::RST_STREAM | kind::GOAWAY) { head.len.min(KEPT_BYTES) } else { 0 }
}
