//! Tests that measure: they run while nothing else does, and two at a time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(
    clippy::print_stdout,
    reason = "a measurement is shown, and a test tells another one what it started"
)]

#[path = "../common/mod.rs"]
mod common;

mod alone;
