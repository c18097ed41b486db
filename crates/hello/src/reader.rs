//! Finds the `ClientHello` in a client's first bytes, in any number of records and reads.

use super::ClientHello;

/// Longest message that is read; real ones have a few hundred bytes to a few thousand.
const HELLO_BYTES_MAX: usize = 16 << 10;
/// Bytes in front of a record (RFC 8446, 5.1), and of a handshake message (4).
const RECORD_HEADER_BYTES: usize = 5;
const MESSAGE_HEADER_BYTES: usize = 4;
/// The type of records with handshake messages, and of a `ClientHello`.
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;

/// Reads the first `ClientHello` of a connection, and processes each byte once.
#[derive(Debug, Default)]
pub struct HelloReader {
    /// Only where it does not come in one piece.
    partial: Option<Box<PartialHello>>,
    is_done: bool,
}

struct MalformedHello;

impl HelloReader {
    /// Adds received bytes. Returns the message once it is complete, unless it is malformed.
    pub fn read(&mut self, bytes: &[u8]) -> Option<ClientHello> {
        if self.is_done {
            return None;
        }
        let parsed = match &mut self.partial {
            None => match whole(bytes) {
                Some(body) => ClientHello::parse(body),
                None => return self.keep(bytes),
            },
            Some(_) => return self.keep(bytes),
        };
        self.is_done = true;
        parsed
    }

    fn keep(&mut self, bytes: &[u8]) -> Option<ClientHello> {
        let partial = self.partial.get_or_insert_default();
        let parsed = match partial.add(bytes) {
            Ok(None) => return None,
            Ok(Some(body)) => ClientHello::parse(body),
            Err(MalformedHello) => None,
        };
        *self = Self { partial: None, is_done: true };
        parsed
    }
}

/// The body of the message if all of it is in the first record.
fn whole(bytes: &[u8]) -> Option<&[u8]> {
    let (&[kind, _, _, high, low], rest) = bytes.split_first_chunk::<RECORD_HEADER_BYTES>()?;
    let record = rest.get(..usize::from(u16::from_be_bytes([high, low])))?;
    body(record).ok().flatten().filter(|_| kind == HANDSHAKE)
}

/// The body of the message that begins with `bytes`, as soon as they hold all of it.
fn body(bytes: &[u8]) -> Result<Option<&[u8]>, MalformedHello> {
    let Some((&[kind, len @ ..], rest)) = bytes.split_first_chunk::<MESSAGE_HEADER_BYTES>() else {
        return Ok(None);
    };
    let [high, middle, low] = len;
    let len = u32::from_be_bytes([0, high, middle, low]) as usize;
    if kind != CLIENT_HELLO || len > HELLO_BYTES_MAX {
        return Err(MalformedHello);
    }
    Ok(rest.get(..len))
}

/// The part of the message that was received.
#[derive(Debug, Default)]
struct PartialHello {
    header: [u8; RECORD_HEADER_BYTES],
    header_len: usize,
    /// Bytes of the present record that are still missing.
    record_left: usize,
    message: Vec<u8>,
}

impl PartialHello {
    fn add(&mut self, mut bytes: &[u8]) -> Result<Option<&[u8]>, MalformedHello> {
        while !bytes.is_empty() {
            let wanted =
                if self.record_left == 0 { RECORD_HEADER_BYTES - self.header_len } else { self.record_left };
            let (part, rest) = bytes.split_at(wanted.min(bytes.len()));
            bytes = rest;
            if self.record_left == 0 {
                self.add_header(part)?;
                continue;
            }
            self.record_left -= part.len();
            self.message.extend_from_slice(part);
            if body(&self.message)?.is_some() {
                break;
            }
        }
        body(&self.message)
    }

    fn add_header(&mut self, part: &[u8]) -> Result<(), MalformedHello> {
        self.header[self.header_len..][..part.len()].copy_from_slice(part);
        self.header_len += part.len();
        if self.header_len == RECORD_HEADER_BYTES {
            let [kind, _, _, high, low] = self.header;
            (self.header_len, self.record_left) = (0, usize::from(u16::from_be_bytes([high, low])));
            if kind != HANDSHAKE || self.record_left == 0 {
                return Err(MalformedHello);
            }
        }
        Ok(())
    }
}
