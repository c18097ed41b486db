//! The journals that runs are written to and read from: which one, whether it works, and what it holds.

pub(crate) mod choice;
pub(crate) mod contents;
mod probe;
pub(crate) mod reading;
pub(crate) mod source;
pub(crate) mod state_directory;
pub(crate) mod writers;
