//! Sessions that clients come back with: in tickets, or kept here.

pub(in crate::tls) mod session;
pub(in crate::tls) mod session_cache;
pub(in crate::tls) mod tickets;
