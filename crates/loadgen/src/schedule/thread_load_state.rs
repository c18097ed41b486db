//! The state of a load on one thread: running, draining, paused or ended.

use std::ops::Range;

use records::metrics::LoadCounter;

use super::{DueRequest, Pacer, Segment, ThreadPart};
use crate::clock::nanos;
use crate::control::{LiveSettings, LoadControl, RunningTime};
use crate::plan::Plan;
use crate::protocol::Request;
use crate::script::ScriptPart;
use crate::stats::WorkerStats;

/// How long a load that ends or pauses waits for answers.
const GRACE_NS: u64 = 2_000_000_000;
/// The last part of that, in which nothing more is sent: a backlog must not cut off requests in flight.
const GRACE_TO_ANSWER_NS: u64 = GRACE_NS / 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunState {
    Running,
    /// Nothing more falls due. The backlog is sent, and answers are awaited, until `until_ns`.
    Draining {
        then: DrainGoal,
        until_ns: u64,
    },
    Paused,
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DrainGoal {
    Pause,
    End,
}

/// The state of a thread's part of the load, with its schedule.
#[derive(Debug)]
pub(crate) struct ThreadLoadState {
    /// The version of the live settings that was applied last.
    applied_version: Option<u64>,
    state: RunState,
    pacer: Pacer,
    /// Retries that have not taken the place of a request of the schedule yet.
    retries_owed: u64,
    /// While running, when that ends.
    ends_ns: Option<u64>,
    /// While not running, how long it still has to run.
    duration_left_ns: Option<u64>,
    /// Length of the warm-up, before it begins.
    warmup_left_ns: Option<u64>,
    warm_ns: u64,
    ran: RunningTime,
    /// The last time in which the thread stalled although it was due to wake up.
    stall_ns: Range<u64>,
}

#[derive(Debug)]
pub(crate) enum ControlChange {
    None,
    /// The new settings, and whether the load has just started or continued.
    Settings(Box<LiveSettings>, bool),
    /// The load ends at once.
    Abandoned,
}

impl ThreadLoadState {
    /// A load that has not begun.
    pub(crate) fn new(plan: &Plan, script: Option<&ScriptPart>, part: ThreadPart) -> Self {
        let requests = plan.requests.map(|requests| part.of(requests));
        let pacer = match script {
            None => Pacer::new(plan.rate.clone(), plan.arrivals, requests, part),
            Some(script) => {
                let round = script.script.requests.len() as u64;
                let rounds = plan.requests.map_or(u64::MAX, |all| all.div_ceil(round));
                Pacer::scripted(script, rounds)
            }
        };
        Self {
            applied_version: None,
            state: RunState::Paused,
            pacer,
            retries_owed: 0,
            ends_ns: None,
            duration_left_ns: plan.length().map(nanos),
            warmup_left_ns: Some(plan.warmup.map_or(0, nanos)),
            warm_ns: 0,
            ran: RunningTime::default(),
            stall_ns: 0..0,
        }
    }

    /// How long it has run. A schedule with a number of requests counts up to its end as soon as all are due.
    pub(crate) fn ran(&self) -> RunningTime {
        self.ran
    }

    pub(crate) fn is_running(&self) -> bool {
        self.state == RunState::Running
    }

    pub(crate) fn is_draining(&self) -> bool {
        matches!(self.state, RunState::Draining { .. })
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.state == RunState::Paused
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.state == RunState::Ended
    }

    /// Requests a second that fall due now.
    pub(crate) fn rate_at(&self, now_ns: u64) -> f64 {
        self.pacer.rate_at(now_ns)
    }

    /// When the next request falls due.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        self.pacer.next_due_ns()
    }

    /// When the state changes without a command.
    pub(crate) fn next_change_ns(&self) -> Option<u64> {
        match self.state {
            RunState::Running => self.ends_ns,
            RunState::Draining { until_ns, .. } => Some(until_ns),
            RunState::Paused | RunState::Ended => None,
        }
    }

    /// True if requests have fallen due and were not taken.
    pub(crate) fn has_backlog(&self) -> bool {
        self.pacer.has_backlog()
    }

    /// True if a request belongs to the warm-up.
    pub(crate) fn is_warmup(&self, due: DueRequest, now_ns: u64) -> bool {
        due.intended_ns.unwrap_or(now_ns) < self.warm_ns
    }

    /// A request was sent a second time. In an open loop the next due one is not sent for it, so that the rate holds.
    pub(crate) fn count_retry(&mut self, request: &Request) {
        self.retries_owed += u64::from(request.intended_ns.is_some() && self.pacer.has_rate());
    }

    /// The next request to send.
    pub(crate) fn take(&mut self, stats: &mut WorkerStats, now_ns: u64) -> Option<DueRequest> {
        let mut due = self.pacer.take()?;
        while self.retries_owed > 0 {
            self.retries_owed -= 1;
            stats.displaced(self.is_warmup(due, now_ns));
            due = self.pacer.take()?;
        }
        if due.intended_ns.is_none() {
            stats.count(LoadCounter::Scheduled);
        }
        Some(due)
    }

    /// Applies the live settings if they have changed.
    pub(crate) fn apply_control(
        &mut self,
        control: &LoadControl,
        stats: &mut WorkerStats,
        now_ns: u64,
    ) -> ControlChange {
        if control.is_abandoned() {
            return ControlChange::Abandoned;
        }
        let version = Some(control.version());
        if self.applied_version == version {
            return ControlChange::None;
        }
        let wanted = control.wanted();
        self.applied_version = version;
        self.advance(stats, now_ns);
        if let Some(rate) = wanted.rate {
            let given_up = self.pacer.set_rate(now_ns, rate);
            self.never_sent(given_up, stats, now_ns);
        }
        let grace_ends_ns = now_ns.saturating_add(GRACE_NS);
        let mut has_begun = false;
        match self.state {
            _ if wanted.stopped => self.drain(DrainGoal::End, grace_ends_ns, now_ns),
            RunState::Running if !wanted.running => self.drain(DrainGoal::Pause, grace_ends_ns, now_ns),
            RunState::Paused | RunState::Draining { then: DrainGoal::Pause, .. } if wanted.running => {
                self.go_on(stats, now_ns);
                has_begun = true;
            }
            RunState::Running | RunState::Paused | RunState::Draining { .. } | RunState::Ended => {}
        }
        ControlChange::Settings(Box::new(wanted), has_begun)
    }

    /// Starts the schedule, or continues it after a pause.
    fn go_on(&mut self, stats: &mut WorkerStats, now_ns: u64) {
        self.state = RunState::Running;
        self.ends_ns = self.duration_left_ns.take().map(|left_ns| now_ns.saturating_add(left_ns));
        if let Some(left_ns) = self.warmup_left_ns.take() {
            self.warm_ns = now_ns.saturating_add(left_ns);
        }
        self.ran.until_ns = now_ns.max(self.warm_ns);
        let given_up = self.pacer.run(now_ns);
        self.never_sent(given_up, stats, now_ns);
    }

    /// Advances the schedule, returns how many requests fell due, and begins to drain at its end.
    pub(crate) fn advance(&mut self, stats: &mut WorkerStats, now_ns: u64) -> u64 {
        // The end itself is not part of the duration: two seconds at 500/s are 1,000 requests and not 1,001.
        let until_ns = self.ends_ns.map_or(now_ns, |ends_ns| now_ns.min(ends_ns.saturating_sub(1)));
        let fell_due = self.pacer.advance(until_ns);
        stats.add(LoadCounter::Scheduled, fell_due);
        if self.state != RunState::Running {
            return fell_due;
        }
        let schedule_ends_ns = self.pacer.end_ns().filter(|_| self.pacer.is_exhausted());
        self.ran.go_on(schedule_ends_ns.unwrap_or(now_ns).min(self.ends_ns.unwrap_or(u64::MAX)));
        if self.ends_ns.is_some_and(|ends_ns| now_ns >= ends_ns) {
            self.drain(DrainGoal::End, now_ns.saturating_add(GRACE_NS), now_ns);
        } else if self.pacer.is_exhausted() {
            // There is time: each request is answered or times out, unless the duration ends first.
            let until_ns = self.ends_ns.map_or(u64::MAX, |ends_ns| ends_ns.saturating_add(GRACE_NS));
            self.drain(DrainGoal::End, until_ns, now_ns);
        }
        fell_due
    }

    /// Stops the schedule, and drains towards a pause or the end.
    fn drain(&mut self, goal: DrainGoal, until_ns: u64, now_ns: u64) {
        self.pacer.pause();
        if let Some(ends_ns) = self.ends_ns.take() {
            self.duration_left_ns = Some(ends_ns.saturating_sub(now_ns));
        }
        self.state = match self.state {
            RunState::Ended => RunState::Ended,
            RunState::Draining { until_ns: earlier_ns, .. } => {
                RunState::Draining { then: goal, until_ns: until_ns.min(earlier_ns) }
            }
            RunState::Running | RunState::Paused => RunState::Draining { then: goal, until_ns },
        };
    }

    /// True if the backlog is too late to be sent.
    pub(crate) fn is_late(&self, now_ns: u64) -> bool {
        matches!(self.state, RunState::Draining { until_ns, .. }
            if now_ns >= until_ns.saturating_sub(GRACE_TO_ANSWER_NS))
            && self.has_backlog()
    }

    /// True if a drain has taken too long: requests in flight are cut off.
    pub(crate) fn is_overdue(&self, now_ns: u64) -> bool {
        matches!(self.state, RunState::Draining { until_ns, .. } if now_ns >= until_ns)
    }

    /// Ends a drain, once nothing is due and nothing under way.
    pub(crate) fn settle(&mut self) {
        if let RunState::Draining { then, .. } = self.state {
            self.state = match then {
                DrainGoal::Pause => RunState::Paused,
                DrainGoal::End => RunState::Ended,
            };
        }
    }

    /// Accounts for due requests that will not be sent. `throttled` is the share of connections in back-off that would
    /// have sent a part of them.
    pub(crate) fn give_up_backlog(&mut self, stats: &mut WorkerStats, throttled: f64, now_ns: u64) {
        let mut given_up = 0;
        while let Some(due) = self.pacer.take() {
            let warmup = self.is_warmup(due, now_ns);
            given_up += u64::from(!warmup);
            stats.never_sent(due.intended_ns, warmup, now_ns);
        }
        stats.add(LoadCounter::Throttled, (given_up as f64 * throttled) as u64);
    }

    /// Ends the load at once.
    pub(crate) fn end(&mut self, stats: &mut WorkerStats, throttled: f64, now_ns: u64) {
        self.pacer.pause();
        self.give_up_backlog(stats, throttled, now_ns);
        self.state = RunState::Ended;
    }

    fn never_sent(&self, given_up: Option<Segment>, stats: &mut WorkerStats, now_ns: u64) {
        if let Some(mut segment) = given_up {
            while let Some(intended_ns) = segment.take() {
                stats.never_sent(Some(intended_ns), intended_ns < self.warm_ns, now_ns);
            }
        }
    }

    /// Records a turn of the thread, which was due to wake up at `wakes_ns`.
    pub(crate) fn record_turn(&mut self, wakes_ns: Option<u64>, now_ns: u64) {
        // A request that already waits for a connection may do so because of the server.
        let wakes_ns = wakes_ns.filter(|_| !self.has_backlog());
        if let Some(wakes_ns) = wakes_ns.filter(|wakes_ns| now_ns.saturating_sub(*wakes_ns) > LATE_NS) {
            self.stall_ns = wakes_ns..now_ns;
        }
    }

    /// Counts a request that the generator itself starts too late: a connection was free since `free_ns`, or the
    /// request fell due while the thread stalled and could not know which connections were free.
    pub(crate) fn count_late(&self, due: DueRequest, free_ns: u64, stats: &mut WorkerStats, now_ns: u64) {
        if let Some(intended_ns) = due.intended_ns.filter(|intended_ns| *intended_ns >= self.warm_ns) {
            let free_ns = if self.stall_ns.contains(&intended_ns) { intended_ns } else { free_ns };
            let late_ns = now_ns.saturating_sub(intended_ns.max(free_ns));
            stats.add(LoadCounter::Late, u64::from(late_ns > LATE_NS));
        }
    }
}

/// From when on a request that could be taken on counts as late.
const LATE_NS: u64 = 1_000_000;
