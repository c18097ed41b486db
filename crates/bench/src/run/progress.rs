//! How far a run has got.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use model::figures::FigureUnit;

use super::plan::Cell;
use crate::output::ComparisonProgress;
use crate::results::CellResult;

/// The present cell, its start, and the remaining cells.
#[derive(Debug)]
pub(super) struct ProgressClock(RefCell<ProgressState>);

#[derive(Debug)]
struct ProgressState {
    round: u32,
    rounds: u32,
    target: String,
    case: String,
    figures: String,
    planned: Duration,
    done: Duration,
    took: Duration,
    began: Instant,
}

impl ProgressClock {
    /// The clock of a run that measures these cells.
    pub(super) fn new(rounds: u32, cells: &[Cell<'_>]) -> Self {
        Self(RefCell::new(ProgressState {
            round: 0,
            rounds,
            target: String::new(),
            case: String::new(),
            figures: String::new(),
            planned: cells.iter().map(Cell::planned).sum(),
            done: Duration::ZERO,
            took: Duration::ZERO,
            began: Instant::now(),
        }))
    }

    /// A rate is tried, before the first round.
    pub(super) fn begin_search(&self, target: &str, case: &str) {
        let mut state = self.0.borrow_mut();
        (state.target, state.case) = (target.to_owned(), format!("{case}: finding a rate"));
        state.began = Instant::now();
    }

    /// Cells begin that are measured together; they are of one case and round.
    pub(super) fn begin(&self, cells: &[Cell<'_>]) {
        let Some(first) = cells.first() else { return };
        let mut state = self.0.borrow_mut();
        let names: Vec<&str> = cells.iter().map(|cell| &*cell.target.name).collect();
        (state.target, state.case) = (names.join(", "), first.case.name.clone());
        state.round = first.round;
        state.began = Instant::now();
    }

    pub(super) fn finish(&self, cells: &[Cell<'_>], results: &[CellResult]) {
        let Some(result) = results.last() else { return };
        let mut state = self.0.borrow_mut();
        state.done += cells.iter().map(Cell::planned).sum::<Duration>();
        let took = state.began.elapsed();
        state.took += took;
        state.figures = format!("last: {} {}", result.target, figures(result));
    }

    /// Calls `show` with how far the run has got.
    pub(super) fn show(&self, show: impl FnOnce(&ComparisonProgress<'_>)) {
        let state = self.0.borrow();
        show(&ComparisonProgress {
            round: state.round,
            rounds: state.rounds,
            target: &state.target,
            case: &state.case,
            figures: &state.figures,
            planned: state.planned,
            done: state.done,
            took: state.took,
            current: state.began.elapsed(),
        });
    }
}

/// The result of a cell, in a few words.
fn figures(cell: &CellResult) -> String {
    if cell.failure.is_some() {
        return "failed".to_owned();
    }
    let figure = |name: &str| cell.figures.get(name).copied();
    let rate = figure("rate.achieved").map(|rate| FigureUnit::PerSecond.show(rate));
    let latency = figure("response.p99").or_else(|| figure("service.p99"));
    let latency = latency.map(|us| format!("p99 {}", FigureUnit::Micros.show(us)));
    let cost = cell.target_usage.zip(cell.answered()).map(|(usage, answered)| {
        format!("{} CPU per request", FigureUnit::Micros.show(usage.cpu_us() as f64 / answered))
    });
    [rate, latency, cost].into_iter().flatten().collect::<Vec<_>>().join(", ")
}
