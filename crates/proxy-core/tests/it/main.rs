//! The proxy from outside: real sockets, real TLS clients, real upstreams.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

mod acme_challenges;
mod certificates;
mod checks;
mod client_auth_names;
mod client_certificates;
mod counting;
mod dice;
mod draining;
mod endings;
mod failures;
mod forwarding;
mod full_reasons;
mod handshake_time;
mod held;
mod identity;
mod limits;
mod listening;
mod memory;
mod misbehaving;
mod names;
#[path = "../../../journal/tests/common/not_run.rs"]
mod not_run;
mod obsolete;
mod openssl;
mod outside;
mod passed_handshakes;
mod passing;
mod pki;
mod proxy_header;
mod rates;
mod reloaded_upstreams;
mod replacing;
mod revocation;
mod routes;
mod stapling;
mod support;
mod tls_choice;
mod tls_clients;
mod tls_negotiation;
mod tls_reload;
mod tls_resumption;
mod upstream_tls;
mod upstreams;
mod usage;
mod workers;
