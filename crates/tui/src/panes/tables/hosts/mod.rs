//! Hosts that are watched, in a line each, and their sum.

pub(crate) mod columns;
pub(crate) mod model;
pub(crate) mod rows;
pub(crate) mod view;
