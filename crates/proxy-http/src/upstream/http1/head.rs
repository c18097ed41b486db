//! Encodes the heads of HTTP/1.1 requests, and parses those of responses.

use std::io;
use std::mem::{self, MaybeUninit};

use bytes::{Buf as _, Bytes};
use hyper::header::{CONNECTION, HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Response, StatusCode, Version};

use super::read_buffer::SMALL_BYTES_MAX;
use crate::request::special_fields::{SpecialField, SpecialFields};
use crate::upstream::request_head::HeadWriter;
use crate::upstream::request_head::RequestFraming;

/// Bytes for which a request's head has room from the start, besides its target.
const HEAD_ROOM: usize = 256;
/// Longest head of a response.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Fields for which a response has room, so that it need not grow: hyper adds some.
const ADDED_FIELDS: usize = 2;
/// Most fields of a response's header.
const FIELDS_MAX: usize = 128;

/// Fields as they are written.
#[derive(Debug, Default)]
pub(crate) struct FieldBytes(Vec<u8>);

/// The head of a request that is being written.
#[derive(Debug)]
pub(crate) struct RequestHead(FieldBytes);

impl FieldBytes {
    pub(crate) fn write(&mut self, name: &str, value: &[u8]) {
        self.0.reserve(name.len() + value.len() + 4);
        for part in [name.as_bytes(), b": ", value, b"\r\n"] {
            self.0.extend_from_slice(part);
        }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

impl RequestHead {
    /// Begins with the request line, in the memory of `head`, which is empty.
    pub(crate) fn new(mut head: Vec<u8>, method: &Method, target: &str) -> Self {
        head.reserve(HEAD_ROOM + target.len());
        for part in [method.as_str(), " ", target, " HTTP/1.1\r\n"] {
            head.extend_from_slice(part.as_bytes());
        }
        Self(FieldBytes(head))
    }

    /// Ends with how the content is framed.
    pub(crate) fn finish(mut self, method: &Method, framing: RequestFraming) -> Vec<u8> {
        match framing {
            // A server that expects content is told that there is none.
            RequestFraming::None if matches!(*method, Method::POST | Method::PUT | Method::PATCH) => {
                self.field("content-length", b"0");
            }
            RequestFraming::None => {}
            RequestFraming::Length(length) => self.field("content-length", length.to_string().as_bytes()),
            RequestFraming::Chunked => self.field("transfer-encoding", b"chunked"),
        }
        self.0.0.extend_from_slice(b"\r\n");
        self.0.into_bytes()
    }
}

impl HeadWriter for RequestHead {
    fn host(&mut self, host: &str) {
        self.field("host", host.as_bytes());
    }

    fn field(&mut self, name: &str, value: &[u8]) {
        self.0.write(name, value);
    }

    fn copied_field(&mut self, name: &HeaderName, value: &HeaderValue) {
        self.field(name.as_str(), value.as_bytes());
    }

    fn joined_field<'a>(&mut self, name: &str, values: impl Iterator<Item = &'a [u8]>, separator: &str) {
        let head = &mut self.0.0;
        head.extend_from_slice(name.as_bytes());
        let mut before = ": ";
        for value in values {
            head.extend_from_slice(before.as_bytes());
            head.extend_from_slice(value);
            before = separator;
        }
        head.extend_from_slice(b"\r\n");
    }

    fn encoded_fields(&mut self, fields: &[u8]) {
        self.0.0.extend_from_slice(fields);
    }

    fn trailers_wanted(&mut self) {
        self.field("te", b"trailers");
        self.field("connection", b"te");
    }

    fn websocket(&mut self, key: Option<&HeaderValue>) {
        self.field("upgrade", b"websocket");
        self.field("connection", b"upgrade");
        if let Some(key) = key {
            self.field("sec-websocket-key", key.as_bytes());
        }
    }
}

/// Takes the head of a response off the front of what was received; `None` if it is not whole. `fields` is empty, and its
/// memory is that of the response's fields.
pub(crate) fn take(received: &mut Bytes, fields: &mut HeaderMap) -> io::Result<Option<Response<()>>> {
    if received.is_empty() {
        return Ok(None);
    }
    let is_long = |bytes: usize| bytes > HEAD_BYTES_MAX;
    match parse(received, fields)? {
        Some((used, _)) if is_long(used) => Err(invalid("the head is too long")),
        Some((used, head)) => {
            received.advance(used);
            Ok(Some(head))
        }
        None if is_long(received.len()) => Err(invalid("the head is too long")),
        None => Ok(None),
    }
}

/// The values of the fields share memory: that of `bytes` if these are few.
fn parse(bytes: &Bytes, spare: &mut HeaderMap) -> io::Result<Option<(usize, Response<()>)>> {
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut parsed = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    let used = match config.parse_response_with_uninit_headers(&mut parsed, bytes, &mut fields) {
        Ok(httparse::Status::Partial) => return Ok(None),
        Ok(httparse::Status::Complete(used)) => used,
        Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
    };
    let status =
        StatusCode::from_u16(parsed.code.unwrap_or(0)).map_err(|_| invalid("the status is malformed"))?;
    // HPACK's table keeps values for long, which must not keep a long read in memory.
    let copied = (bytes.len() > SMALL_BYTES_MAX).then(|| Bytes::copy_from_slice(&bytes[..used]));
    let shared = copied.as_ref().unwrap_or(bytes);
    let mut headers = mem::take(spare);
    headers.reserve(parsed.headers.len() + ADDED_FIELDS);
    for field in parsed.headers.iter() {
        let name = HeaderName::from_bytes(field.name.as_bytes());
        let name = name.map_err(|_| invalid("a field's name is malformed"))?;
        let value = HeaderValue::from_maybe_shared(part(shared, bytes, field.value));
        headers.append(name, value.map_err(|_| invalid("a field's value is malformed"))?);
    }
    let mut head = Response::new(());
    *head.status_mut() = status;
    *head.version_mut() = if parsed.version == Some(1) { Version::HTTP_11 } else { Version::HTTP_10 };
    *head.headers_mut() = headers;
    Ok(Some((used, head)))
}

/// The slice of `shared` at the position of `part` in `bytes`.
fn part(shared: &Bytes, bytes: &Bytes, part: &[u8]) -> Bytes {
    let from = part.as_ptr().addr().wrapping_sub(bytes.as_ptr().addr());
    // An empty part may stand anywhere.
    if part.is_empty() { Bytes::new() } else { shared.slice(from..from + part.len()) }
}

/// Whether the upstream keeps the connection after this response.
pub(in crate::upstream) fn keeps_alive(head: &Response<()>, special: SpecialFields) -> bool {
    let ends = |value: &HeaderValue| {
        let words = value.to_str().unwrap_or("close").split(',');
        words.into_iter().any(|word| word.trim().eq_ignore_ascii_case("close"))
    };
    let says_end =
        || special.has(SpecialField::Connection) && head.headers().get_all(CONNECTION).iter().any(ends);
    head.version() == Version::HTTP_11 && !says_end()
}

fn invalid(problem: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}
