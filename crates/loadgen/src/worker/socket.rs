//! The socket of a connection: TCP, or a unix socket.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr};
use std::path::PathBuf;

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use socket2::{Domain, Protocol, Type};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[derive(Debug)]
pub(crate) enum ClientSocket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl ClientSocket {
    /// Begins to connect; `from` binds a TCP socket.
    pub(crate) fn open(to: &Address, from: Option<Ipv4Addr>) -> io::Result<Self> {
        match to {
            Address::Tcp(to) => begin_tcp(*to, from).map(TcpStream::from_std).map(Self::Tcp),
            Address::Unix(path) => UnixStream::connect(path).map(Self::Unix),
        }
    }

    /// True once the socket is connected.
    pub(crate) fn is_connected(&self) -> io::Result<bool> {
        let (connected, error) = match self {
            Self::Tcp(tcp) => (tcp.peer_addr().map(drop), tcp.take_error()),
            Self::Unix(unix) => (unix.peer_addr().map(drop), unix.take_error()),
        };
        match connected {
            Ok(()) => Ok(true),
            Err(not_yet) if not_yet.kind() == ErrorKind::NotConnected => error?.map_or(Ok(false), Err),
            Err(broken) => Err(broken),
        }
    }

    /// Its local address; a Unix socket counts as loopback.
    pub(crate) fn local_ip(&self) -> Option<IpAddr> {
        match self {
            Self::Tcp(tcp) => tcp.local_addr().ok().map(|address| address.ip().to_canonical()),
            Self::Unix(_) => Some(Ipv4Addr::LOCALHOST.into()),
        }
    }

    /// Shuts down the writing side. It fails if the peer has closed, which makes no difference.
    pub(crate) fn shut_writing(&self) {
        let _ = match self {
            Self::Tcp(tcp) => tcp.shutdown(Shutdown::Write),
            Self::Unix(unix) => unix.shutdown(Shutdown::Write),
        };
    }
}

/// Begins to connect over TCP, without waiting for it.
pub(crate) fn begin_tcp(to: SocketAddr, from: Option<Ipv4Addr>) -> io::Result<std::net::TcpStream> {
    let socket =
        socket2::Socket::new(Domain::for_address(to), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
    socket.set_tcp_nodelay(true)?;
    if let Some(from) = from {
        // The port is chosen at connect, where only the pair of ends must be unique: otherwise the ports of
        // an address run out under many short connections.
        nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::IpBindAddressNoPort, &true)?;
        socket.bind(&SocketAddr::from((from, 0)).into())?;
    }
    match socket.connect(&to.into()) {
        Err(error) if error.raw_os_error() != Some(nix::errno::Errno::EINPROGRESS as i32) => Err(error),
        _ => Ok(socket.into()),
    }
}

impl Read for ClientSocket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(tcp) => tcp.read(buffer),
            Self::Unix(unix) => unix.read(buffer),
        }
    }
}

impl Write for ClientSocket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(tcp) => tcp.write(bytes),
            Self::Unix(unix) => unix.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Source for ClientSocket {
    fn register(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        match self {
            Self::Tcp(tcp) => tcp.register(registry, token, interests),
            Self::Unix(unix) => unix.register(registry, token, interests),
        }
    }

    fn reregister(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        match self {
            Self::Tcp(tcp) => tcp.reregister(registry, token, interests),
            Self::Unix(unix) => unix.reregister(registry, token, interests),
        }
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        match self {
            Self::Tcp(tcp) => tcp.deregister(registry),
            Self::Unix(unix) => unix.deregister(registry),
        }
    }
}
