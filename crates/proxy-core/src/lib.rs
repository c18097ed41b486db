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
//! | `listen`, `upstream` | addresses, the sockets behind them, and why they cannot be had |
//! | `descriptors` | how many connections the process can hold |
//! | `tls` | everything that knows rustls: certificate, configuration, the engine without I/O, causes of failure |
//! | `proxy` | the handle: start, collect, set, drain, join |
//! | `worker` | the loop of one thread: accept, events, timers, hand-over |
//! | `connection` | one connection's state machine, from accept to close, on top of `stream`, `buffer` and `tls` |
//! | `timers` | deadlines, in order |
//! | `account`, `clients` | counting: every figure is a plain addition in its worker |
//!
//! Deliberately absent: any knowledge of the protocol inside TLS, any lock or allocation of ours a read, and any
//! resolver at run time: the upstream's name is resolved once, when the proxy starts.

#![forbid(unsafe_code)]

mod account;
mod buffer;
mod clients;
mod config;
mod connection;
mod context;
mod control;
mod descriptors;
mod dial;
mod listen;
mod proxy;
mod settings;
mod stream;
mod timers;
mod tls;
mod upstream;
mod worker;

pub use config::{Limits, ProxyConfig};
pub use descriptors::DescriptorsError;
pub use listen::{ListenAddr, ListenError, ParseListenAddrError};
pub use proxy::{Proxy, StartError, WorkerPanicked};
pub use tls::{Certificate, CertificateError, CertificateWarning, TlsConfigError};
pub use upstream::{ParseUpstreamError, ProbeError, ResolveError, Upstream};
