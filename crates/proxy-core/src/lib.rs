//! The TLS terminator: listeners, handshake, forwarding, limits, drain.
//!
//! # How a byte travels
//!
//! A [`Proxy`] owns one thread a worker; each has its own event loop, listening sockets, connections, timers and
//! counters, and shares nothing with the others on the path of a byte.
//!
//! ```text
//! client ──▶ worker's scratch buffer ──▶ tls engine ──▶ to_upstream ──▶ upstream
//!        64 KiB reads, shared by all     decrypts       what is not yet written; back to the pool when empty
//!
//! client ◀── to_client ◀── tls engine ◀── worker's scratch buffer ◀── upstream
//! ```
//!
//! | module | its one job |
//! |---|---|
//! | `config`, `settings` | what a proxy is told at its start, and what can change while it runs |
//! | `options` | how a limit or a setting of TLS is declared: flag, bounds, live setting and help in one place |
//! | `listen`, `upstream` | addresses, the sockets behind them, and why they cannot be had |
//! | `upstreams` | the choice between several upstreams, and which of them are left alone for a while |
//! | `proxy_protocol` | the header that tells who the client is |
//! | `listeners`, `sockopt` | the listening sockets of a worker, and their end without a lost connection; socket options |
//! | `descriptors`, `per_client` | how many connections the process can hold, and a client may have |
//! | `proxy`, `control` | the handle (bind, start, collect, set, drain, join), and what it tells the workers |
//! | `crew`, `cpus` | the workers as the handle knows them; which cores they run on |
//! | `worker` | the loop of one thread: events, deadlines, reading, writing, accepting, hand-over |
//! | `connection` | one connection from accept to close: two directions, deadlines, endings |
//! | `context` | what the connections of a worker share |
//! | `stream`, `dial` | a socket with what is known of its readiness; connecting to an upstream |
//! | `notices` | what the proxy has to say, once an episode |
//! | `buffer`, `timers` | pending bytes and the pool of their memory; deadlines in order |
//! | `pending` | what waits to be written on all connections of a worker, and who has waited longest |
//! | `tls` | everything that knows rustls: certificates, settings, the engine without I/O, what was negotiated |
//! | `account`, `clients` | counting: every figure is a plain addition in its worker |
//!
//! # What holds
//!
//! - A connection that waits owns no buffer of ours, and one whose peer does not read owns at most 128 KiB in that
//!   direction: then its other side is no longer read.
//! - The end of a direction is passed on by itself: a client's `close_notify` or FIN becomes a FIN to the upstream,
//!   an upstream's FIN becomes a `close_notify` and a FIN to the client, and the other direction goes on. Only an
//!   upstream that breaks, what a drain cuts off, what the idle timeout cuts off in mid-exchange, and a client that
//!   does not take its bytes, ends without `close_notify`.
//! - What waits for a client waits no longer than the send timeout without any of it being taken, and all that waits
//!   together has a bound.
//! - A connection that the kernel has accepted is served: a drain takes what has begun before it closes a socket.
//! - Each connection ends with exactly one outcome, counted once; each handshake is counted once, as full, resumed
//!   or failed; the sums over all clients are the proxy's totals.
//! - Bytes of a peer never panic, and never take memory without a bound.
//!
//! Deliberately absent: any knowledge of the protocol inside TLS, any lock or allocation of ours a read, and any
//! resolver at run time: the upstreams' names are resolved once, when the proxy starts.

#![forbid(unsafe_code)]

mod account;
mod buffer;
mod clients;
mod config;
mod connection;
mod context;
mod control;
mod cpus;
mod crew;
mod descriptors;
mod dial;
mod listen;
mod listeners;
mod notices;
mod options;
mod pending;
mod per_client;
mod proxy;
pub mod proxy_protocol;
mod settings;
mod sockopt;
mod stream;
mod timers;
mod tls;
mod upstream;
mod upstreams;
mod worker;

pub use config::{Limits, ProxyConfig};
pub use cpus::{Cpus, CpusError, ParseCpusError};
pub use crew::WorkerFailed;
pub use descriptors::DescriptorsError;
pub use listen::{ListenAddr, ListenError, ParseListenAddrError};
pub use options::{Absent, DeclaredOptions, OptionError, OptionSpec};
pub use proxy::{BoundProxy, Proxy, StartError};
pub use settings::ConfigError;
pub use tls::{
    Certificate, CipherOrder, ClientAuth, ClientCa, ForgetError, Looked, Presented, RefreshError, Refreshed,
    Resumption, TicketKeyFile, TicketSend, Tls, TlsConfigError, TlsFileError, TlsFileWarning, TlsFiles,
    TlsSettings, TlsVersion, Trial, Tried,
};
pub use upstream::{ParseUpstreamError, ProbeError, ResolveError, Upstream};
