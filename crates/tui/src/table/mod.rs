//! Tables: rows of one kind under a list of columns.
//!
//! A table is its [`Row::columns`]. Sorting ([`Order`](order::Order)), filtering ([`RowFilter`](filter::RowFilter)), the
//! page in sight ([`Rows`], [`TableState`]), chosen columns and export are here once for all tables; `widgets::table`
//! draws them.

mod arrangement;
mod cell;
mod column;
mod filter;
mod list;
mod name_id;
mod order;
mod rows;
mod selection;

use crate::theme::Glyphs;

pub(crate) use arrangement::{ChoiceEdit, ChoiceLine, Table, UnknownColumn};
pub(crate) use cell::{CellValue, ColumnUnit};
pub(crate) use column::{Column, Emphasis, Row};
pub(crate) use list::{RowList, RowMoment};
pub(crate) use name_id::NameId;
pub(crate) use order::address_key;
pub(crate) use rows::{ChangedRows, Rows};
pub(crate) use selection::{ListMove, TableState};

/// Returns every figure of a row by the name of its column; latencies in microseconds.
pub(crate) fn row_json<R: Row>(row: &R) -> serde_json::Value {
    let columns = R::columns().iter().filter(|column| column.unit != ColumnUnit::Graph);
    columns.map(|column| (column.name.to_owned(), column.cell(row).json())).collect()
}

/// Returns the shown columns of rows as tab-separated text with headings.
fn rows_text<R: Row>(columns: &[usize], rows: &[R]) -> String {
    let columns =
        || columns.iter().map(|&at| &R::columns()[at]).filter(|column| column.unit != ColumnUnit::Graph);
    let line = |cells: Vec<String>| cells.join("\t") + "\n";
    let mut text = line(columns().map(|column| column.heading.to_owned()).collect());
    for row in rows {
        text += &line(columns().map(|column| column.cell(row).shown(column.unit, Glyphs::Ascii)).collect());
    }
    text
}
