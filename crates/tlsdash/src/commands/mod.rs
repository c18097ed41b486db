//! The commands of the program, a file each, with their arguments.

#![expect(clippy::doc_markdown, reason = "the documentation of an argument is its help text")]
#![allow(
    rustdoc::broken_intra_doc_links,
    rustdoc::invalid_html_tags,
    reason = "the same; only rustdoc sees it"
)]

pub(crate) mod bench;
pub(crate) mod bench_upstream;
pub(crate) mod config;
pub(crate) mod ctl;
pub(crate) mod demo;
pub(crate) mod first_screen;
pub(crate) mod load;
pub(crate) mod man;
pub(crate) mod observed;
mod output_files;
pub(crate) mod proxy;
pub(crate) mod recordings;
pub(crate) mod scripted;
pub(crate) mod selftest;
pub(crate) mod watch;
