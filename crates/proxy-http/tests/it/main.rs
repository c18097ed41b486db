//! HTTP mode from outside: real TLS clients, scripted upstreams.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod balance;
mod failures;
mod routing;
mod support;
