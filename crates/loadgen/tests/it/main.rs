//! The generator against servers that count for themselves.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "each module uses its part")]
mod support;

#[path = "../frames/mod.rs"]
mod frames;

mod closed_loop;
mod early_data;
mod failures;
mod http2;
mod http2_scripts;
mod live;
mod measures;
mod open_loop;
mod openssl;
mod reach;
mod scripts;
mod start;
mod tls;
mod upstream;
