//! What a load is started with, and what it leaves behind.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::plan::{Plan, PlanError};
use crate::target::Target;
use crate::tls::TlsOptions;

/// Everything a load needs to know.
#[derive(Clone, Debug)]
pub struct LoadConfig {
    /// The server.
    pub target: Target,
    /// How it is spoken to, with HTTP.
    pub protocol: Protocol,
    /// A unix socket to connect to in place of the target's host and port.
    pub unix_socket: Option<PathBuf>,
    /// What is asked of it, in turn by weight; empty for a `GET` of the target's path, or a small echo.
    pub requests: Vec<Template>,
    /// How much, and how long.
    pub plan: Plan,
    /// Which certificate the server must show.
    pub trust: Trust,
    /// What is offered in TLS.
    pub tls: TlsOptions,
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
            protocol: Protocol::Http1,
            unix_socket: None,
            requests: Vec::new(),
            plan,
            trust,
            tls: TlsOptions::default(),
            request_timeout: Duration::from_secs(10),
            paused: false,
        }
    }
}

/// The version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP/1.1, a request at a time on each connection.
    Http1,
    /// HTTP/2, without TLS by prior knowledge.
    Http2 {
        /// Requests at a time on each connection.
        streams: u32,
    },
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http1 => f.write_str("http/1.1"),
            Self::Http2 { streams } => write!(f, "h2, {streams} streams"),
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
    /// Header fields besides those that every request has; one with the name of such a one takes its place.
    pub headers: Vec<(String, String)>,
    /// The body that is sent along.
    pub body: Body,
    /// What the body of the answer must be.
    pub expect: Expect,
    /// How often it is sent, compared with the others; at least 1.
    pub weight: u32,
}

/// The body of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// So many letters, which the size can be changed of while the load runs.
    Bytes(usize),
    /// These bytes.
    Exact(Arc<[u8]>),
}

/// What the body of an answer is held to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Expect {
    /// The length that the answer itself announces.
    #[default]
    Announced,
    /// So many bytes.
    Bytes(u64),
    /// The request's own body, byte for byte.
    Echo,
}

impl Template {
    /// A `GET` without a body.
    pub fn get(path: impl Into<String>) -> Self {
        Self {
            method: "GET".to_owned(),
            path: path.into(),
            headers: Vec::new(),
            body: Body::Bytes(0),
            expect: Expect::Announced,
            weight: 1,
        }
    }

    /// A `POST` of so many bytes.
    pub fn post(path: impl Into<String>, body_bytes: usize) -> Self {
        Self { method: "POST".to_owned(), body: Body::Bytes(body_bytes), ..Self::get(path) }
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

impl fmt::Display for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Certificate(_) | Self::Known(_) => f.write_str("one known certificate"),
            Self::Roots => f.write_str("the system's authorities"),
            Self::CaFile(path) => write!(f, "the authorities in {}", path.display()),
            Self::Insecure => f.write_str(telemetry::model::INSECURE),
        }
    }
}

/// Why a load cannot start. Nothing has been started then.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The plan asks for something that no written plan could.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A number of streams that makes no sense.
    #[error("{0} streams: HTTP/2 needs from 1 to 10000 on each connection, and a URL with https or http")]
    Streams(u32),
    /// The server did not settle for HTTP/2.
    #[error("{0} does not speak HTTP/2: it did not agree to h2 in TLS; leave HTTP/2 out")]
    NotHttp2(String),
    /// Early data cannot be sent.
    #[error("cannot send early data (0-RTT): {0}")]
    EarlyData(&'static str),
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
    /// The weights of the requests cannot be spread out.
    #[error("the weights of the requests must be at least 1 and add up to at most {most}, not {sum}")]
    Weights {
        /// What they add up to.
        sum: u64,
        /// What they may.
        most: u64,
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
    /// The server cannot be connected to.
    #[error("cannot connect to {server}: {reason}")]
    Unreachable {
        /// The server.
        server: String,
        /// Why not.
        reason: String,
    },
    /// The server can be connected to and not be shaken hands with.
    #[error("cannot shake hands with {server}: {reason}{advice}")]
    Handshake {
        /// The server.
        server: String,
        /// Why not.
        reason: String,
        /// What may help.
        advice: &'static str,
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
    /// The client's certificate or key cannot be used.
    #[error("cannot use {} as the client's certificate: {reason}", .path.display())]
    Identity {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// A cipher suite or a group that the TLS library does not have.
    #[error("there is no {what} {name}; there are {known}")]
    Unsupported {
        /// What it should be.
        what: &'static str,
        /// Its name as given.
        name: String,
        /// Those that there are.
        known: String,
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

/// Tells what was tried when the operating system refused.
pub(crate) fn system(what: &'static str) -> impl Fn(std::io::Error) -> StartError {
    move |error| StartError::System { what, error }
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
