//! The services of the shown run, and the one that is open.

use model::runs::Run;
use records::ids::RunId;

use super::model::ServiceRow;
use crate::state::State;
use crate::table::RowMoment;
use crate::view_model::span::Span;

/// Updates the services in sight: at the moment that is shown, where that is in the past.
pub(super) fn arrange(state: &mut State) {
    let Some(shown) = state.shown else { return };
    let earlier_us = state.earlier().map(|(us, _)| us);
    let State { services, model, .. } = state;
    let last_us = || model.services(shown).map(Run::last_us).max().unwrap_or(0);
    let us = earlier_us.unwrap_or_else(last_us);
    let moment = RowMoment { run: shown.whole(), us, is_past: false, span: Span::default() };
    let row = |run| ServiceRow::of(run, us, earlier_us.is_some());
    services.renew(moment, || model.services(shown).map(row).collect());
    services.arrange();
}

impl State {
    /// Shows all services again; false if it shows them.
    pub(crate) fn leave_service(&mut self) -> bool {
        let Some(part) = self.open_service_id() else { return false };
        self.show_run(part.whole());
        true
    }

    /// The run of the service that is open in all panes.
    fn open_service_id(&self) -> Option<RunId> {
        self.run().filter(|run| run.is_service()).map(Run::id)
    }
}
