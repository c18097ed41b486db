//! New connections of the pool: each address of an upstream in turn, until one connects.

use std::io;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use proxy_core::handler::resources_token;
use proxy_core::{Socket, UpstreamTarget};

use super::UpstreamPool;
use crate::upstream::http1::connection::PooledConn;

/// How soon to try a Unix socket again whose backlog is full, which no event reports. Only the first request in the queue
/// tries.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

impl UpstreamPool {
    pub(super) fn connect(&mut self, upstream: usize) -> io::Result<Option<usize>> {
        let Some(registry) = &self.registry else { return Err(io::ErrorKind::NotConnected.into()) };
        let opened_at = Instant::now();
        let entry = self.connections.vacant_entry();
        let (key, token) = (entry.key(), resources_token(entry.key()));
        let connected = match self.upstreams.target(upstream) {
            UpstreamTarget::Unix(addr) => {
                Socket::connect_unix(addr, registry, token).map(|socket| (socket, None))
            }
            UpstreamTarget::Tcp(addresses) => {
                let mut attempts = addresses.attempts();
                self.upstreams
                    .connect_next(upstream, &mut attempts, (registry, token), None, self.now)
                    .map(|socket| (socket, Some(attempts)))
            }
        };
        match connected {
            Ok((socket, addresses)) => {
                let stream = self.upstreams.stream(upstream, socket, &self.tls)?;
                entry.insert(PooledConn::new(stream, upstream, opened_at, addresses));
                Ok(Some(key))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.of_upstream[upstream].queue.retry_at = Some(self.now + RETRY_INTERVAL);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Waits until a new connection is connected.
    pub(crate) fn poll_connected(&mut self, key: usize, cx: &Context<'_>) -> Poll<io::Result<()>> {
        loop {
            match self.connections[key].poll_connected(cx) {
                Poll::Ready(Err(error)) => self.connect_next(key, error)?,
                polled => {
                    let connection = &mut self.connections[key];
                    connection.is_withdrawn =
                        connection.has_address_vanished() || self.upstreams.is_gone(connection.upstream);
                    return polled;
                }
            }
        }
    }

    /// Tries the next address of an upstream whose last one has failed.
    ///
    /// # Errors
    /// With `error` if there is none.
    pub(crate) fn connect_next(&mut self, key: usize, error: io::Error) -> io::Result<()> {
        let connection = &mut self.connections[key];
        let (Some(registry), Some(attempts)) = (&self.registry, &mut connection.addresses) else {
            return Err(error);
        };
        let (upstream, at) = (connection.upstream, (registry, resources_token(key)));
        let socket = self.upstreams.connect_next(upstream, attempts, at, Some(error), self.now)?;
        connection.stream = self.upstreams.stream(upstream, socket, &self.tls)?;
        Ok(())
    }

    /// How many addresses a new connection may try.
    pub(crate) fn addresses(&self, key: usize) -> u32 {
        let attempts = self.connections[key].addresses.as_ref();
        attempts.map_or(1, |attempts| u32::try_from(attempts.len()).unwrap_or(u32::MAX))
    }
}
