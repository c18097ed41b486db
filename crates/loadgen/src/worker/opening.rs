//! How a slot comes to a connection: an address, TCP, and TLS.

use std::io;

use mio::{Interest, Token};
use telemetry::LoadCounter;

use super::Worker;
use super::slot::Phase;
use crate::clock::now_ns;
use crate::connection::Connection;
use crate::ledger::{Failure, Over};
use crate::tls::{Engine, Handshake};
use crate::transport::End;

impl Worker {
    /// Makes a connection for the slot's request, from the client whose turn it is.
    pub(super) fn connect(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        slot.client = self.next_client;
        self.next_client = (self.next_client + 1) % self.clients.len();
        slot.addresses_tried = 0;
        self.try_address(index);
    }

    pub(super) fn try_address(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let deadline_ns = slot.request.as_ref().map_or(u64::MAX, |request| request.deadline_ns);
        slot.enter(Phase::Connecting, deadline_ns);
        slot.addresses_tried += 1;
        let to = &self.setup.addresses[self.address];
        let from = self.clients[slot.client].bind;
        let opened = Connection::open(to, from, now_ns()).and_then(|mut connection| {
            let interest = Interest::READABLE | Interest::WRITABLE;
            self.poll.registry().register(&mut connection.transport.socket, Token(index), interest)?;
            Ok(connection)
        });
        match opened {
            Ok(connection) => slot.connection = Some(Box::new(connection)),
            Err(error) => self.connect_failed(index, &error),
        }
    }

    /// Tries the server's next address, if it has one that was not tried; the one that works is kept.
    pub(super) fn connect_failed(&mut self, index: usize, error: &io::Error) {
        self.slots[index].connection = None;
        let to = self.address;
        if self.slots[index].addresses_tried < self.setup.addresses.len() {
            self.address = (self.address + 1) % self.setup.addresses.len();
            return self.try_address(index);
        }
        self.fail(index, Failure::connect(&self.setup.addresses[to], error));
    }

    pub(super) fn on_established(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let Some(connection) = &mut slot.connection else { return };
        let client = &mut self.clients[slot.client];
        let warmup = slot.request.as_ref().is_none_or(|request| request.warmup);
        client.established(&connection.transport, warmup, &mut self.ledger);
        let Some((begun, wanted)) = client.begin(self.resume, &mut self.ledger) else {
            return self.start_over(index, Over::Plain);
        };
        slot.phase = Phase::Handshaking;
        self.ledger.add(LoadCounter::EarlyWanted, u64::from(wanted && self.setup.early_data));
        let begun = match begun {
            Ok(engine) => self.shake_hands(index, engine),
            Err(error) => {
                connection.transport.note_trouble(&error);
                Err(End::Tls)
            }
        };
        if let Err(end) = begun {
            self.on_end(index, end);
        }
    }

    /// Sends the first flight, with the request in it if that may go as early data.
    fn shake_hands(&mut self, index: usize, mut engine: Engine) -> Result<(), End> {
        if self.setup.early_data {
            let bytes = self.bytes_to_send(index);
            let len = bytes.len();
            if engine.send_early(bytes) {
                self.slots[index].early_bytes = len;
                self.ledger.count(LoadCounter::EarlyOffered);
                self.expect_answer(index);
            }
        }
        let Some(connection) = &mut self.slots[index].connection else { return Ok(()) };
        connection.transport.shake_hands(engine, &mut self.scratch)
    }

    pub(super) fn on_handshake(&mut self, index: usize, handshake: Handshake) {
        let slot = &mut self.slots[index];
        let (Some(connection), Some(request)) = (&slot.connection, &slot.request) else { return };
        let over = self.ledger.shaken(&handshake, connection.transport.established_ns, request.warmup);
        self.clients[slot.client].shaken(&handshake);
        if slot.phase != Phase::Handshaking {
            return;
        }
        match std::mem::take(&mut slot.early_bytes) {
            // The request goes out together with the end of the handshake.
            0 => self.start_over(index, over),
            early_bytes if handshake.early => self.early_data_accepted(index, early_bytes),
            _ => self.early_data_rejected(index, over),
        }
    }

    /// The request is on its way already.
    fn early_data_accepted(&mut self, index: usize, bytes: usize) {
        let slot = &mut self.slots[index];
        let Some(request) = &mut slot.request else { return };
        request.over = Over::Early;
        slot.phase = Phase::Exchanging;
        slot.deadline_ns = request.deadline_ns;
        slot.handed = bytes;
        self.ledger.add(LoadCounter::BytesIn, bytes as u64);
        self.clients[slot.client].totals.bytes_in += bytes as u64;
    }

    /// The request has gone for nothing, and goes once more (RFC 8446, section 4.2.10). It counts from the first time.
    fn early_data_rejected(&mut self, index: usize, over: Over) {
        let slot = &mut self.slots[index];
        let (Some(connection), Some(request)) = (&mut slot.connection, &mut slot.request) else { return };
        request.over = over;
        slot.phase = Phase::Exchanging;
        slot.deadline_ns = request.deadline_ns;
        connection.parser.expect(&self.requests.at(request.template).expected);
        self.send(index);
    }

    /// Hands the slot's request to the connection that was made for it.
    fn start_over(&mut self, index: usize, over: Over) {
        if let Some(request) = &mut self.slots[index].request {
            request.over = over;
        }
        self.start_request(index);
    }
}
