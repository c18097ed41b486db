//! A non-blocking socket with its readiness.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::unix::net::SocketAddr as UnixAddr;
use std::rc::Rc;
use std::time::Duration;

use mio::event::Event;
use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};
use rustix::net::SendFlags;
use socket2::SockRef;

use crate::io::socket_options::{self, PathInfo};

#[derive(Debug)]
enum StreamSocket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A socket with its registration, which ends before it is closed. Events are edge-triggered: an event sets readiness,
/// and a read or write that falls short clears it.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts that do not depend on each other")]
pub struct Socket {
    stream: StreamSocket,
    registry: Rc<Registry>,
    token: Token,
    readable: bool,
    /// The peer has ended or broken its direction: a short read does not mean then that nothing is left.
    hung_up: bool,
    /// The connection has failed: the peer has reset it, or the kernel has given it up.
    failed: bool,
    /// The peer takes nothing more.
    write_closed: bool,
    writable: bool,
    /// How writing has failed, unless the peer has ended. The kernel reports a reset only once, and a later
    /// read would see a clean end.
    broken: Option<io::ErrorKind>,
    /// The events that the kernel reports. Most clients never block a write.
    interest: Interest,
}

#[derive(Debug)]
pub enum IoResult {
    /// The number of bytes, at least one.
    Bytes(usize),
    /// No bytes for now.
    Blocked,
    /// The peer has sent all it will send.
    End,
}

impl Socket {
    /// Takes over an accepted connection, whose readiness is unknown.
    pub(crate) fn accepted(socket: TcpStream, registry: &Rc<Registry>, token: Token) -> io::Result<Self> {
        Self::register(StreamSocket::Tcp(socket), registry, token, Interest::READABLE)
    }

    /// Connects at once, as Unix sockets do.
    pub fn connect_unix(addr: &UnixAddr, registry: &Rc<Registry>, token: Token) -> io::Result<Self> {
        Self::register(
            StreamSocket::Unix(UnixStream::connect_addr(addr)?),
            registry,
            token,
            Interest::READABLE,
        )
    }

    /// Begins to connect; [`Socket::connected`] returns the result once an event has arrived.
    pub fn connect_tcp(addr: SocketAddr, registry: &Rc<Registry>, token: Token) -> io::Result<Self> {
        let socket = TcpStream::connect(addr)?;
        socket.set_nodelay(true)?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        let mut registered = Self::register(StreamSocket::Tcp(socket), registry, token, interest)?;
        registered.writable = false;
        Ok(registered)
    }

    fn register(
        mut stream: StreamSocket,
        registry: &Rc<Registry>,
        token: Token,
        interest: Interest,
    ) -> io::Result<Self> {
        match &mut stream {
            StreamSocket::Tcp(tcp) => registry.register(tcp, token, interest)?,
            StreamSocket::Unix(unix) => registry.register(unix, token, interest)?,
        }
        Ok(Self {
            stream,
            registry: Rc::clone(registry),
            token,
            readable: false,
            hung_up: false,
            failed: false,
            write_closed: false,
            writable: true,
            broken: None,
            interest,
        })
    }

    pub fn note(&mut self, event: &Event) {
        self.failed |= event.is_error();
        if event.is_read_closed() || self.failed {
            self.hung_up = true;
            self.write_closed |= event.is_write_closed();
        }
        self.readable |= event.is_readable() || self.hung_up;
        self.writable |= event.is_writable() || self.failed;
    }

    /// Whether a connection attempt has succeeded.
    ///
    /// # Errors
    /// If it has failed.
    pub fn connected(&self) -> io::Result<bool> {
        self.take_error()?.map_or(Ok(self.writable), Err)
    }

    fn take_error(&self) -> io::Result<Option<io::Error>> {
        match &self.stream {
            StreamSocket::Tcp(tcp) => tcp.take_error(),
            StreamSocket::Unix(unix) => unix.take_error(),
        }
    }

    /// Whether it is known that the peer takes nothing more.
    pub fn is_write_closed(&self) -> bool {
        self.write_closed
    }

    /// Whether the connection has failed. Received bytes can still be read.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// How it has failed.
    pub fn failure(&self) -> io::Error {
        // The kernel reports it once, and a read or write may have taken the report.
        self.take_error().ok().flatten().unwrap_or_else(|| io::ErrorKind::ConnectionReset.into())
    }

    /// Whether a read may find something.
    pub fn is_readable(&self) -> bool {
        self.readable
    }

    /// Whether a write may be taken.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// Reads once. Inlined: a separate call costs 0.5 % of a small request.
    ///
    /// # Errors
    /// If the connection is broken.
    #[inline]
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<IoResult> {
        let result = match &self.stream {
            StreamSocket::Tcp(tcp) => retry(|| (&mut &*tcp).read(buffer)),
            StreamSocket::Unix(unix) => retry(|| (&mut &*unix).read(buffer)),
        };
        match result {
            Ok(0) => {
                self.readable = false;
                self.broken.map_or(Ok(IoResult::End), |kind| Err(kind.into()))
            }
            Ok(n) => {
                // After a short read another one would find nothing, and an event reports later bytes. Only the end of
                // the stream is not reported twice.
                self.readable = n == buffer.len() || self.hung_up;
                Ok(IoResult::Bytes(n))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.readable = false;
                Ok(IoResult::Blocked)
            }
            Err(error) => Err(error),
        }
    }

    /// Writes as much as fits, and asks for an event when more does.
    ///
    /// # Errors
    /// When the connection is broken.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<IoResult> {
        let written = match &self.stream {
            StreamSocket::Tcp(tcp) => retry(|| (&mut &*tcp).write(bytes)),
            StreamSocket::Unix(unix) => retry(|| (&mut &*unix).write(bytes)),
        };
        self.note_written(written, bytes.len())
    }

    /// Writes like [`Socket::write`] what [`Socket::shut_down`] follows at once: the last bytes and the end of the stream then
    /// share a segment, for which the peer wakes and acknowledges once.
    ///
    /// # Errors
    /// When the connection is broken.
    pub(crate) fn write_last(&mut self, bytes: &[u8]) -> io::Result<IoResult> {
        let StreamSocket::Tcp(tcp) = &self.stream else { return self.write(bytes) };
        let written = retry(|| Ok(rustix::net::send(tcp, bytes, SendFlags::MORE | SendFlags::NOSIGNAL)?));
        self.note_written(written, bytes.len())
    }

    #[inline]
    fn note_written(&mut self, written: io::Result<usize>, len: usize) -> io::Result<IoResult> {
        match written {
            Ok(n) if n == len => Ok(IoResult::Bytes(n)),
            short => self.write_fell_short(short),
        }
    }

    #[cold]
    fn write_fell_short(&mut self, written: io::Result<usize>) -> io::Result<IoResult> {
        let result = match written {
            Ok(n) => IoResult::Bytes(n),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => IoResult::Blocked,
            Err(error) => {
                self.broken = Some(error.kind()).filter(|kind| *kind != io::ErrorKind::BrokenPipe);
                return Err(error);
            }
        };
        self.writable = false;
        self.tell_writable()?;
        Ok(result)
    }

    fn tell_writable(&mut self) -> io::Result<()> {
        if self.interest.is_writable() {
            return Ok(());
        }
        self.interest |= Interest::WRITABLE;
        self.reregister()
    }

    /// Notices that the peer has vanished, also while neither sends anything.
    pub(crate) fn keep_alive(&self) -> io::Result<()> {
        match &self.stream {
            StreamSocket::Tcp(tcp) => {
                let socket = SockRef::from(tcp);
                socket.set_tcp_keepalive(&socket_options::keepalive())?;
                // There are no probes while bytes are not acknowledged.
                socket.set_tcp_user_timeout(Some(socket_options::VANISHED_AFTER))
            }
            StreamSocket::Unix(_) => Ok(()),
        }
    }

    /// Gives it another token.
    pub(crate) fn set_token(&mut self, token: Token) -> io::Result<()> {
        self.token = token;
        self.reregister()
    }

    fn reregister(&mut self) -> io::Result<()> {
        let registry = &self.registry;
        match &mut self.stream {
            StreamSocket::Tcp(tcp) => registry.reregister(tcp, self.token, self.interest),
            StreamSocket::Unix(unix) => registry.reregister(unix, self.token, self.interest),
        }
    }

    /// Acknowledges received bytes at once, instead of with an answer.
    pub(crate) fn acknowledge(&self) {
        if let StreamSocket::Tcp(tcp) = &self.stream {
            // It only saves time; without it the acknowledgement comes 40 ms later.
            let _ = SockRef::from(tcp).set_tcp_quickack(true);
        }
    }

    /// Whether the peer has acknowledged all that was written, after [`Socket::shut_down`].
    pub(crate) fn is_end_acknowledged(&self) -> bool {
        match &self.stream {
            StreamSocket::Tcp(tcp) => socket_options::is_end_acknowledged(tcp).unwrap_or(true),
            StreamSocket::Unix(_) => true,
        }
    }

    /// The kernel's knowledge of the path to the peer; empty if it has none.
    pub(crate) fn path_info(&self) -> PathInfo {
        match &self.stream {
            StreamSocket::Tcp(tcp) => socket_options::path_info(tcp).unwrap_or_default(),
            StreamSocket::Unix(_) => PathInfo::default(),
        }
    }

    /// Makes closing a reset, so the kernel drops its bytes for the peer.
    pub(crate) fn reset_when_closed(&self) {
        if let StreamSocket::Tcp(tcp) = &self.stream {
            // If this fails, the kernel keeps trying to send for a while.
            let _ = SockRef::from(tcp).set_linger(Some(Duration::ZERO));
        }
    }

    /// Announces to the peer that nothing more is sent. A later read detects a vanished peer.
    pub fn shut_down(&self) {
        let _ = match &self.stream {
            StreamSocket::Tcp(tcp) => tcp.shutdown(Shutdown::Write),
            StreamSocket::Unix(unix) => unix.shutdown(Shutdown::Write),
        };
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Closing alone is not enough: while a process is started it has a copy of every descriptor, for which the
        // kernel goes on reporting events. They would be taken for events of the next connection with this token.
        let _ = match &mut self.stream {
            StreamSocket::Tcp(tcp) => self.registry.deregister(tcp),
            StreamSocket::Unix(unix) => self.registry.deregister(unix),
        };
    }
}

fn retry(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An event loop with a socket in it, and the peer's end.
    fn accepted() -> (mio::Poll, Socket, std::net::TcpStream) {
        let poll = mio::Poll::new().unwrap();
        let registry = Rc::new(poll.registry().try_clone().unwrap());
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        accepted.set_nodelay(true).unwrap();
        accepted.set_nonblocking(true).unwrap();
        let socket = Socket::accepted(TcpStream::from_std(accepted), &registry, Token(0)).unwrap();
        (poll, socket, client)
    }

    #[test]
    fn a_closed_socket_has_no_events_though_a_child_has_a_copy() {
        let (mut poll, socket, mut client) = accepted();
        let StreamSocket::Tcp(tcp) = &socket.stream else { panic!("not TCP") };
        let copy = rustix::io::dup(tcp).unwrap();
        let mut events = mio::Events::with_capacity(4);
        let mut has_events = |patience| {
            client.write_all(b"late").unwrap();
            poll.poll(&mut events, Some(patience)).unwrap();
            !events.is_empty()
        };
        assert!(has_events(Duration::from_secs(10)));
        drop(socket);
        assert!(!has_events(Duration::from_millis(50)));
        drop(copy);
    }

    /// Whether the last bytes wait for the end of the stream. The kernel does not wait for longer than 200 ms.
    fn last_bytes_wait() -> bool {
        let (_poll, mut socket, mut client) = accepted();
        assert!(matches!(socket.write_last(b"end"), Ok(IoResult::Bytes(3))));
        client.set_nonblocking(true).unwrap();
        let early = client.read(&mut [0; 8]);
        socket.shut_down();
        client.set_nonblocking(false).unwrap();
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).unwrap();
        let waited = early.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock);
        assert!(!waited || rest == b"end");
        waited
    }

    #[test]
    fn the_last_bytes_share_a_segment_with_the_end() {
        assert!((0..10).any(|_| last_bytes_wait()));
    }
}
