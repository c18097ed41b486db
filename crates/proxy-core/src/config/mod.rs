//! The configuration of a proxy.

pub(crate) mod handler_settings;
pub(crate) mod options;
pub(crate) mod rate;
pub(crate) mod settings;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use records::text::Cpus;

use self::rate::Rate;
use self::settings::ConfigError;
use crate::accept::access::AccessLists;
use crate::accept::listen::ListenAddr;
use crate::accept::networks::Networks;
use crate::accept::proxy_protocol::ProxyProtocol;
use crate::memory::MemoryGauge;
use crate::tls::Tls;
use crate::upstream::balance::choice::Balance;
use crate::upstream::check::UpstreamCheck;
use crate::upstream::names::resolver::Resolver;
use crate::upstream::route::NameRoute;
use crate::upstream::target::Upstream;

/// The configuration of [`Proxy::start`](crate::Proxy::start).
#[derive(Clone, Debug)]
pub struct ProxyConfig {
    /// Where clients connect; at least one.
    pub listen: Vec<ListenAddr>,
    /// Where the plaintext goes. At least one with those of the routes, and
    /// at most 64.
    pub upstreams: Vec<Upstream>,
    /// How upstreams are checked, if they are.
    pub upstream_check: Option<UpstreamCheck>,
    /// How connections are spread over upstreams.
    pub balance: Balance,
    /// How long the share of an upstream grows that is back; zero: it has its whole share at once.
    pub slow_start: Duration,
    /// Server names that other upstreams serve.
    pub routes: Vec<NameRoute>,
    /// How the names of upstreams are looked up.
    pub resolver: Resolver,
    /// How memory is measured.
    pub memory: MemoryGauge,
    /// How the proxy speaks TLS, and with which certificates.
    pub tls: Tls,
    /// Threads, each with its own event loop.
    pub workers: NonZeroUsize,
    /// Cores that the workers run on; none: wherever the kernel puts them.
    pub cpus: Option<Cpus>,
    /// Bounds that can change while the proxy runs.
    pub limits: Limits,
    /// The PROXY header that goes to the upstream in front of the first byte, if any.
    pub proxy_protocol: Option<ProxyProtocol>,
    /// Peers that must send a PROXY header; the client address in the header replaces theirs.
    pub accept_proxy: Networks,
    /// Which addresses may connect.
    pub access: Arc<AccessLists>,
    /// Whether records name the server names that clients ask for, and the fingerprints of their TLS libraries.
    pub records_names: bool,
    /// Clients that one worker distinguishes; all others count as `other`.
    pub clients_max: usize,
}

impl ProxyConfig {
    /// Checks the range of every number and time, as [`Proxy::bind`](crate::Proxy::bind) does.
    ///
    /// # Errors
    /// When one cannot.
    pub fn check(&self) -> Result<(), ConfigError> {
        settings::check(self)
    }

    /// A proxy with a worker for each core that the process may use, and the default limits. A certificate alone means
    /// TLS with this certificate and default settings.
    pub fn new(listen: Vec<ListenAddr>, upstream: Upstream, tls: impl Into<Tls>) -> Self {
        Self {
            listen,
            upstreams: vec![upstream],
            upstream_check: None,
            balance: Balance::default(),
            slow_start: Duration::ZERO,
            routes: Vec::new(),
            resolver: Resolver::default(),
            memory: MemoryGauge::default(),
            tls: tls.into(),
            workers: std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN),
            cpus: None,
            limits: Limits::default(),
            proxy_protocol: None,
            accept_proxy: Networks::default(),
            access: Arc::default(),
            records_names: true,
            clients_max: records::delta::CLIENTS_MAX,
        }
    }
}

/// Bounds on connections and time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections served at once over all workers; `None`: as many as the process has descriptors for. Further
    /// ones wait in the kernel's backlog.
    pub connections_max: Option<usize>,
    /// Concurrent handshakes over all workers, of which each has its share; `None`: no limit. Further connections wait
    /// in the kernel's backlog.
    pub handshakes_max: Option<usize>,
    /// Connections of one client at once, IPv6 by /64; `None`: no bound. Further ones are closed.
    pub connections_per_client: Option<usize>,
    /// New connections of one client, IPv6 by /64; `None`: no bound. Further ones are reset.
    pub connection_rate: Option<Rate>,
    /// Handshakes that one client begins, IPv6 by /64; `None`: no bound. Connections of further ones are reset.
    pub handshake_rate: Option<Rate>,
    /// From accept to the end of the handshake, also for a client that sends nothing.
    pub handshake_timeout: Duration,
    /// For reaching the upstream, over all its addresses.
    pub connect_timeout: Duration,
    /// How long nothing may move in either direction once the handshake is done.
    pub idle_timeout: Duration,
    /// How long a client may read nothing while bytes are pending.
    pub send_timeout: Duration,
    /// Memory that all connections together hold for peers that do not read, of which each worker has its share. Beyond it
    /// connections are cut: those that hold far more than others, then those whose peer has read nothing for longest.
    pub pending_bytes_max: usize,
    /// Resident memory of the process; `None`: what its control group may take. From 90 % idle connections are closed, from
    /// 95 % new ones refused. Pending bytes get half of it at most.
    pub memory_bytes_max: Option<usize>,
    /// How long a client may stay after the end of its upstream, even if it still sends.
    pub half_closed_timeout: Duration,
    /// How long a drain waits for connections before it cuts them.
    pub drain_timeout: Duration,
    /// How long, in a drain, a connection with nothing pending may be quiet: it was never used, or its upstream has
    /// ended and the client has everything.
    pub drain_quiet: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: None,
            handshakes_max: None,
            connections_per_client: None,
            connection_rate: None,
            handshake_rate: None,
            handshake_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(600),
            send_timeout: Duration::from_secs(60),
            pending_bytes_max: 512 << 20,
            memory_bytes_max: None,
            half_closed_timeout: Duration::from_secs(60),
            drain_timeout: Duration::from_secs(30),
            drain_quiet: Duration::from_secs(2),
        }
    }
}
