//! The vocabulary of tlsdash: what is counted and timed, the records that carry it, and the [`Model`] that folds
//! records into what a screen or a report shows.

#![forbid(unsafe_code)]

pub mod clean;
mod codec;
mod connection;
mod delta;
mod excerpt;
mod exchange;
pub mod experiment;
mod families;
mod field;
mod follow;
mod heap_size;
mod histogram;
mod history_reader;
mod host;
mod ids;
mod message;
mod metric;
pub mod model;
mod moment;
mod observe;
mod origin;
pub mod output_file;
mod percentile;
mod percentile_interval;
mod publish;
mod record;
mod run_filter;
mod setting;
mod tally;
#[cfg(test)]
mod testing;
mod thin;
mod update;
mod wire;

pub use codec::{IDENTIFIER, decode, decode_fields, encode};
pub use connection::{ConnectionRecord, Outcome};
pub use delta::{CLIENTS_MAX, CONNECTION_RECORDS_MAX, ClientDelta, Delta, LoadDelta, ProxyDelta};
pub use excerpt::{Excerpt, Stretch};
pub use exchange::{Asked, Collector, Reporter};
pub use families::{ClientCounter, CpuGroup, LoadCounter, LoadLatency, ProxyCounter, ProxyLatency};
pub use field::{Field, Unit, common as common_fields};
pub use follow::{FollowError, Follower};
pub use histogram::encoding::interval_log_line;
pub use histogram::{Distribution, HIGHEST_NS, Histogram, Histograms, Merged, Sketch, quantile_is_thin};
pub use history_reader::{HistoryReader, HistoryReply, HistoryRequest, Seek};
pub use host::HostSampler;
pub use ids::{ClientId, ConnId, ParseIdError, RunId};
pub use journal::Timestamps;
pub use metric::{Counters, Metric};
pub use model::Model;
pub use moment::{Moment, NoMoment, Window};
pub use observe::ProcessTree;
pub use origin::{Origin, Suppressed, Writer};
pub use percentile::parse_percentile;
pub use percentile_interval::percentile_interval_ns;
pub use publish::{LoadState, Publisher, RECORDS_PER_SECOND_OWN, RECORDS_PER_SECOND_SYSTEM, Refusal, Sink};
pub use record::{
    Body, ClientRecord, EstimateRecord, ExperimentRecord, HealthRecord, HostRecord, Kind, Latencies, Latency,
    Level, LoadRecord, MarkRecord, NoticeRecord, Phase, ProxyRecord, Record, RunRecord, SCHEMA,
    SettingRecord, Stamp,
};
pub use run_filter::{EntryFilter, RunFilter, WriterFilter};
pub use setting::{Applies, Command, Setting, SettingError, Value};
pub use tally::{LoadEvent, Tallied, Tally};
pub use thin::Thinner;
pub use update::{BATCH_BYTES_MAX, BATCH_RECORDS_MAX, Batch, Foreign, Recording, Update};
pub use wire::DecodeError;
