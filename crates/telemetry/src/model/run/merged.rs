//! Several runs as one: its members.

use std::collections::VecDeque;

use super::{LOG_MAX, LogLine, Run};
use crate::metric::Counters;
use crate::model::merged;
use crate::model::run::clients::Clients;
use crate::model::run::experiment::Experiments;
use crate::model::run::failures::Failures;
use crate::model::run::reading::Reading;
use crate::model::run::timeline::{Deed, Marker, Markers};
use crate::model::series::Track;
use crate::record::origin::Writer;
use crate::record::setting::{SETTINGS_MAX, Setting, Value};
use crate::record::{HealthRecord, HostRecord, LoadRecord, Phase, RunRecord, Stamp};

/// The runs, each with its name.
type Parts<'a> = [(&'a str, &'a Run)];

impl Run {
    /// All of them as one, on a monotonic clock that is the wall's; `None` of none.
    pub(in crate::model) fn merged(parts: &Parts<'_>) -> Option<Self> {
        let history = parts.iter().map(|(_, run)| run.history).max()?;
        let id = merged::id(parts);
        let hostname = joined(parts, |run| run.hostname().to_owned());
        let writer = Writer { hostname, ..Writer::default() };
        let by_time = |stamp: &Option<Stamp>| stamp.map_or(0, |stamp| stamp.mono_us);
        let first =
            parts.iter().map(|(_, run)| run.first.map(|stamp| run.shifted(stamp))).min_by_key(by_time)?;
        let last =
            parts.iter().map(|(_, run)| run.last.map(|stamp| run.shifted(stamp))).max_by_key(by_time)?;
        let settings = settings(parts);
        let began =
            parts.iter().any(|(_, run)| run.began.is_some()).then(|| Box::new(began(parts, &settings)));
        let ended = parts.iter().all(|(_, run)| run.stopped.is_some());
        let stop = || Box::new(RunRecord { phase: Phase::Stop, ..RunRecord::default() });
        let duration_us = |(_, run): &(&str, &Self)| run.duration_us();
        let proxies: Vec<_> =
            parts.iter().filter_map(|(_, run)| Some((run.proxy()?, run.shift_us()))).collect();
        let loads: Vec<_> = parts.iter().filter_map(|(_, run)| Some((run.load()?, run.shift_us()))).collect();
        // A final record covers all of its run, also where the beginning of that was not read.
        let span_us = match parts {
            [one] => duration_us(one),
            _ => last?.mono_us.saturating_sub(first?.mono_us),
        };
        Some(Self {
            began: began.zip(first).map(|(began, first)| (first, began)),
            stopped: last.filter(|_| ended).map(|last| (Stamp { interval_us: span_us, ..last }, stop())),
            proxy: (!proxies.is_empty()).then(|| Track::merged(&proxies)),
            proxy_open: parts.iter().map(|(_, run)| run.proxy_open).sum(),
            clients_deferred: parts.iter().map(|(_, run)| run.clients_deferred).sum(),
            load: (!loads.is_empty()).then(|| Track::merged(&loads)),
            load_record: load_record(parts),
            clients: Clients::merged(parts.iter().map(|(_, run)| &run.clients)),
            hosts: last.map(|last| (last.mono_us, host(parts))).into_iter().collect(),
            experiments: Experiments::merged(parts.iter().map(|(_, run)| (&run.experiments, run.shift_us()))),
            health: health(parts),
            log: log(parts),
            markers: markers(parts),
            failures: Failures::merged(parts.iter().map(|(_, run)| &run.failures)),
            reading: Reading::merged(parts.iter().map(|(_, run)| (&run.reading, run.shift_us()))),
            first,
            last,
            settings,
            ..Self::new(id, writer, history)
        })
    }

    /// What makes the wall's clock of its monotonic one, by its last record.
    fn shift_us(&self) -> i64 {
        self.last_realtime_us() as i64 - self.last_us() as i64
    }

    fn shifted(&self, stamp: Stamp) -> Stamp {
        Stamp { mono_us: stamp.mono_us.saturating_add_signed(self.shift_us()), ..stamp }
    }
}

/// What they have in common, or of each what it has.
fn joined(parts: &Parts<'_>, of: impl Fn(&Run) -> String) -> String {
    let mut all: Vec<String> = parts.iter().map(|(_, run)| of(run)).filter(|text| !text.is_empty()).collect();
    let mut seen = Vec::new();
    all.retain(|text| {
        !seen.contains(text) && {
            seen.push(text.clone());
            true
        }
    });
    all.join(", ")
}

fn began(parts: &Parts<'_>, settings: &[Setting]) -> RunRecord {
    let text =
        |of: fn(&RunRecord) -> &String| joined(parts, |run| run.began().map(of).cloned().unwrap_or_default());
    let sum = |of: fn(&RunRecord) -> u64| parts.iter().filter_map(|(_, run)| run.began().map(of)).sum();
    RunRecord {
        phase: Phase::Start,
        version: text(|run| &run.version),
        host: text(|run| &run.host),
        listen: text(|run| &run.listen),
        upstream: text(|run| &run.upstream),
        certificate: text(|run| &run.certificate),
        workers: sum(|run| run.workers),
        kernel: text(|run| &run.kernel),
        cpu_model: text(|run| &run.cpu_model),
        cores: sum(|run| run.cores),
        governor: text(|run| &run.governor),
        clock_source: text(|run| &run.clock_source),
        host_memory_bytes: sum(|run| run.host_memory_bytes),
        settings: settings.to_vec(),
        proxy: None,
        load: None,
    }
}

/// Each setting once: as all have it, or of each as it has it.
fn settings(parts: &Parts<'_>) -> Vec<Setting> {
    let mut all: Vec<Setting> = Vec::new();
    for setting in parts.iter().flat_map(|(_, run)| run.settings()) {
        if all.len() < SETTINGS_MAX && !all.iter().any(|known| known.name == setting.name) {
            all.push(setting.clone());
        }
    }
    for setting in &mut all {
        let values: Vec<_> =
            parts.iter().filter_map(|(name, run)| Some((name, &run.setting(&setting.name)?.value))).collect();
        if values.iter().any(|(_, value)| **value != setting.value) {
            let each: Vec<String> = values.iter().map(|(name, value)| format!("{value} ({name})")).collect();
            setting.value = Value::Text(each.join(", "));
            setting.range = None;
        }
    }
    all
}

fn load_record(parts: &Parts<'_>) -> Option<LoadRecord> {
    let mut all: Option<LoadRecord> = None;
    for record in parts.iter().filter_map(|(_, run)| run.load_record()) {
        let Some(sum) = &mut all else {
            all = Some(record.clone());
            continue;
        };
        sum.running |= record.running;
        sum.rate += record.rate;
        sum.connections += record.connections;
        sum.threads += record.threads;
        sum.due_us = sum.due_us.max(record.due_us);
        sum.sending_us = sum.sending_us.max(record.sending_us);
        sum.measured_us = sum.measured_us.max(record.measured_us);
        sum.tally.add(&record.tally);
        sum.counters.add(&record.counters);
    }
    all
}

fn host(parts: &Parts<'_>) -> HostRecord {
    let mut sum = HostRecord::default();
    let mut cpu = Counters::default();
    for host in parts.iter().filter_map(|(_, run)| run.host()) {
        sum.memory_bytes += host.memory_bytes;
        sum.memory_pss_bytes += host.memory_pss_bytes;
        sum.descriptors += host.descriptors;
        sum.threads += host.threads;
        sum.observed_pid = sum.observed_pid.max(host.observed_pid);
        sum.observed_cpu_us += host.observed_cpu_us;
        sum.observed_threads += host.observed_threads;
        sum.observed_threads_max += host.observed_threads_max;
        sum.observed_memory_bytes += host.observed_memory_bytes;
        sum.observed_memory_max_bytes += host.observed_memory_max_bytes;
        cpu.add(&host.cpu);
    }
    HostRecord { cpu, ..sum }
}

fn health(parts: &Parts<'_>) -> HealthRecord {
    let mut sum = HealthRecord::default();
    for (_, run) in parts {
        let health = &run.health;
        sum.refused_total += health.refused_total;
        sum.merged_total += health.merged_total;
        sum.waits_total += health.waits_total;
        sum.dropped_total += health.dropped_total;
        sum.suppressed_total += health.suppressed_total;
        sum.over_budget_total += health.over_budget_total;
        if health.clock_step_us.unsigned_abs() > sum.clock_step_us.unsigned_abs() {
            sum.clock_step_us = health.clock_step_us;
        }
        if sum.error.is_empty() {
            sum.error.clone_from(&health.error);
        }
    }
    sum
}

fn log(parts: &Parts<'_>) -> VecDeque<LogLine> {
    let of = |(name, run): &(&str, &Run)| -> Vec<LogLine> {
        let line = |line: &LogLine| LogLine {
            mono_us: line.mono_us.saturating_add_signed(run.shift_us()),
            text: format!("{name}: {}", line.text),
            ..line.clone()
        };
        run.log.iter().map(line).collect()
    };
    let mut all: Vec<LogLine> = parts.iter().flat_map(of).collect();
    all.sort_by_key(|line| line.mono_us);
    let too_many = all.len().saturating_sub(LOG_MAX);
    all.into_iter().skip(too_many).collect()
}

fn markers(parts: &Parts<'_>) -> Markers {
    let of = |(name, run): &(&str, &Run)| -> Vec<Marker> {
        let marker = |marker: &Marker| Marker {
            mono_us: marker.mono_us.saturating_add_signed(run.shift_us()),
            deed: match &marker.deed {
                Deed::Mark { number, text } => Deed::Mark { number: *number, text: format!("{name} {text}") },
                change @ Deed::Change { .. } => change.clone(),
            },
            ..marker.clone()
        };
        run.markers.iter().map(marker).collect()
    };
    let mut all: Vec<Marker> = parts.iter().flat_map(of).collect();
    all.sort_by_key(|marker| marker.mono_us);
    let mut markers = Markers::default();
    for marker in all {
        markers.push(marker);
    }
    markers
}
