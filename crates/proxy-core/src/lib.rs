//! The TLS terminator: listeners, handshake, forwarding, limits, drain.
//!
//! # How a byte travels
//!
//! A [`Proxy`] owns one thread a worker. Each has its own event loop, listening sockets, connections, timers and
//! counters, and shares nothing with the others on the path of a byte.
//!
//! ```text
//!          ClientSession                                          Relay, a Handler
//! client ──▶ worker's scratch buffer ──▶ tls engine ──▶ from_client ──▶ upstream
//!        64 KiB reads, shared by all     decrypts       what is not yet written; back to the pool when empty
//!
//! client ◀── to_client ◀── tls engine ◀── worker's scratch buffer ◀── upstream
//! ```
//!
//! The worker is generic over the [`Handler`](handler::Handler) that serves a client after its handshake. `Relay` knows
//! nothing of the protocol inside TLS; another crate can bring one that does.
//!
//! | module | its one job |
//! |---|---|
//! | `config` | the configuration of a proxy, the settings that can change while it runs, how a limit or a setting is declared |
//! | `accept` | addresses, listening sockets and their end without a lost connection, the PROXY header, limits on connections |
//! | `tls` | everything that knows rustls: certificates, settings, the engine without I/O, what was negotiated |
//! | `upstream` | addresses, the choice between several upstreams, connecting |
//! | `connection` | one connection from accept to close: its states, and the client's session (socket, TLS, what waits) |
//! | `relay` | the handler that forwards bytes to an upstream: two directions, deadlines |
//! | `worker` | the loop of one thread (events, deadlines, reading, writing, accepting), and the pool of workers |
//! | `io` | sockets with what is known of their readiness, pending bytes and the pool of their memory |
//! | `stats` | counting: every figure is a plain addition in its worker |
//! | `notices` | what the proxy has to say, once an episode |
//! | `proxy` | the handle: bind, start, collect, set, drain, join |
//!
//! # What holds
//!
//! - A connection that waits owns no buffer of ours, and one whose peer does not read owns at most 128 KiB in that
//!   direction: then its other side is no longer read.
//! - The end of a direction is forwarded by itself: a client's `close_notify` or FIN becomes a FIN to the upstream,
//!   an upstream's FIN becomes a `close_notify` and a FIN to the client, and the other direction goes on. Only an
//!   upstream that breaks, what a drain cuts off, what the idle timeout cuts off in mid-exchange, and a client that
//!   does not take its bytes, ends without `close_notify`.
//! - A client that reads nothing while bytes are pending is cut after the send timeout, and what waits on all connections
//!   has a bound.
//! - A connection that the kernel has accepted is served: a drain takes what has begun before it closes a socket.
//! - Each connection ends with exactly one outcome, counted once; each handshake is counted once, as full, resumed
//!   or failed; the sums over all clients are the proxy's totals.
//! - Bytes of a peer never panic, and never take memory without a bound.
//!
//! Deliberately absent: knowledge of the protocol inside TLS, any lock or allocation of ours a read, and any
//! resolver at run time: the upstreams' names are resolved once, when the proxy starts.

#![forbid(unsafe_code)]

mod accept;
mod config;
mod connection;
mod io;
mod notices;
mod proxy;
mod relay;
mod stats;
mod tls;
mod upstream;
mod worker;

pub use accept::descriptors::{DescriptorsError, UpstreamSockets, raise_limit as raise_descriptor_limit};
pub use accept::listen::{ListenAddr, ListenError, ListenerSets, ListenerSource, ParseListenAddrError};
pub use accept::proxy_protocol;
pub use config::options::{
    AllowedValues, DeclaredOptions, HandlerSettings, LiveOptions, OptionDefault, OptionError, OptionKind,
    OptionSpec, fixed_setting, option_names,
};
pub use config::settings::{ConfigError, WORKERS_RANGE, infos as setting_infos};
pub use config::{Limits, ProxyConfig};
pub use connection::handler;
pub use io::socket::{IoResult, Socket};
pub use proxy::{BoundProxy, Proxy, ProxyStartError};
pub use tls::{
    CALIBRATION_CPU, CalibrationError, Certificate, CipherOrder, ClientAuth, ClientCa, FileChanges,
    HarnessOutcome, NoCertificate, PresentedCertificates, RefreshError, Resumption, TicketKeyError,
    TicketKeyFile, TicketKeySnapshot, TicketSend, TicketSnapshotError, Tls, TlsConfigError, TlsFileError,
    TlsFileWarning, TlsFiles, TlsHarness, TlsRefresh, TlsSettings, calibrate, describe_chain,
};
pub use upstream::balance::{UPSTREAMS_MAX, UpstreamChoice, Upstreams};
pub use upstream::target::{ParseUpstreamError, ProbeError, ResolveError, Upstream, UpstreamTarget};
pub use worker::pool::WorkerFailure;
