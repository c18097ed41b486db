//! What a load is started with, and what it leaves behind.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::plan::{Plan, PlanError};
use crate::target::Target;

/// Everything a load needs to know.
#[derive(Clone, Debug)]
pub struct LoadConfig {
    /// The server.
    pub target: Target,
    /// What is asked of it, in turn; empty for a `GET` of the target's path.
    pub requests: Vec<Template>,
    /// How much, and how long.
    pub plan: Plan,
    /// Which certificate the server must show.
    pub trust: Trust,
    /// Time from the moment a request is given to a connection, which may still have to be made, to its whole
    /// answer; after it the request has failed.
    pub request_timeout: Duration,
    /// Starts paused: nothing is sent until `load.running` is switched on.
    pub paused: bool,
}

impl LoadConfig {
    /// A load that starts at once, with a request timeout of 10 s.
    pub fn new(target: Target, plan: Plan, trust: Trust) -> Self {
        Self {
            target,
            requests: Vec::new(),
            plan,
            trust,
            request_timeout: Duration::from_secs(10),
            paused: false,
        }
    }
}

/// One kind of request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The method, such as `GET`.
    pub method: String,
    /// The path with its query, beginning with `/`.
    pub path: String,
    /// Size of the body that is sent along, in bytes.
    pub body_bytes: usize,
}

impl Template {
    /// A `GET` without a body.
    pub fn get(path: impl Into<String>) -> Self {
        Self { method: "GET".to_owned(), path: path.into(), body_bytes: 0 }
    }

    /// A `POST` of so many bytes.
    pub fn post(path: impl Into<String>, body_bytes: usize) -> Self {
        Self { method: "POST".to_owned(), path: path.into(), body_bytes }
    }
}

/// Which server certificate is good.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Exactly this one, in DER, whatever names and dates it holds.
    Certificate(Vec<u8>),
    /// One that is known to be good whatever names and dates it holds: for a server that is part of this program, and
    /// may change its certificates.
    Known(Known),
    /// One that the system's certificate authorities vouch for.
    Roots,
    /// One that an authority in this PEM file vouches for.
    CaFile(PathBuf),
    /// Any, and without checking that the server has its key: for benchmarks only.
    Insecure,
}

/// Tells of a certificate in DER whether it is good; asked once a full handshake.
#[derive(Clone)]
pub struct Known(Arc<IsGood>);

type IsGood = dyn Fn(&[u8]) -> bool + Send + Sync;

impl Known {
    /// Good is what `is_good` finds so.
    pub fn new(is_good: impl Fn(&[u8]) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_good))
    }

    pub(crate) fn is_good(&self, der: &[u8]) -> bool {
        (self.0)(der)
    }
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known").finish_non_exhaustive()
    }
}

/// Why a load cannot start. Nothing has been started then.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The plan asks for something that no written plan could.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The request timeout is zero.
    #[error("the request timeout must be above zero")]
    Timeout,
    /// A request template cannot be sent.
    #[error("request {method} {path}: {reason}")]
    Template {
        /// The template's method.
        method: String,
        /// The template's path.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The host has no address.
    #[error("cannot resolve {host}: {error}")]
    Resolve {
        /// The target's host.
        host: String,
        /// Why not.
        error: std::io::Error,
    },
    /// Source addresses only make sense towards loopback.
    #[error("sources={sources} needs a target on IPv4 loopback such as 127.0.0.1; {host} is not")]
    Sources {
        /// Source addresses asked for.
        sources: u32,
        /// The target's host.
        host: String,
    },
    /// The process may not open that many files.
    #[error(
        "{connections} connections need {needed} file descriptors, the limit is {limit}; raise it with ulimit -n"
    )]
    Descriptors {
        /// Connections of the plan.
        connections: u32,
        /// Descriptors needed in all.
        needed: u64,
        /// The hard limit.
        limit: u64,
    },
    /// The certificate authorities cannot be read.
    #[error("cannot use the certificate authorities in {from}: {reason}")]
    Roots {
        /// The file, or where the system keeps them.
        from: String,
        /// Why not.
        reason: String,
    },
    /// The host cannot be the name of a TLS server.
    #[error("{0} is not a name that a TLS server can have")]
    ServerName(String),
    /// The TLS library refuses its configuration.
    #[error("cannot set up TLS: {0}")]
    Tls(String),
    /// The operating system refuses a thread, a timer or the like.
    #[error("cannot {what}: {error}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why not.
        error: std::io::Error,
    },
}

/// What a load did from one source address, by its own count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceTotals {
    /// The address the connections came from.
    pub address: IpAddr,
    /// Connections established.
    pub connections: u64,
    /// Full handshakes completed.
    pub handshakes_full: u64,
    /// Resumed handshakes completed.
    pub handshakes_resumed: u64,
    /// Plaintext sent to the server.
    pub bytes_in: u64,
    /// Plaintext received from the server.
    pub bytes_out: u64,
    /// Requests answered whole, with a status below 400.
    pub requests_ok: u64,
}
