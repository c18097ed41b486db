//! The commands of the program, a file each.

pub(crate) mod bench;
pub(crate) mod bench_upstream;
pub(crate) mod config;
pub(crate) mod ctl;
pub(crate) mod demo;
pub(crate) mod load;
pub(crate) mod observed;
mod output_files;
pub(crate) mod proxy;
pub(crate) mod recordings;
pub(crate) mod watch;
