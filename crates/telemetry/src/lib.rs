//! The vocabulary of tlsdash: what is counted and timed, the records that carry it, and the `Model` that folds
//! records into what a screen or a report shows.

#![forbid(unsafe_code)]

pub mod clean;
mod connection;
mod delta;
mod exchange;
mod families;
mod field;
mod histogram;
mod ids;
mod metric;
mod setting;

pub use connection::{ConnectionRecord, Outcome};
pub use delta::{CLIENTS_MAX, CONNECTION_RECORDS_MAX, ClientDelta, Delta, LoadDelta, ProxyDelta};
pub use exchange::{Asked, Collector, Reporter};
pub use families::{ClientCounter, CpuGroup, LoadCounter, LoadLatency, ProxyCounter, ProxyLatency};
pub use field::{Field, Unit};
pub use histogram::{Distribution, HIGHEST_NS, Histogram, Histograms, quantile_is_thin};
pub use ids::{ClientId, ConnId, ParseIdError, RunId};
pub use metric::{Counters, Metric};
pub use setting::{Applies, Command, Setting, SettingError, Value};
