//! Totals by source address.

use std::net::IpAddr;

/// The load's own counts for one source address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceTotals {
    /// The address the connections came from.
    pub address: IpAddr,
    pub connections: u64,
    pub handshakes_full: u64,
    pub handshakes_resumed: u64,
    /// Plaintext sent to the server.
    pub bytes_in: u64,
    /// Plaintext received from the server.
    pub bytes_out: u64,
    /// Requests answered whole, with a status below 400.
    pub requests_ok: u64,
}

/// One client's totals, counted apart from the published figures.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClientTotals {
    pub(crate) connections: u64,
    pub(crate) handshakes_full: u64,
    pub(crate) handshakes_resumed: u64,
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    pub(crate) requests_ok: u64,
}

impl ClientTotals {
    pub(crate) fn add(&mut self, other: Self) {
        self.connections += other.connections;
        self.handshakes_full += other.handshakes_full;
        self.handshakes_resumed += other.handshakes_resumed;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        self.requests_ok += other.requests_ok;
    }

    /// The totals as they are published.
    pub(crate) fn at(self, address: IpAddr) -> SourceTotals {
        let Self { connections, handshakes_full, handshakes_resumed, bytes_in, bytes_out, requests_ok } =
            self;
        SourceTotals {
            address,
            connections,
            handshakes_full,
            handshakes_resumed,
            bytes_in,
            bytes_out,
            requests_ok,
        }
    }
}
