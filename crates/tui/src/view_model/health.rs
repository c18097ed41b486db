//! The health of the measurement: losses, delays, warnings.

use std::time::Duration;

use model::runs::{Gap, Model, Run};
use records::kinds::HealthRecord;
use records::metrics::{CpuGroup, HttpCounter, LoadCounter, ProxyCounter};
use records::setting::Value;
use records::text::quantity::counted;

use super::span::{NOW_US, Span, now};
use crate::theme::format;

/// Silence up to this long is not shown, however short the interval.
const SILENCE_MIN: Duration = Duration::from_secs(3);
/// Intervals without a record after which a run counts as silent.
const SILENT_INTERVALS: u32 = 3;
/// How late the records of another host may be: senders, receivers and stores gather them for some seconds.
pub(crate) const GATHERING_MAX: Duration = Duration::from_secs(5);

/// How long no record may come of a run with such intervals before it counts as silent.
pub(crate) fn silence_max(interval_us: u64) -> Duration {
    SILENCE_MIN.max(Duration::from_micros(interval_us).saturating_mul(SILENT_INTERVALS))
}

/// Share of what falls due that must be sent for offered and achieved load to count as the same.
const ACHIEVED_SHARE_MIN: f64 = 0.95;
/// Share of its cores above which the proxy or the load is short of CPU, and latencies include waiting for it.
const CPU_SHARE_MAX: f64 = 0.85;

/// How long a gap is news, in microseconds, where a shorter time is shown.
const GAP_NEWS_US: u64 = 60_000_000;

/// Counts of records that were lost, refused, dropped or merged, and the journal's lag.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    /// From a record's making to its reading, in microseconds; `None` unless read live.
    pub(crate) journal_lag_us: Option<u64>,
    /// Holes in the sequence of records.
    pub(crate) gaps: u64,
    /// Records made and never read.
    pub(crate) lost: u64,
    /// Entries that could not be decoded.
    pub(crate) malformed: u64,
    /// Bytes of the journal that could not be read.
    pub(crate) skipped_bytes: u64,
    /// Records that the journal did not take in time, by the writer's own count.
    pub(crate) refused: u64,
    /// Intervals whose counters went with a later record.
    pub(crate) merged: u64,
    /// Records that the writer gave up.
    pub(crate) dropped: u64,
    /// Messages of the writer's service that journald dropped.
    pub(crate) suppressed: u64,
    /// Records under the run's id that another process wrote.
    pub(crate) foreign: u64,
    /// Connection errors for which no record had room.
    pub(crate) unrecorded: u64,
}

impl Health {
    pub(crate) fn of(model: &Model, run: &Run) -> Self {
        let (reading, health) = (run.reading(), run.health());
        let unrecorded = run.proxy().map_or(0, |proxy| proxy.totals()[ProxyCounter::EventsUnrecorded]);
        Self {
            journal_lag_us: reading.lag_last_us(),
            gaps: reading.gaps_total(),
            lost: reading.lost(),
            malformed: model.malformed(),
            skipped_bytes: model.skipped_bytes(),
            refused: health.refused_total,
            merged: health.merged_total,
            dropped: health.dropped_total,
            suppressed: health.suppressed_total.max(reading.suppressed()),
            foreign: reading.foreign(),
            unrecorded: health.over_budget_total.saturating_add(unrecorded),
        }
    }
}

/// Something that a person must know to read the figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Warning(pub(crate) String);

/// What cannot be trusted or overlooked at a moment, the worst first. Lost records are those of the whole reading.
pub(crate) fn warnings(run: &Run, health: &Health, span: Span, us: u64) -> Vec<Warning> {
    let is_running = us >= run.last_us() && run.stopped().is_none();
    let mut found = Vec::new();
    if health.refused > 0 {
        let error = &run.health().error;
        let because = if error.is_empty() { String::new() } else { format!(": {error}") };
        found.push(format!("the journal refused {}{because}", counted(health.refused, "record")));
    }
    if health.suppressed > 0 {
        found
            .push(format!("journald dropped {} messages of this service: its rate limit", health.suppressed));
    }
    found.extend(upload(run));
    if is_running {
        found.extend(upstream(run));
    }
    found.extend(gaps(run, span, us));
    if is_running {
        found.extend(parted(run));
        found.extend(short_of_cpu(run));
    }
    if health.malformed > 0 || health.skipped_bytes > 0 {
        let skipped = format::bytes(health.skipped_bytes as f64);
        found.push(format!("{} malformed entries, {skipped} of the journal unreadable", health.malformed));
    }
    found.into_iter().map(Warning).collect()
}

/// Describes missing records and measurements, in the shown time or shortly before.
fn gaps(run: &Run, span: Span, us: u64) -> Vec<String> {
    let from_us = match span {
        Span::Last(span_us) => us.saturating_sub(span_us.max(GAP_NEWS_US)),
        Span::WholeRun => 0,
    };
    let recent = run.reading().gaps().filter(|gap| (from_us..=us).contains(&gap.mono_us));
    let (lossy, unmeasured): (Vec<&Gap>, Vec<&Gap>) = recent.partition(|gap| gap.missing > 0);
    let missing = lossy.iter().fold(0_u64, |sum, gap| sum.saturating_add(gap.missing));
    let told = |gaps: usize, what: String| {
        let times = counted(gaps as u64, "gap");
        (gaps > 0).then(|| format!("{what} in {times}: rates over a gap are averages"))
    };
    let lost = told(lossy.len(), format!("{} lost", counted(missing, "record")));
    let unmeasured = told(unmeasured.len(), "tlsdash was stopped or starved".to_owned());
    lost.into_iter().chain(unmeasured).collect()
}

/// Records that do not get to the receiver of uploads.
fn upload(run: &Run) -> Vec<String> {
    let HealthRecord { upload_waiting, upload_lost_total, upload_failure, .. } = run.health();
    let waiting = counted(*upload_waiting, "record");
    let fails = (run.stopped().is_none() && !upload_failure.is_empty())
        .then(|| format!("{waiting} wait for the upload: {upload_failure}"));
    let lost = (*upload_lost_total > 0).then(|| {
        format!("{} did not get to the receiver of the upload", counted(*upload_lost_total, "record"))
    });
    fails.into_iter().chain(lost).collect()
}

/// The application behind the proxy is not there, or goes away.
fn upstream(run: &Run) -> Option<String> {
    let counts = now(run.proxy()?);
    let connections = |n| counted(n, "connection");
    let seconds = NOW_US / 1_000_000;
    let (unreached, told) = if let Some(http) = run.http() {
        // There each attempt to connect is counted, also those after which another upstream was reached.
        let failed = now(http).sum(&[HttpCounter::FailedConnect, HttpCounter::FailedConnectTimeout]);
        (failed, counted(failed, "request") + " failed")
    } else {
        let failed = counts[ProxyCounter::UpstreamConnectsFailed];
        (failed, connections(failed) + " turned away")
    };
    match (unreached, counts[ProxyCounter::UpstreamBroken]) {
        (0, 0) => None,
        (0, n) => Some(format!("the upstream broke off {} in the last {seconds} s", connections(n))),
        _ => Some(format!("upstream out of reach: {told} in the last {seconds} s")),
    }
}

/// Offered and achieved load have parted.
fn parted(run: &Run) -> Option<String> {
    let counted = now(run.load()?);
    let (due, sent) = (counted[LoadCounter::Scheduled], counted[LoadCounter::Sent]);
    let is_open = run.load_record().is_some_and(|record| record.running && record.rate > 0.0);
    (is_open && (sent as f64) < due as f64 * ACHIEVED_SHARE_MIN).then(|| {
        let share = format::percent(sent as f64 / due as f64);
        format!("only {share} of the requests due were sent: more is offered than gets through")
    })
}

fn short_of_cpu(run: &Run) -> Vec<String> {
    let workers = run.began().map_or(0, |began| began.workers) as f64;
    let threads = match run.setting("load.threads").map(|setting| &setting.value) {
        Some(&Value::Number(threads)) => threads,
        _ => 0.0,
    };
    let parts = [
        ("proxy", CpuGroup::Proxy, workers, "latency now includes waiting for CPU"),
        ("load", CpuGroup::Load, threads, "it may measure itself"),
    ];
    let short = |(name, group, cores, meaning)| {
        let used = run.cpu(group, NOW_US)?.cores / cores;
        let is_short = cores > 0.0 && used > CPU_SHARE_MAX;
        is_short.then(|| format!("{name} at {:.0}% of its cores: {meaning}", used * 100.0))
    };
    parts.into_iter().filter_map(short).collect()
}
