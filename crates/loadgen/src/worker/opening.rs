//! Opens a slot's connection: an address, TCP, and TLS.

use std::io;

use mio::{Interest, Token};
use records::metrics::LoadCounter;
use records::values::LoadEvent;

use super::LoadWorker;
use super::connection::{ConnectionPhase, LoadConnection};
use crate::clock::now_ns;
use crate::protocol::{ConnectionEnd, Failure, ProtocolSession};
use crate::stats::ConnectionOrigin;
use crate::tls::{Handshake, TlsEngine};
use crate::worker::transport::Transport;

impl<S: ProtocolSession> LoadWorker<S> {
    /// Opens a connection for the slot's requests, from the client of its lane or else the next one.
    pub(super) fn connect(&mut self, index: usize) {
        let of_lane = self.lane_of(index).map(|(lanes, lane)| lanes.client(lane));
        let client = of_lane.unwrap_or_else(|| {
            let next = (self.next_client + 1) % self.clients.len();
            std::mem::replace(&mut self.next_client, next)
        });
        self.try_address(index, client, 0);
    }

    fn try_address(&mut self, index: usize, client: usize, addresses_tried: usize) {
        let from = self.clients[client].bind;
        let slot = &mut self.slots[index];
        let entry = self.connections.vacant_entry();
        let opened = Transport::open(&self.setup.addresses[self.address], from, now_ns());
        let opened = opened.and_then(|mut transport| {
            let interest = Interest::READABLE | Interest::WRITABLE;
            self.poll.registry().register(&mut transport.socket, Token(entry.key()), interest)?;
            Ok(transport)
        });
        let addresses_tried = addresses_tried + 1;
        match opened {
            Ok(transport) => {
                slot.connection = Some(entry.key());
                let connection = LoadConnection::new(transport, index, client, slot.waiting.front());
                entry.insert(LoadConnection { addresses_tried, ..connection });
            }
            Err(error) => self.address_failed(index, client, addresses_tried, &error),
        }
    }

    pub(super) fn connect_failed(&mut self, key: usize, error: &io::Error) {
        let LoadConnection { slot, client, addresses_tried, .. } = self.connections[key];
        self.drop_connection(key);
        self.address_failed(slot, client, addresses_tried, error);
    }

    /// Tries the server's next address, if one is left. Later connections begin with the address that worked.
    fn address_failed(&mut self, index: usize, client: usize, addresses_tried: usize, error: &io::Error) {
        let to = self.address;
        if addresses_tried < self.setup.addresses.len() {
            self.address = (self.address + 1) % self.setup.addresses.len();
            return self.try_address(index, client, addresses_tried);
        }
        let failure = Failure::connect(&self.setup.addresses[to], error);
        self.fail_waiting(index, &failure);
    }

    pub(super) fn on_established(&mut self, key: usize) {
        let lane = self.lane_of(self.connections[key].slot);
        let resume = lane.map_or(self.resume, |(lanes, lane)| lanes.resume(lane, self.resume));
        let connection = &mut self.connections[key];
        let client = &mut self.clients[connection.client];
        client.established(&connection.transport, connection.is_warmup, &mut self.stats);
        let Some((begun, wanted)) = client.begin(resume, &mut self.stats) else {
            return self.on_ready(key, ConnectionOrigin::Plain);
        };
        connection.phase = ConnectionPhase::Handshaking;
        self.stats.add(LoadCounter::EarlyWanted, u64::from(wanted && self.setup.early_data));
        let begun = match begun {
            Ok(engine) => self.drive_handshake(key, engine),
            Err(error) => {
                connection.transport.record_tls_error(&error);
                Err(ConnectionEnd::Tls)
            }
        };
        if let Err(end) = begun {
            self.on_end(key, end);
        }
    }

    /// Sends the first flight, with a request as early data if possible. Only HTTP/1.1 and echoes send early data.
    fn drive_handshake(&mut self, key: usize, mut engine: TlsEngine) -> Result<(), ConnectionEnd> {
        let waiting = &mut self.slots[self.connections[key].slot].waiting;
        if self.setup.early_data
            && let Some(request) = waiting.front().copied()
        {
            let is_last = self.is_last(&self.connections[key]);
            let bytes = self.requests.at(request.template).bytes(is_last);
            let early_bytes = bytes.len();
            if engine.send_early(bytes) {
                self.slots[self.connections[key].slot].waiting.pop_front();
                self.stats.count(LoadCounter::EarlyOffered);
                self.begin(key, request);
                let connection = &mut self.connections[key];
                connection.session.note_sent(early_bytes);
                connection.early_bytes = early_bytes;
            }
        }
        self.connections[key].transport.drive_handshake(engine, &mut self.scratch)
    }

    pub(super) fn on_handshake(&mut self, key: usize, handshake: &Handshake) {
        let connection = &mut self.connections[key];
        let origin =
            self.stats.on_handshake(handshake, connection.transport.established_ns, connection.is_warmup);
        let client = &mut self.clients[connection.client];
        client.on_handshake(handshake);
        if !S::can_follow(handshake.alpn) {
            connection.phase = ConnectionPhase::Open;
            let _ = connection.transport.flush(&mut self.scratch);
            let failure = Failure::new(LoadEvent::Protocol, "the server did not negotiate h2");
            return self.fail_connection(key, &failure);
        }
        match std::mem::take(&mut connection.early_bytes) {
            0 => {}
            early_bytes if handshake.early => {
                if !connection.is_warmup {
                    self.stats.add(LoadCounter::BytesIn, early_bytes as u64);
                }
                client.totals.bytes_in += early_bytes as u64;
            }
            // The request goes again (RFC 8446, section 4.2.10), and counts from the first time.
            _ => connection.session.early_data_rejected(),
        }
        self.on_ready(key, origin);
    }

    /// The connection can carry requests. They go out together with the end of the handshake.
    fn on_ready(&mut self, key: usize, origin: ConnectionOrigin) {
        let connection = &mut self.connections[key];
        connection.enter(ConnectionPhase::Open, u64::MAX);
        connection.origin = origin;
        connection.ready_ns = now_ns();
        let index = connection.slot;
        self.serve(index);
        self.flush(key);
    }
}
