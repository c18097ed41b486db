//! A packet socket: what goes through the interfaces of this machine, as it goes (packet(7)).

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use nix::cmsg_space;
use nix::errno::Errno;
use nix::libc;
use nix::net::if_::if_nametoindex;
use nix::sys::socket::{
    ControlMessageOwned, LinkAddr, MsgFlags, MultiHeaders, RecvMsg, recvmmsg, setsockopt, sockopt,
};
use nix::sys::time::TimeSpec;
use socket2::{Domain, Protocol, Socket, Type};

use super::filter::{self, FRAME_BYTES_MAX, PORTS_MAX};
use super::{Frame, LinkLayer};

/// Frames that one system call reads at most. Their buffers have 4 MiB.
const BATCH_FRAMES: usize = 64;
/// How long packets gather once all have been read, with a large buffer and with a small one. Waking up for a few of them
/// costs more than to read them, and their time is the kernel's.
const GATHERING: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(2)];
/// A buffer from which on packets may gather for long: it holds some thousands, as the kernel counts their memory.
const LARGE_BUFFER_BYTES: usize = 8 << 20;
/// What waits in the kernel at most, in bytes, where the kernel lets us ask for so much.
const RECEIVE_BUFFER_BYTES: usize = 32 << 20;

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
    buffers: Box<[u8]>,
    /// How long packets gather once all have been read.
    gathering: Duration,
    /// How long a read waits, as the socket was told last.
    patience: Duration,
    /// The last read gave frames, and has left none.
    is_read_empty: bool,
    dropped: u64,
    /// The kernel's count of drops, which wraps around.
    dropped_last: Option<u32>,
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
        let all_protocols = Protocol::from(i32::from((libc::ETH_P_ALL as u16).to_be()));
        let socket = Socket::new(Domain::PACKET, Type::DGRAM, Some(all_protocols)).map_err(refusal)?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true).map_err(io::Error::from)?;
        setsockopt(&socket, sockopt::RxqOvfl, &1).map_err(io::Error::from)?;
        if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER_BYTES).is_err() {
            // Without CAP_NET_ADMIN, as much as net.core.rmem_max allows.
            socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES)?;
        }
        // The socket has captured everything since it was opened: nothing more is let in until that is gone.
        socket.attach_filter(&filter::nothing())?;
        drain(&socket)?;
        socket.attach_filter(&filter::tls(interface, &options.ports))?;
        let is_large = socket.recv_buffer_size()? >= LARGE_BUFFER_BYTES;
        let gathering = GATHERING[usize::from(!is_large)];
        let buffers = vec![0; BATCH_FRAMES * FRAME_BYTES_MAX].into_boxed_slice();
        Ok(Self {
            socket,
            gathering,
            buffers,
            patience: Duration::ZERO,
            is_read_empty: false,
            dropped: 0,
            dropped_last: None,
        })
    }

    /// Reads what has been captured, or waits for it. Gives the number of frames; 0 if there was none in time.
    ///
    /// # Errors
    /// When the kernel gives one.
    pub fn read(&mut self, patience: Duration, each: &mut dyn FnMut(Frame<'_>)) -> io::Result<usize> {
        let flags = if patience.is_zero() { MsgFlags::MSG_DONTWAIT } else { MsgFlags::MSG_WAITFORONE };
        if patience != self.patience && !patience.is_zero() {
            self.socket.set_read_timeout(Some(patience))?;
            self.patience = patience;
        }
        if std::mem::take(&mut self.is_read_empty) {
            std::thread::sleep(self.gathering.min(patience));
        }
        let mut slices: Vec<_> =
            self.buffers.chunks_exact_mut(FRAME_BYTES_MAX).map(|buffer| [IoSliceMut::new(buffer)]).collect();
        // Not kept: the kernel writes lengths into them, which nix leaves there for the next call.
        let mut headers = MultiHeaders::preallocate(BATCH_FRAMES, Some(cmsg_space!(TimeSpec, u32)));
        let messages = match recvmmsg(self.socket.as_raw_fd(), &mut headers, slices.iter_mut(), flags, None) {
            Ok(messages) => messages,
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(0),
            Err(error) => return Err(error.into()),
        };
        let mut count = 0;
        for message in messages {
            count += 1;
            let (frame, dropped) = parse(&message)?;
            // What was dropped before the filter was attached is no loss.
            let before = self.dropped_last.unwrap_or(dropped);
            self.dropped += u64::from(dropped.wrapping_sub(before));
            self.dropped_last = Some(dropped);
            each(frame);
        }
        self.is_read_empty = count < BATCH_FRAMES;
        Ok(count)
    }

    /// Packets that found no room in the receive buffer. The kernel tells of them with the next packet that finds some.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// A captured packet, and how many the kernel has dropped before since the socket was opened.
fn parse<'a>(message: &RecvMsg<'_, 'a, LinkAddr>) -> io::Result<(Frame<'a>, u32)> {
    let (mut time_ns, mut dropped) = (0, 0);
    for control in message.cmsgs()? {
        match control {
            ControlMessageOwned::ScmTimestampns(time) => {
                time_ns = time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64;
            }
            ControlMessageOwned::RxqOvfl(count) => dropped = count,
            _ => {}
        }
    }
    let frame = Frame {
        time_ns,
        interface: message.address.map_or(0, |address| address.ifindex() as u32),
        is_outgoing: message.address.is_some_and(|address| address.pkttype() == libc::PACKET_OUTGOING),
        link: LinkLayer::Ip,
        data: message.iovs().next().unwrap_or_default(),
    };
    Ok((frame, dropped))
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

/// Reads away whatever is in the receive buffer.
fn drain(socket: &Socket) -> io::Result<()> {
    let mut start = [MaybeUninit::uninit(); 1];
    loop {
        match socket.recv_with_flags(&mut start, libc::MSG_DONTWAIT) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
