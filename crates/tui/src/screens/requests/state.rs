//! Single requests of HTTP mode up to the shown moment.

use model::runs::RecordedRequest;
use records::metrics::HttpLatency;

use super::model::RequestRow;
use crate::state::State;
use crate::state::screen::Screen;

/// Updates the requests in sight.
pub(crate) fn arrange(state: &mut State) {
    if let Screen::Requests { failed_only } = state.screen
        && state.has_http()
    {
        state.requests.set(rows(state, failed_only));
        state.requests.arrange();
    }
}

fn rows(state: &State, failed_only: bool) -> Vec<RequestRow> {
    let Some(((run, us), figures)) = state.shown_moment().zip(state.figures()) else { return Vec::new() };
    let wanted = crate::panes::tables::routes::model::requests(run, us, figures.span).into_iter();
    let wanted = wanted.filter(|recorded| !failed_only || recorded.request.is_error());
    let row = |recorded: &RecordedRequest| {
        let resolution = run.resolution(HttpLatency::Request.into());
        RequestRow::of(recorded.clone(), state.time_of_day(recorded.realtime_us), resolution)
    };
    wanted.map(row).collect()
}

/// Goes on from the panes to the slowest requests, to those that failed, and back.
pub(crate) fn next(state: &mut State) {
    state.screen = match state.screen {
        Screen::Requests { failed_only: true } => Screen::Dashboard,
        Screen::Requests { failed_only: false } => Screen::Requests { failed_only: true },
        _ => Screen::Requests { failed_only: false },
    };
}
