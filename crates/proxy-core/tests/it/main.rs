//! The proxy from outside: real sockets, real TLS clients, real upstreams.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod certificates;
mod counting;
mod draining;
mod endings;
mod failures;
mod forwarding;
mod limits;
mod listening;
mod misbehaving;
mod openssl;
mod proxy_header;
mod support;
mod upstreams;
mod workers;
