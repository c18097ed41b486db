//! The load generator, and the demo upstream it can be pointed at.

#![forbid(unsafe_code)]

mod client;
mod clock;
mod config;
mod connection;
mod control;
mod http1;
mod ledger;
mod load;
mod pacer;
mod plan;
mod request;
mod target;
mod tls;
mod upstream;
mod worker;

pub use config::{LoadConfig, SourceTotals, StartError, Template, Trust};
pub use load::Load;
pub use plan::{KeepAlive, Plan, PlanError, Rate, Share};
pub use target::{Target, TargetError};
pub use upstream::{DemoUpstream, UpstreamAddr, UpstreamError};
