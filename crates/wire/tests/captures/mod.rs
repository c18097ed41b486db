//! Writes capture files, byte by byte.

#![allow(dead_code, unreachable_pub, reason = "each test and fuzz target uses what it needs")]

#[derive(Clone, Copy, Debug)]
pub enum Order {
    Little,
    Big,
}

impl Order {
    pub fn u16(self, n: u16) -> [u8; 2] {
        match self {
            Self::Little => n.to_le_bytes(),
            Self::Big => n.to_be_bytes(),
        }
    }

    pub fn u32(self, n: u32) -> [u8; 4] {
        match self {
            Self::Little => n.to_le_bytes(),
            Self::Big => n.to_be_bytes(),
        }
    }

    pub fn u64(self, n: u64) -> [u8; 8] {
        match self {
            Self::Little => n.to_le_bytes(),
            Self::Big => n.to_be_bytes(),
        }
    }
}

pub const MICROSECONDS: u32 = 0xa1b2_c3d4;
pub const NANOSECONDS: u32 = 0xa1b2_3c4d;

/// A pcap file of frames: seconds, then microseconds or nanoseconds, and bytes.
pub fn pcap(order: Order, magic: u32, link: u32, frames: &[(u32, u32, &[u8])]) -> Vec<u8> {
    let words = [magic, 0, 0, 0, 262_144, link].map(|n| order.u32(n));
    let mut file = words.concat();
    file[4..8].copy_from_slice(&[order.u16(2), order.u16(4)].concat());
    for (seconds, rest, bytes) in frames {
        let len = bytes.len() as u32;
        file.extend([*seconds, *rest, len, len].map(|n| order.u32(n)).concat());
        file.extend(*bytes);
    }
    file
}

/// A pcapng file of whatever blocks.
#[derive(Clone, Debug)]
pub struct PcapNg {
    order: Order,
    pub bytes: Vec<u8>,
}

impl PcapNg {
    pub fn new(order: Order) -> Self {
        Self { order, bytes: Vec::new() }.section(order)
    }

    pub fn section(mut self, order: Order) -> Self {
        self.order = order;
        let lengths = order.u64(u64::MAX);
        let version = [order.u16(1), order.u16(0)].concat();
        self.block(0x0a0d_0d0a, &[&order.u32(0x1a2b_3c4d)[..], &version, &lengths].concat())
    }

    pub fn block(mut self, kind: u32, body: &[u8]) -> Self {
        let body = padded(body);
        let len = self.order.u32(body.len() as u32 + 12);
        self.bytes.extend(self.order.u32(kind));
        self.bytes.extend(len);
        self.bytes.extend(body);
        self.bytes.extend(len);
        self
    }

    pub fn interface(self, link: u16, snap_len: u32, options: &[u8]) -> Self {
        let body = [&self.order.u16(link)[..], &[0, 0], &self.order.u32(snap_len), options].concat();
        self.block(1, &body)
    }

    /// An enhanced packet block.
    pub fn packet(self, interface: u32, time: u64, bytes: &[u8], options: &[u8]) -> Self {
        let len = bytes.len() as u32;
        let words = [interface, (time >> 32) as u32, time as u32, len, len].map(|n| self.order.u32(n));
        let body = [&words.concat(), &padded(bytes), options].concat();
        self.block(6, &body)
    }

    /// A simple packet block of a frame that was longer on the wire.
    pub fn simple(self, wire_len: u32, bytes: &[u8]) -> Self {
        let body = [&self.order.u32(wire_len)[..], bytes].concat();
        self.block(3, &body)
    }

    pub fn obsolete(self, interface: u16, drops: u16, time: u64, bytes: &[u8]) -> Self {
        let len = bytes.len() as u32;
        let words = [(time >> 32) as u32, time as u32, len, len].map(|n| self.order.u32(n));
        let numbers = [self.order.u16(interface), self.order.u16(drops)].concat();
        let body = [&numbers, &words.concat(), bytes].concat();
        self.block(2, &body)
    }

    pub fn statistics(self, interface: u32, if_drop: u64, os_drop: u64) -> Self {
        let words = [interface, 0, 0].map(|n| self.order.u32(n));
        let if_drop = self.option(5, &self.order.u64(if_drop));
        let os_drop = self.option(7, &self.order.u64(os_drop));
        let body = [words.concat(), if_drop, os_drop, self.option(0, &[])].concat();
        self.block(5, &body)
    }

    pub fn option(&self, code: u16, value: &[u8]) -> Vec<u8> {
        [&self.order.u16(code)[..], &self.order.u16(value.len() as u16), &padded(value)].concat()
    }

    /// `epb_flags`.
    pub fn flags(&self, flags: u32) -> Vec<u8> {
        self.option(2, &self.order.u32(flags))
    }
}

fn padded(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}
