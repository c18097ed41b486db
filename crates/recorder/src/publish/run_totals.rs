//! The totals of proxy or load, and the part that no record has carried yet.

use records::delta::LoadState;
use records::histogram::{Histograms, SparseHistogram};
use records::kinds::{LoadRecord, ProxyRecord};
use records::metrics::{Counters, LoadCounter, LoadLatency, Metric, ProxyCounter, ProxyLatency};
use records::values::{EventCounts, Latencies, Latency};

/// The counts of proxy or load in the run, and the latencies that no record has carried yet.
#[derive(Debug)]
pub(super) struct RunTotals<C: Metric, L: Metric> {
    totals: Counters<C>,
    samples_total: Counters<L>,
    unsent: Histograms<L>,
    whole: Histograms<L>,
    /// Up to when records cover it, `CLOCK_MONOTONIC` in microseconds.
    pub(super) sent_us: u64,
}

impl<C: Metric, L: Metric> RunTotals<C, L> {
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

    pub(super) fn counters(&self) -> &Counters<C> {
        &self.totals
    }

    /// A record has carried the latencies of these classes.
    pub(super) fn sent(&mut self, classes: &[L], now_us: u64) {
        for &class in classes {
            self.unsent[class].clear();
        }
        self.sent_us = now_us;
    }

    /// The latencies of these classes that no record has carried yet.
    pub(super) fn interval(&self, classes: &[L]) -> Latencies<L> {
        let mut latencies = Latencies::new(&self.unsent, &self.samples_total);
        for &class in L::ALL.iter().filter(|class| !classes.contains(class)) {
            let samples_total = self.samples_total[class] - self.unsent[class].count();
            latencies[class] = Latency { samples_total, interval: SparseHistogram::default() };
        }
        latencies
    }

    pub(super) fn whole_run(&self) -> Latencies<L> {
        Latencies::new(&self.whole, &self.samples_total)
    }
}

impl RunTotals<ProxyCounter, ProxyLatency> {
    pub(super) fn record(&self, clients_deferred: u64, upstreams_deferred: u64) -> ProxyRecord {
        let latencies = self.interval(ProxyLatency::ALL);
        ProxyRecord { clients_deferred, upstreams_deferred, ..self.record_with(latencies) }
    }

    pub(super) fn final_record(&self) -> ProxyRecord {
        self.record_with(self.whole_run())
    }

    fn record_with(&self, latencies: Latencies<ProxyLatency>) -> ProxyRecord {
        let counters = self.totals;
        let open = counters[ProxyCounter::Accepted].saturating_sub(counters[ProxyCounter::Closed]);
        ProxyRecord { open, counters, latencies, ..ProxyRecord::default() }
    }
}

impl RunTotals<LoadCounter, LoadLatency> {
    /// With the latencies of these classes.
    pub(super) fn record(
        &self,
        classes: &[LoadLatency],
        state: LoadState,
        events: &EventCounts,
    ) -> LoadRecord {
        self.record_with(self.interval(classes), state, events)
    }

    pub(super) fn final_record(&self, state: LoadState, events: &EventCounts) -> LoadRecord {
        self.record_with(self.whole_run(), state, events)
    }

    fn record_with(
        &self,
        latencies: Latencies<LoadLatency>,
        state: LoadState,
        events: &EventCounts,
    ) -> LoadRecord {
        LoadRecord { events: events.clone(), counters: self.totals, latencies, ..state.record() }
    }
}
