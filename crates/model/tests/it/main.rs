//! The document of figures, and following a journal.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod figures;
mod following;
