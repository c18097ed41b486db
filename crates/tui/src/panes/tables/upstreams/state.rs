//! The upstreams at the shown moment.

use records::kinds::UpstreamState;

use super::model::UpstreamRow;
use crate::input::intent::List;
use crate::state::State;
use crate::table::{NameId, RowMoment};
use crate::view_model::span::Span;

/// Updates the upstreams in sight.
pub(super) fn arrange(state: &mut State) {
    let is_past = state.view.past().is_some();
    let span = state.figures().map_or_else(Span::default, |figures| figures.span);
    let mut upstreams = std::mem::take(&mut state.upstreams);
    if let Some((run, us)) = state.shown_moment() {
        let row = |upstream| UpstreamRow::at(run, upstream, (us, is_past), span);
        let moment = RowMoment { run: run.id(), us, is_past, span };
        upstreams.renew(moment, || run.upstreams().iter().filter_map(row).collect());
        upstreams.arrange();
    }
    state.upstreams = upstreams;
}

impl State {
    /// The upstream that is selected in the pane in focus, and whether it is drained at present, whatever moment is shown.
    pub(crate) fn selected_upstream(&self) -> Option<(String, bool)> {
        let id = self.upstreams.table.selected.filter(|_| self.list() == List::Upstreams)?;
        let (run, _) = self.shown_moment()?;
        let selected = run.upstreams().iter().find(|upstream| NameId::of(upstream.name()) == id)?;
        Some((selected.name().to_owned(), selected.record().state == UpstreamState::Drained))
    }
}
