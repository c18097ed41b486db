//! The proxy from outside: real sockets, real TLS clients, real upstreams.

mod certificates;
mod counting;
mod draining;
mod endings;
mod failures;
mod forwarding;
mod limits;
mod listening;
mod openssl;
mod support;
