//! Where a response of HTTP/1.1 ends (RFC 9112, section 6.3).

use std::io;

use bytes::{Buf as _, Bytes, BytesMut};
use hyper::header::{CONTENT_LENGTH, HeaderMap, TRANSFER_ENCODING};
use hyper::{Method, StatusCode};

/// Longest line of a chunk's size, with its extensions.
const CHUNK_LINE_MAX: usize = 1_024;

/// What is left of a response's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// So many bytes.
    Length(u64),
    /// Chunks.
    Chunked(ChunkState),
    /// Everything until the upstream closes.
    UntilClose,
    /// Nothing more.
    Complete,
}

/// Where in a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkState {
    Size,
    Data(u64),
    DataEnd,
    Trailers,
}

/// Why content cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FramingError {
    #[error("the length of its content is ambiguous")]
    AmbiguousLength,
    #[error("a chunk is malformed")]
    Chunk,
    #[error("it ended before its content was complete")]
    Truncated,
}

impl Framing {
    /// The framing of a response to a request of this method.
    pub(crate) fn of(method: &Method, status: StatusCode, headers: &HeaderMap) -> Result<Self, FramingError> {
        if *method == Method::HEAD
            || status.is_informational()
            || status == StatusCode::NO_CONTENT
            || status == StatusCode::NOT_MODIFIED
        {
            return Ok(Self::Complete);
        }
        let mut encodings = headers.get_all(TRANSFER_ENCODING).iter();
        let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
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

    /// Takes content off what was received; `None` if more must come first, or it is complete.
    pub(crate) fn take(
        &mut self,
        received: &mut BytesMut,
        has_ended: bool,
    ) -> Result<Option<Bytes>, FramingError> {
        loop {
            match self {
                Self::Complete => return Ok(None),
                Self::Length(left) | Self::Chunked(ChunkState::Data(left)) if !received.is_empty() => {
                    let n = received.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= n as u64;
                    let is_over = *left == 0;
                    if is_over {
                        *self = match self {
                            Self::Chunked(_) => Self::Chunked(ChunkState::DataEnd),
                            _ => Self::Complete,
                        };
                    }
                    return Ok(Some(received.split_to(n).freeze()));
                }
                Self::UntilClose if !received.is_empty() => return Ok(Some(received.split().freeze())),
                Self::UntilClose if has_ended => *self = Self::Complete,
                Self::Chunked(state) => match state.next(received)? {
                    Some(framing) => *self = framing,
                    None if has_ended => return Err(FramingError::Truncated),
                    None => return Ok(None),
                },
                Self::Length(_) if has_ended => return Err(FramingError::Truncated),
                Self::Length(_) | Self::UntilClose => return Ok(None),
            }
        }
    }
}

impl ChunkState {
    /// Reads what stands between the data of chunks; `None` if more must come first.
    fn next(self, received: &mut BytesMut) -> Result<Option<Framing>, FramingError> {
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
                Ok(httparse::Status::Complete((used, size))) => {
                    received.advance(used);
                    Ok(Some(Framing::Chunked(if size == 0 { Self::Trailers } else { Self::Data(size) })))
                }
                Ok(httparse::Status::Partial) if received.len() < CHUNK_LINE_MAX => Ok(None),
                Ok(httparse::Status::Partial) | Err(_) => Err(FramingError::Chunk),
            },
            Self::Trailers => {
                let Some(at) = received.windows(2).position(|pair| pair == b"\r\n") else {
                    return if received.len() < CHUNK_LINE_MAX { Ok(None) } else { Err(FramingError::Chunk) };
                };
                received.advance(at + 2);
                // Trailers are dropped for now; an empty line ends them.
                Ok(Some(if at == 0 { Framing::Complete } else { Framing::Chunked(Self::Trailers) }))
            }
        }
    }
}

impl From<FramingError> for io::Error {
    fn from(error: FramingError) -> Self {
        Self::new(io::ErrorKind::InvalidData, error)
    }
}
