//! Listen addresses, and their sockets.
//!
//! Every worker has its own socket on the same port (`SO_REUSEPORT`), so the kernel spreads connections over them
//! without a shared accept queue. The same option would let a second proxy of the same user silently take a part of
//! the connections; [`bind`] refuses that.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener};
use std::str::FromStr;
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};

use crate::io::socket_options;

/// Connections that wait to be accepted on each socket; the kernel caps it at `net.core.somaxconn`.
const BACKLOG: i32 = 4096;
/// Unsent bytes that the kernel holds for a client, beyond those in flight (`TCP_NOTSENT_LOWAT`). Without this limit a
/// client that does not read makes it hold megabytes. The kernel asks for more when half of it is left. Half as much
/// cost a fifth more CPU time with large bodies.
const UNSENT_BYTES_MAX: u32 = 256 << 10;
/// How long to wait for another proxy that is binding the same port at this moment.
const TURN_PATIENCE: Duration = Duration::from_secs(1);

/// An address to listen at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenAddr {
    /// Every IPv6 and IPv4 address of the host, or the IPv4 addresses without IPv6: `:8443`.
    DualStack(u16),
    /// One address: `127.0.0.1:8443`, `[::1]:8443`.
    Addr(SocketAddr),
}

/// The text is not an address to listen at.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an address to listen on; expected :8443, 127.0.0.1:8443 or [::1]:8443")]
pub struct ParseListenAddrError {
    text: String,
}

#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Another process listens there already, maybe another tlsdash.
    #[error("cannot listen on {0}: the port is in use, maybe by another tlsdash (see: ss -ltnp)")]
    InUse(ListenAddr),
    #[error("cannot listen on an inherited socket: {0} (see: systemctl status of its socket unit)")]
    Inherited(io::Error),
    /// Only a privileged process may listen on the port.
    #[error(
        "cannot listen on {0}: permission denied; choose a port from 1024, or grant CAP_NET_BIND_SERVICE"
    )]
    Privileged(ListenAddr),
    /// The host does not have the address.
    #[error("cannot listen on {0}: this host does not have the address (see: ip address)")]
    NotOfHost(ListenAddr),
    #[error("cannot listen on {addr}: {source}")]
    Refused { addr: ListenAddr, source: io::Error },
}

impl fmt::Display for ListenAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DualStack(port) => write!(f, ":{port}"),
            Self::Addr(addr) => addr.fmt(f),
        }
    }
}

impl FromStr for ListenAddr {
    type Err = ParseListenAddrError;

    fn from_str(text: &str) -> Result<Self, ParseListenAddrError> {
        let parsed = match text.strip_prefix(':') {
            Some(port) if port.bytes().all(|b| b.is_ascii_digit()) => port.parse().ok().map(Self::DualStack),
            _ => text.parse().ok().map(Self::Addr),
        };
        parsed.ok_or_else(|| ParseListenAddrError { text: text.to_owned() })
    }
}

/// The sockets behind one [`ListenAddr`].
#[derive(Debug)]
pub(crate) struct BoundListeners {
    /// Where they listen; the port that was chosen if 0 was asked for.
    pub(crate) addr: SocketAddr,
    /// One listening, non-blocking socket for each worker.
    pub(crate) listeners: Vec<TcpListener>,
}

/// Where the listening sockets of a proxy come from.
#[derive(Debug, Default)]
pub enum ListenerSource {
    /// The proxy binds the addresses of its configuration.
    #[default]
    Bind,
    /// A service manager, which keeps them open: a drain leaves the waiting connections in their backlogs to it. They
    /// serve all workers, instead of the addresses of the configuration.
    ServiceManager(Vec<TcpListener>),
    /// The process that this one replaces.
    Predecessor(ListenerSets),
}

impl From<Vec<TcpListener>> for ListenerSource {
    /// The sockets of a service manager, or [`Self::Bind`] if there are none.
    fn from(listeners: Vec<TcpListener>) -> Self {
        if listeners.is_empty() { Self::Bind } else { Self::ServiceManager(listeners) }
    }
}

/// The listening sockets of a running proxy, for the process that replaces it.
#[derive(Debug)]
pub struct ListenerSets {
    /// The addresses as the configuration has them.
    pub listen: Vec<ListenAddr>,
    /// The sockets of each worker, one for each address.
    pub sets: Vec<Vec<TcpListener>>,
    /// Whether they come from a service manager: then there is one set for all workers.
    pub is_managed: bool,
}

impl ListenerSets {
    /// The sockets at one of its addresses; none if it does not have the address.
    fn take(&mut self, addr: ListenAddr) -> Vec<TcpListener> {
        let Some(index) = self.listen.iter().position(|other| *other == addr) else { return Vec::new() };
        self.listen.remove(index);
        self.sets.iter_mut().filter(|set| index < set.len()).map(|set| set.remove(index)).collect()
    }
}

/// Listens at `addr` with the sockets that another process had there, and at least `workers` of them; binds it if
/// there are none.
pub(crate) fn take_over(
    addr: ListenAddr,
    workers: usize,
    former: &mut ListenerSets,
) -> Result<BoundListeners, ListenError> {
    let listeners = former.take(addr).into_iter().map(inherit).collect::<io::Result<Vec<_>>>();
    let listeners = listeners.map_err(ListenError::Inherited)?;
    let Some(bound) = listeners.first().map(|(addr, _)| *addr) else { return bind(addr, workers) };
    let mut listeners: Vec<_> = listeners.into_iter().map(|(_, listener)| listener).collect();
    while listeners.len() < workers {
        // The kernel lets only the user who created the first socket add another. Root may have created it.
        let another = another(bound).or_else(|_| listeners[0].try_clone());
        listeners.push(another.map_err(ListenError::Inherited)?);
    }
    Ok(BoundListeners { addr: bound, listeners })
}

/// Another socket in addition to those of this process at `addr`.
pub(crate) fn another(addr: SocketAddr) -> io::Result<TcpListener> {
    listener(addr)
}

/// Prepares a listening socket that was inherited: it serves all workers.
pub(crate) fn inherit(listener: TcpListener) -> io::Result<(SocketAddr, TcpListener)> {
    let socket = Socket::from(listener);
    socket.set_tcp_nodelay(true)?;
    socket.set_nonblocking(true)?;
    socket.set_tcp_keepalive(&socket_options::keepalive())?;
    socket.set_tcp_notsent_lowat(UNSENT_BYTES_MAX)?;
    let addr = socket.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
    Ok((addr, socket.into()))
}

/// Binds a socket for each worker, unless another process listens there already.
pub(crate) fn bind(addr: ListenAddr, workers: usize) -> Result<BoundListeners, ListenError> {
    bind_with(addr, |addr| bind_each(addr, workers))
}

/// Binds one socket, unless another process listens there already.
///
/// # Errors
/// If the kernel refuses, or another process listens there.
pub fn bind_one(addr: ListenAddr) -> Result<TcpListener, ListenError> {
    bind_with(addr, |addr| bind_each(addr, 1)?.listeners.pop().ok_or_else(|| io::ErrorKind::NotFound.into()))
}

fn bind_with<T>(addr: ListenAddr, bind: impl Fn(SocketAddr) -> io::Result<T>) -> Result<T, ListenError> {
    let explain = |source: io::Error| match source.kind() {
        io::ErrorKind::AddrInUse => ListenError::InUse(addr),
        io::ErrorKind::PermissionDenied => ListenError::Privileged(addr),
        io::ErrorKind::AddrNotAvailable => ListenError::NotOfHost(addr),
        _ => ListenError::Refused { addr, source },
    };
    match addr {
        ListenAddr::Addr(addr) => bind(addr),
        ListenAddr::DualStack(port) => match bind((Ipv6Addr::UNSPECIFIED, port).into()) {
            Err(error) if is_without_ipv6(&error) => bind((Ipv4Addr::UNSPECIFIED, port).into()),
            bound => bound,
        },
    }
    .map_err(explain)
}

fn is_without_ipv6(error: &io::Error) -> bool {
    use rustix::io::Errno;
    matches!(Errno::from_io_error(error), Some(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL))
}

fn bind_each(addr: SocketAddr, workers: usize) -> io::Result<BoundListeners> {
    let _lock = BindLock::take(addr.port());
    // A socket without SO_REUSEPORT is refused if any process listens on this address or on one that overlaps with it.
    // With the option, the kernel would accept ours beside those of another process of the same user. The probe also
    // holds the port that the kernel chose for 0 while the others bind to it.
    let probe = socket(addr)?;
    probe.bind(&addr.into())?;
    let addr = probe.local_addr()?.as_socket().ok_or(io::ErrorKind::AddrNotAvailable)?;
    let listeners = (0..workers).map(|_| listener(addr)).collect::<io::Result<_>>()?;
    Ok(BoundListeners { addr, listeners })
}

fn listener(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = socket(addr)?;
    socket.set_reuse_port(true)?;
    // Inherited by accepted connections, which saves a system call for each.
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_keepalive(&socket_options::keepalive())?;
    socket.set_tcp_notsent_lowat(UNSENT_BYTES_MAX)?;
    socket.set_nonblocking(true)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

fn socket(addr: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, None)?;
    // Allows a restarted proxy to bind while connections of the last one are in TIME_WAIT.
    socket.set_reuse_address(true)?;
    if addr.is_ipv6() && addr.ip().is_unspecified() {
        socket.set_only_v6(false)?;
    }
    Ok(socket)
}

/// The right to bind a port. If several proxies start at once on one port, each looks for the others only after the
/// earlier ones have begun to listen. The lock is an abstract Unix socket named after user and port, because only
/// processes of one user can share a port.
struct BindLock {
    _held: Option<UnixListener>,
}

impl BindLock {
    /// Waits for the lock for a limited time: a process that squats on the name must not keep the proxy from starting.
    fn take(port: u16) -> Self {
        let name = format!("tlsdash-bind-{}-{port}", rustix::process::geteuid().as_raw());
        let deadline = Instant::now() + TURN_PATIENCE;
        loop {
            match UnixAddr::from_abstract_name(&name).and_then(|addr| UnixListener::bind_addr(&addr)) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                held => return Self { _held: held.ok() },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANY_PORT: ListenAddr =
        ListenAddr::Addr(SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0));

    #[test]
    fn addresses_read_back_as_they_were_written() {
        for text in [":8443", ":0", "127.0.0.1:8443", "[::1]:8443"] {
            assert_eq!(text.parse::<ListenAddr>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_malformed_address_says_what_was_expected() {
        for text in ["", ":", "8443", ":+1", ":65536", "localhost:8443", "::1:8443", "127.0.0.1"] {
            let error = text.parse::<ListenAddr>().unwrap_err().to_string();
            assert!(error.contains("expected :8443"), "{error}");
        }
    }

    #[test]
    fn a_port_that_is_listened_at_is_refused_on_every_overlapping_address() {
        let bound = bind(ANY_PORT, 2).unwrap();
        assert_eq!(bound.listeners.len(), 2);
        let port = bound.addr.port();
        for taken in [ListenAddr::Addr(bound.addr), ListenAddr::DualStack(port)] {
            let error = bind(taken, 1).unwrap_err();
            assert!(matches!(error, ListenError::InUse(_)), "{error:?}");
            assert!(error.to_string().contains(&taken.to_string()), "{error}");
        }
        drop(bound);
        bind(ListenAddr::DualStack(port), 1).unwrap();
    }

    #[test]
    fn one_of_several_proxies_that_start_on_a_port_wins() {
        let port = bind(ANY_PORT, 1).unwrap().addr.port();
        let barrier = std::sync::Barrier::new(8);
        let bound: Vec<_> = std::thread::scope(|scope| {
            let start = || {
                barrier.wait();
                bind(ListenAddr::Addr((Ipv4Addr::LOCALHOST, port).into()), 2)
            };
            let starters: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
            starters.into_iter().map(|starter| starter.join().unwrap()).collect()
        });
        assert_eq!(bound.iter().filter(|result| result.is_ok()).count(), 1);
    }

    #[test]
    fn accepted_connections_inherit_what_is_set_once_for_all() {
        let own = bind(ANY_PORT, 1).unwrap();
        let (_, inherited) = inherit(TcpListener::bind("127.0.0.1:0").unwrap()).unwrap();
        for listener in own.listeners.iter().chain([&inherited]) {
            let _client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (accepted, _) = listener.accept().unwrap();
            let socket = socket2::SockRef::from(&accepted);
            assert!(socket.tcp_nodelay().unwrap() && socket.keepalive().unwrap());
            assert_eq!(socket.tcp_notsent_lowat().unwrap(), UNSENT_BYTES_MAX);
            let given_up_after = socket.tcp_keepalive_time().unwrap()
                + socket.tcp_keepalive_interval().unwrap() * socket.tcp_keepalive_retries().unwrap();
            assert_eq!(given_up_after, Duration::from_secs(120));
        }
    }

    #[test]
    fn a_dual_stack_address_takes_ipv4_connections() {
        let bound = bind(ListenAddr::DualStack(0), 1).unwrap();
        std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, bound.addr.port())).unwrap();
    }
}
