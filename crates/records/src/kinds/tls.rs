//! The records of TLS: reasons of full handshakes, parts of their time, and usage.

use crate::metrics::{Counters, Dimension, TlsCounter, TlsLatency, UsageCounter};
use crate::values::{AgeCounts, Latencies};
use crate::wire::{FAMILY, field, wire};

wire! {
    /// TLS of the proxy, once per interval: cumulative counters, and the interval's latencies.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct TlsRecord {
        /// Changed values of usage of this interval whose record was deferred.
        pub usage_deferred: u64 = &field::USAGE_DEFERRED,
        /// Ages of tickets and sessions that resumed, during the run.
        pub ages_accepted: AgeCounts = &field::AGES_ACCEPTED,
        /// Ages of expired tickets and sessions, during the run.
        pub ages_expired: AgeCounts = &field::AGES_EXPIRED,
        /// Totals of the run.
        pub counters: Counters<TlsCounter> = &FAMILY,
        /// Latencies of the interval.
        pub latencies: Latencies<TlsLatency> = &FAMILY,
    }
}

wire! {
    /// One value of a dimension of usage, such as one TLS version or one server name: cumulative counters.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct UsageRecord {
        pub dimension: Dimension = &field::USAGE_DIMENSION,
        /// The value; `other` for all values beyond the bound.
        pub value: String = &field::USAGE_VALUE,
        /// Totals of the run.
        pub counters: Counters<UsageCounter> = &FAMILY,
    }
}

impl TlsRecord {
    /// Counts from an earlier record on.
    pub(crate) fn rebase(&mut self, before: &Self) {
        let Self { usage_deferred: _, ages_accepted, ages_expired, counters, latencies } = self;
        *ages_accepted = ages_accepted.since(&before.ages_accepted);
        *ages_expired = ages_expired.since(&before.ages_expired);
        *counters = counters.since(&before.counters);
        latencies.rebase(&before.latencies);
    }

    /// Copies the record without latencies.
    pub fn without_intervals(&self) -> Self {
        let latencies = self.latencies.without_intervals();
        let (ages_accepted, ages_expired) = (self.ages_accepted.clone(), self.ages_expired.clone());
        Self { ages_accepted, ages_expired, latencies, ..*self }
    }

    /// Merges the previous record, to cover the time of both.
    pub fn downsample(&mut self, earlier: &Self) {
        self.latencies.downsample(&earlier.latencies);
    }
}

impl UsageRecord {
    /// Counts from an earlier record of the same value on.
    pub(crate) fn rebase(&mut self, before: Option<&Counters<UsageCounter>>) {
        if let Some(before) = before {
            self.counters = self.counters.since(before);
        }
    }
}
