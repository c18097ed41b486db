//! Counts what packets say of TLS, whoever terminates it: a producer of records beside proxy, load and logs.
//!
//! A [`capture`] gives frames: a file, or a packet socket while servers run. A [`packet`] is what a frame holds of TCP.
//! `flow` puts the bytes of each connection in order up to the end of its handshake, `handshake` reads them, and the counter
//! makes of both the delta that the publisher takes from every producer. Nothing is written to the network, and no payload is
//! kept.

#![forbid(unsafe_code)]

pub mod capture;
pub mod packet;
