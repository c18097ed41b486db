//! Takes the frames of a client apart: header blocks are kept until they are whole, all else is passed on as it comes.

use std::borrow::Cow;

use bytes::BytesMut;
use http_codec::frame::{FrameHeader, HEAD_BYTES, PAYLOAD_BYTES_MAX, PREFACE, flag, kind};

#[derive(Debug)]
pub(super) struct ReceivedFrames {
    /// Bytes to pass on before the next frame.
    passing: usize,
    /// The beginning of a frame header, or of a header block's frames.
    kept: Vec<u8>,
    /// Where in `kept` the last frame begins.
    last: usize,
    /// Frames of the header block that are kept.
    frames: usize,
    /// Most frames that a header block may have. A longer one would have almost empty frames.
    frames_max: usize,
    /// Whether h2 ends the connection, with which bytes does not matter.
    passes_all: bool,
}

#[derive(Debug)]
pub(super) enum Received<'a> {
    /// A frame, which is passed on.
    Frame(FrameHeader),
    /// The frames of a header block, which are not.
    Headers(HeaderFrames<'a>),
    /// A header block in too many frames.
    EndlessHeaders,
}

/// HEADERS, and CONTINUATION behind it, up to the end of a header block.
#[derive(Debug)]
pub(super) struct HeaderFrames<'a>(Cow<'a, [u8]>);

impl ReceivedFrames {
    pub(super) fn new(list_bytes_max: usize) -> Self {
        let needed = list_bytes_max / PAYLOAD_BYTES_MAX;
        Self {
            passing: PREFACE.len(),
            kept: Vec::new(),
            last: 0,
            frames: 0,
            frames_max: (needed + needed / 4).max(5) + 1,
            passes_all: false,
        }
    }

    /// Passes on everything from here on.
    pub(super) fn pass_all(&mut self) {
        self.passes_all = true;
    }

    /// Takes the next frame or header block off `bytes`, and passes on to `out` what lies before it.
    #[inline]
    pub(super) fn next<'a>(&mut self, bytes: &mut &'a [u8], out: &mut BytesMut) -> Option<Received<'a>> {
        let passed = if self.passes_all { bytes.len() } else { self.passing.min(bytes.len()) };
        out.extend_from_slice(&bytes[..passed]);
        *bytes = &bytes[passed..];
        self.passing = self.passing.saturating_sub(passed);
        if self.kept.is_empty()
            && let Some(head) = bytes.first_chunk()
        {
            let head = FrameHeader::read(*head);
            // Nearly always a header block is one frame, and whole.
            if !is_of_block(head) {
                out.extend_from_slice(&bytes[..HEAD_BYTES]);
                *bytes = &bytes[HEAD_BYTES..];
                self.passing = head.len;
                return Some(Received::Frame(head));
            }
            if begins_block(head)
                && head.has(flag::END_HEADERS)
                && let Some((frame, rest)) = bytes.split_at_checked(HEAD_BYTES + head.len)
            {
                *bytes = rest;
                return Some(Received::Headers(HeaderFrames(Cow::Borrowed(frame))));
            }
        }
        if bytes.is_empty() { None } else { self.next_kept(bytes, out) }
    }

    #[cold]
    fn next_kept<'a>(&mut self, bytes: &mut &'a [u8], out: &mut BytesMut) -> Option<Received<'a>> {
        loop {
            let head = self.kept[self.last..].first_chunk().map(|head| FrameHeader::read(*head));
            let wanted = self.last + HEAD_BYTES + head.map_or(0, |head| head.len);
            if let Some(head) = head {
                let is_first = self.last == 0;
                if is_first && !is_of_block(head) {
                    out.extend_from_slice(&self.kept);
                    self.passing = head.len;
                    self.clear();
                    return Some(Received::Frame(head));
                }
                if !(if is_first { begins_block(head) } else { self.continues_block(head) }) {
                    out.extend_from_slice(&self.kept);
                    self.clear();
                    self.pass_all();
                    return self.next(bytes, out);
                }
                if self.kept.len() == wanted {
                    self.last = wanted;
                    self.frames += 1;
                    if head.has(flag::END_HEADERS) {
                        let frames = std::mem::take(&mut self.kept);
                        self.clear();
                        return Some(Received::Headers(HeaderFrames(Cow::Owned(frames))));
                    }
                    if self.frames > self.frames_max {
                        self.clear();
                        return Some(Received::EndlessHeaders);
                    }
                    continue;
                }
            }
            let taken = (wanted - self.kept.len()).min(bytes.len());
            if taken == 0 {
                return None;
            }
            self.kept.extend_from_slice(&bytes[..taken]);
            *bytes = &bytes[taken..];
        }
    }

    fn continues_block(&self, head: FrameHeader) -> bool {
        let first = self.kept.first_chunk().map(|head| FrameHeader::read(*head).id);
        head.kind == kind::CONTINUATION && Some(head.id) == first && head.len <= PAYLOAD_BYTES_MAX
    }

    fn clear(&mut self) {
        self.kept = Vec::new();
        (self.last, self.frames) = (0, 0);
    }
}

fn is_of_block(head: FrameHeader) -> bool {
    matches!(head.kind, kind::HEADERS | kind::CONTINUATION)
}

/// Whether a frame begins a header block of a stream that a client can open. h2 ends the connection for others.
fn begins_block(head: FrameHeader) -> bool {
    head.kind == kind::HEADERS && head.id % 2 == 1 && head.len <= PAYLOAD_BYTES_MAX
}

impl HeaderFrames<'_> {
    /// The header of the first.
    pub(super) fn head(&self) -> FrameHeader {
        FrameHeader::read(*self.0.first_chunk().expect("there is a whole frame"))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Length of the header block, padding included.
    pub(super) fn block_bytes(&self) -> u64 {
        self.frames().map(|(head, _)| super::block_bytes(head)).sum()
    }

    /// The header block, without padding and priority; `None` if a frame is malformed.
    pub(super) fn block(&self) -> Option<Cow<'_, [u8]>> {
        let mut frames = self.frames().map(|(head, payload)| fragment(head, payload));
        let first = frames.next()??;
        let Some(second) = frames.next() else { return Some(Cow::Borrowed(first)) };
        let mut block = [first, second?].concat();
        for other in frames {
            block.extend_from_slice(other?);
        }
        Some(Cow::Owned(block))
    }

    fn frames(&self) -> impl Iterator<Item = (FrameHeader, &[u8])> {
        let mut rest = &*self.0;
        std::iter::from_fn(move || {
            let (head, behind) = rest.split_first_chunk()?;
            let head = FrameHeader::read(*head);
            let (payload, behind) = behind.split_at_checked(head.len)?;
            rest = behind;
            Some((head, payload))
        })
    }
}

/// The part of a header block that a frame has (RFC 9113, section 6.2).
fn fragment(head: FrameHeader, mut payload: &[u8]) -> Option<&[u8]> {
    if head.kind == kind::CONTINUATION {
        return Some(payload);
    }
    let mut padding = 0;
    if head.has(flag::PADDED) {
        let (length, rest) = payload.split_first()?;
        (padding, payload) = (usize::from(*length), rest);
    }
    if head.has(flag::PRIORITY) {
        let (dependency, rest) = payload.split_at_checked(5)?;
        // A stream that depends on itself is an error of the connection for h2.
        let on = u32::from_be_bytes(*dependency.first_chunk()?) & http_codec::frame::ID_MAX;
        payload = (on != head.id).then_some(rest)?;
    }
    payload.get(..payload.len().checked_sub(padding)?)
}
