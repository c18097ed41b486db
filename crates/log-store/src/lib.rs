#![forbid(unsafe_code)]
//! Reads tlsdash's records from a store of logs: VictoriaLogs, which takes what systemd-journal-upload sends.
//!
//! [`StoreUrl`] names a store and how to ask it. [`StoreReader`] is an [`EntrySource`](journal::EntrySource): it counts the
//! entries of each hour and second, reads those that it has not read, and counts again.

mod answer;
mod census;
mod client;
mod reader;
mod sequence;
mod url;

pub use reader::StoreReader;
pub use url::{StoreUrl, StoreUrlError};
