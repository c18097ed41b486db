//! The pacer: issues requests when they are due.
//!
//! An open loop follows an arithmetic schedule: request `k` is due when the area under the profile of rates reaches
//! `k`. For a constant rate that is `start + k·10⁹/rate`, in whole nanoseconds. Each thread takes every `threads`-th
//! request, so together they keep exactly the schedule of one. For Poisson arrivals each thread draws the distances in
//! that area independently: several such processes together are one again.
//!
//! A backlog takes no memory, however long it grows: two cursors walk the same schedule, one for due requests and one
//! for taken requests, and both draw the same random distances.

use super::script::ScriptSchedule;
use super::segments::{Schedule, Segment};
use crate::plan::{Arrivals, Profile, Rate};
use crate::script::{ScriptPart, ScriptRequest};

#[derive(Debug)]
pub(crate) struct Pacer {
    /// Requests that may still fall due.
    left: u64,
    running: bool,
    kind: LoopKind,
}

#[derive(Debug)]
enum LoopKind {
    /// A request falls due when a connection is free for it.
    Closed,
    Open(Box<Schedule>),
    /// Requests fall due at times of their own.
    Scripted(ScriptSchedule),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DueRequest {
    /// When it should be sent; `None` in a closed loop.
    pub(crate) intended_ns: Option<u64>,
    /// Its place in a script.
    pub(crate) scripted: Option<ScriptRequest>,
}

/// One thread's part of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadPart {
    pub(crate) thread: u32,
    pub(crate) threads: u32,
}

impl ThreadPart {
    /// This thread's part of `total`: the parts differ by one at most, and add up to the total.
    pub(crate) fn of(self, total: u64) -> u64 {
        let (thread, threads) = (u64::from(self.thread), u64::from(self.threads));
        total / threads + u64::from(thread < total % threads)
    }
}

impl Pacer {
    /// A pacer that is not running yet. `requests` is the thread's own part.
    pub(crate) fn new(
        rate: Option<Profile>,
        arrivals: Arrivals,
        requests: Option<u64>,
        part: ThreadPart,
    ) -> Self {
        let kind = rate
            .map_or(LoopKind::Closed, |rate| LoopKind::Open(Box::new(Schedule::new(rate, arrivals, part))));
        Self { left: requests.unwrap_or(u64::MAX), running: false, kind }
    }

    /// A pacer of a script that is not running yet, for this many rounds.
    pub(crate) fn scripted(script: &ScriptPart, rounds: u64) -> Self {
        let schedule = ScriptSchedule::new(script);
        let left = schedule.round().saturating_mul(rounds);
        Self { left, running: false, kind: LoopKind::Scripted(schedule) }
    }

    /// Whether a retry takes the place of a request.
    pub(crate) fn has_rate(&self) -> bool {
        matches!(self.kind, LoopKind::Open(_))
    }

    /// Starts, or continues after a pause; nothing falls due for the time of the pause. Returns the part of the backlog
    /// that has to be given up.
    pub(crate) fn run(&mut self, now_ns: u64) -> Option<Segment> {
        self.running = true;
        match &mut self.kind {
            LoopKind::Closed => None,
            LoopKind::Open(schedule) => schedule.run(now_ns),
            LoopKind::Scripted(schedule) => {
                schedule.run(now_ns);
                None
            }
        }
    }

    /// Stops the schedule. The backlog stays.
    pub(crate) fn pause(&mut self) {
        self.running = false;
    }

    /// Changes the rate of an open loop; the wait for the next request shrinks or grows with it. Returns the part of the
    /// backlog that has to be given up.
    pub(crate) fn set_rate(&mut self, now_ns: u64, rate: Rate) -> Option<Segment> {
        match &mut self.kind {
            LoopKind::Open(schedule) => schedule.set_rate(now_ns, rate),
            LoopKind::Closed | LoopKind::Scripted(_) => None,
        }
    }

    /// Advances the schedule up to and including `now_ns`, and returns how many requests fell due.
    pub(crate) fn advance(&mut self, now_ns: u64) -> u64 {
        let fell_due = match &mut self.kind {
            LoopKind::Open(schedule) if self.running => schedule.advance(now_ns, self.left),
            LoopKind::Scripted(schedule) if self.running => schedule.advance(now_ns, self.left),
            LoopKind::Open(_) | LoopKind::Scripted(_) | LoopKind::Closed => 0,
        };
        // In a closed loop a request counts when it is taken.
        self.left -= fell_due;
        fell_due
    }

    /// Takes the oldest request that fell due. In a closed loop a request falls due when it is taken.
    pub(crate) fn take(&mut self) -> Option<DueRequest> {
        match &mut self.kind {
            LoopKind::Open(schedule) => {
                schedule.take().map(|at_ns| DueRequest { intended_ns: Some(at_ns), scripted: None })
            }
            LoopKind::Scripted(schedule) => schedule
                .take()
                .map(|(request, at_ns)| DueRequest { intended_ns: Some(at_ns), scripted: Some(request) }),
            LoopKind::Closed if self.running && self.left > 0 => {
                self.left -= 1;
                Some(DueRequest { intended_ns: None, scripted: None })
            }
            LoopKind::Closed => None,
        }
    }

    /// Requests a second that fall due now, over all threads; 0 in a closed loop.
    pub(crate) fn rate_at(&self, now_ns: u64) -> f64 {
        match &self.kind {
            LoopKind::Open(schedule) => schedule.current.rate_at(now_ns),
            LoopKind::Scripted(schedule) => schedule.rate_at(now_ns),
            LoopKind::Closed => 0.0,
        }
    }

    /// True if requests have fallen due and were not taken.
    pub(crate) fn has_backlog(&self) -> bool {
        match &self.kind {
            LoopKind::Closed => false,
            LoopKind::Open(schedule) => schedule.has_backlog(),
            LoopKind::Scripted(schedule) => schedule.has_backlog(),
        }
    }

    /// True if no request will ever fall due again.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.left == 0
    }

    /// The end of the schedule up to now: when one more request would be due. `None` in a closed loop, and before the
    /// first request.
    pub(crate) fn end_ns(&self) -> Option<u64> {
        match &self.kind {
            LoopKind::Open(schedule) => schedule.end_ns(),
            LoopKind::Scripted(schedule) => schedule.end_ns(),
            LoopKind::Closed => None,
        }
    }

    /// When the next request falls due, if the schedule runs.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        match &self.kind {
            LoopKind::Open(schedule) if self.running && self.left > 0 => schedule.current.next_due_ns(),
            LoopKind::Scripted(schedule) if self.running && self.left > 0 => schedule.next_due_ns(),
            LoopKind::Open(_) | LoopKind::Scripted(_) | LoopKind::Closed => None,
        }
    }
}

#[cfg(test)]
mod tests;
