//! The clients at the shown moment.

use telemetry::ClientId;

use super::State;
use super::view::View;
use crate::table::Table;
use crate::view_model::{self, ClientDetail, ClientRow, ClientTable, History};

impl State {
    /// The list of clients, and the clients that are shown.
    pub(super) fn clients_and_table(&mut self) -> (&mut Table<ClientRow>, &mut ClientTable) {
        let snapshot = match &mut self.view {
            View::Live => &mut self.live,
            View::Frozen(past) | View::Replay(past, _) => &mut past.snapshot,
        };
        (&mut self.clients, &mut snapshot.table)
    }

    /// Returns all clients at the shown moment, unordered.
    pub(super) fn client_ids(&self) -> impl Iterator<Item = ClientId> + '_ {
        self.snapshot().table.rows.all().iter().map(|row| row.id)
    }

    /// The details of a client: its rates at the shown moment, the rest from the latest record.
    pub(crate) fn client_detail(&self, id: ClientId) -> Option<ClientDetail> {
        let row = self.snapshot().table.get(id)?;
        ClientDetail::of(self.snapshot_run()?, row, self.history(id))
    }

    /// Clients at the shown moment that pass the filter.
    pub(crate) fn client_count(&self) -> usize {
        self.snapshot().table.rows.len()
    }

    /// A client's last intervals up to the shown moment.
    pub(crate) fn history(&self, id: ClientId) -> History {
        let snapshot = self.snapshot();
        if let Some(past) = self.view.past().filter(|_| snapshot.ticket.is_none()) {
            return past.history(id);
        }
        let run = self.snapshot_run();
        run.map(|run| view_model::history(run, id, snapshot.interval_us())).unwrap_or_default()
    }
}
