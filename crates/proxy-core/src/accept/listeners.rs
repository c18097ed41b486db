//! The listening sockets of one worker, and their end without a lost connection.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};

use crate::io::socket_options;

/// How long a connection that began before a drain has to be established. A client that has had an answer to
/// its first packet considers itself connected, and closing the socket would reset it.
const LAST_CALL: Duration = Duration::from_millis(500);

/// Keeps new connections away from a listening socket: the kernel drops packets with a smaller TTL. Systems start at
/// 64 or 128; only neighbours with a deliberate setting have 255. The client's first packet seems lost. It retries a
/// second later, and reaches the next proxy, or is refused if none listens. The packet that completes a handshake is
/// not dropped, because it belongs to the request that the kernel keeps since the first packet.
const NO_NEW_CONNECTIONS_TTL: u8 = 255;

/// The sockets of one worker, one for each address. They are handed on together.
pub(crate) type Set = usize;

/// A listening socket of a worker. Other workers or the service manager may share it.
#[derive(Debug)]
struct WorkerListener {
    socket: TcpListener,
    token: Token,
    set: Set,
    /// Whether connections may be waiting.
    is_ready: bool,
}

#[derive(Debug)]
pub(crate) struct Listeners {
    all: Vec<WorkerListener>,
    registry: Registry,
    next_token: usize,
    /// When the last connections are taken, once a drain turns new ones away.
    last_call_at: Option<Instant>,
}

impl Listeners {
    /// Tokens go downwards from `first_token`.
    pub(crate) fn new(registry: Registry, first_token: usize) -> Self {
        Self { all: Vec::new(), registry, next_token: first_token, last_call_at: None }
    }

    /// Takes over a socket, in whose backlog connections may be waiting.
    pub(crate) fn add(&mut self, set: Set, socket: std::net::TcpListener) -> io::Result<()> {
        let (mut socket, token) = (TcpListener::from_std(socket), Token(self.next_token));
        self.registry.register(&mut socket, token, Interest::READABLE)?;
        self.next_token -= 1;
        self.all.push(WorkerListener { socket, token, set, is_ready: true });
        Ok(())
    }

    /// Gives up the sockets of `set`, which others keep.
    pub(crate) fn give_up(&mut self, set: Set) {
        self.retain(|listener| listener.set != set);
    }

    /// Gives up the sockets at the addresses where others keep them.
    pub(crate) fn give_up_at(&mut self, is_kept: impl Fn(SocketAddr) -> bool) {
        // A socket whose address is unknown is not kept by others.
        self.retain(|listener| !listener.socket.local_addr().is_ok_and(&is_kept));
    }

    /// Gives up all sockets, which others keep.
    pub(crate) fn give_up_all(&mut self) {
        self.retain(|_| false);
    }

    /// Turns new connections away from now on. Connections that have begun are still accepted for a moment, and
    /// [`Listeners::admit`] must follow for each.
    ///
    /// # Errors
    /// If the kernel refuses. Connections that begin in the last moment may be reset then.
    pub(crate) fn begin_last_call(&mut self, now: Instant) -> io::Result<()> {
        self.last_call_at = Some(now + LAST_CALL);
        let turn_away = |listener: &WorkerListener| {
            let is_ipv6 = listener.socket.local_addr()?.is_ipv6();
            socket_options::set_min_ttl(&listener.socket, is_ipv6, NO_NEW_CONNECTIONS_TTL)
        };
        // All of them, even if the first one fails.
        self.all.iter().map(turn_away).fold(Ok(()), io::Result::and)
    }

    /// Lets a connection that was accepted after the last call receive: it may have inherited the TTL limit. The
    /// client sends dropped packets again.
    pub(crate) fn admit(socket: &TcpStream, peer: SocketAddr) -> io::Result<()> {
        socket_options::set_min_ttl(socket, peer.is_ipv6(), 0)
    }

    /// When to check again if no event comes before.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.last_call_at.filter(|_| !self.all.is_empty())
    }

    /// Whether it is time to take the last connections, for which it marks every socket as ready.
    pub(crate) fn is_last_call(&mut self, now: Instant) -> bool {
        let is_due = self.last_call_at.is_some_and(|at| at <= now);
        if is_due {
            self.last_call_at = None;
            self.all.iter_mut().for_each(|listener| listener.is_ready = true);
        }
        is_due
    }

    pub(crate) fn close_empty(&mut self) {
        self.retain(|listener| listener.is_ready);
    }

    /// Notes an event; false if it is not for a listening socket.
    pub(crate) fn note(&mut self, token: Token) -> bool {
        let listener = self.all.iter_mut().find(|listener| listener.token == token);
        if let Some(listener) = listener {
            listener.is_ready = true;
            return true;
        }
        // The socket may have been given up in the same turn.
        token.0 > self.next_token
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn is_any_ready(&self) -> bool {
        self.all.iter().any(|listener| listener.is_ready)
    }

    pub(crate) fn is_ready(&self, index: usize) -> bool {
        self.all[index].is_ready
    }

    /// Accepts the next connection of a backlog, and notes if there is none.
    pub(crate) fn accept(&mut self, index: usize) -> io::Result<(TcpStream, SocketAddr)> {
        let listener = &mut self.all[index];
        let accepted = listener.socket.accept();
        if accepted.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock) {
            listener.is_ready = false;
        }
        accepted
    }

    /// Moves the first listener to the end, so a crowd at one address does not delay clients of the others.
    pub(crate) fn rotate(&mut self) {
        self.all.rotate_left(1);
    }

    fn retain(&mut self, is_kept: impl Fn(&WorkerListener) -> bool) {
        let registry = &self.registry;
        self.all.retain_mut(|listener| {
            let is_kept = is_kept(listener);
            if !is_kept {
                // Closing alone is not enough: the kernel would go on reporting events while anybody else has
                // the socket.
                let _ = registry.deregister(&mut listener.socket);
            }
            is_kept
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accept::listen::ListenError;
    use socket2::{Domain, Socket, Type};
    use std::io::{Read, Write};
    use std::net::TcpStream as Client;
    use std::sync::mpsc::channel;

    /// Connects again and again until it is refused; how many were served.
    fn connect_until_refused(addr: SocketAddr) -> usize {
        let mut served = 0;
        while let Ok(mut client) = Client::connect(addr) {
            let mut greeting = [0];
            client.read_exact(&mut greeting).expect("a connection that was established was reset");
            served += 1;
        }
        served
    }

    fn accept_all(listeners: &mut Listeners) -> usize {
        let mut accepted = 0;
        for i in 0..listeners.len() {
            while listeners.is_ready(i) {
                if let Ok((mut socket, peer)) = listeners.accept(i) {
                    Listeners::admit(&socket, peer).unwrap();
                    socket.write_all(b"!").unwrap();
                    accepted += 1;
                }
            }
        }
        accepted
    }

    #[test]
    fn connections_before_the_last_call_are_served() {
        let bound = crate::accept::listen::bind("127.0.0.1:0".parse().unwrap(), 2).unwrap();
        let mut poll = mio::Poll::new().unwrap();
        let mut events = mio::Events::with_capacity(8);
        let mut listeners = Listeners::new(poll.registry().try_clone().unwrap(), 100);
        for socket in bound.listeners {
            listeners.add(0, socket).unwrap();
        }
        let (done, served) = channel();
        for _ in 0..4 {
            let done = done.clone();
            std::thread::spawn(move || done.send(connect_until_refused(bound.addr)));
        }
        let began_at = Instant::now();
        let (mut accepted, mut is_called) = (0, false);
        while !listeners.is_empty() {
            poll.poll(&mut events, Some(Duration::from_millis(1))).unwrap();
            for event in &events {
                assert!(listeners.note(event.token()));
            }
            let now = Instant::now();
            if !is_called && began_at.elapsed() > Duration::from_millis(200) {
                listeners.begin_last_call(now).unwrap();
                is_called = true;
            }
            let is_last = listeners.is_last_call(now);
            accepted += accept_all(&mut listeners);
            if is_last {
                listeners.close_empty();
            }
        }
        let served: Vec<_> = (0..4).map(|_| served.recv_timeout(Duration::from_secs(10)).unwrap()).collect();
        assert_eq!(served.iter().sum::<usize>(), accepted);
    }

    /// A listener, and its address as a client at `host` sees it.
    fn listening(at: &str, host: &str) -> Result<(Listeners, SocketAddr), ListenError> {
        let bound = crate::accept::listen::bind(at.parse().unwrap(), 1)?;
        let poll = mio::Poll::new().unwrap();
        let mut listeners = Listeners::new(poll.registry().try_clone().unwrap(), 100);
        for socket in bound.listeners {
            listeners.add(0, socket).unwrap();
        }
        Ok((listeners, SocketAddr::new(host.parse().unwrap(), bound.addr.port())))
    }

    #[test]
    fn a_connection_that_has_begun_at_the_last_call_is_served_no_later_one() {
        for (at, host) in [("127.0.0.1:0", "127.0.0.1"), (":0", "127.0.0.1"), ("[::1]:0", "::1")] {
            let (mut listeners, addr) = match listening(at, host) {
                Err(error) if host == "::1" => {
                    println!("not tried, as this host has no IPv6: {error}");
                    continue;
                }
                listening => listening.unwrap(),
            };
            let client = Socket::new(Domain::for_address(addr), Type::STREAM, None).unwrap();
            // The answer to its first packet is lost until it is sent again, a second later.
            socket_options::set_min_ttl(&client, addr.is_ipv6(), u8::MAX).unwrap();
            client.connect_timeout(&addr.into(), Duration::from_millis(10)).unwrap_err();
            listeners.begin_last_call(Instant::now()).unwrap();
            socket_options::set_min_ttl(&client, addr.is_ipv6(), 0).unwrap();
            let later = Client::connect_timeout(&addr, Duration::from_millis(100)).unwrap_err();
            assert_eq!(later.kind(), io::ErrorKind::TimedOut, "{at}");

            let deadline = Instant::now() + Duration::from_secs(20);
            let (socket, peer) = loop {
                match listeners.accept(0) {
                    Ok(accepted) => break accepted,
                    Err(error) => assert!(Instant::now() < deadline, "{at}: {error}"),
                }
                std::thread::sleep(Duration::from_millis(2));
            };
            assert_eq!(peer.port(), client.local_addr().unwrap().as_socket().unwrap().port());
            client.set_nonblocking(false).unwrap();
            client.send(b"request").unwrap();
            Listeners::admit(&socket, peer).unwrap();
            let mut accepted = std::net::TcpStream::from(socket);
            accepted.set_nonblocking(false).unwrap();
            accepted.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let mut received = [0; 7];
            accepted.read_exact(&mut received).unwrap();
            assert_eq!(&received, b"request", "{at}");
            assert!(listeners.accept(0).is_err(), "{at}: the later one is not there");
        }
    }

    #[test]
    fn a_socket_that_is_given_up_stays_open_with_the_others_that_have_it() {
        let bound = crate::accept::listen::bind("127.0.0.1:0".parse().unwrap(), 1).unwrap();
        let mut poll = mio::Poll::new().unwrap();
        let mut listeners = Listeners::new(poll.registry().try_clone().unwrap(), 100);
        let [socket] = <[_; 1]>::try_from(bound.listeners).unwrap();
        let other = socket.try_clone().unwrap();
        listeners.add(7, socket).unwrap();
        listeners.give_up(6);
        assert_eq!(listeners.len(), 1);
        listeners.give_up(7);
        assert!(listeners.is_empty());
        let _client = Client::connect(bound.addr).unwrap();
        other.accept().unwrap();
        let mut events = mio::Events::with_capacity(8);
        poll.poll(&mut events, Some(Duration::from_millis(50))).unwrap();
        assert!(events.is_empty(), "nothing is told any more of a socket that was given up");
    }
}
