//! The head of a request as its upstream gets it.

use hyper::header::{HeaderName, HeaderValue};

use crate::upstream::http2::head::Http2Head;

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

/// A head that is complete.
#[derive(Debug)]
pub(crate) enum UpstreamHead {
    /// Encoded.
    Http1(Vec<u8>),
    Http2(Box<Http2Head>),
}

impl UpstreamHead {
    /// The memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        match self {
            Self::Http1(head) => head.capacity(),
            Self::Http2(head) => head.memory(),
        }
    }
}
