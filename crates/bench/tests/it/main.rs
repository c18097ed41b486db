//! Comparisons of made-up results.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;

mod comparison;
mod document;
mod outputs;
mod simulation;
