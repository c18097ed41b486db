//! How a lane comes to a connection: an address, TCP, and TLS.

use std::io;

use mio::{Interest, Token};
use telemetry::LoadEvent;

use super::{Connection, Phase, Session, Worker};
use crate::clock::now_ns;
use crate::ledger::{Failure, Over};
use crate::tls::{Alpn, Handshake};
use crate::transport::{End, Transport};

impl Worker {
    /// Makes a connection for the lane's requests, from the client whose turn it is.
    pub(super) fn connect(&mut self, index: usize) {
        let client = self.next_client;
        self.next_client = (client + 1) % self.clients.len();
        self.try_address(index, client, 0);
    }

    fn try_address(&mut self, index: usize, client: usize, addresses_tried: usize) {
        let deadline_ns = self.lanes[index].waiting.front().map_or(u64::MAX, |request| request.deadline_ns);
        let from = self.clients[client].bind;
        let entry = self.connections.vacant_entry();
        let opened = Transport::open(&self.setup.addresses[self.address], from, now_ns());
        let opened = opened.and_then(|mut transport| {
            let interest = Interest::READABLE | Interest::WRITABLE;
            self.poll.registry().register(&mut transport.socket, Token(entry.key()), interest)?;
            Ok(transport)
        });
        match opened {
            Ok(transport) => {
                self.lanes[index].connection = Some(entry.key());
                entry.insert(Connection {
                    transport,
                    session: Session::new(),
                    phase: Phase::Connecting,
                    lane: index,
                    client,
                    addresses_tried: addresses_tried + 1,
                    deadline_ns,
                    over: Over::Plain,
                    ready_ns: 0,
                    is_touched: false,
                });
            }
            Err(error) => self.address_failed(index, client, addresses_tried + 1, &error),
        }
    }

    pub(super) fn connect_failed(&mut self, key: usize, error: &io::Error) {
        let Connection { lane, client, addresses_tried, .. } = self.connections[key];
        self.drop_connection(key);
        self.address_failed(lane, client, addresses_tried, error);
    }

    /// Tries the server's next address, if it has one that was not tried; the one that works is kept.
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
        let connection = &mut self.connections[key];
        let client = &mut self.clients[connection.client];
        let transport = &mut connection.transport;
        let warmup = self.lanes[connection.lane].waiting.front().is_none_or(|request| request.warmup);
        client.established(transport, warmup, &mut self.ledger);
        let Some((begun, _)) = client.begin(self.resume, &mut self.ledger) else {
            return self.on_ready(key, Over::Plain);
        };
        connection.phase = Phase::Handshaking;
        let begun = match begun {
            Ok(engine) => transport.shake_hands(engine, &mut self.scratch),
            Err(error) => {
                transport.note_trouble(&error);
                Err(End::Tls)
            }
        };
        if let Err(end) = begun {
            self.on_end(key, end);
        }
    }

    pub(super) fn on_handshake(&mut self, key: usize, handshake: &Handshake) {
        let connection = &self.connections[key];
        let is_warmup = self.lanes[connection.lane].waiting.front().is_some_and(|request| request.warmup);
        let over = self.ledger.shaken(handshake, connection.transport.established_ns, is_warmup);
        self.clients[connection.client].shaken(handshake);
        self.on_ready(key, over);
        if handshake.alpn != Some(Alpn::Http2) {
            let failure = Failure::new(LoadEvent::Protocol, "the server did not agree to h2");
            self.fail_connection(key, &failure);
        }
    }

    /// The connection can carry requests.
    fn on_ready(&mut self, key: usize, over: Over) {
        let connection = &mut self.connections[key];
        connection.phase = Phase::Open;
        connection.deadline_ns = u64::MAX;
        connection.over = over;
        connection.ready_ns = now_ns();
    }
}
