//! The server's side of a connection: its configuration, its engine, and what was negotiated and why.

pub(in crate::tls) mod acme_challenges;
pub(in crate::tls) mod client_tls;
pub(in crate::tls) mod config;
pub(in crate::tls) mod engine;
pub(in crate::tls) mod evidence;
pub(in crate::tls) mod live;
pub(in crate::tls) mod negotiated;
pub(in crate::tls) mod passed_tls;
pub(in crate::tls) mod refresh;
pub(in crate::tls) mod refusal;
