//! Routes and single requests of HTTP mode at the shown moment, and which list keys act on.

use model::runs::Run;
use records::metrics::HttpLatency;

use super::view::View;
use super::{PaneId, Screen, State};
use crate::table::{Rows, Table, TableState};
use crate::view_model::{self, RequestRow, RouteDetail, RouteId, RouteRow, RouteRows};

/// A list that keys act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum List {
    Clients,
    Routes,
    Requests,
    Usage,
    Hosts,
    Runs,
}

impl List {
    /// The lists whose columns and order are kept.
    pub(super) const KEPT: [Self; 5] =
        [Self::Clients, Self::Routes, Self::Requests, Self::Usage, Self::Hosts];

    /// Its name on the screen and in the kept arrangement.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Clients => "clients",
            Self::Routes => "routes",
            Self::Requests => "requests",
            Self::Usage => "usage",
            Self::Hosts => "hosts",
            Self::Runs => "runs",
        }
    }
}

impl State {
    pub(crate) fn table(&self, list: List) -> &dyn Table {
        match list {
            List::Clients => &self.clients,
            List::Routes => &self.routes,
            List::Requests => &self.requests.table,
            List::Usage => &self.usage.table,
            List::Hosts => &self.hosts.table,
            List::Runs => &self.runs.table,
        }
    }

    pub(super) fn table_mut(&mut self, list: List) -> &mut dyn Table {
        match list {
            List::Clients => &mut self.clients,
            List::Routes => &mut self.routes,
            List::Requests => &mut self.requests.table,
            List::Usage => &mut self.usage.table,
            List::Hosts => &mut self.hosts.table,
            List::Runs => &mut self.runs.table,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct RequestList {
    pub(crate) table: TableState<RequestRow>,
    rows: Rows<RequestRow>,
}

impl Default for RequestList {
    fn default() -> Self {
        Self { table: TableState::by(RequestRow::TOTAL), rows: Rows::default() }
    }
}

impl State {
    /// Returns whether the shown run is in HTTP mode.
    pub(crate) fn has_http(&self) -> bool {
        self.figures().is_some_and(|figures| figures.http.is_some())
    }

    /// Returns the list that keys act on: the one that is open, else that of the focused pane, else the clients, or the
    /// routes where the clients are not shown.
    pub(crate) fn list(&self) -> List {
        match self.screen {
            Screen::Requests { .. } => List::Requests,
            Screen::Runs => List::Runs,
            Screen::Route(_) => List::Routes,
            Screen::Client(_) => List::Clients,
            Screen::Usage(_) => List::Usage,
            _ if self.panes.focus == Some(PaneId::Hosts)
                && self.has_hosts()
                && self.panes.shows(PaneId::Hosts) =>
            {
                List::Hosts
            }
            _ if self.panes.focus == Some(PaneId::Usage) && self.panes.shows(PaneId::Usage) => List::Usage,
            _ if !self.has_http() || !self.panes.shows(PaneId::Routes) => List::Clients,
            _ if self.panes.focus == Some(PaneId::Routes) || !self.panes.shows(PaneId::Clients) => {
                List::Routes
            }
            _ => List::Clients,
        }
    }

    /// The list of routes, and the routes that are shown.
    pub(super) fn routes_and_table(&mut self) -> (&mut TableState<RouteRow>, &mut RouteRows) {
        let snapshot = match &mut self.view {
            View::Live => &mut self.live,
            View::Frozen(past) | View::Replay(past, _) => &mut past.snapshot,
        };
        (&mut self.routes, &mut snapshot.routes)
    }

    /// Returns all routes at the shown moment, by name.
    pub(crate) fn all_routes(&self) -> &[RouteRow] {
        self.snapshot().routes.rows.all()
    }

    /// The run and the moment that are shown.
    fn shown_moment(&self) -> Option<(&Run, u64)> {
        let run = self.snapshot_run()?;
        let past = self.view.past().filter(|_| self.snapshot().ticket.is_none());
        Some((run, past.map_or_else(|| run.last_us(), super::view::PastView::us)))
    }

    /// The details of a route at the shown moment.
    pub(crate) fn route_detail(&self, id: RouteId) -> Option<RouteDetail> {
        let (row, figures) = (self.snapshot().routes.get(id)?, self.figures()?);
        let (run, us) = self.shown_moment()?;
        Some(RouteDetail::at(run, row, us, (figures.span, figures.interval_us)))
    }

    /// Updates what is in sight of routes and requests.
    pub(super) fn arrange_http(&mut self) {
        if !self.has_http() {
            return;
        }
        let sight = self.sight.routes;
        let (routes, table) = self.routes_and_table();
        routes.arrange(&mut table.rows, sight);
        let Screen::Requests { failed_only } = self.screen else { return };
        let listed = self.recorded_requests(failed_only);
        let sight = self.sight.requests;
        let RequestList { table, rows } = &mut self.requests;
        rows.change(|rows| *rows = listed);
        table.arrange(rows, sight);
    }

    fn recorded_requests(&self, failed_only: bool) -> Vec<RequestRow> {
        let Some(((run, us), figures)) = self.shown_moment().zip(self.figures()) else { return Vec::new() };
        let wanted = view_model::requests(run, us, figures.span).into_iter();
        let wanted = wanted.filter(|recorded| !failed_only || recorded.request.is_error());
        let row = |recorded: &model::runs::RecordedRequest| {
            let resolution = run.resolution(HttpLatency::Request.into());
            RequestRow::of(recorded.clone(), self.time_of_day(recorded.realtime_us), resolution)
        };
        wanted.map(row).collect()
    }

    /// Goes on from the panes to the slowest requests, to those that failed, and back.
    pub(super) fn next_requests(&mut self) {
        self.screen = match self.screen {
            Screen::Requests { failed_only: true } => Screen::Dashboard,
            Screen::Requests { failed_only: false } => Screen::Requests { failed_only: true },
            _ => Screen::Requests { failed_only: false },
        };
    }

    /// Selects another route or request.
    pub(super) fn scroll_http(&mut self, to: super::ListMove) {
        if matches!(self.screen, Screen::Requests { .. }) {
            let sight = self.sight.requests;
            let RequestList { table, rows } = &mut self.requests;
            return table.go(to, rows, sight);
        }
        let sight = self.sight.routes;
        let (routes, table) = self.routes_and_table();
        routes.go(to, &mut table.rows, sight);
        if let (Screen::Route(_), Some(id)) = (self.screen, self.routes.selected) {
            self.screen = Screen::Route(id);
        }
    }

    /// Opens the selected route, or the first in sight.
    pub(super) fn open_route(&mut self) {
        let first = || self.routes.page().first().map(|row| row.id);
        if let Some(id) = self.routes.selected.or_else(first) {
            self.routes.selected = Some(id);
            self.screen =
                if self.screen == Screen::Route(id) { Screen::Dashboard } else { Screen::Route(id) };
        }
    }
}
