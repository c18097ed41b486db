//! The configuration of a load, and errors at its start.

use std::path::PathBuf;
use std::time::Duration;

use crate::plan::{Plan, PlanError};
use crate::protocol::RequestError;
use crate::target::{Target, Template};
use crate::tls::{TlsOptions, TlsSetupError, Trust};

/// The configuration of a load.
#[derive(Clone, Debug)]
pub struct LoadConfig {
    /// The server.
    pub target: Target,
    /// A Unix socket to connect to instead of the target's host and port.
    pub unix_socket: Option<PathBuf>,
    /// The requests, spread by weight; if empty, a `GET` of the target's path, or a small echo.
    pub requests: Vec<Template>,
    /// How much, and how long.
    pub plan: Plan,
    /// Which server certificates are accepted.
    pub trust: Trust,
    /// The TLS options that the load offers.
    pub tls: TlsOptions,
    /// Longest time from giving a request to a slot, which may still have to open its connection, to the complete
    /// answer.
    pub request_timeout: Duration,
    /// Starts paused: nothing is sent until `load.running` is switched on.
    pub paused: bool,
}

impl LoadConfig {
    /// A load that starts at once, with a request timeout of 10 s.
    pub fn new(target: Target, plan: Plan, trust: Trust) -> Self {
        Self {
            target,
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

/// Why a load cannot start. Nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum LoadStartError {
    /// The plan is not valid.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// An echo has no streams.
    #[error("HTTP/2 needs a URL with https or http")]
    Http2Echo,
    /// The server did not negotiate HTTP/2.
    #[error("{0} does not speak HTTP/2: it did not negotiate h2 by ALPN; leave HTTP/2 out")]
    NotHttp2(String),
    /// Early data cannot be sent.
    #[error("cannot send early data (0-RTT): {0}")]
    EarlyData(&'static str),
    /// The request timeout is zero.
    #[error("the request timeout must be above zero")]
    Timeout,
    /// A request cannot be sent.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The host has no address.
    #[error("cannot resolve {host}: {error}")]
    Resolve {
        /// The target's host.
        host: String,
        /// Why not.
        error: std::io::Error,
    },
    /// Source addresses need a target on loopback.
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
    /// The TLS handshake failed.
    #[error("cannot complete the TLS handshake with {server}: {reason}{}{advice}", if .advice.is_empty() { "" } else { "; " })]
    Handshake {
        /// The server.
        server: String,
        /// Why not.
        reason: String,
        /// A possible remedy.
        advice: &'static str,
    },
    /// The process may not open enough files.
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
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsSetupError),
    /// The operating system refuses a thread, a timer or the like.
    #[error("cannot {what}: {error}")]
    System {
        /// The operation that failed.
        what: &'static str,
        /// Why not.
        error: std::io::Error,
    },
}

impl LoadStartError {
    /// Whether other options are needed, whatever the server and this system do.
    pub fn is_wrong_option(&self) -> bool {
        match self {
            Self::Tls(error) => !matches!(error, TlsSetupError::SystemRoots(_)),
            Self::Plan(_)
            | Self::Http2Echo
            | Self::EarlyData(_)
            | Self::Timeout
            | Self::Request(_)
            | Self::Sources { .. } => true,
            Self::NotHttp2(_)
            | Self::Resolve { .. }
            | Self::Unreachable { .. }
            | Self::Handshake { .. }
            | Self::Descriptors { .. }
            | Self::System { .. } => false,
        }
    }
}

/// An error of the operating system, with the failed operation.
pub(crate) fn system(what: &'static str) -> impl Fn(std::io::Error) -> LoadStartError {
    move |error| LoadStartError::System { what, error }
}
