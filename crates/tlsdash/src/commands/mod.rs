//! The commands of the program, a file each.

pub(crate) mod bench;
pub(crate) mod bench_upstream;
pub(crate) mod check;
pub(crate) mod compact;
pub(crate) mod compare;
pub(crate) mod config;
pub(crate) mod ctl;
pub(crate) mod demo;
pub(crate) mod explain;
pub(crate) mod load;
pub(crate) mod observe;
mod output_files;
pub(crate) mod proxy;
pub(crate) mod report;
pub(crate) mod runs;
pub(crate) mod watch;
