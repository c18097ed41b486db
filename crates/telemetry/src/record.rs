//! The records: what tlsdash says of itself, once an interval or when something happens.

use crate::connection::{ConnectionRecord, Outcome};
use crate::experiment::{self, Arm, ExperimentStep, Stage};
use crate::families::{ClientCounter, CpuGroup, LoadCounter, LoadLatency, ProxyCounter, ProxyLatency};
use crate::field::{self, Field};
use crate::histogram::{Distribution, Histograms};
use crate::ids::{ClientId, ConnId, ParseIdError, RunId};
use crate::metric::{Counters, Metric};
use crate::setting::Setting;
use crate::tally::Tally;
use crate::wire::{DecodeError, FAMILY, Source, Wire, wire};
use journal::EntryBuf;

/// The version of the record format that this program writes; a reader refuses a higher one.
pub const SCHEMA: u64 = 1;

/// Where and when a record was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The run it belongs to.
    pub run: RunId,
    /// Its number within the run, from 1 without holes; a hole in what is read is a loss.
    pub seq: u64,
    /// `CLOCK_MONOTONIC` when it was made, in microseconds.
    pub mono_us: u64,
    /// `CLOCK_REALTIME` when it was made, in microseconds.
    pub realtime_us: u64,
    /// The time it covers up to `mono_us`, in microseconds; 0 for an event.
    pub interval_us: u64,
}

/// One record.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Where and when it was made.
    pub stamp: Stamp,
    /// What it says.
    pub body: Body,
}

/// What a record says; the variant is its kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// A run began or ended.
    Run(Box<RunRecord>),
    /// What the proxy counted.
    Proxy(Box<ProxyRecord>),
    /// What the proxy counted for one client.
    Client(ClientRecord),
    /// One connection: an error, or a sample.
    Connection(Box<ConnectionRecord>),
    /// What the load counted.
    Load(Box<LoadRecord>),
    /// A setting was changed.
    Setting(SettingRecord),
    /// A person left a note.
    Mark(MarkRecord),
    /// How an experiment goes.
    Experiment(Box<ExperimentRecord>),
    /// What the process used.
    Host(HostRecord),
    /// What the writer knows of losses.
    Health(HealthRecord),
    /// What a person should know.
    Notice(NoticeRecord),
}

/// Whether a run record opens or closes its run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// The run begins.
    #[default]
    Start,
    /// The run ended in order, and these are its final totals.
    Stop,
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(if *self == Self::Start { "start" } else { "stop" })
    }
}

impl std::str::FromStr for Phase {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        match text {
            "start" => Ok(Self::Start),
            "stop" => Ok(Self::Stop),
            _ => Err(ParseIdError),
        }
    }
}

wire! {
    /// A run's beginning, with what it runs with; or its end, with the final totals and whole-run histograms.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct RunRecord {
        /// Whether the run begins or ends.
        pub phase: Phase = &field::PHASE,
        /// Version of tlsdash.
        pub version: String = &field::VERSION,
        /// Name of the host.
        pub host: String = &field::HOST,
        /// Addresses the proxy listens on, separated by blanks; empty without a proxy.
        pub listen: String = &field::LISTEN,
        /// Where the proxy forwards to, or what the load is aimed at.
        pub upstream: String = &field::UPSTREAM,
        /// Type of the certificate's key, such as `ECDSA P-256`; empty without a proxy.
        pub certificate: String = &field::CERTIFICATE,
        /// Worker threads of the proxy.
        pub workers: u64 = &field::WORKERS,
        /// The kernel's release.
        pub kernel: String = &field::KERNEL,
        /// The processor's own name.
        pub cpu_model: String = &field::CPU_MODEL,
        /// Cores that the process may run on.
        pub cores: u64 = &field::CORES,
        /// What sets the frequency of the first core; empty if nothing does.
        pub governor: String = &field::GOVERNOR,
        /// What the kernel's clocks are read from.
        pub clock_source: String = &field::CLOCK_SOURCE,
        /// Memory of the host, in bytes.
        pub host_memory_bytes: u64 = &field::HOST_MEMORY,
        /// Every setting as it stood.
        pub settings: Vec<Setting> = &field::SETTINGS,
        /// The proxy's totals with histograms of the whole run; only at the end of a run with a proxy.
        pub proxy: Option<ProxyRecord> = &field::HAS_PROXY,
        /// The load's totals with histograms of the whole run; only at the end of a run with a load.
        pub load: Option<LoadRecord> = &field::HAS_LOAD,
    }
}

wire! {
    /// The proxy, once an interval: cumulative counters, and the interval's latencies.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct ProxyRecord {
        /// Connections open at the end of the interval.
        pub open: u64 = &field::OPEN,
        /// Clients that changed in this interval and whose record was put off for lack of budget.
        pub clients_deferred: u64 = &field::CLIENTS_DEFERRED,
        /// Totals of the run so far.
        pub counters: Counters<ProxyCounter> = &FAMILY,
        /// Latencies of the interval.
        pub latencies: Latencies<ProxyLatency> = &FAMILY,
    }
}

wire! {
    /// The load, once an interval: how it stands, cumulative counters, and the interval's latencies.
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
        /// Threads of the generator.
        pub threads: u64 = &field::LOAD_THREADS,
        /// First to last moment at which a request after the warm-up was due, in microseconds; 0 in a closed loop.
        pub due_us: u64 = &field::LOAD_DUE,
        /// From the same beginning to the last request sent.
        pub sending_us: u64 = &field::LOAD_SENDING,
        /// From the same beginning to the end of the last request.
        pub measured_us: u64 = &field::LOAD_MEASURED,
        /// What befell requests and handshakes so far, kind by kind.
        pub tally: Tally = &field::LOAD_TALLY,
        /// Totals of the run so far.
        pub counters: Counters<LoadCounter> = &FAMILY,
        /// Latencies of the interval.
        pub latencies: Latencies<LoadLatency> = &FAMILY,
    }
}

wire! {
    /// One client of the proxy: cumulative counters of its epoch.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ClientRecord {
        /// Whose traffic it is.
        pub client: ClientId = &field::CLIENT,
        /// Tells the stays of a client in the bounded table apart, and grows; counters begin anew with each.
        pub epoch: u64 = &field::CLIENT_EPOCH,
        /// True if no further record of this epoch follows.
        pub last: bool = &field::CLIENT_LAST,
        /// Connections open at the end of the interval.
        pub open: u64 = &field::CLIENT_OPEN,
        /// Totals of the epoch so far.
        pub counters: Counters<ClientCounter> = &FAMILY,
    }
}

wire! {
    /// A setting was changed.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct SettingRecord {
        /// Its dotted name.
        pub name: String = &field::SETTING,
        /// How it stood before.
        pub before: String = &field::SETTING_BEFORE,
        /// How it stands now, with all that describes it.
        pub after: Option<Setting> = &field::SETTING_AFTER,
    }
}

wire! {
    /// A note in the time line.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct MarkRecord {
        /// Its number within the run, from 1.
        pub number: u64 = &field::MARK,
        /// What was noted, cleaned; may be empty.
        pub text: String = &field::MARK_TEXT,
    }
}

wire! {
    /// How an experiment goes: its plan, each switch, how the figures stand after each pair, what it came to.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct ExperimentRecord {
        /// Its number within the run, from 1.
        pub number: u64 = &field::EXPERIMENT,
        /// What this record tells.
        pub step: ExperimentStep = &field::EXPERIMENT_STEP,
        /// Which part of the experiment it is about.
        pub stage: Stage = &field::EXPERIMENT_STAGE,
        /// Whose value is in force from now on.
        pub arm: Arm = &field::EXPERIMENT_ARM,
        /// Dotted name of the setting whose values are compared.
        pub setting: String = &field::EXPERIMENT_SETTING,
        /// Its first value.
        pub a: String = &field::EXPERIMENT_A,
        /// Its second value.
        pub b: String = &field::EXPERIMENT_B,
        /// The pair that is under way or complete, from 1 in each stage.
        pub pair: u64 = &field::EXPERIMENT_PAIR,
        /// Pairs that are planned in this stage.
        pub pairs: u64 = &field::EXPERIMENT_PAIRS,
        /// Length of a block, in microseconds.
        pub block_us: u64 = &field::EXPERIMENT_BLOCK,
        /// Time after each switch that does not count, in microseconds.
        pub discard_us: u64 = &field::EXPERIMENT_DISCARD,
        /// True if sessions and tickets are forgotten at each switch.
        pub flush: bool = &field::EXPERIMENT_FLUSH,
        /// From which the order within the pairs is drawn.
        pub seed: u64 = &field::EXPERIMENT_SEED,
        /// The figure that is compared, such as `exchange.p99`; the first one planned is the primary one.
        pub metric: String = &field::EXPERIMENT_METRIC,
        /// True if the verdict of the experiment is that on this figure.
        pub is_primary: bool = &field::EXPERIMENT_PRIMARY,
        /// How it compares; `None` before there are four pairs.
        pub estimate: Option<EstimateRecord> = &field::EXPERIMENT_HAS_ESTIMATE,
        /// What the stage came to.
        pub outcome: experiment::Outcome = &field::EXPERIMENT_OUTCOME,
        /// Why, in words.
        pub reason: String = &field::EXPERIMENT_REASON,
    }
}

wire! {
    @part
    /// How a figure of one arm compares with that of the other.
    #[derive(Clone, Copy, Debug, Default, PartialEq)]
    pub struct EstimateRecord {
        /// Pairs that it rests on.
        pub pairs_used: u64 = &field::EXPERIMENT_PAIRS_USED,
        /// The figure over all blocks of the first value, in its own unit.
        pub a: f64 = &field::EXPERIMENT_FIGURE_A,
        /// The figure over all blocks of the second.
        pub b: f64 = &field::EXPERIMENT_FIGURE_B,
        /// By how much the second differs: percent of the first, or percentage points of a share.
        pub effect: f64 = &field::EXPERIMENT_EFFECT,
        /// Lower end of its confidence interval.
        pub low: f64 = &field::EXPERIMENT_EFFECT_LOW,
        /// Upper end of it.
        pub high: f64 = &field::EXPERIMENT_EFFECT_HIGH,
        /// Confidence of the interval, in percent.
        pub confidence_percent: f64 = &field::EXPERIMENT_CONFIDENCE,
        /// How often chance alone would make a difference as large as this, by the sign-flip test.
        pub p_value: f64 = &field::EXPERIMENT_P,
        /// The difference that the planned pairs show four times in five, by how much the pairs spread.
        pub resolution: f64 = &field::EXPERIMENT_RESOLUTION,
    }
}

wire! {
    /// What the process used, once an interval.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct HostRecord {
        /// Resident memory, in bytes.
        pub memory_bytes: u64 = &field::MEMORY,
        /// Open file descriptors.
        pub descriptors: u64 = &field::DESCRIPTORS,
        /// Threads.
        pub threads: u64 = &field::THREADS,
        /// Process that is observed with all its descendants; 0 if none is.
        pub observed_pid: u64 = &field::OBSERVED_PID,
        /// CPU time that they have used since observing began, in microseconds.
        pub observed_cpu_us: u64 = &field::OBSERVED_CPU,
        /// Their threads.
        pub observed_threads: u64 = &field::OBSERVED_THREADS,
        /// The most threads that they had at a reading.
        pub observed_threads_max: u64 = &field::OBSERVED_THREADS_MAX,
        /// Their resident memory, in bytes.
        pub observed_memory_bytes: u64 = &field::OBSERVED_MEMORY,
        /// The most of it at a reading.
        pub observed_memory_max_bytes: u64 = &field::OBSERVED_MEMORY_MAX,
        /// CPU time by whose threads used it, in microseconds of the run so far.
        pub cpu: Counters<CpuGroup> = &FAMILY,
    }
}

wire! {
    /// What the writer of records knows of its own losses; written when one of them changes.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct HealthRecord {
        /// Records of intervals that the journal had not taken when the next interval ended, so far.
        pub refused_total: u64 = &field::HEALTH_REFUSED,
        /// Intervals whose counters went with a later record because of that, so far.
        pub merged_total: u64 = &field::HEALTH_MERGED,
        /// Times that the journal took no records for a moment; what waited was offered again, so far.
        pub waits_total: u64 = &field::HEALTH_WAITS,
        /// Records given up: too many events waited, or the journal would never have taken them, so far.
        pub dropped_total: u64 = &field::HEALTH_DROPPED,
        /// Messages of this service, records or not, that journald's rate limit dropped, so far.
        pub suppressed_total: u64 = &field::HEALTH_SUPPRESSED,
        /// Records of connection errors that found no room in the budget, so far.
        pub over_budget_total: u64 = &field::HEALTH_OVER_BUDGET,
        /// By how much the wall clock jumped against the monotonic clock, in microseconds; negative if backwards.
        pub clock_step_us: i64 = &field::HEALTH_CLOCK_STEP,
        /// The last refusal in words; empty if there was none.
        pub error: String = &field::HEALTH_ERROR,
    }
}

impl HealthRecord {
    /// True if nothing is amiss: waiting alone loses nothing.
    pub fn is_well(&self) -> bool {
        *self == Self { waits_total: self.waits_total, ..Self::default() }
    }
}

/// How serious something is that is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Something happened.
    Info,
    /// A person did something, or should know.
    #[default]
    Notice,
    /// Something went wrong.
    Warning,
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Info => "info",
            Self::Notice => "notice",
            Self::Warning => "warning",
        })
    }
}

impl std::str::FromStr for Level {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        match text {
            "info" => Ok(Self::Info),
            "notice" => Ok(Self::Notice),
            "warning" => Ok(Self::Warning),
            _ => Err(ParseIdError),
        }
    }
}

wire! {
    /// What a person should know, once an episode: something went wrong, or is well again.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct NoticeRecord {
        /// How serious it is.
        pub level: Level = &field::NOTICE_LEVEL,
        /// What it is about, in one word that stays the same: later versions add some.
        pub topic: String = &field::NOTICE_TOPIC,
        /// The sentence, cleaned.
        pub text: String = &field::NOTICE_TEXT,
    }
}

impl NoticeRecord {
    /// About `topic`, in words that are made printable here: they may quote peers and files.
    pub fn new(level: Level, topic: &str, text: &str) -> Self {
        Self { level, topic: topic.to_owned(), text: crate::clean::line(text) }
    }
}

wire! {
    @impl ConnectionRecord {
        conn: ConnId = &field::CONNECTION,
        client: ClientId = &field::CLIENT,
        outcome: Outcome = &field::OUTCOME,
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

/// The latencies of one class in a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// Samples counted in the run so far. If it grew by more than `interval` holds since the last record read, a
    /// histogram was lost.
    pub samples_total: u64,
    /// The samples of this record's interval.
    pub interval: Distribution,
}

/// The latencies of all classes of a family in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latencies<M: Metric> {
    classes: Vec<Latency>,
    family: std::marker::PhantomData<M>,
}

impl<M: Metric> Default for Latencies<M> {
    fn default() -> Self {
        Self { classes: vec![Latency::default(); M::ALL.len()], family: std::marker::PhantomData }
    }
}

impl<M: Metric> Latencies<M> {
    /// Those of an interval's histograms, with the samples counted in the run up to its end.
    pub fn new(interval: &Histograms<M>, samples_total: &Counters<M>) -> Self {
        let class = |(class, histogram): (M, &crate::Histogram)| Latency {
            samples_total: samples_total[class],
            interval: histogram.to_distribution(),
        };
        Self { classes: interval.iter().map(class).collect(), family: std::marker::PhantomData }
    }

    /// Each class with its latencies.
    pub fn iter(&self) -> impl Iterator<Item = (M, &Latency)> {
        M::ALL.iter().copied().zip(&self.classes)
    }
}

impl<M: Metric> std::ops::Index<M> for Latencies<M> {
    type Output = Latency;

    fn index(&self, class: M) -> &Latency {
        &self.classes[class.index()]
    }
}

impl<M: Metric> std::ops::IndexMut<M> for Latencies<M> {
    fn index_mut(&mut self, class: M) -> &mut Latency {
        &mut self.classes[class.index()]
    }
}

/// One kind of record: its word, its `MESSAGE_ID`, and its syslog priority.
#[derive(Debug)]
pub struct Kind {
    /// The value of `TLSDASH_KIND`.
    pub word: &'static str,
    /// The value of `MESSAGE_ID`: fixed for all time.
    pub message_id: &'static str,
    /// What it is, for the schema's document.
    pub meaning: &'static str,
}

macro_rules! kinds {
    ($($variant:ident($record:ty) $word:literal $id:literal $meaning:literal;)*) => {
        impl Body {
            /// The kinds of records, in the order of the document.
            pub const KINDS: &'static [Kind] = &[
                $(Kind { word: $word, message_id: $id, meaning: $meaning },)*
            ];

            /// The kind of this record.
            pub fn kind(&self) -> &'static Kind {
                let word = match self { $(Self::$variant(_) => $word,)* };
                Self::KINDS.iter().find(|kind| kind.word == word).expect("every variant stands in the list")
            }

            pub(crate) fn put(&self, out: &mut EntryBuf) {
                match self { $(Self::$variant(record) => record.put_all(out),)* }
            }

            pub(crate) fn get(kind: &str, from: &dyn Source) -> Option<Result<Self, DecodeError>> {
                Some(match kind {
                    $($word => <$record>::get_all(from).map(Self::$variant),)*
                    _ => return None,
                })
            }

            /// The fields that a kind of record carries, besides those that all records do.
            pub fn fields(kind: &str) -> Vec<Field> {
                match kind {
                    $($word => <$record>::fields(),)*
                    _ => Vec::new(),
                }
            }
        }
    };
}
kinds! {
    Run(Box<RunRecord>) "run" "10f6d52e277847bdadf59ab0e90b2c8c" "A run begins or ends; the end carries final totals and whole-run histograms.";
    Proxy(Box<ProxyRecord>) "proxy" "a3459c3e35e44596bf1e5c59614129fb" "What the proxy counted, once an interval.";
    Client(ClientRecord) "client" "5ce96029fce945efbe3fd04037fa4312" "What the proxy counted for one client, in intervals in which it was active.";
    Connection(Box<ConnectionRecord>) "connection" "b52863d8d43a43a8b2bb6f47612d48b6" "One connection: an error, or a sample of those that ended well.";
    Load(Box<LoadRecord>) "load" "b3d3b6d2d3804929bfffe694b57aec40" "What the load counted, once an interval.";
    Setting(SettingRecord) "setting" "c5332e59fa0a40edb863f5d2d94d2289" "A setting was changed.";
    Mark(MarkRecord) "mark" "828eeca68486434c8a3c9e51c974725b" "A person left a note in the time line.";
    Experiment(Box<ExperimentRecord>) "experiment" "1b3cb98c95c04a129eb8fdd905e30412" "An experiment begins, switches, completes a pair, or comes to its verdict.";
    Host(HostRecord) "host" "3f2c1f4e19bf4824868906e0e0f28675" "What the process used, once an interval.";
    Health(HealthRecord) "health" "f7b83be0ff144c57a1e4ff96fe2b8217" "What the writer of records knows of its own losses.";
    Notice(NoticeRecord) "notice" "3f118674b6cb4643a27e7e3c9732cbc5" "What a person should know, once an episode: something went wrong, or is well again.";
}
