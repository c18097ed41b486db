//! What is counted of packets: of captures that are committed, of those written byte by byte, and of the kernel's.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../captures/mod.rs"]
mod captures;
#[path = "../recorded/mod.rs"]
mod recorded;

mod capture_file;
mod directions;
mod disturbances;
mod endings;
mod exchanges;
mod mangled;
mod offers;
mod outcomes;
mod packet;
mod packet_socket;
mod quic;
mod replay;
mod services;
mod tshark;
