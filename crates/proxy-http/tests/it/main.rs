//! HTTP mode from outside: real TLS clients, scripted upstreams.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod balance;
mod drain;
mod failures;
mod http2;
mod pooling;
mod routing;
mod semantics;
mod support;
mod timeouts;
mod upgrade;
