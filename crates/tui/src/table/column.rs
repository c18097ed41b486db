//! Rows and their columns: names, what a column shows, and when it is left out.

use std::fmt;

use super::cell::{CellValue, ColumnUnit};

pub(crate) trait Row: Clone + 'static {
    type Id: Copy + Eq + Ord + fmt::Debug;
    /// All columns; the first one names the row and is always shown.
    fn columns() -> &'static [Column<Self>];

    fn id(&self) -> Self::Id;

    /// Returns a number by which rows with equal values are ordered, before their ids.
    fn tie(&self) -> u64 {
        0
    }

    /// Returns the column by whose figures rows with equal values in this column are ordered, before [`Self::tie`].
    fn second(_column: usize) -> Option<usize> {
        None
    }

    /// Returns the total of a counter, by its place in its family; `None` if the row has no counters.
    fn count(&self, _counter: usize) -> Option<u64> {
        None
    }

    /// Returns the column of this name. A name that is not in the table is the first column's.
    fn column(name: &str) -> usize {
        Self::columns().iter().position(|column| column.name == name).unwrap_or(0)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Column<R: 'static> {
    /// The name in filters and in the kept choice of columns.
    pub(crate) name: &'static str,
    /// Another name that filters accept; may be empty.
    pub(crate) alias: &'static str,
    pub(crate) heading: &'static str,
    pub(crate) meaning: &'static str,
    pub(crate) unit: ColumnUnit,
    /// The minimum and maximum cells, with the blanks before the text.
    pub(crate) cells: (usize, usize),
    /// Columns with the highest rank are left out first.
    pub(crate) rank: u8,
    /// Whether it is shown unless chosen otherwise.
    pub(crate) is_usual: bool,
    /// Whether it is left out while no row has a value. Usual columns of text always are.
    pub(crate) is_of_some: bool,
    pub(crate) emphasis: Emphasis,
    pub(crate) value: fn(&R) -> CellValue<'_>,
    /// The counter that is shown instead, by its place in its family.
    pub(crate) counter: Option<usize>,
}

impl<R: Row> Column<R> {
    pub(crate) fn cell<'r>(&self, row: &'r R) -> CellValue<'r> {
        self.counter.map_or_else(|| (self.value)(row), |counter| CellValue::count(row.count(counter)))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Emphasis {
    None,
    Quiet,
    Figure,
    /// A warning above zero.
    Failures,
}

impl<R> Column<R> {
    /// A usual column by its name, heading and meaning, without a value.
    pub(crate) const fn named(name: &'static str, heading: &'static str, meaning: &'static str) -> Self {
        Self {
            name,
            alias: "",
            heading,
            meaning,
            unit: ColumnUnit::Count,
            cells: (8, 8),
            rank: 0,
            is_usual: true,
            is_of_some: false,
            emphasis: Emphasis::None,
            value: |_| CellValue::Number(None),
            counter: None,
        }
    }

    pub(crate) const fn alias(self, alias: &'static str) -> Self {
        Self { alias, ..self }
    }

    pub(crate) const fn unit(self, unit: ColumnUnit) -> Self {
        Self { unit, ..self }
    }

    pub(crate) const fn shows(self, unit: ColumnUnit, value: fn(&R) -> CellValue<'_>) -> Self {
        Self { unit, value, ..self }
    }

    /// Sets when it is left out, and its cells.
    pub(crate) const fn fit(self, rank: u8, cells: (usize, usize)) -> Self {
        Self { cells, rank, ..self }
    }

    /// A column that is shown only if it is chosen.
    pub(crate) const fn optional(self, cells: (usize, usize)) -> Self {
        Self { cells, rank: 20, is_usual: false, ..self }
    }

    /// A column that is left out while no row has a value.
    pub(crate) const fn of_some(self) -> Self {
        Self { is_of_some: true, ..self }
    }

    pub(crate) const fn emphasis(self, emphasis: Emphasis) -> Self {
        Self { emphasis, ..self }
    }

    pub(crate) fn is_left(&self) -> bool {
        matches!(self.unit, ColumnUnit::Text | ColumnUnit::Address)
    }
}
