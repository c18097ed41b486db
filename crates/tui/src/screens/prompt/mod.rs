//! The prompt: a filter, a value or a search that is being typed.

pub(crate) mod completion;
pub(crate) mod entry;
pub(crate) mod history;
pub(crate) mod palette;
pub(crate) mod palette_view;
pub(crate) mod state;
pub(crate) mod view;
mod words;
