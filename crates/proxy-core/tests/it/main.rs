//! The proxy from outside: real sockets, real TLS clients, real upstreams.

mod forwarding;
mod support;
