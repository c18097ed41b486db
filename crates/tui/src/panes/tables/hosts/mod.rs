//! Hosts that are watched, in a line each, and their sum.

pub(crate) mod columns;
pub(crate) mod list;
pub(crate) mod model;
pub(crate) mod view;
