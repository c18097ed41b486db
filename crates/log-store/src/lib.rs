#![forbid(unsafe_code)]
//! Sends journal entries to a store of logs, and reads tlsdash's records there: VictoriaLogs, which takes what
//! systemd-journal-upload sends.
//!
//! [`StoreUrl`] names a store and how to ask it. [`StoreReader`] is an [`EntrySource`](journal::EntrySource): it counts the
//! entries of each hour and second, reads those that it has not read, and counts again. [`Uploader`] sends the entries of a
//! journal file to such a store, or to systemd-journal-remote.

use std::time::{SystemTime, UNIX_EPOCH};

mod answer;
mod census;
mod client;
mod reader;
mod sequence;
#[cfg(test)]
mod testing;
mod upload;
mod url;

pub use reader::StoreReader;
pub use upload::{UploadState, UploadTarget, Uploader};
pub use url::{StoreUrl, StoreUrlError, UploadUrl};

/// The time of this host, in seconds since 1970.
fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
