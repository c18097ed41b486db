//! The TLS terminator: listeners, handshake, forwarding, limits, drain.
//!
//! # How a byte travels
//!
//! A [`Proxy`] owns one thread per worker. Each has its own event loop, listening sockets, connections, timers and
//! counters, and shares nothing with the others on the path of a byte.
//!
//! ```text
//!          ClientSession                                          Relay, a Handler
//! client ──▶ worker's scratch buffer ──▶ tls engine ──▶ from_client ──▶ upstream
//!        64 KiB reads, shared by all     decrypts       bytes not yet written; back to the pool when empty
//!
//! client ◀── to_client ◀── tls engine ◀── worker's scratch buffer ◀── upstream
//! ```
//!
//! The worker is generic over the [`Handler`](handler::Handler) that serves a client after its handshake. `Relay` does
//! not parse the protocol inside TLS; another crate can provide a handler that does.
//!
//! | module | purpose |
//! |---|---|
//! | `config` | the configuration of a proxy, its live settings, and the declaration of limits and settings |
//! | `accept` | addresses, listening sockets and their closing without a lost connection, the PROXY header, address lists, limits on connections and rates of clients |
//! | `tls` | everything that uses rustls: certificates, settings, the engine without I/O, negotiated parameters |
//! | `upstream` | names and addresses, routes by server name, health, the choice between several upstreams, connecting |
//! | `connection` | one connection from accept to close: its states, and the client's session (socket, TLS, pending bytes) |
//! | `relay` | the handler that forwards bytes to an upstream: two directions, deadlines |
//! | `memory` | the guard of the process's memory |
//! | `worker` | the loop of one thread (events, deadlines, reading, writing, accepting), and the pool of workers |
//! | `io` | sockets with their readiness, pending bytes and the pool of their memory |
//! | `stats` | counting: every figure is a plain addition in its worker |
//! | `notices` | notices to the operator, once per episode |
//! | `proxy` | the handle: bind, start, collect, set, drain, join |
//!
//! # Invariants
//!
//! - An idle connection owns no buffer of ours. If a peer does not read, its connection owns at most 128 KiB in that
//!   direction, because the other peer is no longer read.
//! - The end of each direction is forwarded separately: a client's `close_notify` or FIN becomes a FIN to the upstream,
//!   an upstream's FIN becomes a `close_notify` and a FIN to the client, and the other direction continues. A connection
//!   ends without `close_notify` only if its upstream breaks, if a drain cuts it, if the idle timeout ends it in
//!   mid-exchange, or if its client does not read.
//! - A client that reads nothing while bytes are pending is cut after the send timeout, and the pending bytes of all
//!   connections are bounded.
//! - A connection that the kernel has accepted is served: a drain accepts all of these before it closes a socket.
//! - Each connection ends with exactly one outcome, counted once; each handshake is counted once, as full, resumed
//!   or failed; the sums over all clients are the proxy's totals.
//! - Bytes of a peer never cause a panic or unbounded memory.
//!
//! Deliberately absent: parsing the protocol inside TLS, any lock or allocation of ours per read, and a worker that
//! resolves a name: a thread of its own does.

#![deny(unsafe_code)]

mod accept;
mod config;
mod connection;
mod io;
mod memory;
mod notices;
mod proxy;
mod relay;
mod stats;
mod tls;
mod upstream;
mod worker;

pub use accept::access::{AccessFileError, AccessFiles, AccessLists};
pub use accept::client_rates::ClientRates;
pub use accept::descriptors::{DescriptorsError, UpstreamSockets, raise_limit as raise_descriptor_limit};
pub use accept::listen::{
    ListenAddr, ListenError, ListenerSets, ListenerSource, ParseListenAddrError, bind_one,
};
pub use accept::networks::{Networks, ParseNetworksError};
pub use accept::proxy_protocol;
pub use config::handler_settings::HandlerSettings;
pub use config::options::{
    AllowedValues, DeclaredOptions, LiveOptions, OptionDefault, OptionError, OptionKind, OptionSpec,
    fixed_setting, option_names,
};
pub use config::rate::Rate;
pub use config::settings::{ConfigError, WORKERS_RANGE, infos as setting_infos};
pub use config::{Limits, ProxyConfig};
pub use connection::handler;
pub use io::socket::{IoResult, Socket};
pub use memory::{MemoryGauge, MemoryUsage};
pub use proxy::{BoundProxy, Proxy, ProxyStartError};
pub use tls::{
    AcmeChallenges, Authorities, CALIBRATION_CPU, CalibrationError, Certificate, CipherOrder, ClientAuth,
    ClientAuthPolicy, CrlExpired, FileChanges, HarnessOutcome, NoCertificate, PresentedCertificates,
    RefreshError, Resumption, RevocationLists, ServerNames, TicketKeyError, TicketKeyFile, TicketKeySnapshot,
    TicketSend, TicketSnapshotError, Tls, TlsConfigError, TlsFileError, TlsFileWarning, TlsFiles, TlsHarness,
    TlsRefresh, TlsSettings, UpstreamName, UpstreamNameError, UpstreamTls, UpstreamTlsError,
    UpstreamTlsFailure, calibrate, describe_chain,
};
pub use upstream::balance::choice::{Balance, Candidates, ParseBalanceError, UpstreamChoice};
pub use upstream::balance::replace::UpstreamListError;
pub use upstream::balance::{UPSTREAMS_MAX, UnknownUpstream, UpstreamChange, Upstreams};
pub use upstream::check::{ParseCheckError, UpstreamCheck};
pub use upstream::counting::{count_connection, count_failed_attempt};
pub use upstream::host::{HostPattern, HostTable, ParseHostError, without_port};
pub use upstream::names::addresses::{AddressAttempts, UpstreamAddresses};
pub use upstream::names::resolver::Resolver;
pub use upstream::route::{
    DuplicateHost, NameRoute, ParseNameRouteError, UpstreamsError, check_upstreams, split_route,
    upstream_bits,
};
pub use upstream::stream::{UpstreamHandshake, UpstreamStream, WorkerTls};
pub use upstream::target::{
    ParseUpstreamError, ProbeError, ResolveError, Upstream, UpstreamAddr, UpstreamScheme, UpstreamTarget,
};
pub use worker::pool::WorkerFailure;
