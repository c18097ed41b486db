#![forbid(unsafe_code)]
//! Sends journal entries to a store of logs, and reads tlsdash's records there: VictoriaLogs, which takes what
//! systemd-journal-upload sends.
//!
//! [`StoreUrl`] names a store and how to ask it. [`StoreReader`] is an [`EntrySource`](journal::EntrySource): it counts the
//! entries of each hour and second, reads those that it has not read, and counts again. [`Uploader`] sends the entries of a
//! journal file to such a store, or to systemd-journal-remote.

mod answer;
mod census;
mod client;
mod reader;
mod sequence;
mod upload;
mod url;

pub use reader::StoreReader;
pub use upload::{UploadState, UploadTarget, Uploader};
pub use url::{StoreUrl, StoreUrlError, UploadUrl};
