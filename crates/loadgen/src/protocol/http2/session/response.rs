//! A response in progress: checks its header fields and its body.

use crate::protocol::response::{BodyCheck, CompleteResponse, ExpectedResponse, INTERIM_MAX};
use http_codec::hpack::{Decoder, HpackDecodeError};

/// The part of a stream's response that was received.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Response {
    /// The status of the final response; 0 before it.
    status: u16,
    content_length: Option<u64>,
    interim: u32,
    head_bytes: u64,
    head_plain_bytes: u64,
    body: BodyCheck,
    /// When the final answer began.
    pub(super) first_ns: u64,
    /// Bytes received since the last window update.
    pub(super) unacknowledged: u32,
}

/// The decoded fields of a header block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HeaderBlock {
    status: Option<u16>,
    content_length: Option<u64>,
    plain_bytes: u64,
    has_fields: bool,
    /// It breaks a rule of RFC 9113, section 8.2 or 8.3.
    is_malformed: bool,
}

/// The server broke a rule of a stream (RFC 9113, section 5.4.2), in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StreamError(pub(super) &'static str);

impl HeaderBlock {
    /// Decodes a block. Every block must be decoded, since it changes the decoder's table.
    pub(super) fn decode(
        decoder: &mut Decoder,
        bytes: &[u8],
        plain_max: u64,
    ) -> Result<Self, HpackDecodeError> {
        let mut block = Self::default();
        let before = decoder.decoded_bytes();
        decoder.decode(bytes, plain_max, |field| block.field(field.name, field.value))?;
        Ok(Self { plain_bytes: decoder.decoded_bytes() - before, ..block })
    }

    fn field(&mut self, name: &[u8], value: &[u8]) {
        if name == b":status" {
            let status = parse_status(value).filter(|_| self.status.is_none() && !self.has_fields);
            self.is_malformed |= status.is_none();
            self.status = status;
            return;
        }
        self.has_fields = true;
        if name == b"content-length" {
            let length = parse_length(value);
            let differs = self.content_length.is_some_and(|other| Some(other) != length);
            self.is_malformed |= length.is_none() || differs;
            self.content_length = length;
            return;
        }
        self.is_malformed |= !is_name(name) || is_connection_specific(name) || !is_value(value);
    }
}

impl Response {
    /// True if the final answer has begun.
    pub(super) fn has_begun(&self) -> bool {
        self.status > 0
    }

    /// Adds a header block, and its size on the wire.
    pub(super) fn add_header_block(
        &mut self,
        block: HeaderBlock,
        wire_bytes: usize,
        is_end: bool,
    ) -> Result<(), StreamError> {
        self.head_bytes += wire_bytes as u64;
        self.head_plain_bytes += block.plain_bytes;
        if block.is_malformed {
            return Err(StreamError("header fields that RFC 9113 does not allow"));
        }
        match block.status {
            None if self.has_begun() && is_end => {}
            // The status must come first, and once.
            None => return Err(StreamError("an answer without a status")),
            Some(_) if self.has_begun() => return Err(StreamError("a second answer on a stream")),
            // HTTP/2 has no upgrade (RFC 9113, section 8.6).
            Some(100..200) if is_end || block.status == Some(101) => {
                return Err(StreamError("an interim answer that cannot be one"));
            }
            Some(100..200) => {
                self.interim += 1;
                if self.interim > INTERIM_MAX {
                    return Err(StreamError("too many interim answers"));
                }
            }
            Some(status) => {
                self.status = status;
                self.content_length = block.content_length;
            }
        }
        Ok(())
    }

    /// Adds a piece of the body.
    pub(super) fn add_body(&mut self, piece: &[u8], expected: &ExpectedResponse) -> Result<(), StreamError> {
        if !self.has_begun() {
            return Err(StreamError("a body before its answer"));
        }
        self.body.take(piece, expected);
        Ok(())
    }

    /// The answer is whole.
    pub(super) fn finish(&self, expected: &ExpectedResponse) -> Result<CompleteResponse, StreamError> {
        if !self.has_begun() {
            return Err(StreamError("a stream that ends before its answer"));
        }
        let without_body = expected.head_only || matches!(self.status, 204 | 304);
        let is_off = |length: u64| length != self.body.bytes && !(without_body && self.body.bytes == 0);
        if self.content_length.is_some_and(is_off) {
            return Err(StreamError("a body of another length than announced"));
        }
        Ok(CompleteResponse {
            status: Some(self.status),
            keep_alive: true,
            head_bytes: self.head_bytes,
            head_plain_bytes: self.head_plain_bytes,
            body_bytes: self.body.bytes,
            body_is_right: self.body.is_right(expected),
        })
    }
}

fn parse_status(value: &[u8]) -> Option<u16> {
    let [hundreds @ b'1'..=b'9', tens @ b'0'..=b'9', ones @ b'0'..=b'9'] = value else { return None };
    let digit = |byte: &u8| u16::from(byte - b'0');
    Some(digit(hundreds) * 100 + digit(tens) * 10 + digit(ones))
}

fn parse_length(value: &[u8]) -> Option<u64> {
    if value.is_empty() {
        return None;
    }
    value.iter().try_fold(0_u64, |length, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        length.checked_mul(10)?.checked_add(digit.into())
    })
}

/// Names are visible and in lower case; a leading colon is for pseudo-header fields only.
fn is_name(name: &[u8]) -> bool {
    let is_bad = |byte: u8| !byte.is_ascii_graphic() || byte.is_ascii_uppercase() || byte == b':';
    // Without an early end, so the compiler can check many bytes at a time.
    !name.is_empty() && !name.iter().fold(false, |bad, byte| bad | is_bad(*byte))
}

fn is_value(value: &[u8]) -> bool {
    !value.iter().fold(false, |bad, byte| bad | matches!(byte, 0 | b'\r' | b'\n'))
}

/// Connection-specific fields, which HTTP/2 forbids (RFC 9113, section 8.2.2).
pub(crate) fn is_connection_specific(name: &[u8]) -> bool {
    match name.len() {
        7 => name == b"upgrade",
        10 => name == b"connection" || name == b"keep-alive",
        16 => name == b"proxy-connection",
        17 => name == b"transfer-encoding",
        _ => false,
    }
}
