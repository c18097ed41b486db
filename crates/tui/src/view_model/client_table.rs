//! All clients, kept from one look at the run to the next.
//!
//! Ten thousand clients may be in it and sixty have a record in a second, so only those rows are worked on of which
//! something may have changed, and only the page in sight is ever put in order.

use std::ops::Range;

use foldhash::HashMap;
use telemetry::model::{DEFERRED_US_MAX, MetricSeries, Run};
use telemetry::{ClientId, RunId};

use super::clients::{ClientLatency, Recent, recent};
use super::order::Rank;
use super::{ClientRow, Order, Span};

/// The table of one run over one span.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientTable {
    of: Option<(RunId, Span)>,
    /// Changes of the run's own table that have been taken in.
    changes_total: u64,
    rows: Vec<ClientRow>,
    places: HashMap<ClientId, usize>,
    /// Rows with a record that is recent enough to count, each once. All others do the same: nothing, or nobody knows.
    moving: Vec<usize>,
    is_moving: Vec<bool>,
    /// What those others do.
    resting: Option<Recent>,
    /// Every row, in no order beyond what the last page needed.
    ranks: Vec<Rank>,
    order: Order,
    /// What an address must hold for its row to be shown.
    filter: String,
}

impl ClientTable {
    /// Brings it to where the run stands.
    pub(crate) fn refresh(&mut self, run: &Run, span: Span) {
        let clients = run.clients();
        let known = self.of == Some((run.id(), span));
        if let Some(changed) = clients.changed_since(self.changes_total).filter(|_| known) {
            changed.for_each(|id| self.take_in(run, id));
        } else {
            *self = Self {
                of: Some((run.id(), span)),
                order: self.order,
                filter: std::mem::take(&mut self.filter),
                ..Self::default()
            };
            clients.iter().for_each(|client| self.take_in(run, client.id));
        }
        self.changes_total = clients.changes_total();
        match span {
            Span::WholeRun => self.average(run),
            Span::Last(us) => self.take_rates(run, us),
        }
        self.rank();
    }

    fn take_in(&mut self, run: &Run, id: ClientId) {
        let Some(client) = run.client(id) else { return };
        let next = self.rows.len();
        let at = *self.places.entry(id).or_insert(next);
        if at == next {
            self.rows.push(ClientRow::of(client));
            self.is_moving.push(false);
        } else {
            self.rows[at] = ClientRow::of(client);
        }
        if !std::mem::replace(&mut self.is_moving[at], true) {
            self.moving.push(at);
        }
    }

    fn average(&mut self, run: &Run) {
        let duration_us = run.duration_us();
        for row in &mut self.rows {
            let Some(client) = run.client(row.id) else { continue };
            row.set_recent(Recent::whole(client, duration_us));
            row.latency = ClientLatency::until(client, u64::MAX, Span::WholeRun);
        }
    }

    fn take_rates(&mut self, run: &Run, span_us: u64) {
        let resting = (!run.client_records_may_be_missing()).then(Recent::default);
        if std::mem::replace(&mut self.resting, resting) != resting {
            self.rows.iter_mut().for_each(|row| row.set_recent(resting));
        }
        let now_us = run.proxy().map_or(0, MetricSeries::last_us);
        let counts_from_us = now_us.saturating_sub(span_us.max(DEFERRED_US_MAX));
        let Self { rows, moving, is_moving, .. } = self;
        moving.retain(|&at| {
            let client = run.client(rows[at].id);
            let moves = client.filter(|client| client.last_us > counts_from_us);
            rows[at].set_recent(moves.map_or(resting, |client| recent(run, client, span_us)));
            rows[at].latency =
                moves.and_then(|client| ClientLatency::until(client, now_us, Span::Last(span_us)));
            is_moving[at] = moves.is_some();
            moves.is_some()
        });
    }

    /// Gives every row the figures of another moment.
    pub(crate) fn change_rows(&mut self, change: impl Fn(&ClientRow) -> ClientRow) {
        for row in &mut self.rows {
            *row = change(row);
        }
        self.rank();
    }

    /// Takes another order, and shows only clients whose address holds a text.
    pub(crate) fn put_in(&mut self, order: Order, filter: &str) {
        if self.order != order || self.filter != filter {
            (self.order, self.filter) = (order, filter.to_owned());
            self.rank();
        }
    }

    fn rank(&mut self) {
        self.ranks.clear();
        let rows = self.rows.iter().enumerate();
        let ranked = rows.map(|(at, row)| (row.id, Rank::of(self.order, row, at)));
        if self.filter.is_empty() {
            self.ranks.extend(ranked.map(|(_, rank)| rank));
        } else {
            let is_shown = |(id, _): &(ClientId, Rank)| id.to_string().contains(&self.filter);
            self.ranks.extend(ranked.filter(is_shown).map(|(_, rank)| rank));
        }
    }

    /// Clients that are shown.
    pub(crate) fn len(&self) -> usize {
        self.ranks.len()
    }

    /// The row of a client, shown or not.
    pub(crate) fn get(&self, id: ClientId) -> Option<&ClientRow> {
        self.places.get(&id).map(|&at| &self.rows[at])
    }

    /// How many clients come before this one; `None` if it is not shown.
    pub(crate) fn place(&self, id: ClientId) -> Option<usize> {
        let at = *self.places.get(&id)?;
        if !self.filter.is_empty() && !id.to_string().contains(&self.filter) {
            return None;
        }
        let rank = Rank::of(self.order, &self.rows[at], at);
        Some(self.ranks.iter().filter(|other| other.compare(rank, self.order, &self.rows).is_lt()).count())
    }

    /// The rows at these places of the order, as far as there are any.
    pub(crate) fn page(&mut self, places: Range<usize>) -> impl Iterator<Item = &ClientRow> {
        let end = places.end.min(self.ranks.len());
        let start = places.start.min(end);
        let Self { ranks, rows, order, .. } = self;
        let compare = |a: &Rank, b: &Rank| a.compare(*b, *order, rows);
        if end < ranks.len() && end > start {
            ranks.select_nth_unstable_by(end, compare);
        }
        if start > 0 && end > start {
            ranks[..end].select_nth_unstable_by(start, compare);
        }
        let page = &mut ranks[start..end];
        page.sort_unstable_by(compare);
        page.iter().map(|rank| &rows[rank.row as usize])
    }

    /// Every row, in no order.
    pub(crate) fn rows(&self) -> &[ClientRow] {
        &self.rows
    }
}
