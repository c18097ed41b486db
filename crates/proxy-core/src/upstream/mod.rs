//! Upstreams: names and their addresses, routes by server name, health, the choice between several, connecting.

pub(crate) mod addresses;
pub(crate) mod balance;
pub(crate) mod check;
pub(crate) mod checker;
pub(crate) mod choice;
pub(crate) mod counting;
pub(crate) mod dial;
mod health;
pub(crate) mod host;
mod names;
pub(crate) mod replace;
pub(crate) mod resolver;
pub(crate) mod route;
pub(crate) mod stream;
pub(crate) mod target;
