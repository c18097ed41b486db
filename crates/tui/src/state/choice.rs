//! Lists in which a person chooses columns or panes.

use super::routes::with_table;
use super::{List, PaneId, PaneLayout, Screen, State};
use crate::table::{Column, ListMove, Row, TableState};
use crate::view::pane;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// Columns of a list, and their order.
    Columns(List),
    Panes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChoiceEdit {
    /// Shows or hides the selected line.
    Toggle,
    /// Moves a column to the left.
    Earlier,
    /// Moves a column to the right.
    Later,
    Reset,
}

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
            Choice::Columns(List::Clients) => column_lines(&self.clients),
            Choice::Columns(List::Routes) => column_lines(&self.routes),
            Choice::Columns(List::Requests) => column_lines(&self.requests.table),
            Choice::Columns(List::Usage) => column_lines(&self.usage.table),
            Choice::Columns(List::Hosts) => column_lines(&self.hosts.table),
            Choice::Panes => {
                let line = |&id: &PaneId| ChoiceLine {
                    name: id.name(),
                    meaning: pane::meaning(id),
                    is_chosen: !self.panes.hidden.contains(&id),
                };
                self.choosable_panes().iter().map(line).collect()
            }
        }
    }

    /// Opens a list, or closes it.
    pub(super) fn open_choice(&mut self, of: Choice) {
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

    pub(super) fn select_choice(&mut self, to: ListMove) {
        if let Screen::Choice(of, selected) = self.screen {
            let last = self.choices(of).len().saturating_sub(1);
            self.screen = Screen::Choice(of, to.from(selected, last));
        }
    }

    pub(super) fn edit_choice(&mut self, edit: ChoiceEdit) {
        match self.screen {
            Screen::Choice(Choice::Columns(list), selected) => {
                let follows = with_table!(self, list, table => edit_columns(table, edit, selected));
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

    /// Returns the panes that have something to show in this mode.
    fn choosable_panes(&self) -> Vec<PaneId> {
        let (has_http, has_hosts) = (self.has_http(), self.has_hosts());
        let may_show = |id: &PaneId| (has_http || !id.is_of_http()) && (has_hosts || *id != PaneId::Hosts);
        PaneId::ALL.into_iter().filter(may_show).collect()
    }
}

fn column_lines<R: Row>(table: &TableState<R>) -> Vec<ChoiceLine> {
    let line = |at: usize| {
        let Column { name, meaning, .. } = &R::columns()[at];
        ChoiceLine { name, meaning, is_chosen: table.columns.contains(&at) }
    };
    listed_columns(table).into_iter().map(line).collect()
}

/// Changes a column, and returns the line that it moves to.
fn edit_columns<R: Row>(table: &mut TableState<R>, edit: ChoiceEdit, selected: usize) -> usize {
    let Some(&column) = listed_columns(table).get(selected) else { return 0 };
    let columns = &mut table.columns;
    let place = columns.iter().position(|&at| at == column);
    match (edit, place) {
        (ChoiceEdit::Toggle, Some(place)) => drop(columns.remove(place)),
        (ChoiceEdit::Toggle, None) => columns.push(column),
        // The first column names the row and stays.
        (ChoiceEdit::Earlier, Some(place)) if place > 1 => columns.swap(place, place - 1),
        (ChoiceEdit::Later, Some(place)) if place + 1 < columns.len() => columns.swap(place, place + 1),
        (ChoiceEdit::Earlier | ChoiceEdit::Later, _) => {}
        (ChoiceEdit::Reset, _) => *columns = TableState::<R>::by(0).columns,
    }
    listed_columns(table).iter().position(|&at| at == column).unwrap_or(0)
}

/// Returns the columns in the order of the list.
fn listed_columns<R: Row>(table: &TableState<R>) -> Vec<usize> {
    let shown = table.columns.iter().copied().filter(|&at| at != 0);
    let hidden = (1..R::columns().len()).filter(|at| !table.columns.contains(at));
    shown.chain(hidden).collect()
}
