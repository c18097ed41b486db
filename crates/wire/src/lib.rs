//! Counts what packets say of TLS, whoever terminates it: a producer of records beside proxy, load and logs.
//!
//! A [`capture`] gives frames: a file, or a packet socket while servers run. A [`packet`] is what a frame holds of TCP.
//! `flow` puts the bytes of each connection in order up to the end of its handshake, [`hello::handshake`] reads them, and
//! the counter makes of both the delta that the publisher takes from every producer. Nothing is written to the network, and
//! no payload is kept.

#![deny(unsafe_code)]

pub mod capture;
mod counter;
mod flow;
mod observed;
mod observer;
mod options;
mod order;
mod outcome;
pub mod packet;
mod quic;
mod replay;
mod services;

pub use counter::WireCounter;
pub use observer::{give_up_capabilities, observe_packets};
pub use options::WireOptions;
pub use replay::{CaptureDamage, CaptureReplay, ReplayError, ReplayedCapture};
pub use services::Services;
