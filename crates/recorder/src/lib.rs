//! From counts to records: samples the host, plans the records of an interval within their budget, and writes them.

#![forbid(unsafe_code)]

pub mod host;
pub mod observer;
pub mod publish;
#[cfg(test)]
#[path = "../../records/src/testing.rs"]
mod testing;
