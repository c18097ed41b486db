//! Text: made safe where it enters, with units, as keywords.

pub mod clean;
mod cpus;
pub(crate) mod keywords;
pub mod quantity;
pub mod table;

pub use cpus::{Cpus, CpusError, ParseCpusError};
pub use keywords::ParseIdError;
