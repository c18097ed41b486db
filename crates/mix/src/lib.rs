//! What recorded traffic was like, and a load that is like it.
//!
//! | module | purpose |
//! |---|---|
//! | `traffic` | the mix: arrivals, sizes, connections, shares |
//! | `reader` | a mix from the records of a run |
//! | `plan_file` | a mix as a file that people read and change |
//! | `script`, `lanes`, `clients`, `requests`, `draw` | a load with that mix |
//! | `comparison` | two mixes, feature by feature |
//!
//! A mix holds counts and distributions: no addresses, no names, no paths.

#![forbid(unsafe_code)]

mod clients;
mod comparison;
mod draw;
mod lanes;
mod plan_file;
mod reader;
mod requests;
mod script;
mod traffic;

pub use comparison::{FeaturePair, MixComparison};
pub use plan_file::PlanFileError;
pub use reader::{MixReader, NoMix};
pub use script::{MixLoad, MixLoadError, MixLoadOptions};
pub use traffic::{Second, Shares, Sizes, TENTHS, TrafficMix};
