//! The list in which columns or panes are chosen.

pub(crate) mod state;
pub(crate) mod view;
