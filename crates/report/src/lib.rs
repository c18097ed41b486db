//! What runs came to, for others: figures by their names, conditions on them, and the files that tools and people read.
//! All of it is made from a [`Model`](telemetry::Model), so also from a journal long after; nothing here does I/O.

#![forbid(unsafe_code)]

mod assertion;
mod comparison;
mod content;
mod data;
mod figures;
mod hdr;
mod html;
mod junit;
mod markdown;
mod repeated;

pub use assertion::{Assertion, AssertionError, Verdict};
pub use comparison::{Comparing, Comparison, NotComparable, comparison};
pub use content::Report;
pub use figures::{Figure, Figures, csv, load_figures};
pub use hdr::{interval_log, percentile_file};
pub use junit::{Checked, junit};
pub use repeated::repeated;

#[cfg(test)]
mod tests;
