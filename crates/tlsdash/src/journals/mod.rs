//! The journals that runs are written to and read from: their choice, a probe, and their contents.

pub(crate) mod bar;
pub(crate) mod choice;
pub(crate) mod contents;
pub(crate) mod mixes;
pub(crate) mod probe;
pub(crate) mod reading;
pub(crate) mod source;
mod staged_files;
pub(crate) mod state_directory;
pub(crate) mod writers;
