//! The runs that are merged into one, on a common clock.
//!
//! Counts add up over all runs. Gauges, such as connections, memory or the requested rate, add up over simultaneous
//! runs only, and a host counts once.

use super::Run;
use records::kinds::{HandshakeCosts, Stamp};

/// Runs that overlap by less follow each other, in microseconds: a recording may begin with an interval that another one
/// ended in.
const OVERLAP_US_MIN: u64 = 1_000_000;

/// One of several merged runs.
#[derive(Clone, Copy, Debug)]
pub(super) struct AlignedRun<'a> {
    /// Its name, such as its host.
    pub(super) name: &'a str,
    pub(super) run: &'a Run,
    /// Microseconds that make `CLOCK_REALTIME` of its monotonic clock, by its last record.
    pub(super) shift_us: i64,
    /// True if it belongs to the largest set of simultaneous runs; of several such sets, the latest.
    pub(super) is_together: bool,
}

impl<'a> AlignedRun<'a> {
    pub(super) fn all(runs: &[(&'a str, &'a Run)]) -> Vec<Self> {
        let member = |&(name, run): &(&'a str, &'a Run)| Self {
            name,
            run,
            shift_us: run.realtime_shift_us(),
            is_together: false,
        };
        let mut members: Vec<Self> = runs.iter().map(member).collect();
        let running_at = |us: u64| members.iter().filter(move |member| member.is_running_at(us)).count();
        // There are most of them where one of them begins.
        let begins = members.iter().map(|member| {
            let (start_us, end_us) = member.span_us();
            start_us + ((end_us - start_us) / 2).min(OVERLAP_US_MIN)
        });
        if let Some(moment_us) = begins.max_by_key(|&us| (running_at(us), us)) {
            for member in &mut members {
                member.is_together = member.is_running_at(moment_us);
            }
        }
        members
    }

    /// Its beginning and its end on the common clock.
    pub(super) fn span_us(&self) -> (u64, u64) {
        let end_us = self.shifted_us(self.run.last_us());
        (end_us.saturating_sub(self.run.duration_us()), end_us)
    }

    fn is_running_at(&self, us: u64) -> bool {
        let (start_us, end_us) = self.span_us();
        start_us <= us && us <= end_us
    }

    /// A moment of its clock on the common one.
    pub(super) fn shifted_us(&self, us: u64) -> u64 {
        us.saturating_add_signed(self.shift_us)
    }

    /// Its calibration, by the common clock.
    pub(super) fn calibration(&self) -> Option<(Stamp, Box<HandshakeCosts>)> {
        self.run.calibration.as_ref().map(|(stamp, costs)| (self.shifted(*stamp), costs.clone()))
    }

    /// A stamp of its clock on the common one.
    pub(super) fn shifted(&self, stamp: Stamp) -> Stamp {
        Stamp { mono_us: self.shifted_us(stamp.mono_us), ..stamp }
    }

    /// True if both ran on one host, as far as the journal or the runs say.
    fn is_beside(&self, other: &Self) -> bool {
        let machine = |member: &Self| member.run.writer().origin.machine;
        let (host, other_host) = (self.run.hostname(), other.run.hostname());
        let has_same_name = !host.is_empty() && host == other_host;
        match (machine(self), machine(other)) {
            (Some(a), Some(b)) => a == b && (has_same_name || host.is_empty() || other_host.is_empty()),
            (None, _) | (_, None) => has_same_name,
        }
    }
}

/// The sum over all hosts, with the highest value of each host's runs.
pub(super) fn sum_by_host(members: &[AlignedRun<'_>], of: impl Fn(&Run) -> u64) -> u64 {
    let mut hosts: Vec<(&AlignedRun<'_>, u64)> = Vec::new();
    for member in members {
        match hosts.iter_mut().find(|(known, _)| known.is_beside(member)) {
            Some((_, most)) => *most = (*most).max(of(member.run)),
            None => hosts.push((member, of(member.run))),
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

/// The common value, or the value of each run, without duplicates.
pub(super) fn joined(members: &[AlignedRun<'_>], of: impl Fn(&Run) -> String) -> String {
    let mut texts: Vec<String> = Vec::new();
    for text in members.iter().map(|member| of(member.run)) {
        if !text.is_empty() && !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts.join(", ")
}
