//! Recent counters in slots: findings cover the last minute and the last ten minutes, at any interval.

use std::collections::VecDeque;

use records::kinds::HostRecord;
use records::metrics::{Counters, CpuGroup, HostCounter, HttpCounter, LoadCounter, ProxyCounter, TlsCounter};

/// Counts of all parts of a run in some time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunCounts {
    pub(crate) proxy: Counters<ProxyCounter>,
    pub(crate) tls: Counters<TlsCounter>,
    pub(crate) http: Counters<HttpCounter>,
    pub(crate) load: Counters<LoadCounter>,
    pub(crate) host: HostCounts,
    /// Handshakes for server names that no certificate has.
    pub(crate) not_covered: u64,
    /// Missing records, for any reason.
    pub(crate) records_lost: u64,
    pub(crate) span_us: u64,
}

/// Counters of the host's records.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HostCounts {
    pub(crate) withheld: Counters<HostCounter>,
    /// CPU time of the proxy's workers, and of whichever used the most in each interval.
    pub(crate) proxy_cpu_us: u64,
    pub(crate) peak_worker_cpu_us: u64,
}

impl HostCounts {
    /// Counts since the beginning of the run.
    pub(crate) fn so_far(host: &HostRecord) -> Self {
        Self {
            withheld: host.withheld,
            proxy_cpu_us: host.cpu[CpuGroup::Proxy],
            peak_worker_cpu_us: host.peak_worker_cpu_us_total,
        }
    }

    pub(crate) fn since(&self, earlier: &Self) -> Self {
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
    fn since(&self, earlier: &Self) -> Self {
        Self {
            proxy: self.proxy.since(&earlier.proxy),
            tls: self.tls.since(&earlier.tls),
            http: self.http.since(&earlier.http),
            load: self.load.since(&earlier.load),
            host: self.host.since(&earlier.host),
            not_covered: self.not_covered.saturating_sub(earlier.not_covered),
            records_lost: self.records_lost.saturating_sub(earlier.records_lost),
            span_us: self.span_us.saturating_sub(earlier.span_us),
        }
    }

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
    /// Of all of them.
    sum: RunCounts,
}

impl CountSlots {
    fn new(slot_us: u64, max: u64) -> Self {
        Self { slot_us, max, counted: VecDeque::new(), sum: RunCounts::default() }
    }

    fn push(&mut self, us: u64, counted: &RunCounts) {
        let now = us / self.slot_us;
        while let Some((number, slot)) = self.counted.front()
            && number + self.max <= now
        {
            self.sum = self.sum.since(slot);
            self.counted.pop_front();
        }
        self.sum.add(counted);
        match self.counted.back_mut().filter(|(number, _)| *number >= now) {
            Some((_, slot)) => slot.add(counted),
            None => self.counted.push_back((now, *counted)),
        }
    }
}

/// Counters of the last minute and of the last ten.
#[derive(Debug)]
pub(crate) struct RecentSums {
    slots: [CountSlots; 2],
    /// Ends of the last intervals of proxy, TLS, HTTP and load that were taken in.
    pub(crate) seen_us: [u64; 4],
    /// Records that were missing then.
    pub(crate) lost: u64,
    /// Handshakes for names that no certificate has, until then.
    pub(crate) not_covered: u64,
    /// The host's counts until then; `None` if unknown.
    pub(crate) host_before: Option<HostCounts>,
}

impl Default for RecentSums {
    fn default() -> Self {
        Self {
            slots: [CountSlots::new(1_000_000, 60), CountSlots::new(10_000_000, 60)],
            seen_us: [0; 4],
            lost: 0,
            not_covered: 0,
            host_before: None,
        }
    }
}

impl RecentSums {
    /// Adds the counts of an interval that has ended now.
    pub(crate) fn push(&mut self, now_us: u64, counted: &RunCounts) {
        self.slots.iter_mut().for_each(|slots| slots.push(now_us, counted));
    }

    pub(crate) fn minute(&self) -> &RunCounts {
        &self.slots[0].sum
    }

    pub(crate) fn ten_minutes(&self) -> &RunCounts {
        &self.slots[1].sum
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.slots.iter().map(|slots| slots.counted.capacity() * size_of::<(u64, RunCounts)>()).sum()
    }
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
            assert_eq!(slots.sum.records_lost, second.min(60));
        }
        slots.push(3_600_000_000, &one);
        assert_eq!((slots.sum.records_lost, slots.counted.len()), (1, 1));
    }
}
