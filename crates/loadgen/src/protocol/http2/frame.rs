//! Frames (RFC 9113, sections 4 and 6): their header, and the frames that a client writes.

/// Length of the head of a frame.
pub(super) const HEAD_BYTES: usize = 9;
/// Longest payload, in both directions: the default that every peer accepts.
pub(super) const PAYLOAD_BYTES_MAX: usize = 16_384;
/// Largest window for data.
pub(super) const WINDOW_MAX: i64 = (1 << 31) - 1;
/// Number of the last stream that a client can open.
pub(super) const ID_MAX: u32 = (1 << 31) - 1;

/// The connection preface of a client (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Types of frames.
pub(super) mod kind {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const PRIORITY: u8 = 2;
    pub(crate) const RST_STREAM: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const PUSH_PROMISE: u8 = 5;
    pub(crate) const PING: u8 = 6;
    pub(crate) const GOAWAY: u8 = 7;
    pub(crate) const WINDOW_UPDATE: u8 = 8;
    pub(crate) const CONTINUATION: u8 = 9;
}

/// Flags of frames.
pub(super) mod flag {
    pub(crate) const ACK: u8 = 0x1;
    pub(crate) const END_STREAM: u8 = 0x1;
    pub(crate) const END_HEADERS: u8 = 0x4;
    pub(crate) const PADDED: u8 = 0x8;
    pub(crate) const PRIORITY: u8 = 0x20;
}

/// Settings of a connection.
pub(super) mod setting {
    pub(crate) const HEADER_TABLE_SIZE: u16 = 1;
    pub(crate) const ENABLE_PUSH: u16 = 2;
    pub(crate) const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub(crate) const INITIAL_WINDOW_SIZE: u16 = 4;
    pub(crate) const MAX_FRAME_SIZE: u16 = 5;
}

/// An error code of HTTP/2 (RFC 9113, section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ErrorCode(pub(super) u32);

impl ErrorCode {
    pub(super) const NO_ERROR: Self = Self(0);
    pub(super) const PROTOCOL_ERROR: Self = Self(1);
    pub(super) const FLOW_CONTROL_ERROR: Self = Self(3);
    pub(super) const FRAME_SIZE_ERROR: Self = Self(6);
    pub(super) const REFUSED_STREAM: Self = Self(7);
    pub(super) const CANCEL: Self = Self(8);
    pub(super) const COMPRESSION_ERROR: Self = Self(9);
    pub(super) const ENHANCE_YOUR_CALM: Self = Self(11);
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
pub(super) struct FrameHeader {
    pub(super) len: usize,
    pub(super) kind: u8,
    pub(super) flags: u8,
    /// The stream that it belongs to; 0 for the connection.
    pub(super) id: u32,
}

impl FrameHeader {
    pub(super) fn read(bytes: [u8; HEAD_BYTES]) -> Self {
        let [high, middle, low, kind, flags, a, b, c, d] = bytes;
        Self {
            len: u32::from_be_bytes([0, high, middle, low]) as usize,
            kind,
            flags,
            id: u32::from_be_bytes([a, b, c, d]) & ID_MAX,
        }
    }

    pub(super) fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Writes the head of a frame.
pub(super) fn head(out: &mut Vec<u8>, len: usize, kind: u8, flags: u8, id: u32) {
    let [_, high, middle, low] = (len as u32).to_be_bytes();
    let [a, b, c, d] = id.to_be_bytes();
    out.extend_from_slice(&[high, middle, low, kind, flags, a, b, c, d]);
}

/// Writes the client's preface: no pushes, and `window` bytes for the connection and for each stream.
pub(super) fn preface(out: &mut Vec<u8>, window: u32) {
    out.extend_from_slice(PREFACE);
    head(out, 12, kind::SETTINGS, 0, 0);
    for (setting, value) in [(setting::ENABLE_PUSH, 0), (setting::INITIAL_WINDOW_SIZE, window)] {
        out.extend_from_slice(&setting.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
    window_update(out, 0, window - 65_535);
}

pub(super) fn window_update(out: &mut Vec<u8>, id: u32, bytes: u32) {
    head(out, 4, kind::WINDOW_UPDATE, 0, id);
    out.extend_from_slice(&bytes.to_be_bytes());
}

pub(super) fn rst_stream(out: &mut Vec<u8>, id: u32, ErrorCode(code): ErrorCode) {
    head(out, 4, kind::RST_STREAM, 0, id);
    out.extend_from_slice(&code.to_be_bytes());
}

/// Writes that the client goes away. It has taken no stream of the server's.
pub(super) fn goaway(out: &mut Vec<u8>, ErrorCode(code): ErrorCode) {
    head(out, 8, kind::GOAWAY, 0, 0);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&code.to_be_bytes());
}

/// Writes a header block, in as many frames as it takes.
pub(super) fn headers(out: &mut Vec<u8>, id: u32, block: &[u8], is_all: bool) {
    let mut pieces = block.chunks(PAYLOAD_BYTES_MAX).peekable();
    let (mut frame_kind, mut flags) = (kind::HEADERS, if is_all { flag::END_STREAM } else { 0 });
    while let Some(piece) = pieces.next() {
        flags |= if pieces.peek().is_none() { flag::END_HEADERS } else { 0 };
        head(out, piece.len(), frame_kind, flags, id);
        out.extend_from_slice(piece);
        (frame_kind, flags) = (kind::CONTINUATION, 0);
    }
}
