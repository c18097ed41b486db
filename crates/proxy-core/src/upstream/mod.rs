//! Where the plaintext goes: addresses, the choice between several upstreams, connecting.

pub(crate) mod balance;
pub(crate) mod dial;
pub(crate) mod target;
