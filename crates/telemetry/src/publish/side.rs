//! What one side of the wire has counted, and which part of it no record has carried yet.

use crate::families::{LoadCounter, LoadLatency, ProxyCounter, ProxyLatency};
use crate::histogram::Histograms;
use crate::metric::{Counters, Metric};
use crate::record::{Latencies, LoadRecord, ProxyRecord};

/// How the load stands.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadState {
    /// True while requests are being scheduled.
    pub running: bool,
    /// Requests a second that are asked for; 0 in a closed loop.
    pub rate: f64,
    /// Share of new connections that are meant to resume, in percent.
    pub resume_percent: f64,
    /// Connections that are asked for.
    pub connections: u64,
}

/// What one side of the wire has counted: the run's totals, and the latencies that no record has carried yet.
#[derive(Debug)]
pub(super) struct Side<C: Metric, L: Metric> {
    totals: Counters<C>,
    samples_total: Counters<L>,
    unsent: Histograms<L>,
    whole: Histograms<L>,
    /// Up to when records cover it, `CLOCK_MONOTONIC` in microseconds.
    pub(super) sent_us: u64,
}

impl<C: Metric, L: Metric> Side<C, L> {
    pub(super) fn new(start_us: u64) -> Self {
        Self {
            totals: Counters::default(),
            samples_total: Counters::default(),
            unsent: Histograms::default(),
            whole: Histograms::default(),
            sent_us: start_us,
        }
    }

    pub(super) fn add(&mut self, counters: &Counters<C>, latencies: &Histograms<L>) {
        self.totals.add(counters);
        self.unsent.add(latencies);
        self.whole.add(latencies);
        for (class, histogram) in latencies.iter() {
            self.samples_total[class] += histogram.count();
        }
    }

    pub(super) fn sent(&mut self, now_us: u64) {
        self.unsent.clear();
        self.sent_us = now_us;
    }

    fn interval(&self) -> Latencies<L> {
        Latencies::new(&self.unsent, &self.samples_total)
    }

    fn whole_run(&self) -> Latencies<L> {
        Latencies::new(&self.whole, &self.samples_total)
    }
}

impl Side<ProxyCounter, ProxyLatency> {
    pub(super) fn record(&self, clients_deferred: u64) -> ProxyRecord {
        self.record_with(self.interval(), clients_deferred)
    }

    pub(super) fn final_record(&self) -> ProxyRecord {
        self.record_with(self.whole_run(), 0)
    }

    fn record_with(&self, latencies: Latencies<ProxyLatency>, clients_deferred: u64) -> ProxyRecord {
        let counters = self.totals;
        let open = counters[ProxyCounter::Accepted].saturating_sub(counters[ProxyCounter::Closed]);
        ProxyRecord { open, clients_deferred, counters, latencies }
    }
}

impl Side<LoadCounter, LoadLatency> {
    pub(super) fn record(&self, state: LoadState) -> LoadRecord {
        self.record_with(self.interval(), state)
    }

    pub(super) fn final_record(&self, state: LoadState) -> LoadRecord {
        self.record_with(self.whole_run(), state)
    }

    fn record_with(&self, latencies: Latencies<LoadLatency>, state: LoadState) -> LoadRecord {
        LoadRecord {
            running: state.running,
            rate: state.rate,
            resume_percent: state.resume_percent,
            connections: state.connections,
            counters: self.totals,
            latencies,
        }
    }
}
