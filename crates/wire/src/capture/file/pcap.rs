//! The pcap format (draft-ietf-opsawg-pcap).

use pcap_parser::pcap::{parse_pcap_frame, parse_pcap_frame_be, parse_pcap_header};

use super::input::Input;
use super::{CaptureError, FRAME_BYTES_MAX, FrameHeader, link_layer};
use crate::capture::LinkLayer;

const FILE_HEADER_BYTES: usize = 24;
const FRAME_HEADER_BYTES: usize = 16;

/// What the header of a file says of its frames.
#[derive(Debug)]
pub(super) struct Pcap {
    is_big_endian: bool,
    /// The unit of the second half of time stamps.
    ns_per_unit: u64,
    link: LinkLayer,
}

impl Pcap {
    pub(super) fn new(input: &mut Input) -> Result<Self, CaptureError> {
        let Some(bytes) = input.peek(FILE_HEADER_BYTES)? else { return Err(CaptureError::NotACapture) };
        let Ok((_, header)) = parse_pcap_header(bytes) else { return Err(CaptureError::NotACapture) };
        if header.is_modified_format() {
            return Err(CaptureError::NotACapture);
        }
        // The upper six bits tell of frame check sequences, which are beyond what IP headers say to be theirs.
        let link = link_layer(header.network.0 as u32 & 0x03ff_ffff)?;
        input.consume(FILE_HEADER_BYTES);
        let ns_per_unit = if header.is_nanosecond_precision() { 1 } else { 1_000 };
        Ok(Self { is_big_endian: header.is_bigendian(), ns_per_unit, link })
    }

    pub(super) fn next_frame(&self, input: &mut Input) -> Result<Option<FrameHeader>, CaptureError> {
        let offset = input.offset();
        let Some(header) = input.peek(FRAME_HEADER_BYTES)? else { return Ok(None) };
        let len = [header[8], header[9], header[10], header[11]];
        let len = if self.is_big_endian { u32::from_be_bytes(len) } else { u32::from_le_bytes(len) };
        if len as usize > FRAME_BYTES_MAX {
            return Err(CaptureError::BlockTooLong { offset, len });
        }
        let Some(bytes) = input.peek(FRAME_HEADER_BYTES + len as usize)? else { return Ok(None) };
        let parse = if self.is_big_endian { parse_pcap_frame_be } else { parse_pcap_frame };
        let Ok((_, frame)) = parse(bytes) else { return Err(input.damaged()) };
        let time_ns = u64::from(frame.ts_sec) * 1_000_000_000 + u64::from(frame.ts_usec) * self.ns_per_unit;
        let data = FRAME_HEADER_BYTES..bytes.len();
        input.consume(data.end);
        Ok(Some(FrameHeader { time_ns, interface: 0, is_outgoing: false, link: self.link, data }))
    }
}
