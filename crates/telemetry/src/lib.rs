//! The core types of tlsdash: counters and latencies, the records that carry them, and the [`Model`] that builds the
//! figures of screens and reports from records.

#![forbid(unsafe_code)]

mod alerts;
mod collect;
mod cpus;
pub mod figures;
mod histogram;
mod history;
pub mod insight;
mod metrics;
pub mod model;
pub mod output_file;
mod publish;
pub mod quantity;
mod record;
#[cfg(test)]
mod testing;
mod tls_version;

pub use alerts::{
    ALERTS_MAX, ALERTS_SPARE, Alert, AlertChange, AlertError, AlertInterval, AlertUpdate, Alerts,
    AlertsError, UndersampledAlert,
};
pub use collect::delta::{
    CLIENTS_MAX, CONNECTION_RECORDS_MAX, ClientDelta, Delta, LoadDelta, LoadState, ProxyDelta,
};
pub use collect::delta_channel::{Collector, HandoverResult, Reporter};
pub use collect::host::HostSampler;
pub use collect::http::{FinishedRequest, HttpDelta, ROUTES_MAX, RouteDelta};
pub use collect::listening::ListeningSocket;
pub use collect::observe::ProcessObserver;
pub use collect::process_tree::{ProcessTree, ThreadSchedule, TreeMemory, TreeReading};
pub use collect::request_samples::{REQUEST_RECORDS_MAX, RequestSamples};
pub use collect::slow_reading::SlowReading;
pub use collect::tls::{OTHER_VALUE, TlsDelta, USAGE_VALUES_MAX, UsageDelta};
pub use collect::unit_processes::unit_processes;
pub use cpus::{Cpus, CpusError, ParseCpusError};
pub use histogram::encoding::interval_log_line;
pub use histogram::{
    CompactHistogram, HIGHEST_NS, Histogram, Histograms, Sketch, SparseHistogram, WindowHistogram,
    quantile_is_thin,
};
pub use history::downsample::Downsampler;
pub use history::follow::{FollowError, Follower};
pub use history::moment::{Moment, MomentRange, ParseMomentError};
pub use history::reader::{HistoryReader, HistoryReply, HistoryRequest, SeekRequest};
pub use history::run_filter::{EntryFilter, RunFilter, WriterFilter};
pub use history::seen_records::SeenRecords;
pub use history::slice::{RunSlice, SliceBaseline, TimeRange};
pub use history::update::{
    BATCH_BYTES_MAX, BATCH_RECORDS_MAX, Batch, ForeignRecords, RecordingStatus, Update,
};
pub use insight::savings::{DurationStats, Estimate, HandshakeMix, HowTo, Saving, SavingChange, savings};
pub use journal::Timestamps;
pub use quantity::elapsed_text;
pub use record::costs::{Cost, CostTable, FULL, HYBRID, HandshakeCosts, RESUMED};
pub use record::http_gauges::HttpGauges;
pub mod experiment {
    //! The words of experiments: two values of a setting compared in pairs of blocks (see `docs/experiments.md`).
    pub use crate::record::experiment::{Arm, ExperimentOutcome, ExperimentStep, Stage};
}
pub use metrics::{
    ClassInfo, ClientCounter, Counters, CpuGroup, Dimension, FullReason, HttpCounter, HttpLatency, KnownTime,
    KnownValue, LatencyClass, LoadCounter, LoadLatency, Metric, Percentile, ProxyCounter, ProxyLatency,
    RequestFailure, RouteCounter, RouteLatency, TimeResolution, TlsCounter, TlsLatency, UsageCounter, labels,
    parse_percentile, percentile_interval_ns,
};
pub use model::Model;
pub use publish::{
    Publisher, RECORDS_PER_SECOND_OWN, RECORDS_PER_SECOND_SYSTEM, RecordWriter, Refusal, Sink,
};
pub use record::age_counts::AgeCounts;
pub use record::clean;
pub use record::codec::{IDENTIFIER, decode, decode_fields, encode};
pub use record::connection::{ConnectionOutcome, ConnectionRecord};
pub use record::event_counts::{EventCount, EventCounts, LoadEvent};
pub use record::field::{Field, Unit, common as common_fields};
pub use record::ids::{ClientId, ConnId, ParseIdError, RunId};
pub use record::log_figure::{AbsentFigures, LogFigure};
pub use record::origin::{Origin, SuppressedMessages, Writer};
pub use record::process_cpu::{PROCESSES_LISTED_MAX, ProcessCpu, ProcessCpuList};
pub use record::setting::{Applies, Command, INSECURE, Setting, SettingError, TRUST, Value};
pub use record::setting_info::{SettingInfo, SettingKind};
pub use record::status_counts::StatusCounts;
pub use record::wire::DecodeError;
pub use record::{
    AlertRecord, AlertSentence, AlertState, Body, ClientRecord, EstimateRecord, ExperimentRecord,
    HealthRecord, HostRecord, HttpRecord, HttpVersion, Latencies, Latency, Level, LoadRecord, MarkRecord,
    NoticeRecord, Phase, ProxyRecord, Record, RecordKind, RequestRecord, RouteRecord, RunRecord, SCHEMA,
    SettingRecord, Stamp, TlsRecord, UsageRecord,
};
pub use tls_version::TlsVersion;
