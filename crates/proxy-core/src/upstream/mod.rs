//! Upstreams: names and their addresses, routes by server name, health, the choice between several, connecting.

pub(crate) mod balance;
pub(crate) mod check;
pub(crate) mod counting;
pub(crate) mod dial;
pub(crate) mod host;
pub(crate) mod names;
pub(crate) mod route;
pub(crate) mod stream;
pub(crate) mod target;
