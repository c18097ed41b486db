//! A cell: a target that is started afresh, checked, put under load, and stopped.

mod check;
mod doubts;
mod rates;
mod search;
mod turns;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use records::kinds::Timestamps;

use self::check::{check, expected};
use self::doubts::{CellEvidence, doubts};
use self::rates::at_rate;
use self::turns::Turns;
use super::error::LoadFailure;
use super::load::{LoadRun, LoadRunner, LoadStart};
use super::plan::Cell;
use super::recording::LoadRecording;
use super::started::StartedTarget;
use crate::results::{CellResult, NegotiatedParameters};
use crate::scenario::{BenchCase, BenchTarget, Question, Scenario, Server};

/// The number of consecutive failed starts after which a target is not started again.
const START_FAILURES_MAX: u32 = 2;

/// How long the process of a load takes to start, at most.
const LOAD_START: Duration = Duration::from_millis(100);

#[derive(Debug)]
struct CellMeasurement {
    run: LoadRun,
    /// The requests per second that were asked of an open loop.
    rate: Option<f64>,
    /// True if each rate of a search for a capacity kept the bound: the capacity is higher.
    is_lower_bound: bool,
}

/// Measures cells, and keeps findings about the targets.
pub(super) struct CellRunner<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) generator: LoadRunner<'a>,
    /// The negotiated parameters, by target and case: each is checked once.
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
        let mut result = empty_result(cell);
        match self.run(cell.target, cell.case, rate, journal) {
            Ok((measured, negotiated)) => {
                self.fill(&mut result, cell, measured);
                result.negotiated = negotiated;
            }
            Err(failure) => result.failure = Some(self.reason(cell, failure)?),
        }
        Some(result)
    }

    /// Measures cells of one case and round, whose targets take turns; their journals go to `journals`. `None` if it was
    /// interrupted.
    pub(super) fn measure_in_turns(
        &mut self,
        cells: &[Cell<'_>],
        rate: f64,
        journals: &[PathBuf],
    ) -> Option<Vec<CellResult>> {
        let mut results: Vec<CellResult> = cells.iter().map(empty_result).collect();
        let mut started = Vec::new();
        for ((cell, journal), result) in cells.iter().zip(journals).zip(&mut results) {
            match self.start_checked(cell.target, cell.case) {
                Ok((target, negotiated)) => {
                    result.negotiated = negotiated;
                    started.push((cell, journal, result, target));
                }
                Err(failure) => result.failure = Some(self.reason(cell, failure)?),
            }
        }
        // A target that is left alone has no turns.
        let turns = cells.first().and_then(|cell| Turns::of(cell.case, started.len()));
        let at_us = turns.map(|turns| {
            turns.start_us(Timestamps::now().monotonic_us, LOAD_START * (started.len() as u32 + 1))
        });
        let mut begun = Vec::new();
        for (position, (cell, journal, result, target)) in started.into_iter().enumerate() {
            let case =
                turns.map_or_else(|| at_rate(cell.case, rate), |it| it.case_of(cell.case, rate, position));
            let start = turns.map_or(LoadStart::AT_ONCE, |turns| LoadStart {
                at_us,
                position,
                samples: turns.sample_times(),
                interval: turns.record_interval(),
            });
            let load = self.generator.begin(cell.target, &target, &case, journal, start);
            begun.push((cell, result, target, case, load));
        }
        for (position, (cell, result, mut target, case, load)) in begun.into_iter().enumerate() {
            let own_turns =
                turns.zip(at_us).map(|(turns, start_us)| (turns, turns.spans(start_us, position)));
            let spans = own_turns.as_ref().map(|(_, spans)| &**spans);
            let run = load.and_then(|load| self.generator.finish(load, &mut target, &case, spans));
            match run.map_err(|failure| append_output_tail(failure, &mut target)) {
                Ok(mut run) => {
                    if let Some((turns, spans)) = &own_turns {
                        turns.count_active_time(&mut run, spans);
                    }
                    run.remarks.extend(target.stop());
                    self.fill(result, cell, CellMeasurement { run, rate: Some(rate), is_lower_bound: false });
                }
                Err(failure) => result.failure = Some(self.reason(cell, failure)?),
            }
        }
        Some(results)
    }

    /// Why a cell failed, with the target's line in the scenario; `None` if it was interrupted.
    fn reason(&self, cell: &Cell<'_>, failure: LoadFailure) -> Option<String> {
        match failure {
            LoadFailure::Interrupted => None,
            LoadFailure::Failed(reason) => Some(format!("{}: {reason}", self.location(cell.target))),
        }
    }

    fn run(
        &mut self,
        target: &BenchTarget,
        case: &BenchCase,
        rate: Option<f64>,
        journal: &Path,
    ) -> Result<(CellMeasurement, Option<NegotiatedParameters>), LoadFailure> {
        let (mut started, negotiated) = self.start_checked(target, case)?;
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
        let mut measured = measured.map_err(|failure| append_output_tail(failure, &mut started))?;
        measured.run.remarks.extend(started.stop());
        Ok((measured, negotiated))
    }

    /// Starts a target and checks it.
    fn start_checked(
        &mut self,
        target: &BenchTarget,
        case: &BenchCase,
    ) -> Result<(StartedTarget, Option<NegotiatedParameters>), LoadFailure> {
        let mut started = self.start(target)?;
        let checked = self.check(target, &mut started, case);
        let negotiated = checked.map_err(|failure| append_output_tail(failure, &mut started))?;
        Ok((started, negotiated))
    }

    /// Where the scenario describes a target, for messages.
    fn location(&self, target: &BenchTarget) -> String {
        format!("{} line {}: target {}", self.scenario.name, target.line, target.name)
    }

    /// Starts a target, unless it failed to start too often.
    fn start(&mut self, target: &BenchTarget) -> Result<StartedTarget, LoadFailure> {
        let failures = self.start_failures.entry(target.name.clone()).or_default();
        if failures.0 >= START_FAILURES_MAX {
            let reason = format!("it was not started again after {} failures: {}", failures.0, failures.1);
            return Err(LoadFailure::Failed(reason));
        }
        let LoadRunner { setup, is_interrupted, .. } = self.generator;
        let started = StartedTarget::start(setup, is_interrupted, &self.scenario.tls, target);
        match &started {
            Ok(_) => failures.0 = 0,
            Err(LoadFailure::Failed(reason)) => *failures = (failures.0 + 1, reason.clone()),
            Err(LoadFailure::Interrupted) => {}
        }
        started
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

    /// Remembers that no rate was found for a case: its cells fail for this reason.
    pub(super) fn give_up_rate(&mut self, case: &BenchCase, reason: String) {
        self.missing_rates.insert(case.name.clone(), reason);
    }

    fn fill(&self, result: &mut CellResult, cell: &Cell<'_>, measured: CellMeasurement) {
        let CellMeasurement { run, rate, is_lower_bound } = measured;
        let expected = expected(&self.scenario.tls, cell.target, cell.case);
        let LoadRun { recording, target, load, upstream, machine, remarks, answered_in_turns } = run;
        result.remarks = remarks;
        let setup = self.generator.setup;
        let shared_cores = setup.placement.shared_by_generator_and_upstream();
        let needs_upstream = cell.target.needs_upstream() == Some(true);
        let upstream = Some(upstream).filter(|usage| usage.cpu_us() > 0 && needs_upstream);
        result.doubts = doubts(&CellEvidence {
            recording: &recording,
            target: target.as_ref(),
            load: &load,
            upstream: upstream.as_ref(),
            machine: &machine,
            is_started: matches!(cell.target.server, Server::Commands(_))
                && setup.upstream.supervisor.is_some(),
            expected: expected.as_ref(),
            bound: cell.case.bound,
            is_lower_bound,
            answered_in_turns,
            shared_cores: shared_cores.as_ref(),
            upstream_threads: setup.upstream.threads,
        });
        result.rate = rate;
        result.answered_in_turns = answered_in_turns;
        result.connections_kept = connections_kept(cell.case, &recording);
        result.began_us = recording.began_us;
        result.figures = recording.figures;
        result.response_curve = recording.response_curve;
        (result.target_usage, result.load_usage) = (target, load);
        (result.upstream_usage, result.machine) = (upstream, machine);
    }
}

/// The requested rate: as written, or the due requests of stages and ramps. `None` for a closed loop.
fn wanted_rate(case: &BenchCase, recording: &LoadRecording) -> Option<f64> {
    let written = case.flag("rate").and_then(|rate| rate.parse().ok());
    written.or_else(|| recording.figures.get("rate.wanted").copied())
}

/// The connections at the end of a load that closes none: as many as it has, each made in the measured part. If requests
/// failed or were not sent, some may not have got as far as a handshake.
fn connections_kept(case: &BenchCase, recording: &LoadRecording) -> Option<u64> {
    let closes =
        ["keep-alive", "lifetime"].iter().any(|flag| case.flag(flag).is_some_and(|value| value != "on"));
    let connections: u64 = case.flag("connections")?.parse().ok()?;
    let has_errors = recording.figure("errors") > 0.0;
    let is_complete = recording.figure("connections") as u64 == connections;
    (!closes && !has_errors && is_complete).then_some(connections)
}

/// The result of a cell that has not run yet.
fn empty_result(cell: &Cell<'_>) -> CellResult {
    CellResult {
        round: cell.round,
        position: cell.position,
        target: cell.target.name.clone(),
        case: cell.case.name.clone(),
        began_us: now_us(),
        ..CellResult::default()
    }
}

fn append_output_tail(failure: LoadFailure, started: &mut StartedTarget) -> LoadFailure {
    match failure {
        LoadFailure::Interrupted => LoadFailure::Interrupted,
        LoadFailure::Failed(reason) => {
            let tail = started.output_tail();
            LoadFailure::Failed(if tail.is_empty() { reason } else { format!("{reason}; {tail}") })
        }
    }
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
}
