//! `tlsdash runs`: the runs in a journal, in a line each.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fmt;
use std::ops::Range;
use std::time::{Duration, UNIX_EPOCH};

use clap::Args;
use journal::EntryBuf;
use model::figures::{Figure, Statistic};
use model::runs::{Model, RUNS_KNOWN_MAX, Run};
use model::summary::Summary;
use records::ids::RunId;
use records::kinds::{Record, RunRecord};
use records::metrics::{
    ClientCounter, HttpCounter, HttpLatency, KnownValue, LatencyClass, LoadCounter, LoadLatency,
    ProxyCounter, ProxyLatency, TimeResolution,
};
use records::text::table::TextTable;
use serde::Serialize;

use crate::cli::Format;
use crate::cli::help::RUNS;
use crate::journals::reading::{RecordLimit, RunChoice, SourcePart};
use crate::journals::writers::WriterArgs;
use crate::summary;

/// Shown below the help.
const EXAMPLES: &str = "Examples:
  tlsdash runs            # where --journal auto writes
  tlsdash runs journals/  # all files of a folder
  tlsdash runs system --format json";

#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ListRunsArgs {
    /// Journal to read: a file with its archives, a folder of files, `system`, `namespace:NAME`, or a log store as
    /// logs+http://HOST:PORT; @FROM..TO behind it selects a time range [default: where `--journal auto` writes]
    #[arg(value_name = "SOURCE")]
    pub(crate) source: Option<OsString>,
    /// Format of the output
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: Format,
    #[command(flatten, next_help_heading = RUNS)]
    pub(crate) writers: WriterArgs,
}

/// Version of the JSON's shape; later versions only add to it.
const SCHEMA: u64 = 1;

/// The latency of a run's kind of work, in the order of preference.
const LATENCIES: [LatencyClass; 4] = [
    LatencyClass::Http(HttpLatency::Request),
    LatencyClass::Proxy(ProxyLatency::Exchange),
    LatencyClass::Load(LoadLatency::Response),
    LatencyClass::Load(LoadLatency::Service),
];

/// Runs whose size is counted.
const SIZES_MAX: usize = 65_536;

const COLUMNS: usize = 12;

/// The document of `--format json`.
#[derive(Debug, Serialize)]
struct RunListing {
    schema: u64,
    source: String,
    /// The runs, the oldest first.
    runs: Vec<RunEntry>,
}

#[derive(Debug, Serialize)]
struct RunEntry {
    run: String,
    /// When its first record was made, in UTC.
    began: String,
    duration_s: f64,
    /// True if its last record was read; false while the run continues, or if it was killed.
    ended: bool,
    host: String,
    /// `_UID` of its process; absent if the journal does not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<u32>,
    /// `_SYSTEMD_UNIT` of its process; absent without one.
    #[serde(skip_serializing_if = "String::is_empty")]
    unit: String,
    /// The version of the program; empty if the run's first record was not read.
    version: String,
    /// Where it listens; empty for a load.
    listen: String,
    /// The target that it forwards to, or that its load uses.
    upstream: String,
    /// Records read.
    records: u64,
    /// Names and values of their fields as they were read, in bytes: before a journal stores equal ones once and
    /// compresses them, and without the ends of long texts.
    record_bytes: u64,
    lost: u64,
    /// Connections accepted by the proxy, or established by a load without one; `null` if a log does not tell.
    connections: Option<u64>,
    /// Resumed handshakes over all, from 0 to 1; `null` without handshakes.
    resumed: Option<f64>,
    /// Requests of HTTP mode, exchanges of TCP mode, or requests of a load without a proxy.
    requests: u64,
    /// The class of latencies of these, and its 99th percentile in microseconds; absent without samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    p99_us: Option<Percentile99>,
    #[serde(skip)]
    account: String,
}

#[derive(Debug, Serialize)]
struct Percentile99 {
    class: &'static str,
    value: KnownValue,
    /// True if it is of a log, whose times have fewer digits.
    #[serde(skip)]
    is_of_log: bool,
}

pub(crate) fn run(args: &ListRunsArgs) -> anyhow::Result<()> {
    let records = RecordLimit::default();
    let choice = RunChoice { mode: "runs", run: None, host: None, writers: &args.writers, records };
    let mut part = SourcePart::parse(args.source.as_deref(), choice)?;
    if !part.place.is_all_or_nothing() {
        // The sizes are those of all records.
        part.filter.records_max = u64::MAX;
    }
    let (mut sizes, mut entry) = (HashMap::<RunId, u64>::new(), EntryBuf::new());
    let measure = |record: &Record| {
        // A hostile journal may have any number of runs.
        let run = record.stamp.run.whole();
        if sizes.len() < SIZES_MAX || sizes.contains_key(&run) {
            records::codec::encode(record, &mut entry);
            *sizes.entry(run).or_default() += bytes(&entry);
        }
    };
    let contents = part.read_into(Model::for_listing(1), measure)?;
    // With a reason if there is none.
    contents.newest()?;
    contents.report_ignored();
    if contents.model.forgotten() > 0 {
        let name = &part.name;
        crate::say(format_args!(
            "warning: {name} has more than {RUNS_KNOWN_MAX} runs: those with the latest records are listed"
        ));
    }
    let mut runs: Vec<&Run> = contents.model.runs().collect();
    runs.sort_by_key(|run| run.began_realtime_us());
    let entries = runs.into_iter().map(|run| {
        let size = sizes.get(&run.id().whole()).copied().unwrap_or_default();
        RunEntry::of(run, &contents.model.summary(run, Some(&part.name)), size)
    });
    let list = RunListing { schema: SCHEMA, source: part.name.clone(), runs: entries.collect() };
    summary::print_text(&match args.format {
        Format::Text => list.text(),
        Format::Json => serde_json::to_string_pretty(&list)? + "\n",
    })
}

/// The bytes of all names and values.
fn bytes(entry: &EntryBuf) -> u64 {
    entry.iter().map(|(name, value)| (name.len() + value.len()) as u64).sum()
}

impl RunEntry {
    fn of(run: &Run, summary: &Summary, record_bytes: u64) -> Self {
        let began = run.began();
        let text = |text: fn(&RunRecord) -> &String| began.map(text).cloned().unwrap_or_default();
        let (proxy, load, http) = (&summary.proxy, &summary.load, run.http());
        let handshakes = match (proxy, load) {
            (Some(proxy), _) => Some(&proxy.handshakes),
            (None, Some(load)) => Some(&load.handshakes),
            (None, None) => None,
        };
        let resumed = handshakes.and_then(|counts| {
            let all = counts.full + counts.resumed;
            (all > 0).then(|| counts.resumed as f64 / all as f64)
        });
        let requests = match (http, run.proxy(), load) {
            (Some(http), ..) => http.totals()[HttpCounter::Requests],
            (None, Some(proxy), _) => proxy.totals()[ProxyCounter::Exchanges],
            (None, None, Some(load)) => load.requests.ok + load.requests.failed,
            (None, None, None) => 0,
        };
        let connections = match (proxy, run.load()) {
            (Some(proxy), _) => run.client_count(ClientCounter::Connections, proxy.connections.accepted),
            (None, Some(load)) => Some(load.totals()[LoadCounter::Opened]),
            (None, None) => Some(0),
        };
        Self {
            run: run.id().to_string(),
            began: humantime::format_rfc3339_seconds(
                UNIX_EPOCH + Duration::from_micros(run.began_realtime_us()),
            )
            .to_string(),
            duration_s: summary.duration_s,
            ended: summary.ended,
            host: run.hostname().to_owned(),
            uid: summary.uid,
            unit: summary.unit.clone(),
            version: text(|record| &record.version),
            listen: text(|record| &record.listen),
            upstream: text(|record| &record.upstream),
            records: run.reading().read(),
            record_bytes,
            lost: run.reading().lost(),
            connections,
            resumed,
            requests,
            p99_us: LATENCIES.into_iter().find_map(|class| percentile_99(run, class)),
            account: run.writer().account(),
        }
    }

    fn cells(&self) -> [String; COLUMNS] {
        let (Some((id, _)), duration) =
            (self.run.split_at_checked(8), Duration::from_secs(self.duration_s as u64))
        else {
            return Default::default();
        };
        let state = if self.ended { "" } else { "+" };
        [
            id.to_owned(),
            self.began.clone(),
            format!("{}{state}", humantime::format_duration(duration).to_string().replace(' ', "")),
            self.host.clone(),
            self.account.clone(),
            self.version.clone(),
            format!("{:.2}MB", self.record_bytes as f64 / 1e6),
            self.connections.map_or_else(|| "-".to_owned(), |n| n.to_string()),
            self.resumed.map_or_else(|| "-".to_owned(), |ratio| format!("{:.1}%", ratio * 100.0)),
            self.requests.to_string(),
            self.p99_us.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string),
            self.p99_us.as_ref().map_or("-", |p99| p99.class).to_owned(),
        ]
    }
}

fn percentile_99(run: &Run, class: LatencyClass) -> Option<Percentile99> {
    let value = Figure::Latency(class, Statistic::Percentile(0.99)).known_value(run, None)?;
    let is_of_log = run.resolution(class) != TimeResolution::FINE;
    Some(Percentile99 { class: class.key(), value, is_of_log })
}

impl fmt::Display for Percentile99 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", summary::milliseconds(self.value, self.is_of_log))
    }
}

impl RunListing {
    /// A table; numbers are flush right.
    fn text(&self) -> String {
        const HEADINGS: [&str; COLUMNS] = [
            "run",
            "began (UTC)",
            "lasted",
            "host",
            "user or unit",
            "version",
            "size",
            "connections",
            "resumed",
            "requests",
            "p99",
            "of",
        ];
        const NUMBERS: Range<usize> = 6..11;
        let rows: Vec<[String; COLUMNS]> = self.runs.iter().map(RunEntry::cells).collect();
        let mut text = TextTable::of_rows(HEADINGS, &NUMBERS, &rows).text();
        if self.runs.iter().any(|run| !run.ended) {
            text.push_str("+ its last record was not read: it goes on, or was killed\n");
        }
        text
    }
}
