//! What clients and upstreams do that mean harm: floods, and messages that proxy and upstream could read differently.
//! docs/security.md says which test shows what.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../common/mod.rs"]
mod common;
#[allow(dead_code, reason = "each module uses its part")]
mod http2_client;
mod memory;
#[allow(dead_code, reason = "each module uses its part")]
mod support;

mod floods;
mod responses;
mod smuggling_http1;
mod smuggling_http2;
mod unread;
mod unusual;
