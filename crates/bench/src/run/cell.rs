//! A cell: a target that is started afresh, checked, put under load, and stopped.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::check::{check, expected};
use super::doubts::{CellEvidence, doubts};
use super::load::{LoadFailure, LoadRun, LoadRunner};
use super::plan::Cell;
use super::recording::LoadRecording;
use super::search::{BACK_OFF, Highest, SUSTAINED_SHARE, highest, lowered};
use super::started::StartedTarget;
use super::{CommonRate, cores};
use crate::results::{CellResult, NegotiatedParameters};
use crate::scenario::{BenchCase, BenchTarget, LatencyBound, Question, Scenario, Server, UpstreamKind};

/// The length of a try of a rate, with its warm-up.
const TRY: Duration = Duration::from_secs(2);
const TRY_WARMUP: Duration = Duration::from_millis(500);
/// The most tries of a search for a capacity.
const TRIES_MAX: u32 = 8;
/// By how much the found rate is lowered if it does not hold for the length of a case, and how often.
const CAPACITY_BACK_OFF: f64 = 0.95;
const CAPACITY_BACK_OFFS: u32 = 3;
/// How often a rate that all should sustain is lowered.
const BACK_OFFS: u32 = 4;
/// After so many failures to start in a row, a target is not started again.
const START_FAILURES_MAX: u32 = 2;

/// A measured cell.
#[derive(Debug)]
struct CellMeasurement {
    run: LoadRun,
    /// The requests per second that were asked of an open loop.
    rate: Option<f64>,
    /// True if each rate of a search for a capacity kept the bound: the capacity is higher.
    is_lower_bound: bool,
}

/// Measures cells, and knows what it learnt of the targets meanwhile.
pub(super) struct CellRunner<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) generator: LoadRunner<'a>,
    /// What was negotiated, by target and case: each is checked once.
    checked: BTreeMap<(String, String), Option<NegotiatedParameters>>,
    /// Failures to start in a row, and the last reason, by target.
    start_failures: BTreeMap<String, (u32, String)>,
    /// Why no rate was found for a cost case, by case.
    missing_rates: BTreeMap<String, String>,
    /// The last capacity, by target and case.
    capacities: BTreeMap<(String, String), f64>,
}

impl<'a> CellRunner<'a> {
    pub(super) fn new(scenario: &'a Scenario, generator: LoadRunner<'a>, done: &[CellResult]) -> Self {
        let rate = |cell: &CellResult| Some(((cell.target.clone(), cell.case.clone()), cell.rate?));
        let capacities = done.iter().filter_map(rate).collect();
        Self {
            scenario,
            generator,
            checked: BTreeMap::new(),
            start_failures: BTreeMap::new(),
            missing_rates: BTreeMap::new(),
            capacities,
        }
    }

    /// Measures a cell at a rate, if it has one; its journal goes to `journal`. `None` if it was interrupted.
    pub(super) fn measure(
        &mut self,
        cell: &Cell<'_>,
        rate: Option<f64>,
        journal: &Path,
    ) -> Option<CellResult> {
        let mut result = CellResult {
            round: cell.round,
            place: cell.place,
            target: cell.target.name.clone(),
            case: cell.case.name.clone(),
            began_us: now_us(),
            ..CellResult::default()
        };
        match self.run(cell.target, cell.case, rate, journal) {
            Ok((measured, negotiated)) => {
                self.fill(&mut result, cell, measured);
                result.negotiated = negotiated;
            }
            Err(LoadFailure::Interrupted) => return None,
            Err(LoadFailure::Failed(reason)) => result.failure = Some(reason),
        }
        Some(result)
    }

    fn run(
        &mut self,
        target: &BenchTarget,
        case: &BenchCase,
        rate: Option<f64>,
        journal: &Path,
    ) -> Result<(CellMeasurement, Option<NegotiatedParameters>), LoadFailure> {
        let mut started = self.start(target)?;
        let with_words = |started: &mut StartedTarget, failure| add_last_words(failure, started);
        let negotiated =
            self.check(target, &mut started, case).map_err(|failure| with_words(&mut started, failure))?;
        // A closed loop in its place would answer another question.
        if let Some(reason) = self.missing_rates.get(&case.name) {
            return Err(LoadFailure::Failed(format!("no rate was found for {}: {reason}", case.name)));
        }
        let bound = case.bound.filter(|_| case.question == Question::Capacity);
        let measured = if let Some(bound) = bound {
            self.capacity(target, &mut started, case, bound, journal)
        } else {
            let case = rate.map_or_else(|| case.clone(), |rate| at_rate(case, rate));
            self.generator.run(target, &mut started, &case, journal).map(|run| {
                let rate = wanted_rate(&case, &run.recording);
                CellMeasurement { run, rate, is_lower_bound: false }
            })
        };
        let mut measured = measured.map_err(|failure| with_words(&mut started, failure))?;
        measured.run.remarks.extend(started.stop());
        Ok((measured, negotiated))
    }

    /// Starts a target, unless it failed to start too often.
    fn start(&mut self, target: &BenchTarget) -> Result<StartedTarget, LoadFailure> {
        let failures = self.start_failures.entry(target.name.clone()).or_default();
        let at = format!("{} line {}: target {}", self.scenario.name, target.line, target.name);
        if failures.0 >= START_FAILURES_MAX {
            let reason = format!("{at} was not started again after {} failures: {}", failures.0, failures.1);
            return Err(LoadFailure::Failed(reason));
        }
        match StartedTarget::start(&self.generator, &self.scenario.tls, target) {
            Ok(started) => {
                failures.0 = 0;
                Ok(started)
            }
            Err(LoadFailure::Interrupted) => Err(LoadFailure::Interrupted),
            Err(LoadFailure::Failed(reason)) => {
                *failures = (failures.0 + 1, reason.clone());
                Err(LoadFailure::Failed(format!("{at}: {reason}")))
            }
        }
    }

    /// Checks a target, once for each case.
    fn check(
        &mut self,
        target: &BenchTarget,
        started: &mut StartedTarget,
        case: &BenchCase,
    ) -> Result<Option<NegotiatedParameters>, LoadFailure> {
        let key = (target.name.clone(), case.name.clone());
        if let Some(negotiated) = self.checked.get(&key) {
            return Ok(negotiated.clone());
        }
        let negotiated = check(&self.generator, &self.scenario.tls, target, started, case)?;
        self.checked.insert(key, negotiated.clone());
        Ok(negotiated)
    }

    /// Finds the most requests per second within the bound, and measures the target there.
    fn capacity(
        &mut self,
        target: &BenchTarget,
        started: &mut StartedTarget,
        case: &BenchCase,
        bound: LatencyBound,
        journal: &Path,
    ) -> Result<CellMeasurement, LoadFailure> {
        let key = (target.name.clone(), case.name.clone());
        let start = match self.capacities.get(&key) {
            Some(rate) => *rate,
            None => self.closed_loop_rate(target, started, case)?,
        };
        let found = highest(start, TRIES_MAX, |rate| {
            let run = self.try_out(target, started, &at_rate(case, rate))?;
            Ok::<_, LoadFailure>(holds(&run, bound))
        })?;
        let limit_ms = bound.limit_us as f64 / 1e3;
        let Highest { mut rate, mut is_lower_bound } = found.ok_or_else(|| {
            LoadFailure::Failed(format!(
                "no rate keeps p{} below {limit_ms} ms, not even {start:.0}/s",
                bound.percentile
            ))
        })?;
        let mut run = self.generator.run(target, started, &at_rate(case, rate), journal)?;
        for _ in 0..CAPACITY_BACK_OFFS {
            if holds(&run, bound) {
                break;
            }
            rate *= CAPACITY_BACK_OFF;
            is_lower_bound = false;
            remove(journal);
            run = self.generator.run(target, started, &at_rate(case, rate), journal)?;
        }
        self.capacities.insert(key, rate);
        Ok(CellMeasurement { run, rate: Some(rate), is_lower_bound })
    }

    /// Finds a rate for a cost case that all its targets sustain.
    pub(super) fn common_rate(
        &mut self,
        case: &BenchCase,
        mut note: impl FnMut(&str),
    ) -> Result<CommonRate, LoadFailure> {
        let mut usable: Vec<(f64, &BenchTarget)> = Vec::new();
        let mut failure = "it has no targets".to_owned();
        for target in self.scenario.targets.iter().filter(|target| case.is_for(target)) {
            note(&target.name);
            let found = self
                .with_started(target, case, |runner, started| runner.closed_loop_rate(target, started, case));
            match found {
                Ok(rate) => usable.push((rate, target)),
                Err(LoadFailure::Interrupted) => return Err(LoadFailure::Interrupted),
                Err(LoadFailure::Failed(reason)) => failure = reason,
            }
        }
        let slowest = usable.iter().min_by(|(one, _), (other, _)| one.total_cmp(other));
        let Some(&(capacity, slowest)) = slowest else { return Err(LoadFailure::Failed(failure)) };
        let mut origin = format!(
            "{:.0} % of the {capacity:.0}/s of {}, the slowest in a closed loop",
            SUSTAINED_SHARE * 100.0,
            slowest.name
        );
        let mut rate = round_rate(capacity * SUSTAINED_SHARE);
        for (_, target) in usable {
            note(&target.name);
            let (sustained, is_held) = self.sustained_rate(target, case, rate)?;
            if !is_held {
                let _ =
                    write!(origin, ", lowered to {sustained:.0}/s, which {} did not sustain", target.name);
            } else if sustained < rate {
                let _ = write!(origin, ", lowered until {} sustained it", target.name);
            }
            rate = sustained;
        }
        Ok(CommonRate { rate, origin })
    }

    /// Lowers a rate until a target sustains it. The second value is false if it does not sustain the last rate either.
    fn sustained_rate(
        &mut self,
        target: &BenchTarget,
        case: &BenchCase,
        rate: f64,
    ) -> Result<(f64, bool), LoadFailure> {
        let (rate, is_held) = lowered(rate, BACK_OFF, BACK_OFFS, |rate| {
            let run = self.with_started(target, case, |runner, started| {
                runner.try_out(target, started, &at_rate(case, rate))
            });
            match run {
                Ok(run) => Ok(run.recording.is_rate_achieved),
                // Its cells will say why.
                Err(LoadFailure::Failed(_)) => Ok(true),
                Err(LoadFailure::Interrupted) => Err(LoadFailure::Interrupted),
            }
        })?;
        Ok((round_rate(rate), is_held))
    }

    /// Remembers that no rate was found for a case: its cells fail for this reason.
    pub(super) fn give_up_rate(&mut self, case: &BenchCase, reason: String) {
        self.missing_rates.insert(case.name.clone(), reason);
    }

    fn with_started<T>(
        &mut self,
        target: &BenchTarget,
        case: &BenchCase,
        measure: impl FnOnce(&mut Self, &mut StartedTarget) -> Result<T, LoadFailure>,
    ) -> Result<T, LoadFailure> {
        let mut started = self.start(target)?;
        self.check(target, &mut started, case)?;
        measure(self, &mut started)
    }

    /// The requests per second that a target answers in a closed loop.
    fn closed_loop_rate(
        &self,
        target: &BenchTarget,
        started: &mut StartedTarget,
        case: &BenchCase,
    ) -> Result<f64, LoadFailure> {
        let mut closed = case.clone();
        closed.flags.retain(|flag| !flag.starts_with("--rate=") && !flag.starts_with("--arrivals="));
        let run = self.try_out(target, started, &closed)?;
        let rate = run.recording.figure("rate.achieved");
        if rate > 0.0 { Ok(rate) } else { Err(LoadFailure::Failed("no request was answered".to_owned())) }
    }

    /// Runs a case for a short time, without keeping its journal.
    fn try_out(
        &self,
        target: &BenchTarget,
        started: &mut StartedTarget,
        case: &BenchCase,
    ) -> Result<LoadRun, LoadFailure> {
        let journal = self.generator.stage.scratch("try.journal");
        let length = case.duration.map_or(TRY, |duration| duration.min(TRY));
        let short = BenchCase { duration: Some(length), warmup: TRY_WARMUP.min(length / 4), ..case.clone() };
        let run = self.generator.run(target, started, &short, &journal);
        remove(&journal);
        run
    }

    fn fill(&self, result: &mut CellResult, cell: &Cell<'_>, measured: CellMeasurement) {
        let CellMeasurement { run, rate, is_lower_bound } = measured;
        let expected = expected(&self.scenario.tls, cell.target, cell.case);
        let LoadRun { recording, target, load, upstream, machine, remarks } = run;
        result.remarks = remarks;
        let stage = self.generator.stage;
        let placement = &stage.placement;
        let shared = placement.load.as_deref().filter(|_| placement.load == placement.upstream);
        // A target that answers itself leaves the upstream alone.
        let upstream =
            Some(upstream).filter(|usage| usage.cpu_us() > 0 && has_upstream(self.scenario, &result.target));
        result.doubts = doubts(&CellEvidence {
            recording: &recording,
            target: target.as_ref(),
            load: &load,
            upstream: upstream.as_ref(),
            machine: &machine,
            is_started: matches!(cell.target.server, Server::Commands(_)),
            expected: expected.as_ref(),
            bound: cell.case.bound,
            is_lower_bound,
            shared_cores: shared.map(|names| (names, cores(Some(names)))),
            upstream_threads: stage.upstream.threads,
        });
        result.rate = rate;
        result.began_us = recording.began_us;
        result.figures = recording.figures;
        result.response_curve = recording.response_curve;
        (result.target_usage, result.load_usage) = (target, load);
        (result.upstream_usage, result.machine) = (upstream, machine);
    }
}

/// Whether the scenario's upstream stands behind a target.
fn has_upstream(scenario: &Scenario, target: &str) -> bool {
    let target = scenario.targets.iter().find(|known| known.name == target);
    target.is_some_and(|target| match &target.server {
        Server::Commands(servers) => {
            servers.last().is_some_and(|server| server.upstream != UpstreamKind::None)
        }
        Server::Address(_) => false,
    })
}

/// True if a rate was achieved within the bound.
fn holds(run: &LoadRun, bound: LatencyBound) -> bool {
    let recording = &run.recording;
    let is_fast = recording.response_at(bound.percentile).is_some_and(|us| us < bound.limit_us);
    is_fast && recording.is_rate_achieved && recording.figure("requests.failed") == 0.0
}

/// The requests per second that were asked: as written, or of stages and ramps those that fell due. `None` for a closed
/// loop.
fn wanted_rate(case: &BenchCase, recording: &LoadRecording) -> Option<f64> {
    let written = case.flag("rate").and_then(|rate| rate.parse().ok());
    written.or_else(|| recording.figures.get("rate.wanted").copied())
}

/// The case as an open loop of this rate.
fn at_rate(case: &BenchCase, rate: f64) -> BenchCase {
    let mut case = case.clone();
    case.flags.retain(|flag| !flag.starts_with("--rate="));
    case.flags.push(format!("--rate={}", round_rate(rate)));
    case
}

/// A rate with three significant digits; they are enough, and can be read.
fn round_rate(rate: f64) -> f64 {
    let step = 10_f64.powf((rate.max(1e-3).log10() - 2.0).floor());
    // Steps below 1 are rounded by their inverse, which is a whole number.
    if step >= 1.0 {
        (rate / step).round() * step
    } else {
        (rate * (1.0 / step).round()).round() / (1.0 / step).round()
    }
}

fn add_last_words(failure: LoadFailure, started: &mut StartedTarget) -> LoadFailure {
    match failure {
        LoadFailure::Interrupted => LoadFailure::Interrupted,
        LoadFailure::Failed(reason) => {
            let words = started.last_words();
            LoadFailure::Failed(if words.is_empty() { reason } else { format!("{reason}; {words}") })
        }
    }
}

/// Removes a journal that is not kept; the next one would not replace it.
fn remove(journal: &Path) {
    // It may not have been made.
    let _ = std::fs::remove_file(journal);
}

fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::RunPlan;

    #[test]
    fn every_open_loop_has_a_rate() {
        let case = RunPlan::example().scenario.cases.remove(0);
        let rate = |flags: &[&str], wanted: Option<f64>| {
            let case =
                BenchCase { flags: flags.iter().map(|&flag| flag.to_owned()).collect(), ..case.clone() };
            let figures = wanted.map(|rate| ("rate.wanted".to_owned(), rate)).into_iter().collect();
            wanted_rate(&case, &LoadRecording { figures, ..LoadRecording::default() })
        };
        assert_eq!(rate(&["--rate=100"], Some(99.0)), Some(100.0));
        assert_eq!(rate(&["--rate=100..1000/30s+1000/90s"], Some(850.0)), Some(850.0));
        assert_eq!(rate(&["--rate=1k"], Some(1_000.0)), Some(1_000.0));
        assert_eq!(rate(&["--requests=500", "--ramp-up=10s"], Some(50.0)), Some(50.0));
        assert_eq!(rate(&["--requests=500"], None), None);
    }

    #[test]
    fn rates_have_three_digits() {
        for (rate, rounded) in [(1_234.5, 1_230.0), (99_990.0, 100_000.0), (8.7654, 8.77), (0.0123, 0.0123)] {
            assert!((round_rate(rate) - rounded).abs() < 1e-9, "{rate}: {}", round_rate(rate));
        }
    }
}
