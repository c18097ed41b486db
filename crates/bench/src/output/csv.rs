//! The cells as CSV.

use std::collections::BTreeSet;

use crate::compare::{CellFigure, USAGE_FIGURES};
use crate::results::CellResult;

/// The columns before the figures of a cell.
const CELL_COLUMNS: [&str; 7] = ["case", "target", "round", "position", "began_us", "rate", "failure"];

/// A row for each cell: where it belongs, its figures, and doubts in the last column. Values that are not known are empty.
pub fn cells_csv(cells: &[CellResult]) -> String {
    let names: BTreeSet<&String> = cells.iter().flat_map(|cell| cell.figures.keys()).collect();
    let usage = || USAGE_FIGURES.iter().map(CellFigure::Usage);
    let header = CELL_COLUMNS.into_iter().map(str::to_owned);
    let header = header.chain(usage().map(|figure| figure.name())).chain(names.iter().copied().cloned());
    let mut text = line(header.chain(["doubts".to_owned()]));
    for cell in cells {
        let cell_columns = [
            cell.case.clone(),
            cell.target.clone(),
            cell.round.to_string(),
            cell.position.to_string(),
            cell.began_us.to_string(),
            number(cell.rate),
            cell.failure.clone().unwrap_or_default(),
        ];
        let usage = usage().map(|figure| number(figure.value(cell)));
        let load = names.iter().map(|name| number(cell.figures.get(*name).copied()));
        let doubts: Vec<&str> = cell.doubts.iter().map(|doubt| &*doubt.reason).collect();
        text += &line(cell_columns.into_iter().chain(usage).chain(load).chain([doubts.join("; ")]));
    }
    text
}

fn number(value: Option<f64>) -> String {
    value.filter(|value| value.is_finite()).map_or_else(String::new, |value| value.to_string())
}

/// A line of fields, quoted by RFC 4180 where they must be.
fn line(fields: impl Iterator<Item = String>) -> String {
    let must_quote = |field: &String| field.contains([',', '"', '\n', '\r']);
    let quote = |field: String| {
        if must_quote(&field) { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
    };
    fields.map(quote).collect::<Vec<_>>().join(",") + "\n"
}
