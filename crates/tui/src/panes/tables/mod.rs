//! The panes that are a table each.

pub(crate) mod certificates;
pub(crate) mod clients;
pub(crate) mod hosts;
pub(crate) mod routes;
pub(crate) mod services;
pub(crate) mod upstreams;
pub(crate) mod usage;
