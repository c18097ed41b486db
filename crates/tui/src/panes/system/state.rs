//! The list of the proxy's workers.

use super::model::WorkerRow;
use crate::state::State;
use crate::table::{ListMove, Rows, TableState};

#[derive(Clone, Debug)]
pub(crate) struct WorkerTable {
    pub(crate) table: TableState<WorkerRow>,
    rows: Rows<WorkerRow>,
}

impl Default for WorkerTable {
    fn default() -> Self {
        Self { table: TableState::by(0), rows: Rows::default() }
    }
}

impl State {
    /// Updates the workers in sight.
    pub(crate) fn arrange_workers(&mut self) {
        let sight = self.sight.workers;
        if sight == 0 {
            return;
        }
        let listed = self.figures().map_or_else(Vec::new, |figures| figures.workers.clone());
        let WorkerTable { table, rows } = &mut self.workers;
        rows.change(|rows| *rows = listed.into_iter().map(WorkerRow).collect());
        table.arrange(rows, sight);
    }

    /// Selects another worker.
    pub(crate) fn scroll_workers(&mut self, to: ListMove) {
        let sight = self.sight.workers;
        let WorkerTable { table, rows } = &mut self.workers;
        table.go(to, rows, sight);
    }
}
