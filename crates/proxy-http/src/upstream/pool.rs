//! The pool of one worker: connections to each upstream, the one used last first.

use std::io;
use std::net::SocketAddr;
use std::os::unix::net::SocketAddr as UnixAddr;
use std::task::Waker;

use bytes::BytesMut;
use mio::Registry;
use mio::event::Event;
use proxy_core::handler::resources_token;
use proxy_core::{IoResult, Socket};
use slab::Slab;

/// Most that is read at once.
const READ_BYTES_MAX: usize = 64 << 10;

/// Where requests go.
#[derive(Clone, Debug)]
pub enum UpstreamAddr {
    /// A Unix socket.
    Unix(UnixAddr),
    /// A TCP address.
    Tcp(SocketAddr),
}

/// A worker's connections to its upstreams.
#[derive(Debug)]
pub(crate) struct Pool {
    registry: Option<Registry>,
    upstreams: Vec<UpstreamAddr>,
    connections: Slab<PooledConn>,
    /// The idle connections of each upstream, the one used last at the end.
    idle: Vec<Vec<usize>>,
    scratch: Box<[u8]>,
}

/// A connection to an upstream.
#[derive(Debug)]
pub(crate) struct PooledConn {
    socket: Socket,
    upstream: usize,
    is_connecting: bool,
    /// What the upstream has sent and nobody has taken.
    pub(crate) received: BytesMut,
    /// What the upstream has yet to take.
    pub(crate) unsent: BytesMut,
    pub(crate) has_ended: bool,
    /// Who waits for it.
    waker: Option<Waker>,
    /// Whether it has served an exchange: the upstream may have closed it since.
    pub(crate) is_reused: bool,
}

impl Pool {
    pub(crate) fn new(upstreams: Vec<UpstreamAddr>) -> Self {
        Self {
            registry: None,
            idle: upstreams.iter().map(|_| Vec::new()).collect(),
            upstreams,
            connections: Slab::new(),
            scratch: vec![0; READ_BYTES_MAX].into_boxed_slice(),
        }
    }

    /// Takes over where sockets are registered.
    pub(crate) fn set_registry(&mut self, registry: &Registry) -> io::Result<()> {
        if self.registry.is_none() {
            self.registry = Some(registry.try_clone()?);
        }
        Ok(())
    }

    /// A connection to an upstream: an idle one, or a new one.
    pub(crate) fn acquire(&mut self, upstream: usize, must_be_new: bool) -> io::Result<usize> {
        while !must_be_new && let Some(key) = self.idle[upstream].pop() {
            if self.is_still_open(key) {
                return Ok(key);
            }
            self.connections.remove(key);
        }
        let Some(registry) = &self.registry else { return Err(io::ErrorKind::NotConnected.into()) };
        let entry = self.connections.vacant_entry();
        let key = entry.key();
        let token = resources_token(key);
        let (socket, is_connecting) = match &self.upstreams[upstream] {
            UpstreamAddr::Unix(addr) => (Socket::connect_unix(addr, registry, token)?, false),
            UpstreamAddr::Tcp(addr) => (Socket::connect_tcp(*addr, registry, token)?, true),
        };
        entry.insert(PooledConn {
            socket,
            upstream,
            is_connecting,
            received: BytesMut::new(),
            unsent: BytesMut::new(),
            has_ended: false,
            waker: None,
            is_reused: false,
        });
        Ok(key)
    }

    /// Whether an idle connection can take a request: the upstream has neither closed it nor sent anything.
    fn is_still_open(&mut self, key: usize) -> bool {
        let connection = &mut self.connections[key];
        if !connection.socket.is_readable() {
            return true;
        }
        matches!(connection.socket.read(&mut self.scratch), Ok(IoResult::Blocked))
    }

    /// Takes back a connection whose exchange is complete.
    pub(crate) fn give_back(&mut self, key: usize) {
        let connection = &mut self.connections[key];
        connection.waker = None;
        connection.is_reused = true;
        if connection.received.is_empty() && connection.unsent.is_empty() && !connection.has_ended {
            connection.received = BytesMut::new();
            connection.unsent = BytesMut::new();
            self.idle[connection.upstream].push(key);
        } else {
            self.connections.remove(key);
        }
    }

    /// Closes a connection.
    pub(crate) fn close(&mut self, key: usize) {
        self.connections.remove(key);
    }

    pub(crate) fn note(&mut self, key: usize, event: &Event) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.socket.note(event);
        if let Some(waker) = connection.waker.take() {
            waker.wake();
        }
    }

    pub(crate) fn connection(&mut self, key: usize) -> &mut PooledConn {
        &mut self.connections[key]
    }

    /// Writes what the upstream has yet to take.
    pub(crate) fn flush(&mut self, key: usize, waker: &Waker) -> io::Result<()> {
        let Some(registry) = &self.registry else { return Err(io::ErrorKind::NotConnected.into()) };
        let connection = &mut self.connections[key];
        if connection.is_connecting {
            if !connection.socket.connected()? {
                connection.waker = Some(waker.clone());
                return Ok(());
            }
            connection.is_connecting = false;
        }
        while !connection.unsent.is_empty() && connection.socket.is_writable() {
            match connection.socket.write(&connection.unsent, registry)? {
                IoResult::Bytes(n) => drop(connection.unsent.split_to(n)),
                IoResult::Blocked | IoResult::End => {}
            }
        }
        if !connection.unsent.is_empty() {
            connection.waker = Some(waker.clone());
        }
        Ok(())
    }

    /// Reads once; true if anything has come, or the end.
    pub(crate) fn read(&mut self, key: usize, waker: &Waker) -> io::Result<bool> {
        let connection = &mut self.connections[key];
        if connection.socket.is_readable() {
            match connection.socket.read(&mut self.scratch)? {
                IoResult::Bytes(n) => {
                    connection.received.extend_from_slice(&self.scratch[..n]);
                    return Ok(true);
                }
                IoResult::End => {
                    connection.has_ended = true;
                    return Ok(true);
                }
                IoResult::Blocked => {}
            }
        }
        connection.waker = Some(waker.clone());
        Ok(false)
    }
}
