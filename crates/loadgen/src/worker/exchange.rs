//! A request and its answer.

use mio::event::Event;
use telemetry::{LoadCounter, LoadEvent};

use super::Worker;
use super::slot::Phase;
use crate::clock::now_ns;
use crate::connection::Inbound;
use crate::http1::Answer;
use crate::ledger::{Arrived, Request};
use crate::pacer::Due;
use crate::plan::KeepAlive;

/// How long the server may take to close after an answer that was asked to be the last. It is better placed to
/// close first: the side that does keeps the pair of ports occupied for a minute.
const PARTING_NS: u64 = 100_000_000;

impl Worker {
    /// Gives a request to a free slot.
    pub(super) fn begin(&mut self, index: usize, due: Due, now_ns: u64) {
        let template = self.requests.next(&self.setup.sequence);
        let warmup = self.course.is_warmup(due, now_ns);
        let slot = &mut self.slots[index];
        slot.request = Some(Request::new(template, due, now_ns, self.setup.timeout_ns, warmup));
        if slot.phase == Phase::Ready {
            self.start_request(index);
        } else {
            self.connect(index);
        }
    }

    /// The poll says that something can be done about a slot's connection.
    pub(super) fn on_event(&mut self, index: usize, event: &Event) {
        let slot = &mut self.slots[index];
        // An event may be left from a connection that this slot had before; whatever is tried then says so itself.
        let Some(connection) = &mut slot.connection else { return };
        if slot.phase == Phase::Connecting {
            match connection.transport.establish() {
                Ok(true) => self.on_established(index),
                Ok(false) => return,
                Err(error) => return self.connect_failed(index, &error),
            }
        }
        let Some(connection) = &mut self.slots[index].connection else { return };
        if event.is_read_closed() || event.is_error() {
            connection.transport.note_peer_shut();
        }
        if event.is_writable() {
            self.go_on_writing(index);
        }
        if event.is_readable() || event.is_read_closed() || event.is_error() {
            self.read(index);
        }
    }

    /// Reads, and draws the conclusions.
    pub(super) fn read(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let Some(connection) = &mut slot.connection else { return };
        if !connection.transport.is_established() {
            return;
        }
        let inbound = connection.receive(&mut self.scratch);
        self.ledger.add(LoadCounter::BytesOut, inbound.received.plaintext_bytes);
        self.clients[slot.client].totals.bytes_out += inbound.received.plaintext_bytes;
        self.conclude(index, &inbound);
        if let Some(connection) = &mut self.slots[index].connection
            && connection.transport.flush(&mut self.scratch).is_err()
        {
            self.write_failed(index);
        }
        if inbound.received.has_more {
            self.unread.push(index);
        }
    }

    pub(super) fn conclude(&mut self, index: usize, inbound: &Inbound) {
        if let Some(handshake) = inbound.received.handshake {
            self.on_handshake(index, handshake);
        }
        if self.slots[index].phase == Phase::Exchanging {
            match inbound.answer {
                Some(Ok(answer)) => {
                    let first_ns = self.slots[index].first_byte_ns.take().unwrap_or(inbound.arrived.first_ns);
                    let arrived = Arrived { first_ns, ..inbound.arrived };
                    self.on_answer(index, answer, arrived, inbound.has_excess);
                }
                Some(Err(_)) => {
                    let sample = String::from_utf8_lossy(&inbound.sample);
                    return self.fail_with(index, LoadEvent::Protocol, &sample);
                }
                None if inbound.arrived.first_ns > 0 => {
                    self.slots[index].first_byte_ns = Some(inbound.arrived.first_ns);
                }
                None => {}
            }
        } else if self.slots[index].phase == Phase::Ready && inbound.has_excess {
            // Whatever it is, it would be taken for the answer to the next request.
            self.free.retain(|free| *free != index);
            self.close(index);
        }
        if let Some(end) = inbound.received.end {
            self.on_end(index, end);
        }
    }

    /// Hands the slot's request to its connection.
    pub(super) fn start_request(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let Some(request) = &slot.request else { return };
        slot.phase = Phase::Exchanging;
        slot.deadline_ns = request.deadline_ns;
        self.expect_answer(index);
        self.send(index);
    }

    /// Notes that the slot's request is about to be sent, and what the answer is held to.
    pub(super) fn expect_answer(&mut self, index: usize) {
        let is_last = self.is_last(index);
        let slot = &mut self.slots[index];
        let (Some(connection), Some(request)) = (&mut slot.connection, &mut slot.request) else { return };
        slot.is_last = is_last;
        slot.handed = 0;
        slot.first_byte_ns = None;
        connection.requests += 1;
        let prepared = self.requests.at(request.template);
        connection.parser.expect(&prepared.expected);
        if !request.warmup && request.sent_ns.is_none() {
            self.ledger.add(LoadCounter::BodyIn, prepared.body_bytes);
            self.ledger.add(LoadCounter::Reused, u64::from(connection.requests > 1));
        }
        // Not the time of the turn: the last of many requests that are sent in one turn is sent later than the first.
        self.ledger.sent(request, now_ns());
    }

    /// True if the next request of the slot's connection is to be its last.
    fn is_last(&self, index: usize) -> bool {
        let Some(connection) = &self.slots[index].connection else { return false };
        let is_old = self
            .setup
            .lifetime_ns
            .is_some_and(|most| now_ns().saturating_sub(connection.transport.opened_ns) >= most);
        is_old || matches!(self.keepalive, KeepAlive::Requests(most) if connection.requests + 1 >= most)
    }

    /// The bytes of the slot's request, as they would be sent now.
    pub(super) fn bytes_to_send(&self, index: usize) -> &[u8] {
        let request = self.slots[index].request.as_ref();
        request.map_or(&[], |request| self.requests.at(request.template).bytes(self.is_last(index)))
    }

    /// Hands over as much of the request as the socket takes.
    pub(super) fn send(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let (Some(connection), Some(request)) = (&mut slot.connection, &slot.request) else { return };
        let bytes = self.requests.at(request.template).bytes(slot.is_last);
        match connection.transport.send(&bytes[slot.handed..], &mut self.scratch) {
            Ok(handed) => {
                slot.handed += handed;
                self.ledger.add(LoadCounter::BytesIn, handed as u64);
                self.clients[slot.client].totals.bytes_in += handed as u64;
            }
            Err(_) => self.write_failed(index),
        }
    }

    pub(super) fn go_on_writing(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let Some(connection) = &mut slot.connection else { return };
        if connection.transport.flush(&mut self.scratch).is_err() {
            return self.write_failed(index);
        }
        let is_partial = slot.request.as_ref().is_some_and(|request| {
            slot.handed < self.requests.at(request.template).bytes(slot.is_last).len()
        });
        if slot.phase == Phase::Exchanging && is_partial {
            self.send(index);
        }
    }

    pub(super) fn on_answer(&mut self, index: usize, answer: Answer, arrived: Arrived, has_excess: bool) {
        let slot = &mut self.slots[index];
        let (Some(connection), Some(request)) = (&mut slot.connection, slot.request.take()) else { return };
        let prepared = self.requests.at(request.template);
        let is_whole = slot.handed == prepared.bytes(slot.is_last).len();
        connection.answers += 1;
        slot.note_success();
        if self.ledger.answered(&request, answer, arrived, || prepared.name.clone()) {
            self.clients[slot.client].totals.requests_ok += 1;
        }
        if !is_whole || has_excess || (slot.is_last && prepared.expected.is_raw) {
            // An answer before the end of the request, or more than an answer: the framing cannot be trusted. And a
            // server without a protocol does not know that this was the last.
            self.close(index);
        } else if slot.is_last || !answer.keep_alive {
            slot.enter(Phase::Parting, now_ns().saturating_add(PARTING_NS));
        } else {
            slot.enter(Phase::Ready, u64::MAX);
            self.offer(index, arrived.done_ns);
        }
    }
}
