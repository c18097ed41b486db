//! Forms that people and programs read as text.

mod data;
mod hdr;
pub(crate) mod markdown;
mod repeated;

pub use hdr::{interval_log, percentile_file};
pub use repeated::repeated;
