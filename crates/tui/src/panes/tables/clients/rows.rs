//! The table of all clients, updated incrementally.
//!
//! It may hold ten thousand clients, of which some sixty have a new record each second. So it updates only rows that
//! may have changed, and sorts only the visible page.

use foldhash::HashMap;
use model::runs::{DEFERRED_US_MAX, MetricSeries, Run};
use records::ids::{ClientId, RunId};

use super::model::{ClientLatency, ClientRow, RecentActivity, recent};
use crate::table::{ChangedRows, Rows};
use crate::view_model::span::Span;

/// The table of one run over one span.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientRows {
    of: Option<(RunId, Span)>,
    /// The number of changes in the run's own table that were applied here.
    changes_total: u64,
    pub(crate) rows: Rows<ClientRow>,
    recent: RecentRows,
}

/// Which rows may have changed.
#[derive(Clone, Debug, Default)]
struct RecentRows {
    places: HashMap<ClientId, usize>,
    /// Rows with a recent record, each once. All other rows show `resting`.
    moving: Vec<usize>,
    is_moving: Vec<bool>,
    /// The activity of rows without a recent record: none, or `None` if nothing is known of the time.
    resting: Option<RecentActivity>,
}

impl ClientRows {
    /// Updates the rows to the current state of the run.
    pub(crate) fn refresh(&mut self, run: &Run, span: Span) {
        let clients = run.clients();
        let known = self.of == Some((run.id(), span));
        let changes_total = self.changes_total;
        let Self { rows, recent, .. } = self;
        let mut change = |rows: &mut Vec<ClientRow>| {
            if let Some(changed) = clients.changed_since(changes_total).filter(|_| known) {
                changed.for_each(|id| recent.update_row(rows, run, id));
            } else {
                *recent = RecentRows::default();
                rows.clear();
                clients.iter().for_each(|client| recent.update_row(rows, run, client.id));
            }
            match span {
                Span::WholeRun => {
                    average(rows, run);
                    ChangedRows::All
                }
                Span::Last(us) => recent.update_rates(rows, run, us),
            }
        };
        if known && run.stopped().is_none() {
            rows.update(change);
        } else {
            rows.change(|rows| drop(change(rows)));
        }
        self.of = Some((run.id(), span));
        self.changes_total = clients.changes_total();
    }

    /// Gives every row the figures of another moment.
    pub(crate) fn change_rows(&mut self, change: impl Fn(&ClientRow) -> ClientRow) {
        self.rows.change(|rows| rows.iter_mut().for_each(|row| *row = change(row)));
    }

    /// The row of a client, shown or not.
    pub(crate) fn get(&self, id: ClientId) -> Option<&ClientRow> {
        self.recent.places.get(&id).map(|&at| &self.rows.all()[at])
    }
}

fn average(rows: &mut [ClientRow], run: &Run) {
    let duration_us = run.duration_us();
    for row in rows {
        let Some(client) = run.client(row.id) else { continue };
        row.set_recent(run, RecentActivity::whole(client, duration_us));
        row.latency = ClientLatency::until(client, u64::MAX, Span::WholeRun);
    }
}

impl RecentRows {
    fn update_row(&mut self, rows: &mut Vec<ClientRow>, run: &Run, id: ClientId) {
        let Some(client) = run.client(id) else { return };
        let next = rows.len();
        let mut row = ClientRow::at(client, u64::MAX);
        row.tls = row.sole_version(run).unwrap_or(row.tls);
        // A log does not give the number of open connections.
        row.open = row.open.filter(|_| run.counted_log().is_none());
        let at = *self.places.entry(id).or_insert(next);
        if at == next {
            rows.push(row);
            self.is_moving.push(false);
        } else {
            rows[at] = row;
        }
        if !std::mem::replace(&mut self.is_moving[at], true) {
            self.moving.push(at);
        }
    }

    /// Updates the rates of rows with a recent record, and returns which rows may have changed.
    fn update_rates(&mut self, rows: &mut [ClientRow], run: &Run, span_us: u64) -> ChangedRows {
        let now_us = run.proxy().map_or(0, MetricSeries::last_us);
        let from_us = now_us.saturating_sub(span_us);
        let resting = (run.clients_recorded_until_us() > from_us).then(RecentActivity::default);
        let has_new_rest = std::mem::replace(&mut self.resting, resting) != resting;
        if has_new_rest {
            for row in rows.iter_mut() {
                row.set_recent(run, resting);
            }
        }
        let changed = if has_new_rest { ChangedRows::All } else { ChangedRows::At(self.moving.clone()) };
        let counts_from_us = now_us.saturating_sub(span_us.max(DEFERRED_US_MAX));
        let Self { moving, is_moving, .. } = self;
        moving.retain(|&at| {
            let client = run.client(rows[at].id);
            let moves = client.filter(|client| client.last_us > counts_from_us);
            rows[at].set_recent(run, moves.map_or(resting, |client| recent(run, client, span_us)));
            rows[at].latency =
                moves.and_then(|client| ClientLatency::until(client, now_us, Span::Last(span_us)));
            is_moving[at] = moves.is_some();
            moves.is_some()
        });
        changed
    }
}
