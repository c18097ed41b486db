//! The framing of HTTP/1.1 responses: where a body ends (RFC 9112, section 6.3).

use std::io;

use bytes::{Buf as _, Bytes};
use hyper::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING};
use hyper::{Method, StatusCode};

use crate::request::special_fields::{SpecialField, SpecialFields, may_be_trailer};

/// Longest line of a chunk's size, with its extensions.
const CHUNK_LINE_MAX: usize = 1_024;
/// Pieces of content from here on are not joined with others.
const MERGED_BYTES_MAX: usize = 8 << 10;
/// Longest trailer section.
pub(in crate::upstream) const TRAILER_BYTES_MAX: usize = 16 << 10;
/// Most fields of a trailer section.
const TRAILERS_MAX: usize = 64;

/// The rest of a response's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// This many bytes.
    Length(u64),
    Chunked(ChunkState),
    UntilClose,
    /// The content has ended.
    Complete,
}

/// The position within a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkState {
    Size,
    Data(u64),
    DataEnd,
    Trailers,
}

/// An error in the framing of a response's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FramingError {
    #[error("the length of its content is ambiguous")]
    AmbiguousLength,
    #[error("a chunk is malformed")]
    Chunk,
    #[error("the trailers are malformed")]
    Trailers,
    #[error("it ended before its content was complete")]
    Truncated,
}

impl Framing {
    /// The framing of a response to a request of this method.
    pub(crate) fn of(
        method: &Method,
        status: StatusCode,
        headers: &HeaderMap,
        special: SpecialFields,
    ) -> Result<Self, FramingError> {
        // Clients get none of the fields that frame these.
        if status.is_informational() || status == StatusCode::NO_CONTENT {
            return Ok(Self::Complete);
        }
        let announced = Self::announced(headers, special)?;
        let is_without_content = *method == Method::HEAD || status == StatusCode::NOT_MODIFIED;
        Ok(if is_without_content { Self::Complete } else { announced })
    }

    /// The framing that the fields of a response announce, whether content follows or not.
    fn announced(headers: &HeaderMap, special: SpecialFields) -> Result<Self, FramingError> {
        let all =
            |field, name: HeaderName| special.has(field).then(|| headers.get_all(name)).into_iter().flatten();
        let mut encodings = all(SpecialField::TransferEncoding, TRANSFER_ENCODING);
        let mut lengths = all(SpecialField::ContentLength, CONTENT_LENGTH);
        match (encodings.next(), lengths.next()) {
            (Some(_), Some(_)) => Err(FramingError::AmbiguousLength),
            (Some(encoding), None) => {
                let is_chunked = encoding.as_bytes().eq_ignore_ascii_case(b"chunked");
                if is_chunked && encodings.next().is_none() {
                    Ok(Self::Chunked(ChunkState::Size))
                } else {
                    Err(FramingError::AmbiguousLength)
                }
            }
            (None, Some(length)) => {
                if lengths.next().is_some() {
                    return Err(FramingError::AmbiguousLength);
                }
                let digits =
                    length.to_str().ok().filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
                match digits.and_then(|digits| digits.parse().ok()) {
                    Some(0) => Ok(Self::Complete),
                    Some(length) => Ok(Self::Length(length)),
                    None => Err(FramingError::AmbiguousLength),
                }
            }
            (None, None) => Ok(Self::UntilClose),
        }
    }

    /// Takes content off what was received; `None` if more must come first, or it is complete. Trailers go to
    /// `trailers`.
    pub(crate) fn take(
        &mut self,
        received: &mut Bytes,
        has_ended: bool,
        trailers: &mut Option<Box<HeaderMap>>,
    ) -> Result<Option<Bytes>, FramingError> {
        self.advance(received, trailers)?;
        let left = match self {
            Self::Complete => return Ok(None),
            Self::UntilClose if received.is_empty() && has_ended => {
                *self = Self::Complete;
                return Ok(None);
            }
            Self::UntilClose => u64::MAX,
            Self::Length(left) | Self::Chunked(ChunkState::Data(left)) => *left,
            Self::Chunked(_) => 0,
        };
        let n = received.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        if n == 0 {
            let is_cut = has_ended && *self != Self::UntilClose;
            return if is_cut { Err(FramingError::Truncated) } else { Ok(None) };
        }
        let data = received.split_to(n);
        match self {
            Self::Length(left) if *left == n as u64 => *self = Self::Complete,
            Self::Chunked(ChunkState::Data(left)) if *left == n as u64 => {
                *self = Self::Chunked(ChunkState::DataEnd);
            }
            Self::Length(left) | Self::Chunked(ChunkState::Data(left)) => *left -= n as u64,
            Self::Chunked(_) | Self::UntilClose | Self::Complete => {}
        }
        // The end often comes with the last data, and is best known with it.
        self.advance(received, trailers)?;
        Ok(Some(data))
    }

    /// Joins a short piece of content with others that were received with it: each would cost more than its bytes. `memory`
    /// is what the piece keeps allocated.
    pub(crate) fn merge(
        &mut self,
        piece: Bytes,
        memory: usize,
        received: &mut Bytes,
        has_ended: bool,
        trailers: &mut Option<Box<HeaderMap>>,
    ) -> Bytes {
        let may_have_more = !received.is_empty() && piece.len() < MERGED_BYTES_MAX;
        if !may_have_more && piece.len() >= memory / 2 {
            return piece;
        }
        let mut merged = Vec::from(&*piece);
        drop(piece);
        while *self != Self::Complete
            && let Ok(Some(next)) = self.take(received, has_ended, trailers)
        {
            merged.extend_from_slice(&next);
        }
        merged.shrink_to_fit();
        merged.into()
    }

    /// Takes the bytes between and after the data of chunks.
    fn advance(
        &mut self,
        received: &mut Bytes,
        trailers: &mut Option<Box<HeaderMap>>,
    ) -> Result<(), FramingError> {
        while let Self::Chunked(state) = self
            && let Some(next) = state.next(received, trailers)?
        {
            *self = next;
        }
        Ok(())
    }
}

impl ChunkState {
    /// Parses the bytes between the data of chunks; `None` if data or more bytes must come first.
    fn next(
        self,
        received: &mut Bytes,
        trailers: &mut Option<Box<HeaderMap>>,
    ) -> Result<Option<Framing>, FramingError> {
        match self {
            Self::Data(_) => Ok(None),
            Self::DataEnd => {
                if received.len() < 2 {
                    return Ok(None);
                }
                if &received[..2] != b"\r\n" {
                    return Err(FramingError::Chunk);
                }
                received.advance(2);
                Ok(Some(Framing::Chunked(Self::Size)))
            }
            Self::Size => match httparse::parse_chunk_size(received) {
                Ok(httparse::Status::Complete((used, size))) if used <= CHUNK_LINE_MAX => {
                    received.advance(used);
                    Ok(Some(Framing::Chunked(if size == 0 { Self::Trailers } else { Self::Data(size) })))
                }
                Ok(httparse::Status::Partial) if received.len() < CHUNK_LINE_MAX => Ok(None),
                Ok(httparse::Status::Complete(_) | httparse::Status::Partial) | Err(_) => {
                    Err(FramingError::Chunk)
                }
            },
            Self::Trailers => {
                let mut fields = [httparse::EMPTY_HEADER; TRAILERS_MAX];
                match httparse::parse_headers(received, &mut fields) {
                    Ok(httparse::Status::Complete((used, fields))) => {
                        *trailers = trailer_map(fields)?.map(Box::new);
                        received.advance(used);
                        Ok(Some(Framing::Complete))
                    }
                    Ok(httparse::Status::Partial) if received.len() < TRAILER_BYTES_MAX => Ok(None),
                    Ok(httparse::Status::Partial) | Err(_) => Err(FramingError::Trailers),
                }
            }
        }
    }
}

/// The trailers of a message, without fields that may only stand in a header (RFC 9110, section 6.5.1).
fn trailer_map(fields: &[httparse::Header<'_>]) -> Result<Option<HeaderMap>, FramingError> {
    let mut map = HeaderMap::new();
    for field in fields {
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| FramingError::Trailers)?;
        let value = HeaderValue::from_bytes(field.value).map_err(|_| FramingError::Trailers)?;
        if may_be_trailer(name.as_str()) {
            map.append(name, value);
        }
    }
    Ok((!map.is_empty()).then_some(map))
}

impl From<FramingError> for io::Error {
    fn from(error: FramingError) -> Self {
        Self::new(io::ErrorKind::InvalidData, error)
    }
}
