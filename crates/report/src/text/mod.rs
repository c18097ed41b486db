//! Text formats for people and programs.

mod data;
mod hdr;
pub(crate) mod markdown;
mod repeated;

pub use hdr::{interval_log, percentile_file};
pub use markdown::columns;
pub use repeated::repeated;
