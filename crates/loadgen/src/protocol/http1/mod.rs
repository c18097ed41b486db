//! HTTP/1.1 (RFC 9112): the session of a connection, and a parser of answers that arrive in pieces of any size.
//!
//! Bodies are counted, and compared if expected, not kept: the parser holds at most one incomplete head. An echo is an
//! answer with a body alone.

mod framing;
mod session;

use std::mem::MaybeUninit;

use super::response::{BodyCheck, CompleteResponse, ExpectedResponse, INTERIM_MAX};
use framing::{BodyFraming, ResponseFraming};
use http_codec::chunked::{Chunked, MalformedChunk};
pub(crate) use session::Http1Session;

/// Longest head of an answer, and longest sum of chunk extensions and trailers.
const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Most header fields of an answer, 32 bytes each on the stack. Servers have sent hundreds of cookies.
const FIELDS_MAX: usize = 500;
/// The result of parsing a piece of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FeedResult {
    /// Bytes that belong to the answer; the rest of the input lies beyond it.
    pub(crate) consumed: usize,
    /// The answer, once it is whole.
    pub(crate) answer: Option<CompleteResponse>,
}

/// The answer is not HTTP/1.x, or too large.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MalformedResponse;

/// Parses responses, one after another.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    state: ParserState,
    /// The beginning of a head that arrived in pieces.
    head: Vec<u8>,
    expected: ExpectedResponse,
    /// Bytes of the head so far.
    head_bytes: u64,
    body: BodyCheck,
    /// Whether any byte of the answer has come.
    has_begun: bool,
    interim: u32,
    /// The answer whose body is being read.
    answer: Option<CompleteResponse>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ParserState {
    /// No answer is expected.
    #[default]
    Idle,
    Head,
    /// So many bytes of body are left.
    Counted(u64),
    Chunked(Chunked),
    /// The body ends with the connection.
    UntilClose,
}

impl Parser {
    /// Expects an answer, and forgets an earlier one.
    pub(crate) fn expect(&mut self, expected: &ExpectedResponse) {
        self.head.clear();
        self.state = ParserState::Head;
        self.answer = None;
        if expected.is_raw {
            self.state = ParserState::Counted(expected.body.as_ref().map_or(0, |body| body.len() as u64));
            self.answer = Some(CompleteResponse { keep_alive: true, ..CompleteResponse::default() });
        }
        // All threads share an expected body, whose reference count is best left alone.
        if expected.body.is_some() || self.expected.body.is_some() {
            self.expected.body.clone_from(&expected.body);
        }
        self.expected.head_only = expected.head_only;
        self.expected.body_bytes = expected.body_bytes;
        self.head_bytes = 0;
        self.body = BodyCheck::default();
        self.has_begun = false;
        self.interim = 0;
    }

    /// True if a byte of the expected answer has come.
    pub(crate) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Consumes the next piece, up to the end of the answer. Nothing is consumed while no answer is expected.
    pub(crate) fn feed(&mut self, input: &[u8]) -> Result<FeedResult, MalformedResponse> {
        let mut consumed = 0;
        while consumed < input.len() {
            let rest = &input[consumed..];
            self.has_begun |= self.state != ParserState::Idle;
            consumed += match self.state {
                ParserState::Idle => break,
                ParserState::Head => self.feed_head(rest)?,
                ParserState::Counted(left) => {
                    let taken = rest.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    self.state = ParserState::Counted(left - taken as u64);
                    self.body.take(&rest[..taken], &self.expected);
                    taken
                }
                ParserState::Chunked(mut chunked) => {
                    let taken = chunked.feed(rest, |data| self.body.take(data, &self.expected));
                    let taken = taken.map_err(|MalformedChunk| MalformedResponse)?;
                    self.state = ParserState::Chunked(chunked);
                    taken
                }
                ParserState::UntilClose => {
                    self.body.take(rest, &self.expected);
                    rest.len()
                }
            };
            let is_whole = match self.state {
                ParserState::Counted(left) => left == 0,
                ParserState::Chunked(chunked) => chunked.is_done(),
                ParserState::Idle | ParserState::Head | ParserState::UntilClose => false,
            };
            if is_whole {
                return Ok(FeedResult { consumed, answer: self.complete() });
            }
        }
        Ok(FeedResult { consumed, answer: None })
    }

    /// The connection was closed in order, which completes a body without a length.
    pub(crate) fn end(&mut self) -> Option<CompleteResponse> {
        if self.state != ParserState::UntilClose {
            return None;
        }
        self.complete()
    }

    fn complete(&mut self) -> Option<CompleteResponse> {
        self.state = ParserState::Idle;
        let answer = self.answer.take()?;
        Some(CompleteResponse {
            head_bytes: self.head_bytes,
            head_plain_bytes: self.head_bytes,
            body_bytes: self.body.bytes,
            body_is_right: self.body.is_right(&self.expected),
            ..answer
        })
    }

    /// Takes the bytes of a head; a head that comes in one piece is not copied.
    fn feed_head(&mut self, input: &[u8]) -> Result<usize, MalformedResponse> {
        if self.head.is_empty() {
            if let Some(len) = self.parse_head(input)? {
                return Ok(len);
            }
            if input.len() > HEAD_BYTES_MAX {
                return Err(MalformedResponse);
            }
            self.head.extend_from_slice(input);
            return Ok(input.len());
        }
        let before = self.head.len();
        let room = (HEAD_BYTES_MAX + 1).saturating_sub(before);
        self.head.extend_from_slice(&input[..input.len().min(room)]);
        // Parsing only after the blank line avoids quadratic work if a server sends byte by byte.
        if !has_blank_line(&self.head, before) {
            return if self.head.len() > HEAD_BYTES_MAX { Err(MalformedResponse) } else { Ok(input.len()) };
        }
        let head = std::mem::take(&mut self.head);
        let parsed = self.parse_head(&head);
        self.head = head;
        self.head.clear();
        // A blank line before the status line looks like the end of the head but is not; no real server sends one.
        let len = parsed?.ok_or(MalformedResponse)?;
        len.checked_sub(before).ok_or(MalformedResponse)
    }

    /// Parses a complete head, returns its length, and continues with the body.
    fn parse_head(&mut self, input: &[u8]) -> Result<Option<usize>, MalformedResponse> {
        let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
        let mut response = httparse::Response::new(&mut []);
        let parsed = httparse::ParserConfig::default()
            // RFC 9112, section 5.2: a user agent takes them, as one line.
            .allow_obsolete_multiline_headers_in_responses(true)
            .parse_response_with_uninit_headers(&mut response, input, &mut fields)
            .map_err(|_| MalformedResponse)?;
        let httparse::Status::Complete(len) = parsed else { return Ok(None) };
        if len > HEAD_BYTES_MAX {
            return Err(MalformedResponse);
        }
        self.head_bytes += len as u64;
        let (Some(status), Some(version)) = (response.code, response.version) else {
            return Err(MalformedResponse);
        };
        match status {
            // An upgrade was never asked for (RFC 9110, section 15.2.2). From 600 on a status is a server's error (15).
            0..100 | 101 => return Err(MalformedResponse),
            100..200 => {
                self.interim += 1;
                return if self.interim > INTERIM_MAX { Err(MalformedResponse) } else { Ok(Some(len)) };
            }
            _ => {}
        }
        let framing = ResponseFraming::read(response.headers, version)?;
        let without_body = self.expected.head_only || matches!(status, 204 | 304);
        self.state = match framing.body {
            _ if without_body => ParserState::Counted(0),
            BodyFraming::Chunked => ParserState::Chunked(Chunked::default()),
            BodyFraming::Counted(bytes) => ParserState::Counted(bytes),
            BodyFraming::UntilClose => ParserState::UntilClose,
        };
        let keep_alive = framing.keep_alive && self.state != ParserState::UntilClose;
        self.answer =
            Some(CompleteResponse { status: Some(status), keep_alive, ..CompleteResponse::default() });
        Ok(Some(len))
    }
}

/// True if a blank line ends within `head`, looking only where `before` bytes were already searched.
fn has_blank_line(head: &[u8], before: usize) -> bool {
    // The blank line may have begun in the earlier part, by up to three bytes.
    let new = &head[before.saturating_sub(3)..];
    new.windows(2).any(|pair| pair == b"\n\n") || new.windows(3).any(|three| three == b"\n\r\n")
}

#[cfg(test)]
mod tests;
