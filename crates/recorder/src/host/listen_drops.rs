//! Connections that this program's own listening sockets dropped, which the kernel tells of each socket: `sock_diag(7)`.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};

// linux/netlink.h, linux/sock_diag.h, linux/inet_diag.h
const NLM_F_REQUEST_DUMP: u16 = 0x301;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET_DIAG_SKMEMINFO: u16 = 7;
/// `struct nlmsghdr`, `struct inet_diag_req_v2` and `struct inet_diag_msg`, in bytes.
const HEADER: usize = 16;
const REQUEST: usize = 56;
const MESSAGE: usize = 72;
/// The state of a listening socket (`TCP_LISTEN`).
const LISTEN: u32 = 10;
/// Where the number of dropped connections stands in the attribute `INET_DIAG_SKMEMINFO`.
const SK_MEMINFO_DROPS: usize = 8;

/// The drops of the sockets that listen at some addresses.
#[derive(Debug, Default)]
pub(super) struct ListenDrops {
    addrs: Vec<SocketAddr>,
    /// The drops of each socket at the last reading, by its inode.
    last: HashMap<u32, u32>,
    total: u64,
}

/// A listening socket of the network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listener {
    addr: SocketAddr,
    inode: u32,
    drops: u32,
}

impl ListenDrops {
    /// Counts drops of the sockets at these addresses from now on.
    pub(super) fn at(addrs: Vec<SocketAddr>) -> Self {
        let mut drops = Self { addrs, ..Self::default() };
        drops.read();
        drops.total = 0;
        drops
    }

    /// Drops since the beginning; what the kernel does not tell counts nothing.
    pub(super) fn read(&mut self) -> u64 {
        let mut listeners = Vec::new();
        for family in [AddressFamily::INET, AddressFamily::INET6] {
            let is_of_family = |addr: &SocketAddr| addr.is_ipv4() == (family == AddressFamily::INET);
            if self.addrs.iter().any(is_of_family) && dump(family, &mut listeners).is_err() {
                return self.total;
            }
        }
        listeners.retain(|listener| self.addrs.contains(&listener.addr));
        // Sockets come and go with the workers.
        self.last.retain(|inode, _| listeners.iter().any(|listener| listener.inode == *inode));
        for Listener { inode, drops, .. } in listeners {
            let before = self.last.insert(inode, drops).unwrap_or(0);
            self.total += u64::from(drops.wrapping_sub(before));
        }
        self.total
    }
}

/// The port and the inode of each listening TCP socket of this network namespace; none if the kernel does not tell.
pub fn listening_sockets() -> Vec<(u16, u64)> {
    let mut listeners = Vec::new();
    for family in [AddressFamily::INET, AddressFamily::INET6] {
        // What was told before an error is true.
        let _ = dump(family, &mut listeners);
    }
    listeners.iter().map(|listener| (listener.addr.port(), u64::from(listener.inode))).collect()
}

/// Adds the listening TCP sockets of a family.
fn dump(family: AddressFamily, listeners: &mut Vec<Listener>) -> Result<(), Errno> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket =
        rustix::net::socket_with(AddressFamily::NETLINK, SocketType::DGRAM, flags, Some(netlink::SOCK_DIAG))?;
    rustix::net::send(&socket, &request(family), SendFlags::empty())?;
    let mut buffer = vec![0; 32 * 1024];
    loop {
        let (len, _) = rustix::net::recv(&socket, &mut buffer[..], RecvFlags::empty())?;
        if !parse(&buffer[..len], listeners) {
            return Ok(());
        }
    }
}

/// Asks for all listening TCP sockets of a family, with their memory and drops.
fn request(family: AddressFamily) -> [u8; HEADER + REQUEST] {
    let mut bytes = [0; HEADER + REQUEST];
    bytes[..4].copy_from_slice(&((HEADER + REQUEST) as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&NLM_F_REQUEST_DUMP.to_ne_bytes());
    // sdiag_family, sdiag_protocol, idiag_ext, a byte of padding, idiag_states
    bytes[16] = family.as_raw() as u8;
    bytes[17] = 6;
    bytes[18] = 1 << (INET_DIAG_SKMEMINFO - 1);
    bytes[20..24].copy_from_slice(&(1_u32 << LISTEN).to_ne_bytes());
    bytes
}

/// Adds the listeners of some messages; false after the last one (`NLMSG_DONE`), an error, and what cannot be read.
fn parse(mut bytes: &[u8], listeners: &mut Vec<Listener>) -> bool {
    while let (Some(len), Some(kind)) = (u32_at(bytes, 0), u16_at(bytes, 4)) {
        let len = len as usize;
        if kind != SOCK_DIAG_BY_FAMILY || len < HEADER {
            return false;
        }
        let Some(message) = bytes.get(HEADER..len) else { return false };
        listeners.extend(listener(message));
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    true
}

/// From a `struct inet_diag_msg` and the attributes after it.
fn listener(message: &[u8]) -> Option<Listener> {
    let port = u16::from_be_bytes(*message.get(4..)?.first_chunk()?);
    let address: &[u8; 16] = message.get(8..)?.first_chunk()?;
    let ip = if u16::from(*message.first()?) == AddressFamily::INET.as_raw() {
        IpAddr::from(*address.first_chunk::<4>()?)
    } else {
        IpAddr::from(*address)
    };
    let inode = u32_at(message, 68)?;
    let mut attributes = message.get(MESSAGE..)?;
    loop {
        // struct rtattr: its length with this header, and its type.
        let (len, kind) = (usize::from(u16_at(attributes, 0)?), u16_at(attributes, 2)?);
        if kind == INET_DIAG_SKMEMINFO {
            let drops = u32_at(attributes.get(4..len)?, SK_MEMINFO_DROPS * 4)?;
            return Some(Listener { addr: SocketAddr::new(ip, port), inode, drops });
        }
        attributes = attributes.get(len.max(4).next_multiple_of(4)..)?;
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::Duration;

    use proptest::prelude::*;
    use socket2::{Domain, Socket, Type};

    use super::*;

    /// A listener with room for one connection.
    fn narrow(ip: IpAddr) -> (TcpListener, SocketAddr) {
        let socket = Socket::new(Domain::for_address((ip, 0).into()), Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::new(ip, 0).into()).unwrap();
        socket.listen(0).unwrap();
        let addr = socket.local_addr().unwrap().as_socket().unwrap();
        (socket.into(), addr)
    }

    /// Attempts that find the backlog full, which the kernel drops without an answer.
    fn overflow(addr: SocketAddr, attempts: u32) -> Vec<Socket> {
        let connect = |_| {
            let socket = Socket::new(Domain::for_address(addr), Type::STREAM, None).unwrap();
            let _ = socket.connect_timeout(&addr.into(), Duration::from_millis(50));
            socket
        };
        (0..attempts).map(connect).collect()
    }

    #[test]
    fn drops_of_own_sockets_are_counted_and_no_others() {
        for ip in ["127.0.0.1", "::1"] {
            let ip: IpAddr = ip.parse().unwrap();
            let ((_own, addr), (_strangers, strange)) = (narrow(ip), narrow(ip));
            let mut drops = ListenDrops::at(vec![addr]);
            let _held = (overflow(addr, 1), overflow(strange, 3));
            assert_eq!(drops.read(), 0, "one connection waits, and the stranger's drops are the stranger's");
            let _more = overflow(addr, 3);
            let n = drops.read();
            assert!(n >= 2, "{n} of the three that found it full, and perhaps repeated attempts");
            assert!(drops.read() >= n, "a total");
            // What was dropped before is no business of a run that begins.
            assert_eq!(ListenDrops::at(vec![addr]).total, 0);
        }
    }

    #[test]
    fn a_socket_that_is_gone_leaves_its_drops_behind() {
        let (own, addr) = narrow("127.0.0.1".parse().unwrap());
        let mut drops = ListenDrops::at(vec![addr]);
        let _held = overflow(addr, 4);
        let n = drops.read();
        drop(own);
        assert_eq!((drops.read(), drops.last.len()), (n, 0));
    }

    proptest! {
        #[test]
        fn bytes_that_are_no_answer_are_no_listeners(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut framed = Vec::new();
            framed.extend((HEADER as u32 + bytes.len() as u32).to_ne_bytes());
            framed.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
            framed.extend([0; 10]);
            framed.extend(&bytes);
            for bytes in [&bytes, &framed] {
                let mut listeners = Vec::new();
                parse(bytes, &mut listeners);
                prop_assert!(listeners.len() <= 1);
            }
        }
    }
}
