//! Screens beside or over the panes.

pub(crate) mod choice;
pub(crate) mod experiments;
pub(crate) mod help;
pub(crate) mod requests;
pub(crate) mod runs;
pub(crate) mod settings;
