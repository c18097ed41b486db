//! Single requests of a run: failed ones, the slowest of each interval, and a sample.

use std::collections::VecDeque;

use crate::runs::run::aligned::AlignedRun;
use records::kinds::heap_size::HeapSize as _;
use records::kinds::{RequestRecord, Stamp};

/// Failed requests that are kept, the latest; and as many others.
const KEPT_MAX: usize = 512;

/// A request that has a record.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    /// `CLOCK_MONOTONIC` at the end of the interval in which it was over, in microseconds.
    pub mono_us: u64,
    /// `CLOCK_REALTIME` then, in microseconds.
    pub realtime_us: u64,
    pub request: Box<RequestRecord>,
}

/// The latest requests that have a record. Not all do: counters have them all.
#[derive(Debug, Default)]
pub struct Requests {
    errors: VecDeque<RecordedRequest>,
    others: VecDeque<RecordedRequest>,
}

impl Requests {
    pub(in crate::runs) fn apply(&mut self, stamp: &Stamp, request: Box<RequestRecord>) {
        let Stamp { mono_us, realtime_us, .. } = *stamp;
        self.push(RecordedRequest { mono_us, realtime_us, request });
    }

    fn push(&mut self, recorded: RecordedRequest) {
        let kept = if recorded.request.is_error() { &mut self.errors } else { &mut self.others };
        if kept.len() == KEPT_MAX {
            kept.pop_front();
        }
        kept.push_back(recorded);
    }

    pub(in crate::runs) fn merged(members: &[(AlignedRun<'_>, &Self)]) -> Self {
        let of = |(run, requests): &(AlignedRun<'_>, &Self)| {
            let Self { errors, others } = requests;
            let shift_us = run.shift_us;
            let shifted = move |recorded: &RecordedRequest| RecordedRequest {
                mono_us: recorded.mono_us.saturating_add_signed(shift_us),
                ..recorded.clone()
            };
            errors.iter().chain(others).map(shifted).collect::<Vec<_>>()
        };
        let mut all: Vec<RecordedRequest> = members.iter().flat_map(of).collect();
        all.sort_by_key(|recorded| recorded.mono_us);
        let mut merged = Self::default();
        for recorded in all {
            merged.push(recorded);
        }
        merged
    }

    pub(in crate::runs) fn heap_bytes(&self) -> usize {
        let Self { errors, others } = self;
        let all = errors.iter().chain(others);
        all.map(|recorded| size_of::<RecordedRequest>() + recorded.request.heap_bytes()).sum()
    }

    /// The latest that failed or were answered with 500 or above, oldest first.
    pub fn errors(&self) -> impl DoubleEndedIterator<Item = &RecordedRequest> + ExactSizeIterator {
        self.errors.iter()
    }

    /// All that are kept of the time after `from_us` and up to `until_us` (`CLOCK_MONOTONIC`), the slowest first.
    pub fn slowest(&self, from_us: u64, until_us: u64) -> Vec<&RecordedRequest> {
        let is_within =
            |recorded: &&RecordedRequest| from_us < recorded.mono_us && recorded.mono_us <= until_us;
        let mut all: Vec<_> = self.errors.iter().chain(&self.others).filter(is_within).collect();
        all.sort_by_key(|recorded| std::cmp::Reverse(recorded.request.duration_us));
        all
    }

    pub fn is_empty(&self) -> bool {
        self.errors.is_empty() && self.others.is_empty()
    }
}
