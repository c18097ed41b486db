//! The publisher's state of TLS: totals, ages of tickets, and usage.

use super::run_totals::RunTotals;
use super::usage::UsageTable;
use records::delta::TlsDelta;
use records::kinds::TlsRecord;
use records::metrics::{Metric as _, TlsCounter, TlsLatency};
use records::values::{AgeCounts, Latencies};

/// TLS counters of the run, and the part of them that no record has carried yet.
#[derive(Debug)]
pub(super) struct TlsTotals {
    pub(super) totals: RunTotals<TlsCounter, TlsLatency>,
    pub(super) usage: UsageTable,
    ages_accepted: AgeCounts,
    ages_expired: AgeCounts,
}

impl TlsTotals {
    pub(super) fn new(started_us: u64) -> Self {
        Self {
            totals: RunTotals::new(started_us),
            usage: UsageTable::default(),
            ages_accepted: AgeCounts::default(),
            ages_expired: AgeCounts::default(),
        }
    }

    /// Adds the counts of the interval that began at `start_us`.
    pub(super) fn add(&mut self, delta: &TlsDelta, start_us: u64) {
        self.totals.add(&delta.counters, &delta.latencies);
        self.ages_accepted.add(&delta.ages_accepted);
        self.ages_expired.add(&delta.ages_expired);
        self.usage.add(&delta.usage, start_us);
    }

    pub(super) fn record(&self, usage_deferred: u64) -> TlsRecord {
        self.record_with(self.totals.interval(TlsLatency::ALL), usage_deferred)
    }

    pub(super) fn final_record(&self) -> TlsRecord {
        self.record_with(self.totals.whole_run(), 0)
    }

    fn record_with(&self, latencies: Latencies<TlsLatency>, usage_deferred: u64) -> TlsRecord {
        TlsRecord {
            usage_deferred,
            ages_accepted: self.ages_accepted.clone(),
            ages_expired: self.ages_expired.clone(),
            counters: *self.totals.counters(),
            latencies,
        }
    }
}
