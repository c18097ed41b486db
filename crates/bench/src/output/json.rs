//! The comparison as JSON: `docs/bench.md` describes it.

use serde::Serialize;

use crate::compare::BenchComparison;

/// The version of the format: it grows when a field changes its meaning or goes, not when one is added.
pub const JSON_VERSION: u32 = 1;

#[derive(Serialize)]
struct ComparisonDocument<'a> {
    version: u32,
    #[serde(flatten)]
    comparison: &'a BenchComparison,
}

/// The comparison as JSON. Numbers that are not known are `null`.
///
/// # Errors
/// None in practice: every key is a text.
pub fn json(comparison: &BenchComparison) -> Result<String, serde_json::Error> {
    let document = ComparisonDocument { version: JSON_VERSION, comparison };
    serde_json::to_string_pretty(&document).map(|text| text + "\n")
}
