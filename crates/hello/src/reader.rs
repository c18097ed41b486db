//! Finds the `ClientHello` in a client's first bytes, in any number of records and reads.

use super::ClientHello;
use super::stream::{Protection, StreamEvent, TlsStream, message};

/// Reads the first `ClientHello` of a connection, and processes each byte once.
#[derive(Debug, Default)]
pub struct HelloReader {
    /// Only where it does not come in one piece.
    partial: Option<Box<TlsStream>>,
    is_done: bool,
}

impl HelloReader {
    /// Whether no further bytes are needed: the message was found, or there is none.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Memory of a message of which bytes are missing.
    pub fn kept_bytes(&self) -> usize {
        self.partial.as_ref().map_or(0, |stream| stream.kept_bytes())
    }

    /// Adds received bytes. Returns the message once it is complete, unless it is malformed.
    pub fn read(&mut self, bytes: &[u8]) -> Option<ClientHello> {
        if self.is_done {
            return None;
        }
        let mut found = None;
        let stream = self.partial.get_or_insert_default();
        stream.read(bytes, |event| {
            if !self.is_done {
                self.is_done = true;
                found = match event {
                    StreamEvent::Message { kind: message::CLIENT_HELLO, body } => ClientHello::parse(body),
                    _ => None,
                };
            }
            Protection::Clear
        });
        if self.is_done {
            self.partial = None;
        }
        found
    }
}
