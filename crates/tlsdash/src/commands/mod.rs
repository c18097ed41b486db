//! What the program can be asked to do: a file for each command.

pub(crate) mod check;
pub(crate) mod compact;
pub(crate) mod compare;
pub(crate) mod demo;
pub(crate) mod load;
mod output_files;
pub(crate) mod proxy;
pub(crate) mod report;
pub(crate) mod watch;
