//! Compares TLS terminators side by side: `tlsdash bench SCENARIO.toml`. `docs/bench.md` describes the method.
//!
//! ```text
//!   SCENARIO.toml, templates ──> Scenario: targets × cases
//!                                   │
//!   for each round, each case, each target in random order:
//!                                 start ──> a child `tlsdash load` ──> stop ──> CellResult ──> folder
//!                                   │
//!                                Comparison: per case a ratio to the baseline with interval and verdict ──> outputs
//! ```
//!
//! | module | purpose |
//! |---|---|
//! | [`scenario`] | the scenario file, its targets and cases |
//! | [`template`] | the terminators and servers that the program can start by name |
//! | [`against`] | the scenario of `--against` |
//! | [`seeds`] | the scenarios that come with the program |
//! | [`target`] | a target as processes: start, readiness, usage, stop |
//! | [`run`] | the rounds, and a cell of them |
//! | [`results`] | the result of a cell, and the folder of all cells |
//! | [`compare`] | ratios to the baseline, verdicts |
//! | [`output`] | text, Markdown, CSV, JSON, JUnit; the page is made by `report` |

#![forbid(unsafe_code)]

pub mod against;
pub mod compare;
pub mod output;
pub mod results;
pub mod run;
pub mod scenario;
pub mod seeds;
pub mod target;
pub mod template;
