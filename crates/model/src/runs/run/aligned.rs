//! Runs that are merged into one, on a common clock. Each part of the merged run is made of the same parts of these.
//!
//! Counts add up over all runs. Gauges, such as connections, memory or the requested rate, add up over simultaneous
//! runs only, and a host counts once.

use records::kinds::Stamp;

/// One of several merged runs.
#[derive(Clone, Copy, Debug)]
pub(in crate::runs) struct AlignedRun<'a> {
    /// Its name, such as its host.
    pub(super) name: &'a str,
    /// Its host, as far as the journal or the run says.
    pub(super) machine: Option<u128>,
    pub(super) hostname: &'a str,
    /// Microseconds that make `CLOCK_REALTIME` of its monotonic clock, by its last record.
    pub(super) shift_us: i64,
    /// Its beginning and its end on the common clock.
    pub(super) span_us: (u64, u64),
    /// True if it belongs to the largest set of simultaneous runs; of several such sets, the latest.
    pub(super) is_together: bool,
}

impl AlignedRun<'_> {
    pub(super) fn is_running_at(&self, us: u64) -> bool {
        let (start_us, end_us) = self.span_us;
        start_us <= us && us <= end_us
    }

    /// A moment of its clock on the common one.
    pub(super) fn shifted_us(&self, us: u64) -> u64 {
        us.saturating_add_signed(self.shift_us)
    }

    /// A stamp of its clock on the common one.
    pub(super) fn shifted(&self, stamp: Stamp) -> Stamp {
        Stamp { mono_us: self.shifted_us(stamp.mono_us), ..stamp }
    }

    /// True if both ran on one host.
    fn is_beside(&self, other: &Self) -> bool {
        let (host, other_host) = (self.hostname, other.hostname);
        let has_same_name = !host.is_empty() && host == other_host;
        match (self.machine, other.machine) {
            (Some(a), Some(b)) => a == b && (has_same_name || host.is_empty() || other_host.is_empty()),
            (None, _) | (_, None) => has_same_name,
        }
    }
}

/// The sum over all hosts, with the highest value of each host's runs.
pub(super) fn sum_by_host<P>(members: &[(AlignedRun<'_>, &P)], of: impl Fn(&P) -> u64) -> u64 {
    let mut hosts: Vec<(&AlignedRun<'_>, u64)> = Vec::new();
    for (run, part) in members {
        match hosts.iter_mut().find(|(known, _)| known.is_beside(run)) {
            Some((_, most)) => *most = (*most).max(of(part)),
            None => hosts.push((run, of(part))),
        }
    }
    hosts.iter().map(|(_, most)| most).sum()
}

/// Time that any of these spans covers, in microseconds.
pub(super) fn covered_us(spans: impl Iterator<Item = (u64, u64)>) -> u64 {
    let mut spans: Vec<(u64, u64)> = spans.collect();
    spans.sort_unstable();
    let (mut covered_us, mut until_us) = (0, 0);
    for (start_us, end_us) in spans {
        covered_us += end_us.saturating_sub(start_us.max(until_us));
        until_us = until_us.max(end_us);
    }
    covered_us
}
