//! HTTP mode: terminates HTTP/2 and HTTP/1.1, routes requests, and pools upstream connections.
//!
//! It is a [`Handler`](proxy_core::handler::Handler) of proxy-core: accept, limits, TLS, drain and handshake counters are
//! the same as in TCP mode. hyper parses and frames the client's side. Its futures are polled by the worker that owns
//! the socket.

#![forbid(unsafe_code)]

mod bind;
mod client;
mod config;
mod connection;
mod forward;
mod guard;
pub mod harness;
mod redirect;
mod request;
mod route;
mod runtime;
mod upstream;
mod worker;

pub use bind::{HttpStartError, bind};
pub use config::HttpConfig;
pub use config::header_rules::{HeaderRule, HeaderRules, HeaderRulesError, ParseHeaderRuleError};
pub use config::limits::HttpLimits;
pub use redirect::{FindChallenge, RedirectAnswers, RedirectServer};
pub use route::timeouts::RouteTimeouts;
pub use route::{DuplicateRoute, ParseRouteError, Route};
