//! HTTP mode from outside: real TLS clients, scripted upstreams.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod balance;
#[path = "../common/mod.rs"]
mod common;
mod drain;
mod failures;
mod http2;
mod http2_client;
mod http2_server;
mod http2_upstream;
mod names;
mod passing;
mod pooling;
mod rates;
mod redirect;
mod reloaded_upstreams;
mod routing;
mod rules;
mod semantics;
mod support;
mod timeouts;
mod under_load;
mod upgrade;
mod upstream;
mod upstream_tls;
mod websocket;
