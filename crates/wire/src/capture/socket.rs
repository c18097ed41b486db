//! A packet socket: what goes through the interfaces of this machine, as it goes (packet(7)).

use std::io;
use std::mem::{offset_of, size_of};
use std::time::Duration;

use nix::libc;
use nix::net::if_::if_nametoindex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use socket2::{Domain, Socket, Type};

use super::filter::{self, PORTS_MAX};
use super::ring::{self, Ring};
use super::{Frame, LinkLayer};

/// What a packet socket captures.
#[derive(Clone, Debug, Default)]
pub struct SocketOptions {
    /// The interface by its name; all of them if there is none.
    pub interface: Option<String>,
    /// Ports, of either end; all of them if there are none. At most 256.
    pub ports: Vec<u16>,
}

/// Why there is no packet socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    #[error(
        "cannot open a packet socket without CAP_NET_RAW: run `sudo setcap cap_net_raw+ep {program}`, \
         or start tlsdash-wire.service"
    )]
    NotPermitted { program: String },
    #[error("cannot capture on {name}: {source}")]
    Interface { name: String, source: io::Error },
    #[error("cannot capture {count} ports: at most {PORTS_MAX}, or all")]
    TooManyPorts { count: usize },
    #[error("cannot open a packet socket: {0}")]
    Open(#[from] io::Error),
}

/// Reads IP packets as they arrive and leave, without their link layer: TCP, and UDP of port 443.
#[derive(Debug)]
pub struct PacketSocket {
    socket: Socket,
    ring: Ring,
    dropped: u64,
}

impl PacketSocket {
    /// Captures from now on.
    ///
    /// # Errors
    /// Without `CAP_NET_RAW`, without an interface of that name, with too many ports, and when the kernel refuses.
    pub fn open(options: &SocketOptions) -> Result<Self, SocketError> {
        let count = options.ports.len();
        if count > PORTS_MAX {
            return Err(SocketError::TooManyPorts { count });
        }
        let interface = options.interface.as_deref().map(interface_index).transpose()?;
        // Without a protocol it captures nothing before it is bound.
        let socket = Socket::new(Domain::PACKET, Type::DGRAM, None).map_err(refusal)?;
        socket.attach_filter(&filter::tls(&options.ports))?;
        let ring = Ring::new(&socket)?;
        ring::bind(&socket, interface.unwrap_or(0))?;
        Ok(Self { socket, ring, dropped: 0 })
    }

    /// Reads packets that have been captured, or waits for them. Gives their number; 0 if there was none in time. A packet
    /// may wait for others in the kernel for some 20 ms: with more patience, 0 means that all were read.
    ///
    /// # Errors
    /// When the kernel gives one.
    pub fn read(&mut self, patience: Duration, each: &mut dyn FnMut(Frame<'_>)) -> io::Result<usize> {
        let mut count = 0;
        let mut read = |block: &[u8]| {
            for frame in frames(block) {
                count += 1;
                each(frame);
            }
        };
        if !self.ring.read_block(&mut read) {
            self.wait(patience)?;
            self.ring.read_block(read);
        }
        self.dropped += u64::from(ring::take_dropped(&self.socket)?);
        Ok(count)
    }

    /// Waits for packets.
    fn wait(&self, patience: Duration) -> io::Result<()> {
        let timeout = Timespec::try_from(patience).map_err(io::Error::other)?;
        let mut polled = [PollFd::new(&self.socket, PollFlags::IN)];
        match poll(&mut polled, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if polled[0].revents().contains(PollFlags::ERR)
            && let Some(error) = self.socket.take_error()?
            // The interface may come up again.
            && error.kind() != io::ErrorKind::NetworkDown
        {
            return Err(error);
        }
        Ok(())
    }

    /// Packets that found no room in the ring.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// The frames of a block that the kernel filled.
fn frames(block: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    const HEADER: usize = offset_of!(libc::tpacket_block_desc, hdr);
    let number = |field| u32_at(block, HEADER + field).unwrap_or(0);
    let count = number(offset_of!(libc::tpacket_hdr_v1, num_pkts));
    let mut next = number(offset_of!(libc::tpacket_hdr_v1, offset_to_first_pkt)) as usize;
    (0..count).map_while(move |_| {
        let frame = block.get(next..)?;
        next += u32_at(frame, offset_of!(libc::tpacket3_hdr, tp_next_offset))? as usize;
        parse(frame)
    })
}

/// The frame at the start of these bytes: a header, the address of the interface, then the packet.
fn parse(bytes: &[u8]) -> Option<Frame<'_>> {
    const ADDRESS: usize = size_of::<libc::tpacket3_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);
    let number = |field| u32_at(bytes, field);
    let seconds = number(offset_of!(libc::tpacket3_hdr, tp_sec))?;
    let nanoseconds = number(offset_of!(libc::tpacket3_hdr, tp_nsec))?;
    let start = u16::from_ne_bytes(*bytes.get(offset_of!(libc::tpacket3_hdr, tp_net)..)?.first_chunk()?);
    let len = number(offset_of!(libc::tpacket3_hdr, tp_snaplen))?;
    Some(Frame {
        time_ns: u64::from(seconds) * 1_000_000_000 + u64::from(nanoseconds),
        interface: number(ADDRESS + offset_of!(libc::sockaddr_ll, sll_ifindex))?,
        is_outgoing: bytes.get(ADDRESS + offset_of!(libc::sockaddr_ll, sll_pkttype))?
            == &libc::PACKET_OUTGOING,
        link: LinkLayer::Ip,
        data: bytes.get(start.into()..)?.get(..len as usize)?,
    })
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn interface_index(name: &str) -> Result<u32, SocketError> {
    if_nametoindex(name)
        .map_err(|error| SocketError::Interface { name: name.to_owned(), source: error.into() })
}

fn refusal(error: io::Error) -> SocketError {
    if error.kind() != io::ErrorKind::PermissionDenied {
        return SocketError::Open(error);
    }
    let program =
        std::env::current_exe().map_or_else(|_| "tlsdash".to_owned(), |path| path.display().to_string());
    SocketError::NotPermitted { program }
}
