//! Routes of HTTP mode.

pub(crate) mod columns;
pub(crate) mod detail_view;
pub(crate) mod model;
pub(crate) mod state;
pub(crate) mod view;
