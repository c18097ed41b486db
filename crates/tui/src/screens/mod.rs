//! Screens beside or over the panes.

pub(crate) mod choice;
pub(crate) mod experiments;
pub(crate) mod help;
pub(crate) mod prompt;
pub(crate) mod requests;
pub(crate) mod runs;
pub(crate) mod settings;

use crate::input::intent::Choice;
use crate::input::keymap::hints::{
    CHOICE_HINTS, COLUMN_HINTS, DETAIL_HINTS, EXPERIMENT_HINTS, FINDING_HINTS, HELP_HINTS, Hint, PANE_HINTS,
    REQUEST_HINTS, RUN_HINTS, STAGED_HINTS, TUNING_HINTS,
};
use crate::panes::pane;
use crate::state::State;
use crate::state::screen::Screen;

/// Updates what is in sight of the lists over the panes.
pub(crate) fn arrange(state: &mut State) {
    requests::state::arrange(state);
    runs::state::arrange(state);
}

/// Returns the hints of a screen over or beside the panes, or of the pane that keys act on; none for the bare dashboard.
pub(crate) fn own_hints(state: &State, screen: Screen) -> Vec<&'static Hint> {
    let (hints, more): (&[Hint], &[Hint]) = match screen {
        Screen::Dashboard => match state.panes.in_focus() {
            Some(id) => (pane(id).hints, PANE_HINTS),
            None => (&[], &[]),
        },
        Screen::Help { .. } => (HELP_HINTS, &[]),
        Screen::Tuning if state.tuning.count() > 0 => (STAGED_HINTS, TUNING_HINTS),
        Screen::Tuning => (TUNING_HINTS, &[]),
        Screen::Experiments => (EXPERIMENT_HINTS, &[]),
        Screen::Runs => (RUN_HINTS, &[]),
        Screen::Choice(Choice::Columns(_), _) => (CHOICE_HINTS, COLUMN_HINTS),
        Screen::Choice(Choice::Panes, _) => (CHOICE_HINTS, &[]),
        Screen::Details(_) => (DETAIL_HINTS, &[]),
        Screen::Findings(_) => (FINDING_HINTS, &[]),
        Screen::Requests { .. } => (REQUEST_HINTS, &[]),
    };
    let is_new = |hint: &&Hint| hints.iter().all(|own| own.intents != hint.intents);
    hints.iter().chain(more.iter().filter(is_new)).collect()
}
