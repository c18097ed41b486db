//! Resource usage of a run's process.

use std::collections::VecDeque;

use super::aligned::{AlignedRun, sum_by_host};
use crate::runs::series::{BRIEF_INTERVALS_MAX, BRIEF_US, UNMERGED_US};
use records::kinds::{HostRecord, Stamp};
use records::metrics::{CpuGroup, HostCounter, Metric};
use records::values::{ProcessCpu, WorkerCounts};

/// CPU that a group of threads used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuUse {
    /// Cores kept busy on average: 1.0 is one whole core.
    pub cores: f64,
    /// Time it was averaged over, in microseconds.
    pub span_us: u64,
}

/// What a worker of the proxy did in a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkerActivity {
    /// Counts of this time, and the connections open at its end.
    pub counted: WorkerCounts,
    /// Its length, in microseconds.
    pub span_us: u64,
}

impl WorkerActivity {
    /// The name of its thread.
    pub fn name(&self) -> String {
        format!("proxy-{}", self.counted.number)
    }

    /// Cores kept busy on average.
    pub fn cores(&self) -> f64 {
        self.counted.cpu_us as f64 / self.span_us as f64
    }
}

/// Approximate size of one observed process in a record: its id, its CPU time and its name.
const PROCESS_BYTES: usize = size_of::<ProcessCpu>() + 24;

/// The latest records of used resources, each with its moment of the monotonic clock in microseconds.
#[derive(Debug, Default)]
pub(super) struct HostSamples {
    samples: VecDeque<(u64, HostRecord)>,
    /// CPU time of the load's threads before the load began to measure, in microseconds.
    load_warmup_cpu_us: u64,
}

impl HostSamples {
    /// Adds a record, and keeps the latest `history`. `load_measures` is whether the load has left its warm-up.
    pub(super) fn apply(&mut self, stamp: &Stamp, host: HostRecord, load_measures: bool, history: usize) {
        if !load_measures {
            self.load_warmup_cpu_us = host.cpu[CpuGroup::Load];
        }
        let too_many = (self.samples.len() + 1).saturating_sub(history);
        self.samples.drain(..too_many.min(self.samples.len()));
        self.samples.push_back((stamp.mono_us, host));
    }

    /// One record with the sum of all processes at the end of the last run.
    pub(super) fn merged(members: &[(AlignedRun<'_>, &Self)], last: Option<Stamp>) -> Self {
        let mut sum = HostRecord::default();
        let load_warmup_cpu_us = members.iter().map(|(_, hosts)| hosts.load_warmup_cpu_us).sum();
        let (mut threads_max, mut memory_max_bytes) = (0, 0);
        let hosts = members.iter().filter_map(|(run, hosts)| Some((run.is_together, hosts.latest()?)));
        for (is_together, host) in hosts {
            let HostRecord {
                memory_bytes,
                memory_pss_bytes,
                descriptors,
                descriptors_max,
                threads,
                busiest_worker_cpu_us_total,
                // Workers of several processes have the same numbers.
                workers: _,
                peak_worker_cpu_us_total,
                machine_cpus: _,
                observed_pid,
                observed_cpu_us,
                observed_threads,
                observed_threads_max,
                observed_memory_bytes,
                observed_memory_max_bytes,
                observed_descriptors,
                observed_listeners,
                observed_backlog,
                // Processes of several hosts may have the same id.
                observed_processes: _,
                cpu,
                withheld: _,
            } = host;
            if is_together {
                sum.memory_bytes += memory_bytes;
                sum.memory_pss_bytes += memory_pss_bytes;
                sum.descriptors += descriptors;
                sum.descriptors_max += descriptors_max;
                sum.threads += threads;
                sum.observed_threads += observed_threads;
                sum.observed_threads_max += observed_threads_max;
                sum.observed_memory_bytes += observed_memory_bytes;
                sum.observed_memory_max_bytes += observed_memory_max_bytes;
                sum.observed_descriptors += observed_descriptors;
                sum.observed_listeners += observed_listeners;
                sum.observed_backlog += observed_backlog;
            }
            sum.busiest_worker_cpu_us_total =
                sum.busiest_worker_cpu_us_total.max(*busiest_worker_cpu_us_total);
            sum.peak_worker_cpu_us_total = sum.peak_worker_cpu_us_total.max(*peak_worker_cpu_us_total);
            sum.observed_pid = sum.observed_pid.max(*observed_pid);
            threads_max = threads_max.max(*observed_threads_max);
            memory_max_bytes = memory_max_bytes.max(*observed_memory_max_bytes);
            sum.observed_cpu_us += observed_cpu_us;
            sum.cpu.add(cpu);
        }
        // These are the machine's: processes that share one read the same.
        for &counter in HostCounter::ALL {
            sum.withheld[counter] =
                sum_by_host(members, |hosts| hosts.latest().map_or(0, |host| host.withheld[counter]));
        }
        sum.machine_cpus = sum_by_host(members, |hosts| hosts.latest().map_or(0, |host| host.machine_cpus));
        sum.observed_threads_max = sum.observed_threads_max.max(threads_max);
        sum.observed_memory_max_bytes = sum.observed_memory_max_bytes.max(memory_max_bytes);
        let samples = last.map(|last| (last.mono_us, sum)).into_iter().collect();
        Self { samples, load_warmup_cpu_us }
    }

    /// Keeps the records of the last minute.
    pub(super) fn condense(&mut self) {
        let Some(&(last_us, _)) = self.samples.back() else { return };
        let early = self.samples.partition_point(|(us, _)| *us <= last_us.saturating_sub(UNMERGED_US));
        self.samples.drain(..early);
        self.samples.shrink_to_fit();
    }

    /// Keeps the records of the last ten seconds, and the one before.
    pub(super) fn abridge(&mut self) {
        let Some(&(last_us, _)) = self.samples.back() else { return };
        let within = self.samples.partition_point(|(us, _)| *us <= last_us.saturating_sub(BRIEF_US));
        let too_many = self.samples.len().saturating_sub(BRIEF_INTERVALS_MAX);
        self.samples.drain(..within.saturating_sub(1).max(too_many));
        if self.samples.capacity() > 2 * BRIEF_INTERVALS_MAX {
            self.samples.shrink_to_fit();
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let listed = self.latest().map_or(0, |host| {
            host.observed_processes.iter().count() * PROCESS_BYTES
                + host.workers.iter().len() * size_of::<WorkerCounts>()
        });
        self.samples.len() * (size_of::<(u64, HostRecord)>() + listed)
    }

    pub(super) fn latest(&self) -> Option<&HostRecord> {
        self.samples.back().map(|(_, host)| host)
    }

    /// CPU time of the load's threads since the load began to measure, in microseconds.
    pub(super) fn load_cpu_us(&self) -> u64 {
        let total = self.latest().map_or(0, |host| host.cpu[CpuGroup::Load]);
        total.saturating_sub(self.load_warmup_cpu_us)
    }

    /// The record that was the latest at a moment.
    pub(super) fn at(&self, us: u64) -> Option<&HostRecord> {
        let after = self.samples.partition_point(|(at_us, _)| *at_us <= us);
        self.samples.get(after.checked_sub(1)?).map(|(_, host)| host)
    }

    /// CPU of a group of threads over about `span_us` microseconds up to a moment.
    pub(super) fn cpu_until(&self, until_us: u64, group: CpuGroup, span_us: u64) -> Option<CpuUse> {
        let (start, end, span_us) = self.span_until(until_us, span_us)?;
        let used_us = self.record(end).cpu[group].saturating_sub(self.record(start).cpu[group]);
        Some(CpuUse { cores: used_us as f64 / span_us as f64, span_us })
    }

    /// Cores that each observed process kept busy, in the same way.
    pub(super) fn observed_until(&self, until_us: u64, span_us: u64) -> Vec<(ProcessCpu, f64)> {
        let Some((start, end, span_us)) = self.span_until(until_us, span_us) else { return Vec::new() };
        let mut used = self.record(end).observed_processes.clone();
        used.rebase(&self.record(start).observed_processes);
        used.iter().map(|process| (process.clone(), process.cpu_us as f64 / span_us as f64)).collect()
    }

    /// What each worker of the proxy did, in the same way.
    pub(super) fn workers_until(&self, until_us: u64, span_us: u64) -> Vec<WorkerActivity> {
        let Some((start, end, span_us)) = self.span_until(until_us, span_us) else { return Vec::new() };
        let mut used = self.record(end).workers.clone();
        (start + 1..end).for_each(|at| used.downsample(&self.record(at).workers));
        used.rebase(&self.record(start).workers);
        // One that runs answers the recorder, which takes CPU time.
        let is_there = |worker: &&WorkerCounts| worker.cpu_us > 0 || worker.open > 0;
        used.iter().filter(is_there).map(|&counted| WorkerActivity { counted, span_us }).collect()
    }

    fn record(&self, at: usize) -> &HostRecord {
        &self.samples[at].1
    }

    /// The places of the first and the last record of about `span_us` microseconds, and the microseconds between them.
    fn span_until(&self, until_us: u64, span_us: u64) -> Option<(usize, usize, u64)> {
        let end = self.samples.partition_point(|(us, _)| *us <= until_us).checked_sub(1)?;
        let end_us = self.samples[end].0;
        let from_us = end_us.saturating_sub(span_us);
        let start = self.samples.partition_point(|(us, _)| *us < from_us).min(end.checked_sub(1)?);
        let span_us = end_us.checked_sub(self.samples[start].0).filter(|&span| span > 0)?;
        Some((start, end, span_us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::ids::RunId;

    #[test]
    fn cpu_time_of_the_warm_up_is_not_of_the_measured_time() {
        let host = |load_cpu_us| {
            let mut host = HostRecord::default();
            host.cpu[CpuGroup::Load] = load_cpu_us;
            host
        };
        let stamp = Stamp { run: RunId::from_bits(1), seq: 1, mono_us: 1, realtime_us: 1, interval_us: 1 };
        let mut samples = HostSamples::default();
        for (load_cpu_us, load_measures) in [(400_000, false), (1_000_000, false), (2_500_000, true)] {
            samples.apply(&stamp, host(load_cpu_us), load_measures, 2);
        }
        assert_eq!(samples.load_cpu_us(), 1_500_000);
    }

    #[test]
    fn a_worker_has_counts_of_the_span_and_the_longest_delay_in_it() {
        let worker = |number, second: u64, loop_delay_us_max| WorkerCounts {
            number,
            cpu_us: second * 250_000,
            open: 7,
            accepted: second * 10,
            loop_delay_us_max,
            ..WorkerCounts::default()
        };
        let mut samples = HostSamples::default();
        for (second, delay_us) in [(1, 5_000), (2, 4_000), (3, 900), (4, 2_000), (5, 100)] {
            let mut host = HostRecord::default();
            host.workers.add(&worker(0, second, delay_us));
            // It has ended, and has nothing open.
            host.workers.add(&WorkerCounts { cpu_us: 1, open: 0, ..worker(3, 0, 0) });
            let mono_us = second * 1_000_000;
            let stamp =
                Stamp { run: RunId::from_bits(1), seq: second, mono_us, realtime_us: 1, interval_us: 1 };
            samples.apply(&stamp, host, true, 9);
        }
        let until = |us| samples.workers_until(us, 3_000_000);
        let span_us = 3_000_000;
        let counted = WorkerCounts { cpu_us: 750_000, accepted: 30, ..worker(0, 0, 2_000) };
        assert_eq!(until(5_500_000), [WorkerActivity { counted, span_us }]);
        assert!((until(5_500_000)[0].cores() - 0.25).abs() < 1e-9);
        assert_eq!(until(3_000_000)[0].counted.loop_delay_us_max, 4_000);
        assert_eq!(until(1_000_000), [], "one record alone counts no time");
    }
}
