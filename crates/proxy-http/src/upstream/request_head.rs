//! The head of a request as its upstream gets it.

use http_body::Body as _;
use hyper::body::Incoming;
use hyper::header::{HeaderName, HeaderValue};

/// A head that is being written. Fields that frame the content are for its end.
pub(crate) trait HeadWriter {
    /// Writes the host, before all fields.
    fn host(&mut self, host: &str);

    fn field(&mut self, name: &str, value: &[u8]);

    /// Writes a field of the client's.
    fn copied_field(&mut self, name: &HeaderName, value: &HeaderValue);

    /// Writes a field that is a list.
    fn joined_field<'a>(&mut self, name: &str, values: impl Iterator<Item = &'a [u8]>, separator: &str);

    /// Writes fields that are encoded for HTTP/1.1.
    fn encoded_fields(&mut self, fields: &[u8]);

    /// Writes that the client takes trailers.
    fn trailers_wanted(&mut self);

    /// Asks for a WebSocket; over HTTP/1.1 with this key, if the client has sent none.
    fn websocket(&mut self, key: Option<&HeaderValue>);
}

/// How a request's content is framed for the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestFraming {
    /// The request has no content.
    None,
    /// This many bytes.
    Length(u64),
    /// Chunks, since the length is not known.
    Chunked,
}

impl RequestFraming {
    pub(crate) fn of(body: &Incoming) -> Self {
        match body.size_hint().exact() {
            Some(0) => Self::None,
            Some(length) => Self::Length(length),
            None => Self::Chunked,
        }
    }
}
