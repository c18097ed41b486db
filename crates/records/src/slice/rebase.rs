//! Makes totals count from a moment of the run.

use crate::kinds::{ClientRecord, HealthRecord, HostRecord, HttpRecord, LoadRecord, ProxyRecord};
use crate::metrics::{ClientCounter, Counters};
use crate::values::Mix;

impl ProxyRecord {
    /// Counts from an earlier record on.
    pub(crate) fn rebase(&mut self, before: &Self) {
        let Self { open: _, clients_deferred: _, upstreams_deferred: _, counters, latencies, mix: _ } = self;
        *counters = counters.since(&before.counters);
        latencies.rebase(&before.latencies);
    }

    /// Copies the record without what is of its interval alone.
    pub fn without_intervals(&self) -> Self {
        Self { latencies: self.latencies.without_intervals(), mix: Mix::default(), ..*self }
    }

    /// Merges the previous record, to cover the time of both.
    pub fn downsample(&mut self, earlier: &Self) {
        self.latencies.downsample(&earlier.latencies);
        self.mix.downsample(&earlier.mix);
    }
}

impl HttpRecord {
    /// Counts from an earlier record on.
    pub(crate) fn rebase(&mut self, before: &Self) {
        let Self {
            requests: _,
            queued: _,
            upstream_open: _,
            upstream_idle: _,
            routes_deferred: _,
            statuses,
            grpc_statuses,
            counters,
            latencies,
        } = self;
        *statuses = statuses.since(&before.statuses);
        *grpc_statuses = grpc_statuses.since(&before.grpc_statuses);
        *counters = counters.since(&before.counters);
        latencies.rebase(&before.latencies);
    }

    /// Copies the record without the latencies of its interval.
    pub fn without_intervals(&self) -> Self {
        Self {
            latencies: self.latencies.without_intervals(),
            statuses: self.statuses.clone(),
            grpc_statuses: self.grpc_statuses.clone(),
            ..*self
        }
    }

    /// Merges the previous record, to cover the time of both: all but the latencies are totals or present values.
    pub fn downsample(&mut self, earlier: &Self) {
        self.latencies.downsample(&earlier.latencies);
    }
}

impl LoadRecord {
    /// Counts from an earlier record on.
    pub(crate) fn rebase(&mut self, before: &Self) {
        let Self {
            running: _,
            rate: _,
            resume_percent: _,
            connections: _,
            threads: _,
            due_us,
            sending_us,
            measured_us,
            events,
            counters,
            latencies,
        } = self;
        *due_us = due_us.saturating_sub(before.due_us);
        *sending_us = sending_us.saturating_sub(before.sending_us);
        *measured_us = measured_us.saturating_sub(before.measured_us);
        *events = events.since(&before.events);
        *counters = counters.since(&before.counters);
        latencies.rebase(&before.latencies);
    }

    /// Copies the record without the latencies of its interval.
    pub fn without_intervals(&self) -> Self {
        Self { latencies: self.latencies.without_intervals(), events: self.events.clone(), ..*self }
    }

    /// Merges the previous record, to cover the time of both: all but the latencies are totals or present values.
    pub fn downsample(&mut self, earlier: &Self) {
        self.latencies.downsample(&earlier.latencies);
    }
}

impl ClientRecord {
    /// Counts from an earlier record of the same epoch on.
    pub(crate) fn rebase(&mut self, before: &Counters<ClientCounter>) {
        let Self { client: _, epoch: _, last: _, open: _, counters, rtt_us: _, exchange: _ } = self;
        *counters = counters.since(before);
    }

    /// Merges the previous record of the same epoch, to cover the time of both.
    pub fn downsample(&mut self, earlier: &Self) {
        let Self { client: _, epoch: _, last: _, open: _, counters: _, rtt_us: _, exchange } = self;
        exchange.add(&earlier.exchange);
    }
}

impl HostRecord {
    /// Counts CPU time from an earlier record on.
    pub fn rebase(&mut self, before: &Self) {
        let Self {
            memory_bytes: _,
            memory_pss_bytes: _,
            descriptors: _,
            descriptors_max: _,
            threads: _,
            busiest_worker_cpu_us_total,
            workers,
            peak_worker_cpu_us_total,
            machine_cpus: _,
            observed_pid: _,
            observed_cpu_us,
            observed_threads: _,
            observed_threads_max: _,
            observed_memory_bytes: _,
            observed_memory_max_bytes: _,
            observed_descriptors: _,
            observed_listeners: _,
            observed_backlog: _,
            observed_processes,
            cpu,
            withheld,
        } = self;
        *observed_cpu_us = observed_cpu_us.saturating_sub(before.observed_cpu_us);
        observed_processes.rebase(&before.observed_processes);
        workers.rebase(&before.workers);
        let pairs = [
            (busiest_worker_cpu_us_total, before.busiest_worker_cpu_us_total),
            (peak_worker_cpu_us_total, before.peak_worker_cpu_us_total),
        ];
        for (total, before) in pairs {
            *total = total.saturating_sub(before);
        }
        *cpu = cpu.since(&before.cpu);
        *withheld = withheld.since(&before.withheld);
    }

    /// Merges the previous record, to cover the time of both: all but the workers' loop delays are totals or present
    /// values.
    pub fn downsample(&mut self, earlier: &Self) {
        self.workers.downsample(&earlier.workers);
    }
}

impl HealthRecord {
    /// Counts from an earlier record on.
    pub(crate) fn rebase(&mut self, before: &Self) {
        let Self {
            refused_total,
            merged_total,
            waits_total,
            dropped_total,
            suppressed_total,
            over_budget_total,
            clock_step_us: _,
            clock_steps_total: _,
            error: _,
            upload_waiting: _,
            upload_lost_total,
            upload_failure: _,
        } = self;
        for (total, before) in [
            (refused_total, before.refused_total),
            (merged_total, before.merged_total),
            (waits_total, before.waits_total),
            (dropped_total, before.dropped_total),
            (suppressed_total, before.suppressed_total),
            (over_budget_total, before.over_budget_total),
            (upload_lost_total, before.upload_lost_total),
        ] {
            *total = total.saturating_sub(before);
        }
    }
}
