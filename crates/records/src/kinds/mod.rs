//! The records that tlsdash writes: once per interval, or when something happens.

mod alert;
mod certificate;
mod connection;
mod costs;
mod experiment;
pub mod heap_size;
mod host;
mod http;
mod named;
mod table;
mod tls;
mod upstream;
mod verdict;

pub use journal::Timestamps;

use crate::histogram::Sketch;
use crate::ids::{ClientId, ConnId, RunId};
use crate::metrics::{ClientCounter, Counters, LoadCounter, LoadLatency, ProxyCounter, ProxyLatency};
use crate::setting::Setting;
use crate::text::clean;
use crate::text::keywords::keyword_enum;
use crate::values::{AbsentFigures, EventCounts, Latencies, Mix};
use crate::wire::{FAMILY, field, wire};

pub use alert::{AlertRecord, AlertSentence, AlertState, operator_at};
pub use certificate::{CERTIFICATES_MAX, CertificateRecord};
pub use connection::{ConnectionOutcome, ConnectionRecord, NO_COMMON_VERSION, handshake_failure};
pub use costs::{Cost, CostTable, FULL, HYBRID, HandshakeCosts, RESUMED};
pub use experiment::{Arm, Estimate, ExperimentOutcome, ExperimentRecord, ExperimentStep, Stage};
pub use host::HostRecord;
pub use http::{HttpGauges, HttpRecord, HttpVersion, RequestRecord, RouteRecord};
pub use named::NamedRecord;
pub use table::RecordKind;
pub use tls::{TlsRecord, UsageRecord};
pub use upstream::{UpstreamRecord, UpstreamState};
pub use verdict::{Judged, UNFINISHED};

/// Version of the record format that this program writes; a reader refuses a higher one. It rises only if older versions
/// would read wrong figures: new fields, kinds and words do not need it (docs/formats.md).
pub const SCHEMA: u64 = 1;

/// Where and when a record was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    pub run: RunId,
    /// Its number within the run, from 1 without gaps; a gap in the numbers read is a loss.
    pub seq: u64,
    /// `CLOCK_MONOTONIC` when it was made, in microseconds.
    pub mono_us: u64,
    /// `CLOCK_REALTIME` when it was made, in microseconds.
    pub realtime_us: u64,
    /// The time it covers up to `mono_us`, in microseconds; 0 for an event. Of the first record of a part of a run: how long
    /// the run had lasted.
    pub interval_us: u64,
}

/// Longest time between two intervals that is not a gap. It must be short against an interval: a refused interval
/// goes with the next one, which then is long itself.
const GAP_SLACK_US_MAX: u64 = 20_000;

impl Stamp {
    /// Returns the times of the record's journal entry.
    pub fn timestamps(&self) -> Timestamps {
        Timestamps { realtime_us: self.realtime_us, monotonic_us: self.mono_us }
    }

    /// True if the record does not cover all the time since `end_us`, the end of the previous record of its kind.
    pub fn is_after_gap(&self, end_us: u64) -> bool {
        let slack_us = (self.interval_us / 2).min(GAP_SLACK_US_MAX);
        self.mono_us.saturating_sub(self.interval_us) > end_us.saturating_add(slack_us)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub stamp: Stamp,
    pub body: Body,
}

/// The content of a record; the variant is its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// A run began or ended.
    Run(Box<RunRecord>),
    Proxy(Box<ProxyRecord>),
    Client(ClientRecord),
    /// One connection: an error, or a sample.
    Connection(Box<ConnectionRecord>),
    /// TLS counters of the proxy.
    Tls(Box<TlsRecord>),
    /// Counters of one TLS version, server name, or other value of a dimension.
    Usage(Box<UsageRecord>),
    /// One certificate that is served.
    Certificate(Box<CertificateRecord>),
    /// Counters of one upstream of the proxy.
    Upstream(Box<UpstreamRecord>),
    /// HTTP counters of the proxy.
    Http(Box<HttpRecord>),
    Route(Box<RouteRecord>),
    /// One request: an error, one of the slowest, or a sample.
    Request(Box<RequestRecord>),
    Load(Box<LoadRecord>),
    Setting(SettingRecord),
    /// A person left a note.
    Mark(MarkRecord),
    /// The cost of the parts of a handshake on this machine.
    Calibration(Box<HandshakeCosts>),
    /// A step of an experiment.
    Experiment(Box<ExperimentRecord>),
    /// Resources that the process used.
    Host(HostRecord),
    /// The writer's counts of losses.
    Health(HealthRecord),
    /// A message to the operator.
    Notice(NoticeRecord),
    /// An alert fired or resolved.
    Alert(Box<AlertRecord>),
    /// A record of a kind, or with a word, that only a later version knows. It is counted, so that it is no loss.
    Unknown,
}

keyword_enum! {
    /// Whether a run record opens or closes its run.
    Phase {
        #[default]
        Start = "start",
        /// The run ended in order, and these are its final totals.
        Stop = "stop",
    }
}

/// Stands for the name of a terminator in a run that was counted from packets.
pub const OF_PACKETS: &str = "wire";

impl RunRecord {
    /// Whether it was counted from packets, whoever terminated TLS.
    pub fn is_of_packets(&self) -> bool {
        self.log == OF_PACKETS
    }
}

wire! {
    /// A run's beginning, with its description; or its end, with the final totals and whole-run histograms.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct RunRecord {
        pub phase: Phase = &field::PHASE,
        /// Version of tlsdash.
        pub version: String = &field::VERSION,
        pub host: String = &field::HOST,
        /// Addresses the proxy listens on, separated by blanks; empty without a proxy.
        pub listen: String = &field::LISTEN,
        /// The target that the proxy forwards to, or that the load uses.
        pub upstream: String = &field::UPSTREAM,
        /// Type of the certificate's key, such as `ECDSA P-256`; empty without a proxy.
        pub certificate: String = &field::CERTIFICATE,
        /// Worker threads of the proxy.
        pub workers: u64 = &field::WORKERS,
        /// The kernel's release.
        pub kernel: String = &field::KERNEL,
        pub cpu_model: String = &field::CPU_MODEL,
        /// Cores that the process may run on.
        pub cores: u64 = &field::CORES,
        /// The governor of the first core's frequency; empty without one.
        pub governor: String = &field::GOVERNOR,
        pub clock_source: String = &field::CLOCK_SOURCE,
        /// Memory of the host, in bytes.
        pub host_memory_bytes: u64 = &field::HOST_MEMORY,
        /// Absolute path of the run's control socket; empty without one.
        pub control_socket: String = &field::CONTROL_SOCKET,
        /// Every setting as it stood.
        pub settings: Vec<Setting> = &field::SETTINGS,
        /// The terminator whose log was counted, or [`OF_PACKETS`]; empty if this program terminated TLS.
        pub log: String = &field::LOG,
        /// The service whose part of a run this is, such as `:443 nginx`; empty in the run of them all.
        pub service: String = &field::SERVICE,
        /// Resolution of the times in the log, in microseconds: shorter times count as this much; 0 without a log.
        pub log_resolution_us: u64 = &field::LOG_RESOLUTION,
        /// Figures that the log does not have, each with the reason, separated by semicolons.
        pub absent: AbsentFigures = &field::ABSENT,
        /// True in the last record of a part of a run: the process ran on.
        pub runs_on: bool = &field::RUNS_ON,
        /// Id of the run of the process that has taken over; empty if none has.
        pub next_run: String = &field::NEXT_RUN,
        /// The proxy's totals with histograms of the whole run; only at the end of a run with a proxy.
        pub proxy: Option<ProxyRecord> = &field::HAS_PROXY,
        /// The totals of TLS with histograms of the whole run; only at the end of a run with a proxy.
        pub tls: Option<TlsRecord> = &field::HAS_TLS,
        /// The totals of HTTP with histograms of the whole run; only at the end of a run in HTTP mode.
        pub http: Option<HttpRecord> = &field::HAS_HTTP,
        /// The load's totals with histograms of the whole run; only at the end of a run with a load.
        pub load: Option<LoadRecord> = &field::HAS_LOAD,
    }
}

wire! {
    /// The proxy, once per interval: cumulative counters, and the interval's latencies.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct ProxyRecord {
        /// Connections open at the end of the interval.
        pub open: u64 = &field::OPEN,
        /// Changed clients of this interval whose record was deferred for lack of budget.
        pub clients_deferred: u64 = &field::CLIENTS_DEFERRED,
        /// Changed upstreams of this interval whose record was deferred.
        pub upstreams_deferred: u64 = &field::UPSTREAMS_DEFERRED,
        /// Totals of the run.
        pub counters: Counters<ProxyCounter> = &FAMILY,
        /// Latencies of the interval.
        pub latencies: Latencies<ProxyLatency> = &FAMILY,
        /// The mix of the interval's traffic; empty at the end of a run.
        pub mix: Mix = &FAMILY,
    }
}

wire! {
    /// The load, once per interval: its state, cumulative counters, and the interval's latencies.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct LoadRecord {
        /// True while requests are being scheduled.
        pub running: bool = &field::LOAD_RUNNING,
        /// Requests a second that are asked for; 0 in a closed loop.
        pub rate: f64 = &field::LOAD_RATE,
        /// Share of new connections that are meant to resume, in percent.
        pub resume_percent: f64 = &field::LOAD_RESUME,
        /// Connections that are asked for.
        pub connections: u64 = &field::LOAD_CONNECTIONS,
        pub threads: u64 = &field::LOAD_THREADS,
        /// Length of the schedule up to now, without warm-up and pauses, in microseconds; 0 in a closed loop.
        pub due_us: u64 = &field::LOAD_DUE,
        /// Time until the last request was sent, without warm-up and pauses, in microseconds.
        pub sending_us: u64 = &field::LOAD_SENDING,
        /// Time until the end of the schedule, or until the last answer if that came later, without warm-up and pauses,
        /// in microseconds. In a closed loop, until the end of the last request.
        pub measured_us: u64 = &field::LOAD_MEASURED,
        /// Outcomes of requests and handshakes, by kind.
        pub events: EventCounts = &field::LOAD_TALLY,
        /// Totals of the run.
        pub counters: Counters<LoadCounter> = &FAMILY,
        /// Latencies of the interval.
        pub latencies: Latencies<LoadLatency> = &FAMILY,
    }
}

wire! {
    /// One client of the proxy: cumulative counters of its epoch.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ClientRecord {
        pub client: ClientId = &field::CLIENT,
        /// Counts a client's stays in the bounded table. Its counters start at 0 with each stay.
        pub epoch: u64 = &field::CLIENT_EPOCH,
        /// True if no further record of this epoch follows.
        pub last: bool = &field::CLIENT_LAST,
        /// Connections open at the end of the interval.
        pub open: u64 = &field::CLIENT_OPEN,
        /// Totals of the epoch.
        pub counters: Counters<ClientCounter> = &FAMILY,
        /// Round-trip time to it at the end of its latest handshake, in microseconds; 0 if not known.
        pub rtt_us: u64 = &field::CLIENT_RTT,
        /// Latencies of its exchanges since its last record that has some.
        pub exchange: Sketch = &field::CLIENT_EXCHANGE_SKETCH,
    }
}

wire! {
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct SettingRecord {
        /// Its dotted name.
        pub name: String = &field::SETTING,
        /// The value before the change.
        pub before: String = &field::SETTING_BEFORE,
        /// The setting after the change, with its full description.
        pub after: Option<Setting> = &field::SETTING_AFTER,
        /// Who changed it over the control socket; empty for the dashboard, an experiment and the program itself.
        pub by: String = &field::SETTING_BY,
    }
}

wire! {
    /// A note in the time line.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct MarkRecord {
        /// Its number within the run, from 1.
        pub number: u64 = &field::MARK,
        /// The text of the note, cleaned; may be empty.
        pub text: String = &field::MARK_TEXT,
    }
}

wire! {
    /// The writer's counts of its own losses; written when one of them changes.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct HealthRecord {
        /// Records of intervals that the journal had not accepted when the next interval ended.
        pub refused_total: u64 = &field::HEALTH_REFUSED,
        /// Intervals whose counters were merged into a later record for that reason.
        pub merged_total: u64 = &field::HEALTH_MERGED,
        /// Times that the journal accepted no records for a moment; pending ones were offered again.
        pub waits_total: u64 = &field::HEALTH_WAITS,
        /// Discarded records: too many events waited, the journal would never have accepted them, or its file was
        /// removed or truncated.
        pub dropped_total: u64 = &field::HEALTH_DROPPED,
        /// Messages of this service, records or not, that journald's rate limit dropped.
        pub suppressed_total: u64 = &field::HEALTH_SUPPRESSED,
        /// Records of connection errors and failed requests without room in the budget.
        pub over_budget_total: u64 = &field::HEALTH_OVER_BUDGET,
        /// By how much the wall clock jumped against the monotonic clock, summed, in microseconds; negative if backwards.
        pub clock_step_us: i64 = &field::HEALTH_CLOCK_STEP,
        /// How often it did; 0 in recordings of an older version.
        pub clock_steps_total: u64 = &field::HEALTH_CLOCK_STEPS,
        /// The last refusal in words; empty if there was none.
        pub error: String = &field::HEALTH_ERROR,
        /// Records that wait for a receiver of uploads that fails, or catches up.
        pub upload_waiting: u64 = &field::HEALTH_UPLOAD_WAITING,
        /// Records that left the archives before a receiver had confirmed them, or were too large for it.
        pub upload_lost_total: u64 = &field::HEALTH_UPLOAD_LOST,
        /// Why uploads fail, in words; empty while they do not.
        pub upload_failure: String = &field::HEALTH_UPLOAD_FAILURE,
    }
}

impl HealthRecord {
    /// What happened to the wall clock, such as `set by +3.000 s`; `None` if it was not set.
    pub fn clock_steps(&self) -> Option<String> {
        let by = format!("by {:+.3} s", self.clock_step_us as f64 / 1e6);
        match self.clock_steps_total {
            0 if self.clock_step_us == 0 => None,
            0 => Some(format!("set {by} in sum")),
            1 => Some(format!("set {by}")),
            n => Some(format!("set {n} times, {by} in sum")),
        }
    }

    /// True if no record was lost or refused. Records that only wait do not count.
    pub fn is_healthy(&self) -> bool {
        *self == Self { waits_total: self.waits_total, ..Self::default() }
    }
}

keyword_enum! {
    Level {
        Info = "info",
        /// A person did something, or should be informed.
        #[default]
        Notice = "notice",
        Warning = "warning",
    }
}

wire! {
    /// A message to the operator, once per episode: a problem, or its end.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct NoticeRecord {
        pub level: Level = &field::NOTICE_LEVEL,
        /// The topic, in one word that stays the same: later versions add topics.
        pub topic: String = &field::NOTICE_TOPIC,
        /// The sentence, cleaned.
        pub text: String = &field::NOTICE_TEXT,
        /// Figures that turn out to be absent from the lines of the log, each with the reason.
        pub absent: AbsentFigures = &field::ABSENT,
    }
}

impl NoticeRecord {
    /// About `topic`, in words that are made printable here: they may quote peers and files.
    pub fn new(level: Level, topic: &str, text: &str) -> Self {
        Self { level, topic: topic.to_owned(), text: clean::line(text), absent: AbsentFigures::default() }
    }
}

wire! {
    @impl ConnectionRecord {
        conn: ConnId = &field::CONNECTION,
        client: ClientId = &field::CLIENT,
        outcome: ConnectionOutcome = &field::OUTCOME,
        detail: String = &field::DETAIL,
        tls_version: String = &field::TLS_VERSION,
        cipher: String = &field::CIPHER,
        group: String = &field::GROUP,
        sni: String = &field::SNI,
        alpn: String = &field::ALPN,
        client_name: String = &field::CLIENT_NAME,
        resumed: bool = &field::RESUMED,
        bytes_in: u64 = &field::CONNECTION_BYTES_IN,
        bytes_out: u64 = &field::CONNECTION_BYTES_OUT,
        lifetime_us: u64 = &field::CONNECTION_LIFETIME,
    }
}
