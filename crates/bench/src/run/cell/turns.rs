//! Turns: the targets of a case share a span of time in which each is under load for a moment while the others are idle.
//!
//! ```text
//!   a  ██▁▁██▁▁██▁▁██▁▁
//!   b  ▁▁██▁▁██▁▁██▁▁██
//! ```
//!
//! A machine is faster in one second than in the next. Targets that are measured one after the other differ by that; in
//! turns of a fifth of a second they meet nearly the same machine. `docs/measurements.md` has figures.

use std::time::Duration;

use records::text::quantity;

use crate::run::load::LoadRun;
use crate::scenario::BenchCase;
use crate::target::{SampleTimes, TimeSpan, growth_within};

/// A part of a turn has no requests: the last ones are answered, and used resources are read, before the next target's.
const REST: Duration = Duration::from_millis(30);
/// The part of it at the start of a turn, after the readings.
const LEAD: Duration = Duration::from_millis(20);
/// The most turns of a target: each is two stages of a rate, of which there are 256 at most.
const TURNS_MAX: u32 = 120;
/// The longest interval of records.
const RECORD_INTERVAL_MAX: Duration = Duration::from_secs(1);

/// The turns of the targets of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turns {
    /// The length of a turn, in whole milliseconds.
    length: Duration,
    /// How many turns each target has, with those of the warm-up.
    count: u32,
    /// How many of them are the warm-up.
    warmup: u32,
    targets: u32,
}

impl Turns {
    /// The turns of a case, of about the length that it asks for, in which each target is under load as long as the case
    /// says; `None` if it has none, or fewer than two targets.
    pub(super) fn of(case: &BenchCase, targets: usize) -> Option<Self> {
        let (wanted, duration) = (case.turns?, case.duration?);
        let length_ms = wanted.max(duration / TURNS_MAX).as_micros().div_ceil(1_000);
        let length = Duration::from_millis(u64::try_from(length_ms).ok()?);
        let turns = |time: Duration| time.as_nanos().div_ceil(length.as_nanos()) as u32;
        let warmup = turns(case.warmup);
        let count = turns(duration).max(warmup + 1);
        (targets >= 2).then_some(Self { length, count, warmup, targets: targets as u32 })
    }

    /// The case as the load of one of the targets, in its turns at this rate.
    pub(super) fn case_of(self, case: &BenchCase, rate: f64, position: usize) -> BenchCase {
        let time = |time: Duration| quantity::shown(time.as_secs_f64(), "s");
        let active = self.active();
        let round = self.length * self.targets;
        let before = self.length * position as u32;
        let mut stages = Vec::new();
        for turn in 0..self.count {
            let idle = if turn == 0 { before + LEAD } else { round.saturating_sub(active) };
            stages.push(format!("0/{}", time(idle)));
            stages.push(format!("{rate}/{}", time(active)));
        }
        stages.push(format!("0/{}", time(round.saturating_sub(before + LEAD + active))));
        let mut case = case.clone();
        case.flags.retain(|flag| !flag.starts_with("--rate="));
        case.flags.push(format!("--rate={}", stages.join("+")));
        case.duration = Some(round * self.count);
        case.warmup = round * self.warmup;
        case
    }

    /// When the first turn begins, in microseconds of the monotonic clock: at a time at which samples are taken, once the
    /// loads have had `patience` to start.
    pub(super) fn start_us(self, now_us: u64, patience: Duration) -> u64 {
        (now_us + patience.as_micros() as u64).next_multiple_of(self.length.as_micros() as u64)
    }

    /// When used resources are read: between any two turns.
    pub(super) fn sample_times(self) -> SampleTimes {
        SampleTimes::Multiples { period: self.length, idle: LEAD }
    }

    /// The interval of the loads' records: they are made between two turns too, or more often.
    pub(super) fn record_interval(self) -> Duration {
        self.length.min(RECORD_INTERVAL_MAX)
    }

    /// The measured turns of one of the targets, of loads that begin at `start_us`.
    pub(super) fn spans(self, start_us: u64, position: usize) -> Vec<TimeSpan> {
        let length_us = self.length.as_micros() as u64;
        let span = |turn: u32| {
            let from_us = start_us + length_us * (u64::from(turn * self.targets) + position as u64);
            TimeSpan { from_us, to_us: from_us + length_us }
        };
        (self.warmup..self.count).map(span).collect()
    }

    /// The part of a turn that has requests.
    fn active(self) -> Duration {
        self.length.saturating_sub(REST)
    }

    /// Counts the requests that were answered within these turns. Makes rates, and the lengths that CPU time is divided
    /// by, those of the time in which the target is sent requests.
    pub(super) fn count_active_time(self, run: &mut LoadRun, spans: &[TimeSpan]) {
        let answered = growth_within(&run.recording.answered, self.sample_times(), spans);
        run.answered_in_turns = Some(answered.round() as u64);
        let active = self.active();
        run.recording.count_active_share(active.as_secs_f64() / (self.length * self.targets).as_secs_f64());
        let active_us = active.as_micros() as u64 * u64::from(self.count - self.warmup);
        for usage in run.target.iter_mut().chain([&mut run.load, &mut run.upstream]) {
            usage.wall_us = active_us;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::{MachineUsage, ResourceUsage};
    use crate::run::{LoadRecording, RunPlan};

    fn case(duration_ms: u64, warmup_ms: u64) -> BenchCase {
        BenchCase {
            turns: Some(Duration::from_millis(200)),
            duration: Some(Duration::from_millis(duration_ms)),
            warmup: Duration::from_millis(warmup_ms),
            flags: vec!["--connections=16".to_owned(), "--rate=9".to_owned()],
            ..RunPlan::example().scenario.cases.remove(0)
        }
    }

    #[test]
    fn each_target_has_its_turns_while_the_others_are_idle() {
        let turns = Turns::of(&case(600, 100), 2).unwrap();
        let flags = |position| turns.case_of(&case(600, 100), 4_000.0, position).load_flags();
        let rate = "--rate=0/20ms+4000/170ms+0/230ms+4000/170ms+0/230ms+4000/170ms+0/210ms";
        assert_eq!(flags(0), ["--connections=16", rate, "--duration=1200ms", "--warmup=400ms"]);
        let rate = "--rate=0/220ms+4000/170ms+0/230ms+4000/170ms+0/230ms+4000/170ms+0/10ms";
        assert_eq!(flags(1)[1], rate);
        let start_us = turns.start_us(730_000, Duration::from_millis(100));
        assert_eq!(start_us, 1_000_000, "when samples are taken");
        let spans = |position| turns.spans(start_us, position).into_iter().map(|span| span.from_us);
        assert_eq!(spans(0).collect::<Vec<_>>(), [1_400_000, 1_800_000], "the first is the warm-up");
        assert_eq!(spans(1).collect::<Vec<_>>(), [1_600_000, 2_000_000]);
        assert!(turns.spans(start_us, 1).iter().all(|span| span.length_us() == 200_000));
    }

    #[test]
    fn requests_count_in_the_turns_in_which_they_were_answered() {
        let turns = Turns::of(&case(600, 100), 2).unwrap();
        let spans = turns.spans(1_000_000, 0);
        // Records come some milliseconds after a boundary; 10 and 20 requests were answered in the other's turns.
        let answered =
            [(1_203_000, 0), (1_400_000, 10), (1_604_000, 100), (1_801_000, 120), (2_002_000, 230)];
        let figures = [("rate.achieved", 425.0), ("seconds", 0.8), ("generator.busy", 0.17), ("errors", 1.0)];
        let figures = figures.map(|(name, value)| (name.to_owned(), value));
        let mut run = LoadRun {
            recording: LoadRecording {
                answered: answered.to_vec(),
                figures: figures.into_iter().collect(),
                ..LoadRecording::default()
            },
            target: Some(ResourceUsage::default()),
            load: ResourceUsage::default(),
            upstream: ResourceUsage::default(),
            machine: MachineUsage::default(),
            remarks: Vec::new(),
            answered_in_turns: None,
        };
        turns.count_active_time(&mut run, &spans);
        assert_eq!(run.answered_in_turns, Some(90 + 110));
        let figure = |name: &str| (run.recording.figure(name) * 1e6).round() as u64;
        assert_eq!(
            ["rate.achieved", "seconds", "generator.busy", "errors"].map(figure),
            [1_000_000_000, 340_000, 400_000, 1_000_000]
        );
        assert_eq!((run.target.unwrap().wall_us, run.upstream.wall_us), (340_000, 340_000));
    }

    #[test]
    fn a_long_case_has_longer_turns_and_no_more_stages_than_a_rate_may_have() {
        for seconds in [1, 25, 60, 3_600] {
            let case = case(seconds * 1_000, 500);
            let turns = Turns::of(&case, 3).unwrap();
            let rate = turns.case_of(&case, 10.0, 2);
            assert!(rate.flag("rate").unwrap().parse::<String>().unwrap().split('+').count() <= 256);
            assert!(turns.spans(0, 0).iter().all(|span| span.from_us.is_multiple_of(span.length_us())));
            let active = turns.length * turns.count;
            assert!(active >= case.duration.unwrap() && active < case.duration.unwrap() + turns.length);
        }
    }

    #[test]
    fn one_target_alone_has_no_turns() {
        assert_eq!(Turns::of(&case(600, 100), 1), None);
        assert_eq!(Turns::of(&BenchCase { turns: None, ..case(600, 100) }, 2), None);
    }
}
