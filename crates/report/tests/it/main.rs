//! Reports in all their forms.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../bench/tests/common/mod.rs"]
mod made_up;

mod alerts;
mod compared;
mod first_screenful;
mod forms;
mod golden;
mod http;
mod log_times;
mod round_trip;
mod targets;
mod tls_usage;
