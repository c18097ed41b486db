//! A client of HTTP/2 that sends any frames (RFC 9113, section 4.1).

use std::io::{Read, Write};

use http_codec::frame::ErrorCode;
pub(crate) use http_codec::frame::flag::{ACK, END_HEADERS, END_STREAM};
pub(crate) use http_codec::frame::kind::{
    CONTINUATION, DATA, GOAWAY, HEADERS, PING, PRIORITY, RST_STREAM, SETTINGS, WINDOW_UPDATE,
};
pub(crate) use http_codec::frame::setting::INITIAL_WINDOW_SIZE;

use super::support::{AttackTarget, TlsStream};

pub(crate) const PROTOCOL_ERROR: u32 = ErrorCode::PROTOCOL_ERROR.0;
pub(crate) const CANCEL: u32 = ErrorCode::CANCEL.0;
pub(crate) const ENHANCE_YOUR_CALM: u32 = ErrorCode::ENHANCE_YOUR_CALM.0;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Frame {
    /// The code of `RST_STREAM` or GOAWAY.
    pub(crate) fn error_code(&self) -> Option<u32> {
        let at = match self.kind {
            RST_STREAM => 0,
            GOAWAY => 4,
            _ => return None,
        };
        Some(u32::from_be_bytes(self.payload.get(at..at + 4)?.try_into().ok()?))
    }
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u32).to_be_bytes();
    [&len[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A header block of fields that are neither compressed nor kept (RFC 7541, section 6.2.2).
pub(crate) fn block(fields: &[(&[u8], &[u8])]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        push_string(&mut block, name);
        push_string(&mut block, value);
    }
    block
}

fn push_string(block: &mut Vec<u8>, bytes: &[u8]) {
    match bytes.len().checked_sub(127) {
        None => block.push(bytes.len() as u8),
        Some(mut rest) => {
            block.push(127);
            while rest >= 128 {
                block.push(rest as u8 | 0x80);
                rest >>= 7;
            }
            block.push(rest as u8);
        }
    }
    block.extend_from_slice(bytes);
}

/// The pseudo-header fields of a request.
pub(crate) const fn pseudo<'a>(method: &'a [u8], path: &'a [u8]) -> [(&'a [u8], &'a [u8]); 4] {
    [(b":method", method), (b":scheme", b"https"), (b":authority", b"a"), (b":path", path)]
}

/// HEADERS of a GET.
pub(crate) fn get(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS | END_STREAM, stream, &block(&pseudo(b"GET", b"/")))
}

pub(crate) struct Http2Client {
    pub(crate) tls: TlsStream,
}

impl Http2Client {
    pub(crate) fn connect(site: &AttackTarget) -> Self {
        Self::connect_with(site, &[])
    }

    /// With settings: identifiers and values.
    pub(crate) fn connect_with(site: &AttackTarget, settings: &[(u16, u32)]) -> Self {
        Self::begin(site.connect("h2"), settings)
    }

    /// Over a connection, with settings.
    pub(crate) fn begin(tls: TlsStream, settings: &[(u16, u32)]) -> Self {
        let mut client = Self { tls };
        let settings: Vec<u8> = settings
            .iter()
            .flat_map(|(id, value)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat())
            .collect();
        client.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        client.send(&frame(SETTINGS, 0, 0, &settings));
        client.send(&frame(SETTINGS, ACK, 0, &[]));
        client
    }

    /// Sends bytes; false if the connection is over.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> bool {
        self.tls.write_all(bytes).and_then(|()| self.tls.flush()).is_ok()
    }

    /// The next frame; `None` at the end of the connection.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.tls.read_exact(&mut head).ok()?;
        let [a, b, c, kind, flags, s0, s1, s2, s3] = head;
        let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
        self.tls.read_exact(&mut payload).ok()?;
        Some(Frame { kind, flags, stream: u32::from_be_bytes([s0, s1, s2, s3]), payload })
    }

    /// Reads until a stream has ended: all its frames, and GOAWAY. The end of the connection ends it too.
    pub(crate) fn read_stream(&mut self, stream: u32) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next() {
            if frame.stream != stream && frame.kind != GOAWAY {
                continue;
            }
            let is_last = frame.kind == RST_STREAM
                || frame.kind == GOAWAY
                || matches!(frame.kind, DATA | HEADERS) && frame.flags & END_STREAM != 0;
            frames.push(frame);
            if is_last {
                break;
            }
        }
        frames
    }

    /// Reads to the end of the connection: the error code of the last GOAWAY.
    pub(crate) fn read_goaway(&mut self) -> Option<u32> {
        let mut code = None;
        while let Some(frame) = self.next() {
            code = if frame.kind == GOAWAY { frame.error_code() } else { code };
        }
        code
    }
}
