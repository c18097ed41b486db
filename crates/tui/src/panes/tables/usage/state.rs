//! Usage at the shown moment, and usage alone.

use crate::input::intent::{List, PaneAction, Preset};
use crate::panes::PaneId;
use crate::state::State;
use crate::state::screen::Screen;

/// Updates the values in sight.
pub(super) fn arrange(state: &mut State) {
    if state.usage.rows.table.sight == 0 && state.screen != Screen::Details(List::Usage) {
        return;
    }
    let mut list = std::mem::take(&mut state.usage);
    list.refresh(state.shown_usage());
    state.usage = list;
}

impl State {
    /// Shows who uses what; if that is shown, of the next dimension.
    pub(crate) fn next_dimension(&mut self) {
        if self.usage.rows.table.sight == 0 {
            return self.arrange_panes(PaneAction::Preset(Preset::Only(PaneId::Usage)));
        }
        let mut list = std::mem::take(&mut self.usage);
        list.next_dimension(self.shown_usage());
        self.usage = list;
        self.panes.focus = Some(PaneId::Usage);
        self.screen = Screen::Dashboard;
    }

    /// Goes back from usage alone to the panes before it, or releases its focus; false if usage is neither alone nor focused.
    pub(crate) fn leave_usage(&mut self) -> bool {
        if self.panes.hidden == Preset::Only(PaneId::Usage).hidden() {
            self.panes = std::mem::take(&mut self.usage.before);
            return true;
        }
        self.panes.focus.take_if(|focus| *focus == PaneId::Usage).is_some()
    }
}
