//! Frames as they were captured: from a file, or from a packet socket.

mod file;
mod filter;
#[expect(unsafe_code, reason = "it shares memory with the kernel")]
mod ring;
mod socket;

pub use file::{CaptureError, CaptureReader};
pub use socket::{PacketSocket, SocketError, SocketOptions};

/// One captured frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// When it was captured, in nanoseconds since 1970.
    pub time_ns: u64,
    /// The interface, by the number it has on this machine or in its section of the file.
    pub interface: u32,
    /// True if this machine sent it, as far as the capture says.
    pub is_outgoing: bool,
    pub link: LinkLayer,
    /// The frame from its link layer on, as far as the snap length goes.
    pub data: &'a [u8],
}

/// What a frame begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkLayer {
    Ethernet,
    /// An IP packet without a link layer.
    Ip,
    /// `LINUX_SLL`, of `tcpdump -i any`.
    LinuxCooked,
    LinuxCooked2,
    /// The address family in four bytes, of loopback interfaces of BSD.
    Loopback,
}
