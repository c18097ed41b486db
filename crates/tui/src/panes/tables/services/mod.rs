//! The services that packets tell apart, in a line each.

mod columns;
pub(crate) mod model;
pub(crate) mod state;
pub(crate) mod view;
