//! Routes of HTTP mode at the shown moment.

use super::model::RouteDetail;
use crate::state::State;
use crate::table::NameId;

/// Updates the routes in sight.
pub(super) fn arrange(state: &mut State) {
    if state.has_http() {
        let (routes, rows) = state.routes_and_rows();
        routes.arrange(rows);
    }
}

impl State {
    /// The details of a route at the shown moment.
    pub(crate) fn route_detail(&self, id: NameId) -> Option<RouteDetail> {
        let (row, figures) = (self.snapshot().routes.get(id)?, self.figures()?);
        let (run, us) = self.shown_moment()?;
        Some(RouteDetail::at(run, row, us, (figures.span, figures.interval_us)))
    }
}
