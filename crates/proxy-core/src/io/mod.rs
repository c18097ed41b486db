//! Sockets and the bytes that wait for them.

pub(crate) mod buffer;
pub(crate) mod socket;
pub(crate) mod socket_options;
