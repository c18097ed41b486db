//! Recent counters in slots: findings cover the last minute and the last ten minutes, at any interval.

use std::collections::VecDeque;

use crate::runs::{MetricSeries, Run};
use records::kinds::HostRecord;
use records::metrics::{
    Counters, CpuGroup, Dimension, HostCounter, HttpCounter, LoadCounter, Metric, ProxyCounter, TlsCounter,
    UsageCounter,
};

/// Counts of all parts of a run in some time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RunCounts {
    pub(super) proxy: Counters<ProxyCounter>,
    pub(super) tls: Counters<TlsCounter>,
    pub(super) http: Counters<HttpCounter>,
    pub(super) load: Counters<LoadCounter>,
    pub(super) host: HostCounts,
    /// Handshakes for server names that no certificate has.
    pub(super) not_covered: u64,
    /// Missing records, for any reason.
    pub(super) records_lost: u64,
    pub(super) span_us: u64,
}

/// Counters of the host's records.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HostCounts {
    pub(super) withheld: Counters<HostCounter>,
    /// CPU time of the proxy's workers, and of whichever used the most in each interval.
    pub(super) proxy_cpu_us: u64,
    pub(super) peak_worker_cpu_us: u64,
}

impl HostCounts {
    /// Counts since the beginning of the run.
    fn so_far(host: &HostRecord) -> Self {
        Self {
            withheld: host.withheld,
            proxy_cpu_us: host.cpu[CpuGroup::Proxy],
            peak_worker_cpu_us: host.peak_worker_cpu_us_total,
        }
    }

    fn since(&self, earlier: &Self) -> Self {
        Self {
            withheld: self.withheld.since(&earlier.withheld),
            proxy_cpu_us: self.proxy_cpu_us.saturating_sub(earlier.proxy_cpu_us),
            peak_worker_cpu_us: self.peak_worker_cpu_us.saturating_sub(earlier.peak_worker_cpu_us),
        }
    }

    fn add(&mut self, other: &Self) {
        self.withheld.add(&other.withheld);
        self.proxy_cpu_us = self.proxy_cpu_us.saturating_add(other.proxy_cpu_us);
        self.peak_worker_cpu_us = self.peak_worker_cpu_us.saturating_add(other.peak_worker_cpu_us);
    }
}

impl RunCounts {
    fn add(&mut self, other: &Self) {
        let Self { proxy, tls, http, load, host, not_covered, records_lost, span_us } = other;
        self.proxy.add(proxy);
        self.tls.add(tls);
        self.http.add(http);
        self.load.add(load);
        self.host.add(host);
        self.not_covered = self.not_covered.saturating_add(*not_covered);
        self.records_lost = self.records_lost.saturating_add(*records_lost);
        self.span_us = self.span_us.saturating_add(*span_us);
    }
}

/// The latest slots of a length.
#[derive(Debug)]
struct CountSlots {
    slot_us: u64,
    max: u64,
    /// Number and contents of each slot that has any, in ascending order.
    counted: VecDeque<(u64, RunCounts)>,
}

impl CountSlots {
    fn new(slot_us: u64, max: u64) -> Self {
        Self { slot_us, max, counted: VecDeque::new() }
    }

    fn push(&mut self, us: u64, counted: &RunCounts) {
        let now = us / self.slot_us;
        while self.counted.front().is_some_and(|(number, _)| number + self.max <= now) {
            self.counted.pop_front();
        }
        match self.counted.back_mut().filter(|(number, _)| *number >= now) {
            Some((_, slot)) => slot.add(counted),
            None => self.counted.push_back((now, *counted)),
        }
    }

    fn sum(&self) -> RunCounts {
        let mut sum = RunCounts::default();
        self.counted.iter().for_each(|(_, slot)| sum.add(slot));
        sum
    }
}

/// Counters of the last minute and of the last ten.
#[derive(Debug)]
pub(super) struct RecentSums {
    slots: [CountSlots; 2],
    pub(super) minute: RunCounts,
    pub(super) ten_minutes: RunCounts,
    /// Ends of the last intervals of proxy, TLS, HTTP and load that were taken in.
    seen_us: [u64; 4],
    /// Records that were missing then.
    lost: u64,
    /// Handshakes for names that no certificate has, until then.
    not_covered: u64,
    /// The host's counts until then; `None` if unknown.
    host_before: Option<HostCounts>,
}

impl Default for RecentSums {
    fn default() -> Self {
        Self {
            slots: [CountSlots::new(1_000_000, 60), CountSlots::new(10_000_000, 60)],
            minute: RunCounts::default(),
            ten_minutes: RunCounts::default(),
            seen_us: [0; 4],
            lost: 0,
            not_covered: 0,
            host_before: None,
        }
    }
}

impl RecentSums {
    /// Adds the last interval of each part, and gives its end; `None` if there is none that is new.
    pub(super) fn add_last_intervals(&mut self, run: &Run) -> Option<u64> {
        let [proxy, tls, http, load] = &mut self.seen_us;
        let before = [*proxy, *load];
        // A refused record is carried by the next one, and a record that journald dropped is missing among those read.
        let lost = run.reading().lost().saturating_add(run.health().dropped_total);
        let host = run.host().map_or_else(HostCounts::default, HostCounts::so_far);
        let not_covered =
            run.usage().of(Dimension::Name).map(|(_, counters)| counters[UsageCounter::NotCovered]);
        let not_covered = not_covered.fold(0, u64::saturating_add);
        let counted = RunCounts {
            proxy: latest(run.proxy(), proxy),
            tls: latest(run.tls(), tls),
            http: latest(run.http(), http),
            load: latest(run.load(), load),
            host: host.since(&self.host_before.unwrap_or(host)),
            not_covered: not_covered.saturating_sub(self.not_covered),
            records_lost: lost.saturating_sub(self.lost),
            span_us: length_us(run.proxy()).or_else(|| length_us(run.load())).unwrap_or(0),
        };
        if before == [*proxy, *load] {
            return None;
        }
        let now_us = (*proxy).max(*load);
        (self.lost, self.not_covered, self.host_before) = (lost, not_covered, Some(host));
        self.slots.iter_mut().for_each(|slots| slots.push(now_us, &counted));
        [self.minute, self.ten_minutes] = [self.slots[0].sum(), self.slots[1].sum()];
        Some(now_us)
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.slots.iter().map(|slots| slots.counted.capacity() * size_of::<(u64, RunCounts)>()).sum()
    }
}

/// The length of the last interval of a series.
fn length_us<C: Metric, L: Metric>(series: Option<&MetricSeries<C, L>>) -> Option<u64> {
    Some(series?.intervals().next_back()?.length_us())
}

/// The counts of the last interval of a series, unless they were read before.
fn latest<C: Metric, L: Metric>(series: Option<&MetricSeries<C, L>>, seen_us: &mut u64) -> Counters<C> {
    let last = series.and_then(|series| series.intervals().next_back());
    let new = last.filter(|interval| interval.end_us > *seen_us);
    new.map_or_else(Counters::default, |interval| {
        *seen_us = interval.end_us;
        interval.counters
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_hold_the_time_of_their_number_and_no_more() {
        let mut slots = CountSlots::new(1_000_000, 60);
        let one = RunCounts { records_lost: 1, ..RunCounts::default() };
        for second in 1..=600 {
            slots.push(second * 1_000_000, &one);
            let sum = slots.sum().records_lost;
            assert_eq!(sum, second.min(60));
        }
        slots.push(3_600_000_000, &one);
        assert_eq!((slots.sum().records_lost, slots.counted.len()), (1, 1));
    }
}
