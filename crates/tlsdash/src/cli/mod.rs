//! Options: flags of the command line, and words of the configuration file. Both are the same, and flags win.
//!
//! The options of the proxy are in `configuration/`, and their groups in `options/`. Its limits and TLS options are not in
//! this crate: proxy-core declares each once (see `DeclaredOptions`), and `value/options.rs` makes a flag and a
//! configuration key of it. After a change `just schema` writes docs/options.md.

#![expect(clippy::doc_markdown, reason = "the documentation of an argument is its help text")]
#![allow(rustdoc::broken_intra_doc_links, reason = "the same; only rustdoc sees it")]

pub(crate) mod appearance;
pub(crate) mod configuration;
mod flags;
mod format;
pub(crate) mod help;
pub(crate) mod options;
mod run_options;
mod runs;

pub use configuration::{ConfigurationError, read_configuration};
pub(crate) use configuration::{ProxyArgs, ProxyOptions, read_file};
pub(crate) use flags::Flags;
pub(crate) use format::Format;
pub(crate) use run_options::RunOptions;
pub(crate) use runs::{RecordsArg, RunsArgs};
