//! What is counted and timed: the families of metrics, and the percentiles of what is timed.

mod counters;
mod families;
mod percentile;
mod percentile_interval;

pub use counters::{Counters, Metric};
pub use families::{ClientCounter, CpuGroup, LoadCounter, LoadLatency, ProxyCounter, ProxyLatency};
pub use percentile::parse_percentile;
pub use percentile_interval::percentile_interval_ns;
