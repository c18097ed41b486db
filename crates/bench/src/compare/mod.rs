//! How the targets of a scenario compare: for each case the ratio of each target to the baseline, and a verdict.
//!
//! ```text
//!   cells of a case ──> by target and round ──> pairs of a round ──> ratio with interval   (pairs.rs)
//!                                                                       │
//!   all primary ratios of the scenario ── Holm ──> verdicts             (verdict.rs)
//!   published figures, assertions <── medians and intervals             (published.rs, assertion.rs)
//! ```

mod assertion;
mod case;
mod figure;
mod pairs;
mod published;
mod serialize;
mod verdict;

use std::collections::BTreeSet;

use serde::Serialize;

pub use assertion::{BenchAssertionOutcome, BenchAssertionResult, BenchCondition, BenchConditionError};
pub use case::{CaseComparison, CellFigureComparison, Remark, RemarkWeight, TargetComparison};
pub use figure::{CellFigure, USAGE_FIGURES, UnknownCellFigure, UsageFigure};
pub use published::PublishedComparison;
pub use verdict::CaseVerdict;

use crate::results::{CellResult, MachineUsage};
use crate::scenario::Scenario;

/// How the targets of a scenario compare.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BenchComparison {
    pub name: String,
    /// The subject of the comparison, in a line.
    pub title: String,
    /// The target that the others are compared with.
    pub baseline: String,
    /// The number of rounds with cells.
    pub rounds: u32,
    /// The number of ratios with a verdict, for which p-values are adjusted.
    pub primary_comparisons: usize,
    /// The cases, in the order of the scenario.
    pub cases: Vec<CaseComparison>,
    /// Published figures beside the measured ones.
    pub published: Vec<PublishedComparison>,
    /// The scenario's conditions, and whether they hold.
    pub assertions: Vec<BenchAssertionResult>,
    /// The worst state of the machine during any cell.
    pub machine: MachineUsage,
    pub notes: Vec<String>,
}

impl BenchComparison {
    /// Compares the targets of a scenario by the measured cells. A cell that was measured again replaces the former
    /// one.
    pub fn of(scenario: &Scenario, cells: &[CellResult]) -> Self {
        let mut cases: Vec<CaseComparison> =
            scenario.cases.iter().map(|case| CaseComparison::of(scenario, case, cells)).collect();
        let primary_comparisons = verdict::decide(&mut cases, &scenario.baseline);
        let rounds: BTreeSet<u32> = cells.iter().map(|cell| cell.round).collect();
        let mut notes = scenario.notes.clone();
        notes.extend(scenario.cpus.clone().unwrap_or_default().notes());
        Self {
            name: scenario.name.clone(),
            title: scenario.title.clone(),
            baseline: scenario.baseline.clone(),
            rounds: rounds.len() as u32,
            primary_comparisons,
            published: published::compare(&scenario.published, &cases),
            assertions: assertion::check(scenario, &cases),
            machine: worst(cells),
            notes,
            cases,
        }
    }
}

fn worst(cells: &[CellResult]) -> MachineUsage {
    let worse = |a: MachineUsage, b: &MachineUsage| MachineUsage {
        steal: a.steal.max(b.steal),
        other: a.other.max(b.other),
        run_queue_delay: match (a.run_queue_delay, b.run_queue_delay) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        },
        is_throttled: a.is_throttled || b.is_throttled,
    };
    cells.iter().fold(MachineUsage::default(), |worst, cell| worse(worst, &cell.machine))
}
