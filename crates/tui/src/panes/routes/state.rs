//! Routes and single requests of HTTP mode at the shown moment, and which list keys act on.

use model::runs::Run;
use records::metrics::HttpLatency;

use super::model::{RouteDetail, RouteRow, RouteRows};
use crate::screens::requests::model::RequestRow;
use crate::state::State;
use crate::state::moment::View;
use crate::state::screen::Screen;
use crate::table::{NameId, Rows, TableState};

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

    /// The list of routes, and the routes that are shown.
    pub(crate) fn routes_and_table(&mut self) -> (&mut TableState<RouteRow>, &mut RouteRows) {
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
    pub(crate) fn shown_moment(&self) -> Option<(&Run, u64)> {
        let run = self.snapshot_run()?;
        let past = self.view.past().filter(|_| self.snapshot().ticket.is_none());
        Some((run, past.map_or_else(|| run.last_us(), crate::state::moment::PastView::us)))
    }

    /// The details of a route at the shown moment.
    pub(crate) fn route_detail(&self, id: NameId) -> Option<RouteDetail> {
        let (row, figures) = (self.snapshot().routes.get(id)?, self.figures()?);
        let (run, us) = self.shown_moment()?;
        Some(RouteDetail::at(run, row, us, (figures.span, figures.interval_us)))
    }

    /// Updates what is in sight of routes and requests.
    pub(crate) fn arrange_http(&mut self) {
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
        let wanted = crate::panes::routes::model::requests(run, us, figures.span).into_iter();
        let wanted = wanted.filter(|recorded| !failed_only || recorded.request.is_error());
        let row = |recorded: &model::runs::RecordedRequest| {
            let resolution = run.resolution(HttpLatency::Request.into());
            RequestRow::of(recorded.clone(), self.time_of_day(recorded.realtime_us), resolution)
        };
        wanted.map(row).collect()
    }

    /// Goes on from the panes to the slowest requests, to those that failed, and back.
    pub(crate) fn next_requests(&mut self) {
        self.screen = match self.screen {
            Screen::Requests { failed_only: true } => Screen::Dashboard,
            Screen::Requests { failed_only: false } => Screen::Requests { failed_only: true },
            _ => Screen::Requests { failed_only: false },
        };
    }

    /// Selects another route or request.
    pub(crate) fn scroll_http(&mut self, to: crate::table::ListMove) {
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
    pub(crate) fn open_route(&mut self) {
        let first = || self.routes.page().first().map(|row| row.id);
        if let Some(id) = self.routes.selected.or_else(first) {
            self.routes.selected = Some(id);
            self.screen =
                if self.screen == Screen::Route(id) { Screen::Dashboard } else { Screen::Route(id) };
        }
    }
}
