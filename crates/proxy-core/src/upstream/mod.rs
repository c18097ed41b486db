//! Upstreams: addresses, the choice between several, connecting.

pub(crate) mod balance;
pub(crate) mod counting;
pub(crate) mod dial;
pub(crate) mod stream;
pub(crate) mod target;
