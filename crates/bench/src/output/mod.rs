//! A comparison as files for people and tools. The page and `JUnit` are made by `report`.

mod answer;
mod column;
mod csv;
mod json;
mod markdown;
mod progress;
mod remarks;
mod text;
pub mod wording;

pub use answer::CaseAnswer;
pub use column::ColumnFormat;
pub use csv::cells_csv;
pub use json::{JSON_VERSION, json};
pub use markdown::markdown;
pub use progress::ComparisonProgress;
pub use remarks::{CaseRemark, REMARKS_SHOWN, no_usable_round};
pub use text::text;
