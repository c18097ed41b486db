//! The configuration of a load, and errors at its start.

use std::sync::Arc;
use std::time::Duration;

use crate::plan::{Plan, PlanError};
use crate::protocol::RequestError;
use crate::script::{Script, ScriptError};
use crate::target::{Destination, Target, Template};
use crate::tls::{TlsOptions, TlsSetupError, Trust, TrustError};

#[derive(Clone, Debug)]
pub struct LoadConfig {
    pub target: Target,
    /// Where connections go instead of the target's host and port.
    pub destination: Option<Destination>,
    /// The requests, spread by weight; if empty, a `GET` of the target's path, or a small echo.
    pub requests: Vec<Template>,
    /// Which of them are sent when, instead of all at the plan's rate.
    pub script: Option<Arc<Script>>,
    /// How much, and how long.
    pub plan: Plan,
    pub trust: Trust,
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
            destination: None,
            requests: Vec::new(),
            script: None,
            plan,
            trust,
            tls: TlsOptions::default(),
            request_timeout: Duration::from_secs(10),
            paused: false,
        }
    }

    /// Whether the server is on 127.0.0.0/8, so that clients may have addresses of their own.
    pub fn reaches_loopback(&self) -> bool {
        crate::load::resolve(self, Some(1)).is_ok()
    }
}

/// Why a load cannot start. Nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum LoadStartError {
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// An echo has no streams.
    #[error("HTTP/2 needs a URL with https or http")]
    Http2Echo,
    #[error("{0} does not speak HTTP/2: it did not negotiate h2 by ALPN; leave HTTP/2 out")]
    NotHttp2(String),
    #[error("cannot send early data (0-RTT): {0}")]
    EarlyData(&'static str),
    #[error(transparent)]
    Script(#[from] ScriptError),
    #[error("the request timeout must be above zero")]
    Timeout,
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("cannot resolve {host}: {error}")]
    Resolve { host: String, error: std::io::Error },
    #[error("source-addresses={sources} needs a target on IPv4 loopback such as 127.0.0.1; {host} is not")]
    Sources { sources: u32, host: String },
    #[error("cannot connect to {server}: {reason}")]
    Unreachable { server: String, reason: String },
    #[error("cannot complete the TLS handshake with {server}: {reason}{}{advice}", if .advice.is_empty() { "" } else { "; " })]
    Handshake { server: String, reason: String, advice: String },
    #[error(
        "{connections} connections need {needed} file descriptors, the limit is {limit}; raise it with ulimit -n"
    )]
    Descriptors {
        connections: u32,
        needed: u64,
        /// The hard limit.
        limit: u64,
    },
    #[error(transparent)]
    Tls(#[from] TlsSetupError),
    /// The operating system refuses a thread, a timer or the like.
    #[error("cannot {what}: {error}")]
    System { what: &'static str, error: std::io::Error },
}

impl LoadStartError {
    /// Whether other options are needed, whatever the server and this system do.
    pub fn is_wrong_option(&self) -> bool {
        match self {
            Self::Tls(error) => !matches!(error, TlsSetupError::Trust(TrustError::System(_))),
            Self::Plan(_)
            | Self::Http2Echo
            | Self::EarlyData(_)
            | Self::Script(_)
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
