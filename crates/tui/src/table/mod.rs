//! Tables: rows of one kind under a list of columns.
//!
//! A table is its [`Row::columns`]. Sorting ([`Order`](order::Order)), filtering ([`RowFilter`](filter::RowFilter)), the
//! page in sight ([`Rows`], [`TableState`]), chosen columns and export are here once for all tables; `widgets::table`
//! draws them.

mod arrangement;
mod column;
mod filter;
mod list;
mod name_id;
mod order;
mod rows;
mod selection;

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use model::insight::Expiry;
use records::ids::ClientId;
use records::metrics::TimeResolution;
use serde_json::json;

use crate::theme::Glyphs;
use crate::theme::format;
use crate::view_model::classes::Quantile;

pub(crate) use arrangement::{ChoiceEdit, ChoiceLine, Table, UnknownColumn};
pub(crate) use column::{Column, ColumnUnit, Emphasis};
pub(crate) use list::{RowList, RowMoment};
pub(crate) use name_id::NameId;
pub(crate) use order::address_key;
pub(crate) use rows::{ChangedRows, Rows};
pub(crate) use selection::{ListMove, TableState};

pub(crate) trait Row: Clone + 'static {
    type Id: Copy + Eq + Ord + fmt::Debug;
    /// All columns; the first one names the row and is always shown.
    fn columns() -> &'static [Column<Self>];

    fn id(&self) -> Self::Id;

    /// Returns a number by which rows with equal values are ordered.
    fn tie(&self) -> u64;

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

/// The value of a cell; `None` is unknown.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CellValue<'r> {
    Text(Cow<'r, str>),
    Client(ClientId),
    Number(Option<f64>),
    Quantile(Option<Quantile>),
    /// Nanoseconds, and how finely they are known.
    Time(Option<u64>, TimeResolution),
    /// The days that a certificate has left.
    Expiry(Expiry),
}

impl<'r> CellValue<'r> {
    pub(crate) fn text(text: &'r str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    /// A count; `None` is unknown.
    pub(crate) fn count(n: Option<u64>) -> Self {
        Self::Number(n.map(|n| n as f64))
    }

    /// Returns whether it shows nothing.
    pub(crate) fn is_blank(&self) -> bool {
        matches!(self, Self::Number(None) | Self::Quantile(None)) || *self == CellValue::text("")
    }

    /// Returns the number behind a cell, in the unit of its column.
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => *number,
            Self::Quantile(quantile) => quantile.map(|quantile| quantile.ns as f64),
            Self::Time(ns, _) => ns.map(|ns| ns as f64),
            Self::Expiry(expiry) => Some(expiry.days as f64),
            Self::Text(_) | Self::Client(_) => None,
        }
    }

    fn address(&self) -> Option<IpAddr> {
        match self {
            Self::Client(ClientId::Addr(address)) => Some(*address),
            Self::Client(ClientId::Other)
            | Self::Text(_)
            | Self::Number(_)
            | Self::Quantile(_)
            | Self::Time(..)
            | Self::Expiry(_) => None,
        }
    }

    /// Returns the text of a cell; of a percentile without its brackets.
    pub(crate) fn shown(&self, unit: ColumnUnit, glyphs: Glyphs) -> String {
        let number = match self {
            Self::Text(text) => return text.clone().into_owned(),
            Self::Client(id) => return id.to_string(),
            Self::Number(number) => *number,
            Self::Quantile(Some(Quantile { ns, resolution, .. })) | Self::Time(Some(ns), resolution) => {
                return format::latency(*ns, *resolution, glyphs);
            }
            Self::Quantile(None) | Self::Time(None, _) => None,
            Self::Expiry(Expiry { days: ..0, .. }) => return "expired".to_owned(),
            Self::Expiry(Expiry { days, .. }) => Some(*days as f64),
        };
        let Some(number) = number else { return glyphs.none().to_string() };
        match unit {
            ColumnUnit::Text | ColumnUnit::Address | ColumnUnit::Count | ColumnUnit::Graph => {
                format::count(number as u64)
            }
            ColumnUnit::PerSecond => format::per_second(number),
            ColumnUnit::Bytes => format::bytes(number),
            ColumnUnit::BytesPerSecond => format::bytes_per_second(number),
            ColumnUnit::Ratio => format::percent(number),
            ColumnUnit::Latency => format::millis(number as u64),
        }
    }

    fn json(&self) -> serde_json::Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Client(id) => json!(id.to_string()),
            Self::Number(number) => json!(number),
            Self::Quantile(quantile) => json!(quantile.map(|quantile| quantile.ns as f64 / 1e3)),
            Self::Time(ns, _) => json!(ns.map(|ns| ns as f64)),
            Self::Expiry(expiry) => json!(expiry.days),
        }
    }
}

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
