//! Merges runs into one.

use super::aligned::{AlignedRun, covered_us, sum_by_host};
use super::{
    Certificates, Clients, Experiments, Failures, FindingTracker, GaugeHistory, HostSamples, Markers,
    MeasuredPart, NamedTable, ProxyPart, Reading, Requests, Run, RunAlerts, RunHeader, RunLog, RunSettings,
    SeriesRetention, Usage, health,
};
use records::codec::Writer;
use records::ids::RunId;
use records::kinds::{Phase, RunRecord, Stamp};
use records::values::AbsentFigures;

/// Runs that overlap by less follow each other, in microseconds: a recording may begin with an interval that another one
/// ended in.
const OVERLAP_US_MIN: u64 = 1_000_000;

impl Run {
    /// Merges named runs into one, whose times are `CLOCK_REALTIME`; `None` if there are no runs.
    pub(in crate::runs) fn merged(runs: &[(&str, &Self)]) -> Option<Self> {
        let members = aligned(runs);
        let settings = RunSettings::merged(&parts(&members, |run| &run.settings));
        let header = RunHeader::merged(&members, &settings)?;
        let history = members.iter().map(|(_, run)| run.retention.history).max()?;
        Some(Self {
            proxy: ProxyPart::merged(&parts(&members, |run| &run.proxy)),
            tls: MeasuredPart::merged(&parts(&members, |run| &run.tls)),
            usage: Usage::merged(&parts(&members, |run| &run.usage)),
            certificates: Certificates::merged(runs.iter().map(|(name, run)| (*name, &run.certificates))),
            http: MeasuredPart::merged(&parts(&members, |run| &run.http)),
            // For a single run only: intervals of several runs do not end together.
            http_gauges: GaugeHistory::default(),
            routes: NamedTable::merged(&parts(&members, |run| &run.routes)),
            upstreams: NamedTable::merged(&parts(&members, |run| &run.upstreams)),
            requests: Requests::merged(&parts(&members, |run| &run.requests)),
            load: MeasuredPart::merged(&parts(&members, |run| &run.load)),
            clients: Clients::merged(&parts(&members, |run| &run.clients)),
            hosts: HostSamples::merged(&parts(&members, |run| &run.hosts), header.last),
            experiments: Experiments::merged(&parts(&members, |run| &run.experiments)),
            health: health::merged(members.iter().map(|(_, run)| &run.health)),
            log: RunLog::merged(&parts(&members, |run| &run.log)),
            markers: Markers::merged(&parts(&members, |run| &run.markers)),
            calibration: members
                .iter()
                .filter_map(|(aligned, run)| {
                    let (stamp, costs) = run.calibration.as_ref()?;
                    Some((aligned.shifted(*stamp), costs.clone()))
                })
                .max_by_key(|(stamp, _)| stamp.mono_us),
            alerts: RunAlerts::merged(&parts(&members, |run| &run.alerts)),
            failures: Failures::merged(members.iter().map(|(_, run)| &run.failures)),
            findings: FindingTracker::default(),
            reading: Reading::merged(&parts(&members, |run| &run.reading)),
            retention: SeriesRetention { history, is_joined: false, is_brief: false },
            settings,
            header,
        })
    }
}

/// Puts named runs on a common clock.
fn aligned<'a>(runs: &[(&'a str, &'a Run)]) -> Vec<(AlignedRun<'a>, &'a Run)> {
    let aligned = |&(name, run): &(&'a str, &'a Run)| {
        let shift_us = run.realtime_shift_us();
        let end_us = run.last_us().saturating_add_signed(shift_us);
        let aligned = AlignedRun {
            name,
            machine: run.writer().origin.machine,
            hostname: run.hostname(),
            shift_us,
            span_us: (end_us.saturating_sub(run.duration_us()), end_us),
            is_together: false,
        };
        (aligned, run)
    };
    let mut members: Vec<_> = runs.iter().map(aligned).collect();
    let running_at = |us: u64| members.iter().filter(move |(aligned, _)| aligned.is_running_at(us)).count();
    // There are most of them where one of them begins.
    let begins = members.iter().map(|(aligned, _)| {
        let (start_us, end_us) = aligned.span_us;
        start_us + ((end_us - start_us) / 2).min(OVERLAP_US_MIN)
    });
    if let Some(moment_us) = begins.max_by_key(|&us| (running_at(us), us)) {
        for (aligned, _) in &mut members {
            aligned.is_together = aligned.is_running_at(moment_us);
        }
    }
    members
}

/// The same part of each run.
fn parts<'a, P>(
    members: &[(AlignedRun<'a>, &'a Run)],
    part: impl Fn(&'a Run) -> &'a P,
) -> Vec<(AlignedRun<'a>, &'a P)> {
    members.iter().map(|(aligned, run)| (*aligned, part(run))).collect()
}

impl RunHeader {
    /// The header of several runs as one; `None` without runs.
    fn merged(members: &[(AlignedRun<'_>, &Run)], settings: &RunSettings) -> Option<Self> {
        let first = members.iter().filter_map(|(aligned, run)| Some(aligned.shifted(run.header.first?)));
        let first = first.min_by_key(|stamp| stamp.mono_us);
        let last = members.iter().filter_map(|(aligned, run)| Some(aligned.shifted(run.header.last?)));
        let last = last.max_by_key(|stamp| stamp.mono_us);
        // A final record covers all of its run, also where the beginning of that was not read.
        let span_us = match members {
            [] => return None,
            [(_, one)] => one.duration_us(),
            _ => last.map_or(0, |last| last.mono_us.saturating_sub(first.map_or(0, |first| first.mono_us))),
        };
        let has_begun = members.iter().any(|(_, run)| run.header.began.is_some());
        let has_stopped = members.iter().all(|(_, run)| run.header.stopped.is_some());
        let stop = || Box::new(RunRecord { phase: Phase::Stop, ..RunRecord::default() });
        let hostname = joined(members, |run| run.hostname().to_owned());
        Some(Self {
            id: members.iter().fold(RunId::from_bits(0), |id, (_, run)| id.with(run.id())),
            writer: Writer { hostname, ..Writer::default() },
            began: first
                .filter(|_| has_begun)
                .map(|first| (Stamp { interval_us: 0, ..first }, Box::new(began(members, settings)))),
            stopped: last
                .filter(|_| has_stopped)
                .map(|last| (Stamp { interval_us: span_us, ..last }, stop())),
            first,
            last,
            idle_us: span_us.saturating_sub(covered_us(members.iter().map(|(aligned, _)| aligned.span_us))),
        })
    }
}

/// The first record of merged runs: a text that all share, or the texts of all.
fn began(members: &[(AlignedRun<'_>, &Run)], settings: &RunSettings) -> RunRecord {
    let text = |of: fn(&RunRecord) -> &String| {
        joined(members, |run| run.began().map(of).cloned().unwrap_or_default())
    };
    let by_host = |of: fn(&RunRecord) -> u64| sum_by_host(members, |run| run.began().map_or(0, of));
    let begun = || members.iter().filter_map(|(_, run)| run.began());
    let together = members.iter().filter(|(aligned, _)| aligned.is_together);
    let workers = together.filter_map(|(_, run)| run.began()).map(|run| run.workers).sum();
    let mut absent = AbsentFigures::default();
    members.iter().filter_map(|(_, run)| run.counted_log()).for_each(|run| absent.extend(&run.absent));
    RunRecord {
        phase: Phase::Start,
        version: text(|run| &run.version),
        host: text(|run| &run.host),
        listen: text(|run| &run.listen),
        upstream: text(|run| &run.upstream),
        certificate: text(|run| &run.certificate),
        workers,
        kernel: text(|run| &run.kernel),
        cpu_model: text(|run| &run.cpu_model),
        cores: by_host(|run| run.cores),
        governor: text(|run| &run.governor),
        clock_source: text(|run| &run.clock_source),
        host_memory_bytes: by_host(|run| run.host_memory_bytes),
        // Runs taken together cannot be changed.
        control_socket: String::new(),
        settings: settings.all().to_vec(),
        log: text(|run| &run.log),
        // What is taken together is a whole of its own.
        service: String::new(),
        log_resolution_us: begun().map(|run| run.log_resolution_us).max().unwrap_or(0),
        absent,
        runs_on: false,
        next_run: String::new(),
        proxy: None,
        tls: None,
        http: None,
        load: None,
    }
}

/// The common value, or the value of each run, without duplicates.
fn joined(members: &[(AlignedRun<'_>, &Run)], of: impl Fn(&Run) -> String) -> String {
    let mut texts: Vec<String> = Vec::new();
    for text in members.iter().map(|(_, run)| of(run)) {
        if !text.is_empty() && !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts.join(", ")
}
