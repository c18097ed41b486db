//! What keys, clicks and the kept arrangement do with a table, whatever its rows are.

use serde_json::{Value, json};

use super::filter::{RowFilter, comparisons};
use super::order::Order;
use super::selection::TableState;
use super::{Column, ColumnUnit, Row, rows_text};

/// A line of the list in which columns or panes are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChoiceLine {
    pub(crate) name: &'static str,
    pub(crate) meaning: &'static str,
    /// False for a pane that is not on the screen.
    pub(crate) has_room: bool,
    pub(crate) is_chosen: bool,
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

/// Columns and order, as they are kept from one start to the next.
#[derive(Clone, Debug)]
pub(crate) struct TableArrangement {
    columns: Vec<usize>,
    order: Order,
}

/// A kept name that is no column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnknownColumn(pub(crate) String);

pub(crate) trait Table {
    fn filter_text(&self) -> &str;

    /// Returns how many rows pass the filter, and how many there are.
    ///
    /// # Errors
    /// With what is wrong with the filter.
    fn matches(&self) -> Result<(usize, usize), String>;

    fn set_filter(&mut self, text: &str);

    /// Returns the beginning of a comparison with each column.
    fn comparisons(&self) -> Vec<String>;

    fn order_by(&mut self, column: usize);

    /// Sorts by a column; by the same one again, the other way round.
    fn sort_by(&mut self, column: usize);

    fn sort_by_next(&mut self);

    fn reverse(&mut self);

    /// Returns the column that orders the rows, and the direction.
    fn order_words(&self) -> String;

    /// Selects a row in sight. Returns whether it was selected before; `None` if there is no such row.
    fn select_in_sight(&mut self, row: usize) -> Option<bool>;

    /// Returns whether a row was selected.
    fn deselect(&mut self) -> bool;

    /// Opens the selected row, or the first in sight. Returns whether it was open before; `None` if there is no row.
    fn open(&mut self) -> Option<bool>;

    /// Sets the number of rows in sight.
    fn set_sight(&mut self, rows: usize);

    /// Returns all columns but the first: the shown ones, in their order, and the hidden ones.
    fn column_choices(&self) -> Vec<ChoiceLine>;

    /// Changes the column on a line of these choices, and returns the line that it moves to.
    fn edit_columns(&mut self, edit: ChoiceEdit, line: usize) -> usize;

    /// Returns the rows in sight as tab-separated text with headings.
    fn text(&self) -> String;

    fn kept(&self) -> Value;

    /// Reads what [`Self::kept`] returned; what it does not name is as it is now.
    ///
    /// # Errors
    /// If a column does not exist.
    fn read(&self, kept: &Value) -> Result<TableArrangement, UnknownColumn>;

    fn take(&mut self, arrangement: TableArrangement);
}

impl<R: Row> Table for TableState<R> {
    fn filter_text(&self) -> &str {
        self.filter.text()
    }

    fn matches(&self) -> Result<(usize, usize), String> {
        self.filter.error().map_or_else(|| Ok(self.counts()), |error| Err(error.to_string()))
    }

    fn set_filter(&mut self, text: &str) {
        self.filter = RowFilter::parse(text);
    }

    fn comparisons(&self) -> Vec<String> {
        comparisons::<R>().collect()
    }

    fn order_by(&mut self, column: usize) {
        self.order = Order::by::<R>(column);
    }

    fn sort_by(&mut self, column: usize) {
        if R::columns()[column].unit == ColumnUnit::Graph {
            return;
        }
        if self.order.column == column {
            self.reverse();
        } else {
            self.order_by(column);
        }
    }

    fn sort_by_next(&mut self) {
        let mut columns = self.columns.clone();
        columns.retain(|&at| R::columns()[at].unit != ColumnUnit::Graph);
        let at = columns.iter().position(|&column| column == self.order.column);
        let next = at.map_or(0, |at| (at + 1) % columns.len());
        self.order_by(columns[next]);
    }

    fn reverse(&mut self) {
        self.order.is_descending = !self.order.is_descending;
    }

    fn order_words(&self) -> String {
        let direction = if self.order.is_descending { "descending" } else { "ascending" };
        format!("{}, {direction}", R::columns()[self.order.column].name)
    }

    fn select_in_sight(&mut self, row: usize) -> Option<bool> {
        let id = self.page().get(row)?.id();
        Some(self.selected.replace(id) == Some(id))
    }

    fn deselect(&mut self) -> bool {
        self.selected.take().is_some()
    }

    fn open(&mut self) -> Option<bool> {
        let before = self.opened;
        self.open_selected().map(|id| before == Some(id))
    }

    fn set_sight(&mut self, rows: usize) {
        self.sight = rows;
    }

    fn column_choices(&self) -> Vec<ChoiceLine> {
        let line = |at: usize| {
            let Column { name, meaning, .. } = &R::columns()[at];
            ChoiceLine { name, meaning, has_room: true, is_chosen: self.columns.contains(&at) }
        };
        listed_columns(self).into_iter().map(line).collect()
    }

    fn edit_columns(&mut self, edit: ChoiceEdit, line: usize) -> usize {
        let Some(&column) = listed_columns(self).get(line) else { return 0 };
        let columns = &mut self.columns;
        let place = columns.iter().position(|&at| at == column);
        match (edit, place) {
            (ChoiceEdit::Toggle, Some(place)) => drop(columns.remove(place)),
            (ChoiceEdit::Toggle, None) => columns.push(column),
            // The first column names the row and stays.
            (ChoiceEdit::Earlier, Some(place)) if place > 1 => columns.swap(place, place - 1),
            (ChoiceEdit::Later, Some(place)) if place + 1 < columns.len() => columns.swap(place, place + 1),
            (ChoiceEdit::Earlier | ChoiceEdit::Later, _) => {}
            (ChoiceEdit::Reset, _) => *columns = Self::by(0).columns,
        }
        listed_columns(self).iter().position(|&at| at == column).unwrap_or(0)
    }

    fn text(&self) -> String {
        rows_text(&self.columns, self.page())
    }

    fn kept(&self) -> Value {
        let name = |&at: &usize| R::columns()[at].name;
        json!({
            "columns": self.columns.iter().map(name).collect::<Vec<_>>(),
            "sort": name(&self.order.column),
            "descending": self.order.is_descending,
        })
    }

    fn read(&self, kept: &Value) -> Result<TableArrangement, UnknownColumn> {
        let mut columns = vec![0];
        for name in kept["columns"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let at = kept_column::<R>(name)?;
            if !columns.contains(&at) {
                columns.push(at);
            }
        }
        let columns = if columns.len() > 1 { columns } else { self.columns.clone() };
        let order = match kept["sort"].as_str().map(kept_column::<R>).transpose()? {
            Some(column) => Order { column, is_descending: kept["descending"].as_bool().unwrap_or(true) },
            None => self.order,
        };
        Ok(TableArrangement { columns, order })
    }

    fn take(&mut self, arrangement: TableArrangement) {
        (self.columns, self.order) = (arrangement.columns, arrangement.order);
    }
}

fn kept_column<R: Row>(name: &str) -> Result<usize, UnknownColumn> {
    let found = R::columns().iter().position(|column| column.name == name);
    found.ok_or_else(|| UnknownColumn(name.to_owned()))
}

/// Returns the columns in the order of the choices.
fn listed_columns<R: Row>(table: &TableState<R>) -> Vec<usize> {
    let shown = table.columns.iter().copied().filter(|&at| at != 0);
    let hidden = (1..R::columns().len()).filter(|at| !table.columns.contains(at));
    shown.chain(hidden).collect()
}
