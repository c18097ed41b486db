//! A datagram socket that a terminator logs to.

use std::fmt;
use std::fs;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};

use crate::lines::LINE_BYTES_MAX;
use crate::lines::health::{LineHealth, LogTransport};
use crate::log_observer::LineSource;

/// Room for lines that have arrived and are not read yet, in bytes; the kernel may grant less.
const BUFFER_BYTES: usize = 4 << 20;
/// The longest wait for a datagram: after it the thread answers the collector.
const WAIT: Duration = Duration::from_millis(20);
/// Datagrams that are read before the thread answers the collector.
const DATAGRAMS_EACH_TURN: usize = 256;

/// Where a terminator sends its log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SocketAddress {
    Unix(PathBuf),
    Udp(SocketAddr),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected unix:PATH or udp:ADDRESS:PORT")]
pub struct ParseAddressError;

impl FromStr for SocketAddress {
    type Err = ParseAddressError;

    fn from_str(text: &str) -> Result<Self, ParseAddressError> {
        match text.split_once(':') {
            Some(("unix", path)) if !path.is_empty() => Ok(Self::Unix(path.into())),
            Some(("udp", address)) => address.parse().map(Self::Udp).map_err(|_| ParseAddressError),
            _ => Err(ParseAddressError),
        }
    }
}

impl fmt::Display for SocketAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Udp(address) => write!(f, "udp:{address}"),
        }
    }
}

/// Who may log to a Unix socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketOptions {
    /// The mode of its file.
    pub mode: u32,
    /// The user and group that own it; `None` leaves it as it is.
    pub owner: (Option<u32>, Option<u32>),
}

#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// A file is in its place.
    #[error("there is a file that is no socket; name another path")]
    NoSocket,
    /// Another process reads it.
    #[error("another process reads this socket; name another path")]
    Served,
    #[error("cannot {what}: {error}")]
    Io { what: &'static str, error: io::Error },
}

impl SocketError {
    fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io { what, error }
    }
}

/// A socket that is read. The file of a Unix socket goes with it.
#[derive(Debug)]
pub struct LogSocket {
    socket: OwnedFd,
    /// The file of a Unix socket.
    file: Option<BoundFile>,
    buffer: Vec<u8>,
    control: Vec<u8>,
    /// The kernel's counter of dropped datagrams.
    dropped: u32,
}

/// The file of a socket that this process bound.
#[derive(Debug)]
struct BoundFile {
    path: PathBuf,
    /// Device and inode: another process may have replaced it.
    identity: (u64, u64),
}

impl BoundFile {
    fn identity(path: &Path) -> io::Result<(u64, u64)> {
        fs::symlink_metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
    }
}

impl Drop for BoundFile {
    fn drop(&mut self) {
        if Self::identity(&self.path).is_ok_and(|identity| identity == self.identity) {
            // Whoever removed it before has done this work.
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl LogSocket {
    /// Binds the socket. A Unix socket that nobody reads any more is replaced.
    ///
    /// # Errors
    /// When another process has it, a file is in its place, or the kernel refuses.
    pub fn bind(address: &SocketAddress, options: SocketOptions) -> Result<Self, SocketError> {
        let (socket, file) = match address {
            SocketAddress::Udp(address) => {
                (UdpSocket::bind(address).map_err(SocketError::io("bind it"))?.into(), None)
            }
            SocketAddress::Unix(path) => {
                let (socket, file) = bind_unix(path, options)?;
                (socket, Some(file))
            }
        };
        // More is better, and less works: what is granted depends on net.core.rmem_max.
        let _ = setsockopt(&socket, sockopt::RcvBuf, &BUFFER_BYTES);
        let refused = |error: nix::Error| SocketError::Io { what: "set it up", error: error.into() };
        setsockopt(&socket, sockopt::RxqOvfl, &1).map_err(refused)?;
        setsockopt(&socket, sockopt::ReceiveTimeout, &WAIT_TIME).map_err(refused)?;
        let control = nix::cmsg_space!(u32);
        Ok(Self { socket, file, buffer: vec![0; LINE_BYTES_MAX], control, dropped: 0 })
    }

    /// Where a UDP socket is bound.
    pub fn local_address(&self) -> Option<SocketAddr> {
        let socket = UdpSocket::from(self.socket.try_clone().ok()?);
        socket.local_addr().ok()
    }

    /// Receives a datagram; `None` if there is none. Gives its length.
    fn receive(&mut self, flags: MsgFlags) -> io::Result<Option<usize>> {
        let mut parts = [IoSliceMut::new(&mut self.buffer)];
        let received = recvmsg::<()>(self.socket.as_raw_fd(), &mut parts, Some(&mut self.control), flags);
        let message = match received {
            Ok(message) => message,
            Err(nix::Error::EAGAIN | nix::Error::EINTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let dropped = message.cmsgs()?.find_map(|control| match control {
            ControlMessageOwned::RxqOvfl(dropped) => Some(dropped),
            _ => None,
        });
        let bytes = message.bytes;
        self.dropped = dropped.unwrap_or(self.dropped);
        Ok(Some(bytes))
    }
}

impl LineSource for LogSocket {
    fn transport(&self) -> LogTransport {
        if self.file.is_some() { LogTransport::UnixSocket } else { LogTransport::Udp }
    }

    fn read(
        &mut self,
        health: &mut LineHealth,
        may_wait: bool,
        line: &mut dyn FnMut(&mut LineHealth, &[u8]),
    ) -> io::Result<usize> {
        let mut flags = if may_wait { MsgFlags::empty() } else { MsgFlags::MSG_DONTWAIT };
        let mut count = 0;
        while count < DATAGRAMS_EACH_TURN {
            let Some(bytes) = self.receive(flags)? else { break };
            flags = MsgFlags::MSG_DONTWAIT;
            // Some senders put several lines into one, or end one as C ends text.
            let lines = self.buffer[..bytes].split(|byte| matches!(byte, b'\n' | b'\0'));
            lines.filter(|text| !text.is_empty()).for_each(|text| line(health, text));
            count += 1;
        }
        health.dropped = self.dropped.into();
        Ok(count)
    }
}

const WAIT_TIME: nix::sys::time::TimeVal =
    nix::sys::time::TimeVal::new(0, WAIT.as_micros() as nix::sys::time::suseconds_t);

fn bind_unix(path: &Path, options: SocketOptions) -> Result<(OwnedFd, BoundFile), SocketError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.file_type().is_socket() => return Err(SocketError::NoSocket),
        Ok(_) => {
            let probe = UnixDatagram::unbound().map_err(SocketError::io("probe it"))?;
            match probe.connect(path) {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    fs::remove_file(path).map_err(SocketError::io("replace it"))?;
                }
                Ok(()) => return Err(SocketError::Served),
                Err(error) => return Err(SocketError::io("probe it")(error)),
            }
        }
        Err(_) => {}
    }
    // Until its mode is set, the umask keeps others from writing.
    let socket = UnixDatagram::bind(path).map_err(SocketError::io("bind it"))?;
    let identity = BoundFile::identity(path).map_err(SocketError::io("find it"))?;
    let file = BoundFile { path: path.to_owned(), identity };
    if options.owner != (None, None) {
        std::os::unix::fs::chown(path, options.owner.0, options.owner.1)
            .map_err(SocketError::io("give it to its owner"))?;
    }
    let mode = fs::Permissions::from_mode(options.mode);
    fs::set_permissions(path, mode).map_err(SocketError::io("set its mode"))?;
    Ok((socket.into(), file))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: SocketOptions = SocketOptions { mode: 0o620, owner: (None, None) };

    fn lines(socket: &mut LogSocket) -> (LineHealth, Vec<Vec<u8>>) {
        let (mut health, mut lines) = (LineHealth::default(), Vec::new());
        socket.read(&mut health, false, &mut |_, line| lines.push(line.to_vec())).unwrap();
        (health, lines)
    }

    #[test]
    fn a_unix_socket_has_its_mode_and_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let address = SocketAddress::Unix(path.clone());
        let mut socket = LogSocket::bind(&address, OPTIONS).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o620);
        assert!(matches!(LogSocket::bind(&address, OPTIONS), Err(SocketError::Served)));
        UnixDatagram::unbound().unwrap().send_to(b"one line\nnext line\n\0", &path).unwrap();
        assert_eq!(lines(&mut socket).1, [&b"one line"[..], b"next line"]);
        drop(socket);
        assert!(!path.exists());
    }

    #[test]
    fn a_socket_that_nobody_reads_is_replaced_and_a_file_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        drop(UnixDatagram::bind(&path).unwrap());
        LogSocket::bind(&SocketAddress::Unix(path.clone()), OPTIONS).unwrap();
        fs::write(&path, "precious").unwrap();
        assert!(matches!(LogSocket::bind(&SocketAddress::Unix(path), OPTIONS), Err(SocketError::NoSocket)));
    }

    #[test]
    fn datagrams_that_the_kernel_drops_are_counted() {
        let address = "udp:127.0.0.1:0".parse().unwrap();
        let mut socket = LogSocket::bind(&address, OPTIONS).unwrap();
        setsockopt(&socket.socket, sockopt::RcvBuf, &4_096).unwrap();
        let to = socket.local_address().unwrap();
        let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
        for _ in 0..100 {
            sender.send_to(&[b'x'; 500], to).unwrap();
        }
        let (_, first) = lines(&mut socket);
        // The counter comes with the next datagram that finds room.
        sender.send_to(b"last", to).unwrap();
        let (health, last) = lines(&mut socket);
        assert!(!first.is_empty() && first.len() < 100);
        assert_eq!((health.lost(), last.len()), (100 - first.len() as u64, 1));
    }
}
