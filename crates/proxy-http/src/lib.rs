//! HTTP mode: terminates HTTP/2 and HTTP/1.1, routes requests, and pools upstream connections.
//!
//! It is a [`Handler`](proxy_core::handler::Handler) of proxy-core: accept, limits, TLS, drain and handshake counters are
//! the same as in TCP mode. hyper parses and frames the client's side. Its futures are polled by the worker that owns
//! the socket.

#![forbid(unsafe_code)]

mod client;
mod config;
mod connection;
mod floods;
mod forward;
mod frame_tap;
pub mod harness;
mod held_bytes;
mod http1_tap;
mod io;
mod limits;
mod request;
mod request_check;
mod route;
mod route_timeouts;
mod settings;
mod special_fields;
mod target_text;
mod tasks;
mod timers;
mod upstream;
mod worker;
mod written;

pub use config::{HttpConfig, HttpStartError, bind};
pub use limits::HttpLimits;
pub use route::{DuplicateRoute, HostPattern, ParseRouteError, Route};
pub use route_timeouts::RouteTimeouts;
