//! A comparison as files for people and tools. The page and `JUnit` are made by `report`.

mod answer;
mod column;
mod csv;
mod json;
mod markdown;
mod progress;
mod table;
mod text;
pub mod wording;

pub use answer::Answer;
pub use column::ColumnFormat;
pub use csv::cells_csv;
pub use json::{JSON_VERSION, json};
pub use markdown::markdown;
pub use progress::Progress;
pub use text::text;
