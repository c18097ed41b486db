//! The list of services, and the one that is open.

use records::ids::RunId;

use super::model::ServiceRow;
use crate::input::intent::{PaneAction, Preset};
use crate::panes::PaneId;
use crate::state::State;
use crate::table::{ListMove, Row as _, Rows, TableState};

#[derive(Clone, Debug)]
pub(crate) struct ServiceList {
    pub(crate) table: TableState<ServiceRow>,
    rows: Rows<ServiceRow>,
    /// The run that the rows are of, and the end of their time by its monotonic clock, in microseconds.
    of: Option<(RunId, u64)>,
}

impl Default for ServiceList {
    fn default() -> Self {
        Self { table: TableState::by(0), rows: Rows::default(), of: None }
    }
}

impl State {
    /// Returns whether the shown run tells several services apart.
    pub(crate) fn has_services(&self) -> bool {
        self.services.rows.all().len() > 1
    }

    /// Updates the services in sight: at the moment that is shown, where that is in the past.
    pub(crate) fn arrange_services(&mut self) {
        let Some(shown) = self.shown else { return };
        let last_us = || self.model.services(shown).map(model::runs::Run::last_us).max();
        let until_us = self.earlier().map_or_else(|| last_us().unwrap_or(0), |(us, _)| us);
        let of = Some((shown.whole(), until_us));
        if of != self.services.of {
            let is_past = self.earlier().is_some();
            let listed = self.model.services(shown).map(|run| ServiceRow::of(run, until_us, is_past));
            let listed: Vec<ServiceRow> = listed.collect();
            self.services.rows.change(|rows| *rows = listed);
            self.services.of = of;
        }
        let sight = self.sight.services;
        let ServiceList { table, rows, .. } = &mut self.services;
        table.arrange(rows, sight);
    }

    /// Selects another service.
    pub(crate) fn scroll_services(&mut self, to: ListMove) {
        let sight = self.sight.services;
        let ServiceList { table, rows, .. } = &mut self.services;
        table.go(to, rows, sight);
    }

    /// Shows the selected service, or the first in sight, in all panes.
    pub(crate) fn open_service(&mut self) {
        let first = || self.services.table.page().first().map(ServiceRow::id);
        let Some(id) = self.services.table.selected.or_else(first) else { return };
        self.services.table.selected = Some(id);
        self.show_run(id);
        if self.panes.maximised == Some(PaneId::Services)
            || self.panes.hidden == Preset::Only(PaneId::Services).hidden()
        {
            self.arrange_panes(PaneAction::Preset(Preset::Overview));
        }
    }

    /// Shows all services again; false if it shows them.
    pub(crate) fn leave_service(&mut self) -> bool {
        let Some(part) = self.open_service_id() else { return false };
        self.show_run(part.whole());
        true
    }

    /// The run of the service that is open in all panes.
    fn open_service_id(&self) -> Option<RunId> {
        self.run().filter(|run| run.is_service()).map(model::runs::Run::id)
    }

    pub(crate) fn is_service_open(&self) -> bool {
        self.open_service_id().is_some()
    }

    pub(crate) fn service_names(&self) -> Vec<String> {
        self.services.rows.all().iter().map(|row| row.name.clone()).collect()
    }
}
