//! Orders against Pebble, an authority for tests, and against authorities that are down or refuse.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod answering;
mod authority;
#[path = "../../../journal/tests/common/not_run.rs"]
mod not_run;
mod orders;
mod pebble;
mod renewals;
