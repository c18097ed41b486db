//! Frames (RFC 9113, sections 4 and 6): their header, and how some are written.

/// Length of the head of a frame.
pub const HEAD_BYTES: usize = 9;
/// Longest payload, in both directions: the default that every peer accepts.
pub const PAYLOAD_BYTES_MAX: usize = 16_384;
/// Largest window for data.
pub const WINDOW_MAX: i64 = (1 << 31) - 1;
/// Number of the last stream that a client can open.
pub const ID_MAX: u32 = (1 << 31) - 1;

/// The connection preface of a client (RFC 9113, section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Types of frames, named as in RFC 9113.
pub mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

/// Flags of frames, named as in RFC 9113.
pub mod flag {
    pub const ACK: u8 = 0x1;
    pub const END_STREAM: u8 = 0x1;
    pub const END_HEADERS: u8 = 0x4;
    pub const PADDED: u8 = 0x8;
    pub const PRIORITY: u8 = 0x20;
}

/// Settings of a connection, named as in RFC 9113.
pub mod setting {
    pub const HEADER_TABLE_SIZE: u16 = 1;
    pub const ENABLE_PUSH: u16 = 2;
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    pub const MAX_FRAME_SIZE: u16 = 5;
}

/// An error code of HTTP/2 (RFC 9113, section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    pub const NO_ERROR: Self = Self(0);
    pub const PROTOCOL_ERROR: Self = Self(1);
    pub const FLOW_CONTROL_ERROR: Self = Self(3);
    pub const STREAM_CLOSED: Self = Self(5);
    pub const FRAME_SIZE_ERROR: Self = Self(6);
    pub const REFUSED_STREAM: Self = Self(7);
    pub const CANCEL: Self = Self(8);
    pub const COMPRESSION_ERROR: Self = Self(9);
    pub const ENHANCE_YOUR_CALM: Self = Self(11);
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const NAMES: [&str; 14] = [
            "NO_ERROR",
            "PROTOCOL_ERROR",
            "INTERNAL_ERROR",
            "FLOW_CONTROL_ERROR",
            "SETTINGS_TIMEOUT",
            "STREAM_CLOSED",
            "FRAME_SIZE_ERROR",
            "REFUSED_STREAM",
            "CANCEL",
            "COMPRESSION_ERROR",
            "CONNECT_ERROR",
            "ENHANCE_YOUR_CALM",
            "INADEQUATE_SECURITY",
            "HTTP_1_1_REQUIRED",
        ];
        match NAMES.get(self.0 as usize) {
            Some(name) => f.write_str(name),
            None => write!(f, "error {}", self.0),
        }
    }
}

/// A frame header (RFC 9113, section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// Length of the payload, in bytes.
    pub len: usize,
    /// See [`kind`].
    pub kind: u8,
    /// See [`flag`].
    pub flags: u8,
    /// The stream that it belongs to; 0 for the connection.
    pub id: u32,
}

impl FrameHeader {
    pub fn read(bytes: [u8; HEAD_BYTES]) -> Self {
        let [high, middle, low, kind, flags, a, b, c, d] = bytes;
        Self {
            len: u32::from_be_bytes([0, high, middle, low]) as usize,
            kind,
            flags,
            id: u32::from_be_bytes([a, b, c, d]) & ID_MAX,
        }
    }

    pub fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

pub fn head(out: &mut Vec<u8>, len: usize, kind: u8, flags: u8, id: u32) {
    let [_, high, middle, low] = (len as u32).to_be_bytes();
    let [a, b, c, d] = id.to_be_bytes();
    out.extend_from_slice(&[high, middle, low, kind, flags, a, b, c, d]);
}

/// Writes a `WINDOW_UPDATE` frame: the peer may send more bytes on the stream, or on the connection if `id` is 0.
pub fn window_update(out: &mut Vec<u8>, id: u32, bytes: u32) {
    head(out, 4, kind::WINDOW_UPDATE, 0, id);
    out.extend_from_slice(&bytes.to_be_bytes());
}

/// Writes that a stream is given up.
pub fn rst_stream(out: &mut Vec<u8>, id: u32, ErrorCode(code): ErrorCode) {
    head(out, 4, kind::RST_STREAM, 0, id);
    out.extend_from_slice(&code.to_be_bytes());
}

/// Writes that this side goes away, and has taken the peer's streams up to `last_id`.
pub fn goaway(out: &mut Vec<u8>, last_id: u32, ErrorCode(code): ErrorCode) {
    head(out, 8, kind::GOAWAY, 0, 0);
    out.extend_from_slice(&last_id.to_be_bytes());
    out.extend_from_slice(&code.to_be_bytes());
}

/// Writes a header block, in as many frames as it takes.
pub fn headers(out: &mut Vec<u8>, id: u32, block: &[u8], is_all: bool) {
    let mut pieces = block.chunks(PAYLOAD_BYTES_MAX).peekable();
    let (mut frame_kind, mut flags) = (kind::HEADERS, if is_all { flag::END_STREAM } else { 0 });
    while let Some(piece) = pieces.next() {
        flags |= if pieces.peek().is_none() { flag::END_HEADERS } else { 0 };
        head(out, piece.len(), frame_kind, flags, id);
        out.extend_from_slice(piece);
        (frame_kind, flags) = (kind::CONTINUATION, 0);
    }
}
