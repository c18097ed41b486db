//! What is shown: the figures, the run and the rows of the shown moment.

use std::time::Duration;

use model::runs::{Experiment, Run, Usage};

use super::snapshot::Snapshot;
use super::{PastView, View};
use crate::clock::ClockReading;
use crate::panes::tables::clients::model::ClientRow;
use crate::panes::tables::routes::model::RouteRow;
use crate::state::State;
use crate::state::status::ViewStatus;
use crate::table::{Rows, TableState};
use crate::view_model::ViewModel;
use crate::view_model::health::{GATHERING_MAX, silence_max};

impl State {
    pub(crate) fn snapshot(&self) -> &Snapshot {
        match &self.view {
            View::Live => &self.live,
            View::Frozen(past) | View::Replay(past, _) => &past.snapshot,
        }
    }

    pub(crate) fn figures(&self) -> Option<&ViewModel> {
        self.snapshot().figures.as_ref()
    }

    /// The run that is shown, from the same reading as the figures.
    pub(crate) fn snapshot_run(&self) -> Option<&Run> {
        match self.snapshot().ticket {
            Some(_) => self.shown_reread()?.run(),
            None => self.run(),
        }
    }

    /// The runs of the watched hosts, if there are several and no earlier moment is read again.
    pub(crate) fn watched_runs(&self) -> Vec<&Run> {
        if !self.has_hosts() || self.snapshot().ticket.is_some() {
            return Vec::new();
        }
        self.hosts.rows.all().iter().filter_map(|row| self.model.run(row.id)).collect()
    }

    /// The run and the moment that are shown.
    pub(crate) fn shown_moment(&self) -> Option<(&Run, u64)> {
        let run = self.snapshot_run()?;
        let past = self.view.past().filter(|_| self.snapshot().ticket.is_none());
        Some((run, past.map_or_else(|| run.last_us(), PastView::us)))
    }

    /// Returns the usage that is known at the shown moment; `None` at an earlier one that was not read from the journal.
    pub(crate) fn shown_usage(&self) -> Option<&Usage> {
        match &self.view {
            View::Frozen(past) | View::Replay(past, _) if past.snapshot.ticket.is_none() => {
                past.cursor_us.is_none_or(|us| us >= past.end_us).then_some(&past.usage)
            }
            View::Live | View::Frozen(_) | View::Replay(..) => Some(self.snapshot_run()?.usage()),
        }
    }

    /// Returns all routes, by name.
    pub(crate) fn all_routes(&self) -> &[RouteRow] {
        self.snapshot().routes.rows.all()
    }

    /// The table of clients, and the clients that are shown.
    pub(crate) fn clients_and_rows(&mut self) -> (&mut TableState<ClientRow>, &mut Rows<ClientRow>) {
        let Self { view, live, clients, .. } = self;
        (clients, &mut view.past_mut().map_or(live, |past| &mut past.snapshot).table.rows)
    }

    /// The table of routes, and the routes that are shown.
    pub(crate) fn routes_and_rows(&mut self) -> (&mut TableState<RouteRow>, &mut Rows<RouteRow>) {
        let Self { view, live, routes, .. } = self;
        (routes, &mut view.past_mut().map_or(live, |past| &mut past.snapshot).routes.rows)
    }

    /// The experiments of the shown run, oldest first.
    pub(crate) fn experiments(&self) -> Vec<&Experiment> {
        self.snapshot_run().map_or_else(Vec::new, |run| run.experiments().collect())
    }

    pub(crate) fn renew_status(&mut self, now: ClockReading) {
        self.status = self.status_at(now);
    }

    pub(crate) fn status_at(&self, now: ClockReading) -> ViewStatus {
        match &self.view {
            View::Live => self.present_status(now),
            View::Frozen(past) => ViewStatus::Frozen(since(past.since, now).as_secs()),
            View::Replay(_, playback) if playback.is_playing() => ViewStatus::Playing,
            View::Replay(..) => ViewStatus::Paused,
        }
    }

    /// The status of the present, whether or not it is shown.
    pub(super) fn present_status(&self, now: ClockReading) -> ViewStatus {
        let (Some(figures), Some(last_record)) = (&self.live.figures, self.last_record) else {
            return ViewStatus::Waiting;
        };
        // How old the newest record is matters once it is the newest.
        let age = if self.caught_up { last_record.age } else { Duration::ZERO };
        let silence = since(last_record.at, now) + age;
        let delay_max = if age.is_zero() { age } else { GATHERING_MAX };
        let patience = silence_max(figures.interval_us) + delay_max;
        if self.is_run_being_read() {
            return ViewStatus::Reading;
        }
        match (figures.ended, silence > patience) {
            (true, _) => ViewStatus::Ended,
            (false, true) => ViewStatus::Silent(silence.as_secs()),
            (false, false) if self.caught_up => ViewStatus::Live,
            (false, false) => ViewStatus::Reading,
        }
    }
}

fn since(then: ClockReading, now: ClockReading) -> Duration {
    now.instant.saturating_duration_since(then.instant)
}
