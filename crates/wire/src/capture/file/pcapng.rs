//! The pcapng format (draft-ietf-opsawg-pcapng).

use pcap_parser::pcapng::{
    BOM_MAGIC, Block, EPB_MAGIC, EnhancedPacketBlock, IDB_MAGIC, ISB_MAGIC, InterfaceDescriptionBlock,
    InterfaceStatisticsBlock, OptionCode, SHB_MAGIC, SPB_MAGIC, SimplePacketBlock, UnknownBlock,
    parse_block_be, parse_block_le,
};

use super::input::Input;
use super::{BLOCK_BYTES_MAX, CaptureError, FrameHeader, link_layer};

/// Interfaces that a section may describe.
const INTERFACES_MAX: usize = 4_096;
/// The type of obsolete packet blocks, which pcap-parser does not know.
const OPB_MAGIC: u32 = 2;
/// Type, length and, if it begins a section, byte order of a block. No block is shorter.
const BLOCK_HEADER_BYTES: usize = 12;
/// Where the frame begins in an enhanced and an obsolete packet block, and in a simple one.
const FRAME_START: usize = 28;
const SIMPLE_FRAME_START: usize = 12;

/// What the file has said so far of its current section.
#[derive(Debug, Default)]
pub(super) struct PcapNg {
    is_big_endian: bool,
    interfaces: Vec<Interface>,
    /// The time of the last frame, in nanoseconds since 1970.
    time_ns: u64,
    /// Of all sections.
    dropped: u64,
}

#[derive(Debug)]
struct Interface {
    /// Its LINKTYPE. One that is not supported only matters if there are frames.
    link_type: u32,
    /// The unit of time stamps.
    units_per_second: u128,
    /// What is added to time stamps.
    offset_s: i64,
    /// 0 for no limit.
    snap_len: u32,
    /// Dropped since the capture began, as its last statistics say.
    dropped: u64,
}

/// A packet block: where its frame is, and what it says of it.
struct PacketBlock {
    interface: u32,
    /// In units of the interface. Simple packet blocks have none.
    time: Option<u64>,
    is_outgoing: bool,
    start: usize,
    len: u32,
}

impl PcapNg {
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(super) fn next_frame(&mut self, input: &mut Input) -> Result<Option<FrameHeader>, CaptureError> {
        while let Some(len) = self.find_block(input)? {
            let offset = input.offset();
            let Some(bytes) = input.peek(len)? else { return Ok(None) };
            let parse = if self.is_big_endian { parse_block_be } else { parse_block_le };
            // The block is whole: a parser that wants more has found lengths that contradict each other.
            let Ok((_, block)) = parse(bytes) else { return Err(CaptureError::Damaged { offset }) };
            let packet = self.read(&block, offset)?;
            input.consume(len);
            if let Some(packet) = packet {
                return self.frame(&packet, len, offset).map(Some);
            }
        }
        Ok(None)
    }

    /// The length of the next block that matters; passes over others, whatever their length.
    fn find_block(&mut self, input: &mut Input) -> Result<Option<usize>, CaptureError> {
        loop {
            let offset = input.offset();
            let Some(header) = input.peek(BLOCK_HEADER_BYTES)? else { return Ok(None) };
            // It reads the same in both byte orders.
            if u32_at(header, 0, false) == Some(SHB_MAGIC) {
                self.is_big_endian = match u32_at(header, 8, false) {
                    Some(BOM_MAGIC) => false,
                    Some(order) if order.swap_bytes() == BOM_MAGIC => true,
                    _ => return Err(CaptureError::Damaged { offset }),
                };
            }
            let field = |at: usize| u32_at(header, at, self.is_big_endian).unwrap_or(0);
            let (kind, len) = (field(0), field(4));
            if (len as usize) < BLOCK_HEADER_BYTES {
                return Err(CaptureError::Damaged { offset });
            }
            if ![SHB_MAGIC, IDB_MAGIC, EPB_MAGIC, SPB_MAGIC, ISB_MAGIC, OPB_MAGIC].contains(&kind) {
                input.skip(len)?;
            } else if len as usize > BLOCK_BYTES_MAX {
                return Err(CaptureError::BlockTooLong { offset, len });
            } else {
                return Ok(Some(len as usize));
            }
        }
    }

    /// Keeps what a block says of the section. Gives a packet, if it is one.
    fn read(&mut self, block: &Block<'_>, offset: u64) -> Result<Option<PacketBlock>, CaptureError> {
        match block {
            Block::SectionHeader(_) => self.interfaces.clear(),
            Block::InterfaceDescription(_) if self.interfaces.len() == INTERFACES_MAX => {
                return Err(CaptureError::TooManyInterfaces { offset });
            }
            Block::InterfaceDescription(block) => {
                self.interfaces.push(Interface::new(block, self.is_big_endian));
            }
            Block::InterfaceStatistics(block) => self.count_dropped(block),
            Block::EnhancedPacket(block) => {
                return Ok(Some(enhanced(block, self.is_big_endian)));
            }
            Block::SimplePacket(block) => return Ok(Some(self.simple(block))),
            Block::Unknown(block) => {
                let packet = obsolete(block, self.is_big_endian);
                return packet.map(Some).ok_or(CaptureError::Damaged { offset });
            }
            _ => {}
        }
        Ok(None)
    }

    fn frame(
        &mut self,
        packet: &PacketBlock,
        block_len: usize,
        offset: u64,
    ) -> Result<FrameHeader, CaptureError> {
        let end = packet.start + packet.len as usize;
        let interface = self.interfaces.get(packet.interface as usize);
        let Some(interface) = interface.filter(|_| end + size_of::<u32>() <= block_len) else {
            return Err(CaptureError::Damaged { offset });
        };
        // A frame without a time was captured with the one before it, as far as anybody knows.
        self.time_ns = packet.time.map_or(self.time_ns, |time| interface.time_ns(time));
        Ok(FrameHeader {
            time_ns: self.time_ns,
            interface: packet.interface,
            is_outgoing: packet.is_outgoing,
            link: link_layer(interface.link_type)?,
            data: packet.start..end,
        })
    }

    /// Statistics are totals since the capture began, and may come again and again.
    fn count_dropped(&mut self, block: &InterfaceStatisticsBlock<'_>) {
        let Some(interface) = self.interfaces.get_mut(block.if_id as usize) else { return };
        // pcap-parser takes every option for little endian.
        let native = |n: u64| if self.is_big_endian { n.swap_bytes() } else { n };
        let values = [block.isb_ifdrop(), block.isb_osdrop()];
        let dropped = values.into_iter().flatten().flatten().map(native).fold(0, u64::saturating_add);
        self.dropped = self.dropped.saturating_add(dropped.saturating_sub(interface.dropped));
        interface.dropped = interface.dropped.max(dropped);
    }

    /// Belongs to the first interface, whose snap length tells its length.
    fn simple(&self, block: &SimplePacketBlock<'_>) -> PacketBlock {
        let snap_len = self.interfaces.first().map_or(0, |interface| interface.snap_len);
        let len = block.origlen.min(block.data.len() as u32);
        let len = if snap_len > 0 { len.min(snap_len) } else { len };
        PacketBlock { interface: 0, time: None, is_outgoing: false, start: SIMPLE_FRAME_START, len }
    }
}

impl Interface {
    fn new(block: &InterfaceDescriptionBlock<'_>, is_big_endian: bool) -> Self {
        let exponent = u32::from(block.if_tsresol & 0x7f);
        let base: u128 = if block.if_tsresol & 0x80 == 0 { 10 } else { 2 };
        // pcap-parser takes every option for little endian.
        let offset = block.if_tsoffset;
        Self {
            link_type: block.linktype.0 as u32,
            units_per_second: base.checked_pow(exponent).unwrap_or(u128::MAX),
            offset_s: if is_big_endian { offset.swap_bytes() } else { offset },
            snap_len: block.snaplen,
            dropped: 0,
        }
    }

    /// In nanoseconds since 1970, as far as they can be told in 64 bits.
    fn time_ns(&self, units: u64) -> u64 {
        let since_offset_ns = u128::from(units) * 1_000_000_000 / self.units_per_second;
        let time_ns = since_offset_ns as i128 + i128::from(self.offset_s) * 1_000_000_000;
        time_ns.clamp(0, i128::from(u64::MAX)) as u64
    }
}

fn enhanced(block: &EnhancedPacketBlock<'_>, is_big_endian: bool) -> PacketBlock {
    /// `epb_flags`: its lowest two bits are the direction, 2 is outbound.
    const FLAGS: OptionCode = OptionCode(2);
    let flags = block.options.iter().find(|option| option.code == FLAGS);
    let flags = flags.and_then(|option| u32_at(option.value(), 0, is_big_endian));
    PacketBlock {
        interface: block.if_id,
        time: Some(u64::from(block.ts_high) << 32 | u64::from(block.ts_low)),
        is_outgoing: flags.is_some_and(|flags| flags & 3 == 2),
        start: FRAME_START,
        len: block.caplen,
    }
}

/// Like an enhanced one, but with a count of drops in the upper half of the interface.
fn obsolete(block: &UnknownBlock<'_>, is_big_endian: bool) -> Option<PacketBlock> {
    let field = |at: usize| u32_at(block.data, at, is_big_endian);
    let interface = if is_big_endian { field(0)? >> 16 } else { field(0)? & 0xffff };
    let time = Some(u64::from(field(4)?) << 32 | u64::from(field(8)?));
    Some(PacketBlock { interface, time, is_outgoing: false, start: FRAME_START, len: field(12)? })
}

fn u32_at(bytes: &[u8], at: usize, is_big_endian: bool) -> Option<u32> {
    let bytes = *bytes.get(at..)?.first_chunk()?;
    Some(if is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
}
