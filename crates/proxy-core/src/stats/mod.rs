//! Counting: every figure is a plain addition in its worker.

pub(crate) mod clients;
pub(crate) mod handshake_time;
pub(crate) mod proxy_stats;
pub(crate) mod seen;
mod tls;
pub(crate) mod usage;
pub(crate) mod worker;
