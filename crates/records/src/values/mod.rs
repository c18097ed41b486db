//! Values of records that take one field each.

mod age_counts;
mod arrival_counts;
mod event_counts;
mod latencies;
mod log_figure;
mod mix;
mod process_cpu;
mod status_counts;
mod tls_version;
mod value_counts;
mod workers;

pub use age_counts::AgeCounts;
pub use arrival_counts::ArrivalCounts;
pub use event_counts::{EventCount, EventCounts, LoadEvent};
pub use latencies::{Latencies, Latency};
pub use log_figure::{AbsentFigures, LogFigure};
pub use mix::{ConnectionMix, Mix, MixDistributions};
pub use process_cpu::{PROCESSES_LISTED_MAX, ProcessCpu, ProcessCpuList, keep_busiest};
pub use status_counts::{StatusCounts, grpc_status_name};
pub use tls_version::TlsVersion;
pub use value_counts::ValueCounts;
pub use workers::{WORKERS_LISTED_MAX, WorkerCounts, WorkerList};
