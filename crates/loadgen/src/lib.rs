//! The load generator, and the demo upstream it can be pointed at.

#![forbid(unsafe_code)]

mod config;
mod load;
mod plan;
mod target;
mod upstream;

pub use config::{LoadConfig, SourceTotals, StartError, Template, Trust};
pub use load::Load;
pub use plan::{KeepAlive, Plan, PlanError, Rate, Share};
pub use target::{Target, TargetError};
pub use upstream::{DemoUpstream, UpstreamAddr, UpstreamError};
