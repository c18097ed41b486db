//! The families of metrics, their labels, and percentiles.

mod certificate_refusal;
mod counters;
mod dimension;
mod families;
mod field;
mod full_reason;
mod host;
mod http;
pub mod labels;
mod latency_class;
mod percentile;
mod request_failure;
mod time_resolution;
mod tls;
mod upstream;

pub use certificate_refusal::CertificateRefusal;
pub use counters::{Counters, Metric, MetricNames};
pub use dimension::Dimension;
pub use families::{ClientCounter, LoadCounter, LoadLatency, ProxyCounter, ProxyLatency};
pub use field::{Field, Unit};
pub use full_reason::FullReason;
pub use host::{CPU_GROUPS, CpuGroup, HostCounter};
pub use http::{HttpCounter, HttpLatency, RouteCounter, RouteLatency};
pub use latency_class::LatencyClass;
pub use percentile::interval::percentile_interval_ns;
pub use percentile::{Percentile, parse_percentile};
pub use request_failure::RequestFailure;
pub use time_resolution::{KnownTime, KnownValue, TimeResolution};
pub use tls::{TlsCounter, TlsLatency, UsageCounter};
pub use upstream::{UpstreamCounter, UpstreamLatency};
