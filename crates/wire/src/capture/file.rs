//! Capture files: pcap and pcapng, plain or compressed by gzip or zstd.

mod input;
mod pcap;
mod pcapng;

use std::io::{self, Cursor, Read};
use std::ops::Range;

use flate2::read::MultiGzDecoder;
use pcap_parser::pcapng::SHB_MAGIC;

use self::input::Input;
use self::pcap::Pcap;
use self::pcapng::PcapNg;
use super::{Frame, LinkLayer};

/// The longest frame that is read, in bytes: tcpdump's largest snap length.
const FRAME_BYTES_MAX: usize = 256 << 10;
/// The longest block that is kept, in bytes: the longest frame with its header and options.
const BLOCK_BYTES_MAX: usize = FRAME_BYTES_MAX + (4 << 10);

/// Why a capture file cannot be read. Offsets are in bytes from the start of the capture, after decompression.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    #[error("cannot read the capture: {0}")]
    Read(#[from] io::Error),
    #[error("the capture is empty")]
    Empty,
    #[error("not a capture: neither pcap nor pcapng, or cut within its header")]
    NotACapture,
    /// By its LINKTYPE number (<https://www.tcpdump.org/linktypes.html>).
    #[error("cannot read frames of link type {0}: neither Ethernet, Linux cooked, loopback nor raw IP")]
    LinkType(u32),
    #[error("the capture is damaged at byte {offset}")]
    Damaged { offset: u64 },
    #[error("the capture is damaged at byte {offset}, or has a block of {len} bytes, which is too long")]
    BlockTooLong { offset: u64, len: u32 },
    #[error("the capture describes a section with too many interfaces at byte {offset}")]
    TooManyInterfaces { offset: u64 },
}

/// Reads the frames of a capture file one by one, in constant memory.
#[derive(Debug)]
pub struct CaptureReader {
    input: Input,
    format: Format,
}

#[derive(Debug)]
enum Format {
    Pcap(Pcap),
    PcapNg(PcapNg),
}

/// A frame, whose bytes are still in the input.
struct FrameHeader {
    time_ns: u64,
    interface: u32,
    /// Whether this machine sent it, if the format says so beside the frame.
    is_outgoing: bool,
    link: LinkLayer,
    /// Where its bytes are in the block that was read last.
    data: Range<usize>,
}

impl CaptureReader {
    /// Finds the compression and the format by their magic numbers (RFC 1952, RFC 8878,
    /// draft-ietf-opsawg-pcap, draft-ietf-opsawg-pcapng).
    ///
    /// # Errors
    /// When it cannot be read or has another format or, for pcap, a link type that is not supported.
    pub fn new(read: impl Read + Send + 'static) -> Result<Self, CaptureError> {
        let mut input = Input::new(decompress(read)?);
        let is_pcapng = input.peek(4)?.map(|magic| magic == SHB_MAGIC.to_le_bytes());
        if is_pcapng.is_none() && !input.is_cut() {
            return Err(CaptureError::Empty);
        }
        let format = if is_pcapng == Some(true) {
            Format::PcapNg(PcapNg::default())
        } else {
            Format::Pcap(Pcap::new(&mut input)?)
        };
        Ok(Self { input, format })
    }

    /// The next frame; `None` at the end.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged, or has a frame of a link type that is not supported. Nothing after that can
    /// be read.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, CaptureError> {
        let header = match &mut self.format {
            Format::Pcap(pcap) => pcap.next_frame(&mut self.input)?,
            Format::PcapNg(pcapng) => pcapng.next_frame(&mut self.input)?,
        };
        let Some(FrameHeader { time_ns, interface, is_outgoing, link, data }) = header else {
            return Ok(None);
        };
        let data = &self.input.last()[data];
        let is_outgoing = is_outgoing || is_outgoing_of_cooked(link, data);
        Ok(Some(Frame { time_ns, interface, is_outgoing, link, data }))
    }

    /// True if the file ended within a block, as that of a tcpdump that was killed. Every frame before was read.
    pub fn is_cut(&self) -> bool {
        self.input.is_cut()
    }

    /// Packets that the interfaces or the system dropped, as far as the file says so yet.
    pub fn dropped(&self) -> u64 {
        match &self.format {
            Format::Pcap(_) => 0,
            Format::PcapNg(pcapng) => pcapng.dropped(),
        }
    }
}

/// The capture behind gzip or zstd, if its first bytes are theirs.
fn decompress(mut read: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    let mut magic = Vec::new();
    read.by_ref().take(4).read_to_end(&mut magic)?;
    let is_gzip = magic.starts_with(&[0x1f, 0x8b]);
    let is_zstd = magic == [0x28, 0xb5, 0x2f, 0xfd];
    let whole = Cursor::new(magic).chain(read);
    Ok(if is_gzip {
        Box::new(MultiGzDecoder::new(whole))
    } else if is_zstd {
        // It refuses a window beyond 128 MiB, so its memory is bounded too.
        Box::new(zstd::Decoder::new(whole)?)
    } else {
        Box::new(whole)
    })
}

/// The link layer that a LINKTYPE number names.
fn link_layer(number: u32) -> Result<LinkLayer, CaptureError> {
    Ok(match number {
        0 | 108 => LinkLayer::Loopback,
        1 => LinkLayer::Ethernet,
        12 | 101 | 228 | 229 => LinkLayer::Ip,
        113 => LinkLayer::LinuxCooked,
        276 => LinkLayer::LinuxCooked2,
        number => return Err(CaptureError::LinkType(number)),
    })
}

/// Whether a packet type says that this machine sent the frame (LINKTYPE 113 and 276).
fn is_outgoing_of_cooked(link: LinkLayer, data: &[u8]) -> bool {
    const OUTGOING: u8 = 4;
    match link {
        LinkLayer::LinuxCooked => data.starts_with(&[0, OUTGOING]),
        LinkLayer::LinuxCooked2 => data.get(10) == Some(&OUTGOING),
        LinkLayer::Ethernet | LinkLayer::Ip | LinkLayer::Loopback => false,
    }
}
