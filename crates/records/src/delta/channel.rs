//! Carries a worker's counters to the publisher without a lock: an empty delta goes in, a full one comes out.
//!
//! Each worker owns one delta and counts into it. Once an interval the collector sends every worker a cleared delta
//! and wakes it; the worker swaps the two and sends the full one back. Each worker has two deltas, and nothing is
//! copied. A late worker answers with more in the next interval: nothing waits for it, nothing is lost.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use crate::delta::Delta;

/// The worker's end.
#[derive(Debug)]
pub struct Reporter<D> {
    empties: Receiver<D>,
    full: SyncSender<D>,
}

impl<D: Delta> Reporter<D> {
    /// Answers the collector if it has asked: sends `current` and leaves an empty delta in its place. `seal` runs
    /// first on the sent delta, for values that are only gathered at this point.
    pub fn answer(&self, current: &mut D, seal: impl FnOnce(&mut D)) -> HandoverResult {
        match self.empties.try_recv() {
            Ok(mut empty) => {
                seal(current);
                std::mem::swap(current, &mut empty);
                // This channel has two deltas and room for two, so it fails only if the collector has ended. The
                // counts then have no receiver.
                let _ = self.full.try_send(empty);
                HandoverResult::Done
            }
            Err(TryRecvError::Empty) => HandoverResult::NotRequested,
            Err(TryRecvError::Disconnected) => HandoverResult::CollectorGone,
        }
    }

    /// Sends the last counts when the worker ends. Nothing may be counted after this.
    pub fn finish(self, mut current: D, seal: impl FnOnce(&mut D)) {
        seal(&mut current);
        let _ = self.full.try_send(current);
    }
}

/// The result of [`Reporter::answer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandoverResult {
    /// The collector had asked, and has the delta.
    Done,
    /// The collector had not asked.
    NotRequested,
    CollectorGone,
}

struct WorkerChannel<D> {
    empties: SyncSender<D>,
    full: Receiver<D>,
    /// The cleared delta for the next interval; `None` while the worker owes an answer.
    spare: Option<D>,
    wake: Box<dyn Fn() + Send>,
}

/// The publisher's end, for all workers of one kind.
pub struct Collector<D> {
    sources: Vec<WorkerChannel<D>>,
}

impl<D> std::fmt::Debug for Collector<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collector").field("workers", &self.sources.len()).finish()
    }
}

impl<D> Default for Collector<D> {
    fn default() -> Self {
        Self { sources: Vec::new() }
    }
}

impl<D: Delta> Collector<D> {
    /// Adds a worker; `wake` must make its event loop call [`Reporter::answer`] soon.
    pub fn add_worker(&mut self, wake: impl Fn() + Send + 'static) -> Reporter<D> {
        // Room for the answer that was asked for and the last one, which comes unasked.
        let (full_sender, full) = sync_channel(2);
        let (empties, empties_receiver) = sync_channel(1);
        self.sources.push(WorkerChannel { empties, full, spare: Some(D::default()), wake: Box::new(wake) });
        Reporter { empties: empties_receiver, full: full_sender }
    }

    /// Adds to `into` the counts of all workers since the last call, and forgets workers that have ended. Waits for
    /// answers until `patience` has passed, then continues without late workers.
    pub fn collect(&mut self, into: &mut D, patience: Duration) {
        let deadline = Instant::now() + patience;
        for source in &mut self.sources {
            if let Some(empty) = source.spare.take() {
                // A worker that has ended refuses; its last delta still waits to be received below.
                let _ = source.empties.try_send(empty);
            }
            (source.wake)();
        }
        self.sources.retain_mut(|source| source.receive(into, deadline));
    }

    /// True once every worker has ended and handed over its last delta.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }
}

impl<D: Delta> WorkerChannel<D> {
    /// Takes the answer, and the last delta if it follows; false once the worker has ended and all its deltas are
    /// taken.
    fn receive(&mut self, into: &mut D, deadline: Instant) -> bool {
        let mut patience = deadline.saturating_duration_since(Instant::now());
        loop {
            match self.full.recv_timeout(patience) {
                Ok(mut delta) => {
                    into.add(&delta);
                    delta.clear();
                    self.spare = Some(delta);
                    // A further delta has been sent already: a running worker answers only when asked.
                    patience = Duration::ZERO;
                }
                Err(RecvTimeoutError::Timeout) => return true,
                Err(RecvTimeoutError::Disconnected) => return false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delta::LoadDelta;
    use crate::metrics::LoadCounter;

    const LONG: Duration = Duration::from_secs(10);
    const NONE: Duration = Duration::ZERO;

    fn count(delta: &mut LoadDelta, n: u64) {
        delta.counters[LoadCounter::Sent] += n;
    }

    #[test]
    fn everything_a_worker_counts_arrives_once() {
        let mut collector = Collector::<LoadDelta>::default();
        let reporter = collector.add_worker(|| {});
        let worker = std::thread::spawn(move || {
            let mut current = LoadDelta::default();
            for _ in 0..10_000 {
                count(&mut current, 1);
                reporter.answer(&mut current, |_| {});
            }
            reporter.finish(current, |last| count(last, 5));
        });
        let mut all = LoadDelta::default();
        while !collector.is_empty() {
            collector.collect(&mut all, LONG);
        }
        worker.join().unwrap();
        assert_eq!(all.counters[LoadCounter::Sent], 10_005);
    }

    #[test]
    fn a_late_worker_is_not_waited_for_and_loses_nothing() {
        let mut collector = Collector::<LoadDelta>::default();
        let reporter = collector.add_worker(|| {});
        let mut current = LoadDelta::default();
        let mut all = LoadDelta::default();
        count(&mut current, 3);
        collector.collect(&mut all, NONE);
        assert_eq!(all.counters[LoadCounter::Sent], 0);
        assert_eq!(reporter.answer(&mut current, |_| {}), HandoverResult::Done);
        count(&mut current, 4);
        assert_eq!(reporter.answer(&mut current, |_| {}), HandoverResult::NotRequested);
        collector.collect(&mut all, NONE);
        assert_eq!(all.counters[LoadCounter::Sent], 3);
        reporter.answer(&mut current, |_| {});
        reporter.finish(current, |_| {});
        collector.collect(&mut all, LONG);
        collector.collect(&mut all, LONG);
        assert!(collector.is_empty());
        assert_eq!(all.counters[LoadCounter::Sent], 7);
    }

    #[test]
    fn a_worker_that_was_late_and_ended_is_gathered_whole_by_one_call() {
        let mut collector = Collector::<LoadDelta>::default();
        let reporter = collector.add_worker(|| {});
        let mut current = LoadDelta::default();
        let mut all = LoadDelta::default();
        collector.collect(&mut all, NONE);
        collector.collect(&mut all, NONE);
        count(&mut current, 3);
        reporter.answer(&mut current, |_| {});
        count(&mut current, 4);
        reporter.finish(current, |_| {});
        collector.collect(&mut all, NONE);
        assert_eq!(all.counters[LoadCounter::Sent], 7);
        assert!(collector.is_empty());
    }

    #[test]
    fn a_worker_learns_that_nobody_collects_any_more() {
        let mut collector = Collector::<LoadDelta>::default();
        let reporter = collector.add_worker(|| {});
        drop(collector);
        assert_eq!(reporter.answer(&mut LoadDelta::default(), |_| {}), HandoverResult::CollectorGone);
    }
}
