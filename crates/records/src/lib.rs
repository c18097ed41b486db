//! The contract of tlsdash: the records that producers make and readers understand, and the counts that they are made of.
//!
//! A room imports only from rooms above it in this list:
//!
//! | room | content |
//! |---|---|
//! | [`text`] | text from outside made safe, quantities with units, keywords |
//! | [`ids`] | runs, connections, clients |
//! | [`metrics`] | the declaration of every counter and latency, percentiles, labels |
//! | [`histogram`] | latencies as they are recorded, carried and merged |
//! | [`wire`] | fields, and how values are written to them and read from them |
//! | [`values`] | values that take one field each |
//! | [`setting`] | settings, and commands that change them |
//! | [`kinds`] | [`Record`](kinds::Record) and the kinds of records |
//! | [`command`] | what a front end asks of a run |
//! | [`codec`] | records as journal entries, and who wrote an entry |
//! | [`delta`] | what a worker has counted in an interval, and its way to the recorder |
//! | [`mod@slice`] | the records of a part of a run |
//! | [`downsample`] | the records of several intervals as one |
//! | [`rollups`] | reading a run by its roll-ups, in stages |

#![forbid(unsafe_code)]

pub mod codec;
pub mod command;
pub mod delta;
pub mod downsample;
pub mod histogram;
pub mod ids;
pub mod kinds;
pub mod metrics;
pub mod rollups;
pub mod setting;
pub mod slice;
#[cfg(test)]
mod testing;
#[cfg(test)]
extern crate self as records;
pub mod text;
pub mod values;
pub mod wire;
