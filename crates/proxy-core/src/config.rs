//! What a proxy is told at its start.

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::listen::ListenAddr;
use crate::tls::Tls;
use crate::upstream::Upstream;

/// Everything that [`Proxy::start`](crate::Proxy::start) needs to know.
#[derive(Clone, Debug)]
pub struct ProxyConfig {
    /// Where clients connect; at least one.
    pub listen: Vec<ListenAddr>,
    /// Where the plaintext goes.
    pub upstream: Upstream,
    /// How the proxy speaks TLS, and with which certificates.
    pub tls: Tls,
    /// Threads, each with its own event loop.
    pub workers: NonZeroUsize,
    /// Bounds that can change while the proxy runs.
    pub limits: Limits,
    /// Clients that one worker tells apart; the rest is accounted to `other`.
    pub clients_max: usize,
}

impl ProxyConfig {
    /// A proxy with a worker for each core that the process may use, and the default limits. A certificate stands for
    /// TLS with that one and default settings.
    pub fn new(listen: Vec<ListenAddr>, upstream: Upstream, tls: impl Into<Tls>) -> Self {
        Self {
            listen,
            upstream,
            tls: tls.into(),
            workers: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            limits: Limits::default(),
            clients_max: telemetry::CLIENTS_MAX,
        }
    }
}

/// Bounds on connections and time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections served at once over all workers; `None`: as many as the process has descriptors for. Further
    /// ones wait in the kernel's backlog.
    pub connections_max: Option<usize>,
    /// From accept to the end of the handshake, also for a client that sends nothing.
    pub handshake_timeout: Duration,
    /// For reaching the upstream, over all its addresses.
    pub connect_timeout: Duration,
    /// How long nothing may move in either direction once the handshake is done.
    pub idle_timeout: Duration,
    /// How long a client that was told of its upstream's end may stay without sending anything.
    pub half_closed_timeout: Duration,
    /// How long a drain lets connections go on before it cuts them.
    pub drain_timeout: Duration,
    /// How long nothing must have moved, while a drain lasts, on a connection that owes nothing, before it is
    /// closed as being between two exchanges.
    pub drain_quiet: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: None,
            handshake_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(600),
            half_closed_timeout: Duration::from_secs(60),
            drain_timeout: Duration::from_secs(30),
            drain_quiet: Duration::from_secs(2),
        }
    }
}
