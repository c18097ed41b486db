//! The schedule of an open loop: segments of rate profiles, and cursors that walk them.

use std::collections::VecDeque;
use std::sync::Arc;

use super::ThreadPart;
use super::random::SplitMix64;
use crate::clock::SECOND_NS;
use crate::plan::{Arrivals, Profile, REQUEST, Rate};

/// Most segments that wait to be sent. If the rate changes more often while nothing is sent, the oldest segment is given
/// up as never sent.
const SEGMENTS_MAX: usize = 64;

#[derive(Debug)]
pub(super) struct Schedule {
    part: ThreadPart,
    arrivals: Arrivals,
    /// Segments from before a pause or a change of rate that are not sent yet; oldest first, none empty.
    past: VecDeque<Segment>,
    pub(super) current: Segment,
    /// How far the schedule was followed.
    followed_ns: u64,
    /// When the last own request was due that has fallen due.
    last_due_ns: Option<u64>,
}

impl Schedule {
    pub(super) fn new(rate: Profile, arrivals: Arrivals, part: ThreadPart) -> Self {
        let first = Cursor::new(part.thread, part, arrivals);
        let current = Segment::new(0, Arc::new(rate), first);
        Self { part, arrivals, past: VecDeque::new(), current, followed_ns: 0, last_due_ns: None }
    }

    /// Continues the profile from where it was last followed.
    pub(super) fn run(&mut self, now_ns: u64) -> Option<Segment> {
        let done_ns = self.followed_ns.saturating_sub(self.current.start_ns);
        self.followed_ns = now_ns;
        let next = Segment { start_ns: now_ns.saturating_sub(done_ns), ..self.current.rest() };
        self.begin(next)
    }

    pub(super) fn set_rate(&mut self, now_ns: u64, rate: Rate) -> Option<Segment> {
        let before = self.current.rate_at(now_ns);
        if self.current.profile.is_constant() && Rate::per_second(before) == Some(rate) {
            return None;
        }
        let wait_ns = self.current.next_due_ns().map_or(0, |due_ns| due_ns.saturating_sub(now_ns));
        let start_ns = now_ns.saturating_add((wait_ns as f64 * before / rate.as_per_second()) as u64);
        // Its own phase is in the wait already.
        let first = Cursor::new(0, self.part, self.arrivals);
        self.begin(Segment::new(start_ns, Arc::new(Profile::constant(rate)), first))
    }

    /// Replaces the current segment, which joins the past ones if any of it is not taken.
    fn begin(&mut self, segment: Segment) -> Option<Segment> {
        let ended = std::mem::replace(&mut self.current, segment);
        if ended.taken.index < ended.due.index {
            self.past.push_back(ended);
        }
        if self.past.len() > SEGMENTS_MAX { self.past.pop_front() } else { None }
    }

    pub(super) fn advance(&mut self, now_ns: u64, most: u64) -> u64 {
        self.followed_ns = self.followed_ns.max(now_ns);
        let mut fell_due = 0;
        while fell_due < most
            && let Some(due_ns) = self.current.next_due_ns().filter(|due_ns| *due_ns <= now_ns)
        {
            self.last_due_ns = Some(due_ns);
            self.current.step();
            fell_due += 1;
        }
        fell_due
    }

    /// When the next request of all threads would be due after the last own one, on average.
    pub(super) fn end_ns(&self) -> Option<u64> {
        let last_ns = self.last_due_ns?;
        let distance_ns = (SECOND_NS as f64 / self.current.rate_at(last_ns)) as u64;
        Some(last_ns.saturating_add(distance_ns).min(self.current.next_due_ns().unwrap_or(u64::MAX)))
    }

    pub(super) fn take(&mut self) -> Option<u64> {
        while let Some(oldest) = self.past.front_mut() {
            if let Some(at_ns) = oldest.take() {
                return Some(at_ns);
            }
            self.past.pop_front();
        }
        self.current.take()
    }

    pub(super) fn has_backlog(&self) -> bool {
        !self.past.is_empty() || self.current.taken.index < self.current.due.index
    }
}

/// A part of the schedule that follows one profile.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    start_ns: u64,
    profile: Arc<Profile>,
    /// At the first own request that has not fallen due.
    due: Cursor,
    /// When that is, from the beginning of the profile; `None` if the profile ends before.
    due_after_ns: Option<u64>,
    /// At the first own request that was not taken; never beyond `due`.
    taken: Cursor,
}

impl Segment {
    fn new(start_ns: u64, profile: Arc<Profile>, first: Cursor) -> Self {
        let mut due = first;
        let due_after_ns = due.seek(&profile);
        Self { start_ns, profile, due, due_after_ns, taken: first }
    }

    /// The part that has not fallen due.
    fn rest(&self) -> Self {
        Self { taken: self.due, ..self.clone() }
    }

    pub(super) fn next_due_ns(&self) -> Option<u64> {
        self.due_after_ns.map(|after_ns| self.start_ns.saturating_add(after_ns))
    }

    fn step(&mut self) {
        self.due.step();
        self.due_after_ns = self.due.seek(&self.profile);
    }

    pub(super) fn rate_at(&self, now_ns: u64) -> f64 {
        self.profile.at(now_ns.saturating_sub(self.start_ns))
    }

    /// When the oldest own request was due that has fallen due and was not taken.
    pub(crate) fn take(&mut self) -> Option<u64> {
        if self.taken.index == self.due.index {
            return None;
        }
        let after_ns = self.taken.seek(&self.profile)?;
        self.taken.step();
        Some(self.start_ns.saturating_add(after_ns))
    }
}

/// A place in a schedule, at one request of a thread.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    /// Which of the thread's requests it is.
    index: u64,
    /// The area under the profile before it, in units of [`REQUEST`].
    area: u128,
    /// The mean area between two requests of a thread.
    stride: u128,
    /// Draws the distances of Poisson arrivals.
    random: Option<SplitMix64>,
    /// The current stage of the profile, with the area and the time before it.
    stage: usize,
    stage_area: u128,
    stage_ns: u64,
}

impl Cursor {
    /// At a thread's first request, which is the `offset`-th of all if they come evenly.
    fn new(offset: u32, part: ThreadPart, arrivals: Arrivals) -> Self {
        let stride = u128::from(part.threads) * REQUEST;
        let random = (arrivals == Arrivals::Poisson).then(|| SplitMix64::new(part.thread.into()));
        let area = u128::from(offset) * REQUEST;
        let mut first = Self { index: 0, area, stride, random, stage: 0, stage_area: 0, stage_ns: 0 };
        if first.random.is_some() {
            first.area = 0;
            first.area = first.distance();
        }
        first
    }

    fn step(&mut self) {
        self.index += 1;
        self.area += self.distance();
    }

    fn distance(&mut self) -> u128 {
        match &mut self.random {
            Some(random) => (random.exponential() * self.stride as f64) as u128,
            None => self.stride,
        }
    }

    /// When its request is due, in nanoseconds from the beginning of the profile; `None` after the end. Advances to
    /// the stage of that moment.
    fn seek(&mut self, profile: &Profile) -> Option<u64> {
        let stages = profile.stages();
        while let Some(stage) = stages.get(self.stage) {
            let within = self.area - self.stage_area;
            if within < stage.area() {
                let after_ns = stage.after_ns(within)?;
                return Some(self.stage_ns.saturating_add(after_ns));
            }
            self.stage += 1;
            self.stage_area += stage.area();
            self.stage_ns = self.stage_ns.saturating_add(stage.length_ns?);
        }
        None
    }
}
