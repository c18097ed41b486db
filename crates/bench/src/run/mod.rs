//! The rounds of a comparison, and the cells of a round.
//!
//! ```text
//!   Scenario + Selection ──> RunPlan ──> for each round, each case, each target in random order:
//!                                           start (started.rs) → check (cell/check.rs) → load (load.rs) → CellResult (cell)
//! ```
//!
//! | module | purpose |
//! |---|---|
//! | `selection` | which part of a scenario is run |
//! | `plan` | the cells and their order |
//! | `setup` | what all targets share: certificates, upstream, folders |
//! | `started`, `server_starter` | a target that is started for a cell, and each of its servers |
//! | `missing_program` | programs that are not installed |
//! | `error` | why a run or a load failed |
//! | `load` | the generator, and the resources used during the load |
//! | `disturbance` | what disturbs a measurement on this machine |
//! | `cell` | a cell: its check, rate, turns and doubts |
//! | `progress`, `preview` | the progress of a run, and its plan without running it |
//! | `recording` | the contents of a cell's journal |

mod cell;
mod certificate;
mod disturbance;
mod error;
mod load;
mod missing_program;
mod plan;
mod preview;
mod progress;
mod recording;
mod selection;
mod server_starter;
mod setup;
mod started;

use std::collections::HashSet;
use std::path::PathBuf;

use rustix::process::geteuid;

pub use disturbance::disturbances;
pub use error::RunError;
pub use load::RunPrograms;
pub use missing_program::{MissingTarget, is_program};
pub(crate) use plan::PLAN_FORMAT;
pub use plan::{Cell, CommonRate, RunPlan};
pub use preview::{commands, preview, size};
pub use recording::LoadRecording;
pub use selection::{Selection, SelectionError};

use self::cell::CellRunner;
use self::error::LoadFailure;
use self::load::LoadRunner;
use self::missing_program::missing_program;
use self::progress::ProgressClock;
use self::setup::BenchSetup;
use crate::output::ComparisonProgress;
use crate::results::{CellKey, CellResult, FolderError, ResultsFolder};
use crate::scenario::{BenchCase, BenchTarget, Question};

pub trait Observer {
    /// Something to be known at once.
    fn note(&self, text: &str);
    /// Is called several times a second.
    fn progress(&self, progress: &ComparisonProgress<'_>);
    /// True if the run is to end.
    fn is_interrupted(&self) -> bool;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    pub is_interrupted: bool,
    /// The targets that could not run.
    pub missing: Vec<MissingTarget>,
}

/// Measures the cells of a plan that have no result yet, and those that are compared with them. With `requires_all`, a
/// missing program is an error; otherwise the other targets run.
///
/// # Errors
/// If results cannot be written, or no target can run. A failure within a cell is part of its result.
pub fn run(
    plan: &mut RunPlan,
    folder: &mut ResultsFolder,
    programs: &RunPrograms<'_>,
    observer: &dyn Observer,
    requires_all: bool,
) -> Result<RunEnd, RunError> {
    let missing = missing_targets(plan, programs, requires_all)?;
    let is_runnable = |target: &BenchTarget| !missing.iter().any(|missing| missing.name == target.name);
    let mut scenario = plan.scenario.clone();
    scenario.targets.retain(is_runnable);
    let placement = scenario.cpus.clone().unwrap_or_default();
    placement.check().map_err(RunError::Cpus)?;
    let setup = BenchSetup::prepare(&programs.tlsdash, &scenario, placement)?;
    if let Some(folder) = setup::closed_folder(&std::env::temp_dir()).filter(|_| geteuid().is_root()) {
        observer.note(&format!(
            "other users may not enter {}, so a target whose workers run as another user cannot work: set TMPDIR",
            folder.display()
        ));
    }
    plan.forget_rates(folder.cells(), is_runnable);
    let cells = plan.unmeasured(folder.cells(), is_runnable);
    let done: HashSet<CellKey<'_>> = folder.cells().iter().map(CellResult::key).collect();
    let again: Vec<&Cell<'_>> = cells.iter().filter(|cell| done.contains(&cell.key())).collect();
    if !again.is_empty() {
        let count = again.len();
        observer.note(&format!("cells that are measured again, beside targets that had no result: {count}"));
    }
    let replaced: HashSet<(u32, usize)> = again.iter().map(|cell| (cell.round, cell.case_index)).collect();
    let clock = ProgressClock::new(plan.scenario.rounds, &cells);
    let case_indexes = cells.iter().map(|cell| cell.case_index).collect();
    let tick = || {
        clock.show(|progress| observer.progress(progress));
        observer.is_interrupted()
    };
    let generator = LoadRunner { programs, setup: &setup, is_interrupted: &tick };
    let mut runner = CellRunner::new(&scenario, generator, folder.cells());
    let end = |is_interrupted| RunEnd { is_interrupted, missing: missing.clone() };
    if find_rates(plan, folder, &case_indexes, &mut runner, &clock, observer)?.is_none() {
        return Ok(end(true));
    }
    let cells = plan.unmeasured(folder.cells(), is_runnable);
    let mut said = HashSet::new();
    // Results that replace others are added together: an interrupted round must not look complete.
    let are_added_together = |one: &Cell<'_>, next: &Cell<'_>| {
        takes_turns_with(one, next)
            || one.is_compared_with(next) && replaced.contains(&(one.round, one.case_index))
    };
    for added in cells.chunk_by(are_added_together) {
        let mut measured = Vec::new();
        for together in added.chunk_by(takes_turns_with) {
            clock.begin(together);
            let paths = new_journals(folder, together)?;
            let found = plan.rates.get(&together[0].case.name).map(|found| found.rate);
            let results = measure_together(&mut runner, together, found, &paths);
            let Some(results) = results else { return Ok(end(true)) };
            clock.finish(together, &results);
            for CellResult { round, target, case, failure, .. } in &results {
                if let Some(reason) = failure.as_ref().filter(|reason| said.insert((*reason).clone())) {
                    observer.note(&format!("round {round}, {target}, {case}: {reason}"));
                }
            }
            measured.extend(results.into_iter().zip(paths));
        }
        for (result, path) in measured {
            folder.append(result, &path)?;
        }
    }
    Ok(end(false))
}

fn new_journals(folder: &ResultsFolder, cells: &[Cell<'_>]) -> Result<Vec<PathBuf>, FolderError> {
    let new =
        |cell: &Cell<'_>| folder.new_journal((cell.round, cell.case_index, cell.position), &cell.target.name);
    cells.iter().map(new).collect()
}

/// Measures cells that take turns, or a single one, at the rate that was found for their case, if it needs one. `None` if
/// it was interrupted.
fn measure_together(
    runner: &mut CellRunner<'_>,
    cells: &[Cell<'_>],
    found: Option<f64>,
    journals: &[PathBuf],
) -> Option<Vec<CellResult>> {
    match found.or_else(|| cells[0].case.constant_rate()) {
        Some(rate) if cells.len() > 1 => runner.measure_in_turns(cells, rate, journals),
        _ => cells.iter().zip(journals).map(|(cell, journal)| runner.measure(cell, found, journal)).collect(),
    }
}

fn missing_targets(
    plan: &RunPlan,
    programs: &RunPrograms<'_>,
    requires_all: bool,
) -> Result<Vec<MissingTarget>, RunError> {
    let targets = &plan.scenario.targets;
    let of = |target: &BenchTarget| {
        let reason = missing_program(target, &programs.tlsdash)?;
        Some(MissingTarget { name: target.name.clone(), reason })
    };
    let missing: Vec<MissingTarget> = targets.iter().filter_map(of).collect();
    let reasons = || missing.iter().map(|missing| missing.reason.clone()).collect();
    if missing.len() == targets.len() {
        return Err(RunError::NoTarget(reasons()));
    }
    if requires_all && !missing.is_empty() {
        return Err(RunError::Missing(reasons()));
    }
    Ok(missing)
}

/// Finds the missing rates of the cost cases among these. `None` if it was interrupted.
fn find_rates(
    plan: &mut RunPlan,
    folder: &ResultsFolder,
    case_indexes: &HashSet<usize>,
    runner: &mut CellRunner<'_>,
    clock: &ProgressClock,
    observer: &dyn Observer,
) -> Result<Option<()>, RunError> {
    let needs_rate = |case: &BenchCase| {
        let has_rate = case.flag("rate").is_some() || plan.rates.contains_key(&case.name);
        case.question == Question::Cost && !has_rate
    };
    let cases = plan.scenario.cases.iter().enumerate();
    let cases = cases.filter(|(index, case)| case_indexes.contains(index) && needs_rate(case));
    let cases: Vec<BenchCase> = cases.map(|(_, case)| case.clone()).collect();
    for case in cases {
        match runner.common_rate(&case, |target| clock.begin_search(target, &case.name)) {
            Ok(found) => {
                observer
                    .note(&format!("{}: {:.0} requests per second, {}", case.name, found.rate, found.origin));
                plan.rates.insert(case.name.clone(), found);
                folder.write_plan(plan)?;
            }
            Err(LoadFailure::Failed(reason)) => runner.give_up_rate(&case, reason),
            Err(LoadFailure::Interrupted) => return Ok(None),
        }
    }
    Ok(Some(()))
}

/// Whether the targets of two cells, one after the other in the plan, take turns.
fn takes_turns_with(one: &Cell<'_>, next: &Cell<'_>) -> bool {
    one.is_compared_with(next) && one.case.turns.is_some()
}
