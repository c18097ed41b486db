//! Counters of a worker for each upstream.

use std::time::Duration;

use crate::delta::NamedDelta;
use crate::histogram::{CompactHistogram, SparseHistogram};
use crate::kinds::{UpstreamRecord, UpstreamState};
use crate::metrics::{Counters, Metric as _, UpstreamCounter, UpstreamLatency};

/// Counters of one worker for one upstream over an interval.
#[derive(Clone, Debug, Default)]
pub struct UpstreamDelta {
    /// Counts since the last hand-over.
    pub counters: Counters<UpstreamCounter>,
    /// Connections opened less connections closed since the last hand-over.
    pub open_change: i64,
    /// How the number of connections without a request has changed since then.
    pub idle_change: i64,
    /// Its state at the end of the interval; `None` in a worker's delta, since all workers share it.
    pub status: Option<UpstreamStatus>,
    latencies: [CompactHistogram; UpstreamLatency::ALL.len()],
}

/// Whether an upstream can be reached, since when, and why not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamStatus {
    pub state: UpstreamState,
    /// How long it has been in this state.
    pub age: Duration,
    /// Why it is not up; empty if it is.
    pub reason: String,
}

/// Counters of all upstreams, by their index in the configuration.
#[derive(Clone, Debug, Default)]
pub struct UpstreamDeltas(Vec<UpstreamDelta>);

impl UpstreamDelta {
    pub fn count(&mut self, counter: UpstreamCounter, n: u64) {
        self.counters[counter] += n;
    }

    pub fn time(&mut self, class: UpstreamLatency, took: Duration) {
        self.latencies[class.index()].record(took);
    }

    /// Latencies of a class since the last hand-over.
    pub(super) fn times(&self, class: UpstreamLatency) -> &CompactHistogram {
        &self.latencies[class.index()]
    }

    fn add(&mut self, other: &Self) {
        let Self { counters, open_change, idle_change, status, latencies } = other;
        self.counters.add(counters);
        self.open_change += open_change;
        self.idle_change += idle_change;
        if status.is_some() {
            self.status.clone_from(status);
        }
        self.latencies.iter_mut().zip(latencies).for_each(|(own, more)| own.add(more));
    }

    /// Forgets everything and keeps the memory.
    fn clear(&mut self) {
        let Self { counters, open_change, idle_change, status, latencies } = self;
        (*counters, *open_change, *idle_change, *status) = (Counters::default(), 0, 0, None);
        latencies.iter_mut().for_each(CompactHistogram::clear);
    }
}

impl NamedDelta for UpstreamDelta {
    type Record = UpstreamRecord;

    fn add_to(&self, totals: &mut UpstreamRecord) -> bool {
        let Self { counters, open_change, idle_change, status, latencies: _ } = self;
        let mut is_changed = !counters.is_zero() || *open_change != 0 || *idle_change != 0;
        totals.counters.add(counters);
        totals.open = totals.open.saturating_add_signed(*open_change);
        totals.idle = totals.idle.saturating_add_signed(*idle_change);
        if let Some(UpstreamStatus { state, age, reason }) = status {
            let is_known = totals.state_us > 0;
            is_changed |= !is_known || (totals.state, &totals.reason) != (*state, reason);
            (totals.state, totals.state_us) = (*state, (age.as_micros() as u64).max(1));
            totals.reason.clone_from(reason);
        }
        is_changed
    }

    fn latency(&self, class: UpstreamLatency) -> SparseHistogram {
        self.times(class).to_sparse()
    }
}

impl UpstreamDeltas {
    /// The counters of the upstream at this index, which the caller bounds.
    #[inline]
    pub fn at(&mut self, index: usize) -> &mut UpstreamDelta {
        if self.0.len() <= index {
            self.0.resize_with(index + 1, UpstreamDelta::default);
        }
        &mut self.0[index]
    }

    /// All of them, by index.
    pub fn all(&self) -> &[UpstreamDelta] {
        &self.0
    }

    /// Adds the counts of another worker, or of the same worker later.
    pub fn add(&mut self, other: &Self) {
        for (index, delta) in other.0.iter().enumerate() {
            self.at(index).add(delta);
        }
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.0.iter_mut().for_each(UpstreamDelta::clear);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(state: UpstreamState, reason: &str) -> UpstreamStatus {
        UpstreamStatus { state, age: Duration::from_secs(2), reason: reason.to_owned() }
    }

    #[test]
    fn a_record_changes_with_counts_connections_and_the_state_only() {
        let mut totals = UpstreamRecord::default();
        let told = UpstreamDelta { status: Some(status(UpstreamState::Up, "")), ..UpstreamDelta::default() };
        assert!(told.add_to(&mut totals), "the first state is news");
        assert!(!told.add_to(&mut totals), "the same state is not");
        let opened = UpstreamDelta { open_change: 2, ..told.clone() };
        assert!(opened.add_to(&mut totals) && totals.open == 2);
        let failed = UpstreamDelta { status: Some(status(UpstreamState::Down, "refused")), ..told.clone() };
        assert!(failed.add_to(&mut totals) && !failed.add_to(&mut totals));
        assert_eq!(
            (totals.state, &*totals.reason, totals.state_us),
            (UpstreamState::Down, "refused", 2_000_000)
        );
    }

    #[test]
    fn workers_add_up_and_the_state_is_kept() {
        let mut deltas = UpstreamDeltas::default();
        deltas.at(1).status = Some(status(UpstreamState::Down, "refused"));
        let mut worker = UpstreamDeltas::default();
        worker.at(1).count(UpstreamCounter::Exchanges, 3);
        worker.at(1).time(UpstreamLatency::FirstByte, Duration::from_millis(2));
        worker.at(1).open_change = -1;
        deltas.add(&worker);
        deltas.add(&worker);
        let delta = &deltas.all()[1];
        assert_eq!((delta.counters[UpstreamCounter::Exchanges], delta.open_change), (6, -2));
        assert_eq!(delta.latency(UpstreamLatency::FirstByte).count(), 2);
        assert!(delta.status.is_some() && deltas.all()[0].status.is_none());
        deltas.clear();
        let delta = &deltas.all()[1];
        assert!(
            !delta.add_to(&mut UpstreamRecord::default())
                && delta.latency(UpstreamLatency::FirstByte).is_empty()
        );
    }
}
