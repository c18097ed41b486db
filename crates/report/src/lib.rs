//! Reports on runs: figures by name, assertions, comparisons, and files for people and tools.
//!
//! Everything is made from a [`Model`](model::runs::Model), and so also from an old journal. Nothing here does I/O.

#![forbid(unsafe_code)]

mod assert;
mod compare;
mod figures;
mod html;
mod numbers;
mod open_metrics;
mod report;
pub mod styles;
mod table;
mod text;

pub use assert::{Assertion, AssertionError, AssertionOutcome, AssertionResult, JunitCase, junit};
pub use compare::{
    CompareOptions, Comparison, ExperimentComparison, NoExperiment, NotComparable, comparison, experiments,
};
pub use figures::{FigureValue, Figures, csv, load_figures};
pub use html::targets_page;
pub use open_metrics::{MetricsFormat, open_metrics};
pub use report::{APDEX_THRESHOLD, Report, RunPart};
pub use text::{columns, interval_log, percentile_file, repeated};

#[cfg(test)]
mod tests;
