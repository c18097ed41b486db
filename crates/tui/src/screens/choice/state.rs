//! Lists in which a person chooses columns or panes.

use crate::input::intent::Choice;
use crate::panes::{PaneId, PaneLayout};
use crate::state::State;
use crate::state::screen::Screen;
use crate::table::{ChoiceEdit, ChoiceLine, ListMove};

impl State {
    /// Returns the lines of a list: chosen columns first, in their order.
    pub(crate) fn choices(&self, of: Choice) -> Vec<ChoiceLine> {
        match of {
            Choice::Columns(list) => self.table(list).column_choices(),
            Choice::Panes => {
                let line = |&id: &PaneId| ChoiceLine {
                    name: id.name(),
                    meaning: id.meaning(),
                    has_room: self.sight.panes.iter().any(|(shown, _)| *shown == id),
                    is_chosen: !self.panes.hidden.contains(&id),
                };
                self.choosable_panes().iter().map(line).collect()
            }
        }
    }

    /// Opens a list, or closes it.
    pub(crate) fn open_choice(&mut self, of: Choice) {
        let of = match (of, self.screen) {
            (Choice::Columns(_), Screen::Choice(Choice::Columns(list), _)) => Choice::Columns(list),
            (Choice::Columns(_), _) => Choice::Columns(self.list()),
            (Choice::Panes, _) => of,
        };
        if matches!(self.screen, Screen::Choice(open, _) if open == of) {
            self.screen = Screen::Dashboard;
            return;
        }
        let focused = |focus| self.choosable_panes().iter().position(|&id| id == focus);
        let selected = self.panes.focus.filter(|_| of == Choice::Panes).and_then(focused);
        self.screen = Screen::Choice(of, selected.unwrap_or(0));
    }

    pub(crate) fn select_choice(&mut self, to: ListMove) {
        if let Screen::Choice(of, selected) = self.screen {
            let last = self.choices(of).len().saturating_sub(1);
            self.screen = Screen::Choice(of, to.from(selected, last));
        }
    }

    pub(crate) fn edit_choice(&mut self, edit: ChoiceEdit) {
        match self.screen {
            Screen::Choice(Choice::Columns(list), selected) => {
                let follows = self.table_mut(list).edit_columns(edit, selected);
                self.screen = Screen::Choice(Choice::Columns(list), follows);
            }
            Screen::Choice(Choice::Panes, selected) => match (edit, self.choosable_panes().get(selected)) {
                (ChoiceEdit::Toggle, Some(&id)) => self.panes.toggle(id),
                (ChoiceEdit::Reset, _) => self.panes = PaneLayout::default(),
                (ChoiceEdit::Toggle | ChoiceEdit::Earlier | ChoiceEdit::Later, _) => {}
            },
            _ => {}
        }
    }
}
