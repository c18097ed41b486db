//! Lists in which a person chooses columns or panes.

use super::{PaneId, PaneLayout, Screen, State};
use crate::table::{ListMove, Row, Table};
use crate::view::pane;
use crate::view_model::ClientRow;

/// What is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Columns of the clients, and their order.
    Columns,
    /// Panes.
    Panes,
}

/// A change of what is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChoiceEdit {
    /// Shows or hides the selected line.
    Toggle,
    /// Moves a column to the left.
    Earlier,
    /// Moves a column to the right.
    Later,
    /// Goes back to what is usual.
    Reset,
}

/// A line of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChoiceLine {
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
    pub(crate) is_chosen: bool,
}

impl State {
    /// Returns the lines of a list: chosen columns first, in their order.
    pub(crate) fn choices(&self, of: Choice) -> Vec<ChoiceLine> {
        match of {
            Choice::Columns => {
                let chosen = |at: &usize| self.clients.columns.contains(at);
                let line = |at: usize| {
                    let column = &ClientRow::COLUMNS[at];
                    ChoiceLine { name: column.name, meaning: column.meaning, is_chosen: chosen(&at) }
                };
                self.column_lines().into_iter().map(line).collect()
            }
            Choice::Panes => {
                let line = |&id: &PaneId| ChoiceLine {
                    name: id.name(),
                    meaning: pane::meaning(id),
                    is_chosen: !self.panes.hidden.contains(&id),
                };
                PaneId::ALL.iter().map(line).collect()
            }
        }
    }

    /// Opens a list, or closes it.
    pub(super) fn open_choice(&mut self, of: Choice) {
        if matches!(self.screen, Screen::Choice(open, _) if open == of) {
            self.screen = Screen::Dashboard;
            return;
        }
        let focused = |focus| PaneId::ALL.iter().position(|&id| id == focus);
        let selected = self.panes.focus.filter(|_| of == Choice::Panes).and_then(focused);
        self.screen = Screen::Choice(of, selected.unwrap_or(0));
    }

    /// Selects another line.
    pub(super) fn select_choice(&mut self, to: ListMove) {
        if let Screen::Choice(of, selected) = self.screen {
            let last = self.choices(of).len().saturating_sub(1);
            self.screen = Screen::Choice(of, to.from(selected, last));
        }
    }

    /// Changes what is chosen.
    pub(super) fn edit_choice(&mut self, edit: ChoiceEdit) {
        match self.screen {
            Screen::Choice(Choice::Columns, selected) => self.edit_columns(edit, selected),
            Screen::Choice(Choice::Panes, selected) => match (edit, PaneId::ALL.get(selected)) {
                (ChoiceEdit::Toggle, Some(&id)) => self.panes.toggle(id),
                (ChoiceEdit::Reset, _) => self.panes = PaneLayout::default(),
                (ChoiceEdit::Toggle | ChoiceEdit::Earlier | ChoiceEdit::Later, _) => {}
            },
            _ => {}
        }
    }

    fn edit_columns(&mut self, edit: ChoiceEdit, selected: usize) {
        let Some(&column) = self.column_lines().get(selected) else { return };
        let columns = &mut self.clients.columns;
        let place = columns.iter().position(|&at| at == column);
        match (edit, place) {
            (ChoiceEdit::Toggle, Some(place)) => drop(columns.remove(place)),
            (ChoiceEdit::Toggle, None) => columns.push(column),
            // The first column names the row and stays.
            (ChoiceEdit::Earlier, Some(place)) if place > 1 => columns.swap(place, place - 1),
            (ChoiceEdit::Later, Some(place)) if place + 1 < columns.len() => columns.swap(place, place + 1),
            (ChoiceEdit::Earlier | ChoiceEdit::Later, _) => {}
            (ChoiceEdit::Reset, _) => self.clients.columns = Table::<ClientRow>::by(0).columns,
        }
        let follows = self.column_lines().iter().position(|&at| at == column);
        self.screen = Screen::Choice(Choice::Columns, follows.unwrap_or(0));
    }

    /// Returns the columns in the order of the list.
    fn column_lines(&self) -> Vec<usize> {
        let shown = self.clients.columns.iter().copied().filter(|&at| at != 0);
        let hidden = (1..ClientRow::COLUMNS.len()).filter(|at| !self.clients.columns.contains(at));
        shown.chain(hidden).collect()
    }
}
