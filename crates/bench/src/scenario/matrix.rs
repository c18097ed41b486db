//! Expands the matrix of a case: every combination of its values.

use super::CELLS_MAX;
use super::error::ScenarioError;
use super::table::{Table, TomlEntry, shown};

/// A combination of values, and its suffix of the case's name.
#[derive(Debug)]
pub(super) struct MatrixCombination<'t> {
    pub(super) name: String,
    pub(super) entries: Vec<TomlEntry<'t>>,
}

/// The combinations of `matrix = { key = [values], ... }`, the last key changing fastest; a single empty combination
/// without a matrix.
pub(super) fn combinations<'t>(table: &mut Table<'t>) -> Result<Vec<MatrixCombination<'t>>, ScenarioError> {
    let mut combinations = vec![MatrixCombination { name: String::new(), entries: Vec::new() }];
    for (key, values) in table.entries_of("matrix")? {
        let problem = |problem: &str| table.error_of("matrix", format!("{key} {problem}"));
        if matches!(&*key, "name" | "matrix" | "primary" | "quick") {
            return Err(problem("cannot vary"));
        }
        if table.has(&key) {
            return Err(problem("is also a key of the case; remove one of them"));
        }
        let values = values.get_ref().as_array().filter(|values| !values.is_empty());
        let values = values.ok_or_else(|| problem("must be a list of values"))?;
        if combinations.len() * values.len() > CELLS_MAX {
            return Err(table.error_of("matrix", format!("it has more than {CELLS_MAX} combinations")));
        }
        let mut longer = Vec::new();
        for combination in &combinations {
            for value in values {
                let text = shown(value.get_ref())
                    .ok_or_else(|| problem("must have numbers, texts, true or false"))?;
                let entry = (key.clone(), value.clone());
                longer.push(MatrixCombination {
                    name: format!("{} {key}={text}", combination.name),
                    entries: combination.entries.iter().cloned().chain([entry]).collect(),
                });
            }
        }
        combinations = longer;
    }
    Ok(combinations)
}
