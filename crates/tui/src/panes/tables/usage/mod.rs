//! Usage: who uses which version, group, cipher or name.

pub(crate) mod detail_view;
pub(crate) mod grid;
pub(crate) mod model;
pub(crate) mod rows;
pub(crate) mod state;
pub(crate) mod view;
