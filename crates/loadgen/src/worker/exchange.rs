//! What happens to a slot: connecting, shaking hands, a request and its answer, and the ways a connection ends.

use std::io;

use mio::event::Event;
use mio::{Interest, Token};
use telemetry::{LoadCounter, LoadEvent, LoadLatency};

use super::Worker;
use super::slot::Phase;
use crate::clock::now_ns;
use crate::connection::{Connection, End, Inbound};
use crate::http1::Answer;
use crate::ledger::{Arrived, Failure, Request};
use crate::pacer::Due;
use crate::plan::KeepAlive;
use crate::tls::Handshake;

/// How long the server may take to close after an answer that was asked to be the last. It is better placed to
/// close first: the side that does keeps the pair of ports occupied for a minute.
const PARTING_NS: u64 = 100_000_000;
/// How long the server's end is waited for after we have closed.
const CLOSING_NS: u64 = 1_000_000_000;

impl Worker {
    /// Gives a request to a free slot.
    pub(super) fn begin(&mut self, index: usize, due: Due, now_ns: u64) {
        let template = self.next_template();
        let warmup = self.course.is_warmup(due, now_ns);
        let deadline_ns = now_ns.saturating_add(self.setup.timeout_ns);
        let slot = &mut self.slots[index];
        slot.request = Some(Request {
            template,
            intended_ns: due.intended_ns,
            begun_ns: now_ns,
            sent_ns: None,
            deadline_ns,
            retried: false,
            warmup,
        });
        if slot.phase == Phase::Ready {
            self.start_request(index);
        } else {
            self.connect(index);
        }
    }

    /// Makes a connection for the slot's request, from the client whose turn it is.
    fn connect(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        slot.client = self.next_client;
        self.next_client = (self.next_client + 1) % self.clients.len();
        slot.addresses_tried = 0;
        self.try_address(index);
    }

    fn try_address(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let deadline_ns = slot.request.as_ref().map_or(u64::MAX, |request| request.deadline_ns);
        slot.enter(Phase::Connecting, deadline_ns);
        slot.addresses_tried += 1;
        let to = &self.setup.addresses[self.address];
        let from = self.clients[slot.client].bind;
        let opened = Connection::open(to, from, now_ns()).and_then(|mut connection| {
            let interest = Interest::READABLE | Interest::WRITABLE;
            self.poll.registry().register(&mut connection.socket, Token(index), interest)?;
            Ok(connection)
        });
        match opened {
            Ok(connection) => slot.connection = Some(Box::new(connection)),
            Err(error) => self.connect_failed(index, &error),
        }
    }

    /// Tries the server's next address, if it has one that was not tried; the one that works is kept.
    fn connect_failed(&mut self, index: usize, error: &io::Error) {
        self.slots[index].connection = None;
        let to = self.address;
        if self.slots[index].addresses_tried < self.setup.addresses.len() {
            self.address = (self.address + 1) % self.setup.addresses.len();
            return self.try_address(index);
        }
        self.fail(index, Failure::connect(&self.setup.addresses[to], error));
    }

    /// The poll says that something can be done about a slot's connection.
    pub(super) fn on_event(&mut self, index: usize, event: &Event) {
        let slot = &mut self.slots[index];
        // An event may be left from a connection that this slot had before; whatever is tried then says so itself.
        let Some(connection) = &mut slot.connection else { return };
        if slot.phase == Phase::Connecting {
            match connection.establish() {
                Ok(true) => self.on_established(index),
                Ok(false) => return,
                Err(error) => return self.connect_failed(index, &error),
            }
        }
        let Some(connection) = &mut self.slots[index].connection else { return };
        if event.is_read_closed() || event.is_error() {
            connection.note_peer_shut();
        }
        if event.is_writable() {
            self.go_on_writing(index);
        }
        if event.is_readable() || event.is_read_closed() || event.is_error() {
            self.read(index);
        }
    }

    fn on_established(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let Some(connection) = &mut slot.connection else { return };
        let client = &mut self.clients[slot.client];
        self.ledger.count(LoadCounter::Opened);
        client.totals.connections += 1;
        if client.address.is_none() {
            client.address = connection.socket.local_ip();
        }
        if slot.request.as_ref().is_some_and(|request| !request.warmup) {
            let (since_ns, now_ns) = (connection.opened_ns, connection.established_ns);
            self.ledger.time(LoadLatency::Connect, Some(since_ns), now_ns);
        }
        let Some(tls) = &client.tls else { return self.start_request(index) };
        slot.phase = Phase::Handshaking;
        let wanted = client.resume.next(self.resume);
        let begun = tls.begin(wanted);
        let offered = matches!(begun, Ok((_, true)));
        self.ledger.add(LoadCounter::ResumptionsWanted, u64::from(wanted));
        self.ledger.add(LoadCounter::ResumptionsOffered, u64::from(offered));
        let begun = match begun {
            Ok((engine, _)) => connection.shake_hands(engine, &mut self.scratch),
            Err(error) => {
                connection.note_trouble(&error);
                Err(End::Tls)
            }
        };
        if let Err(end) = begun {
            self.on_end(index, end);
        }
    }

    /// Reads, and draws the conclusions.
    pub(super) fn read(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let Some(connection) = &mut slot.connection else { return };
        if !connection.is_established() {
            return;
        }
        let inbound = connection.receive(&mut self.scratch);
        self.ledger.add(LoadCounter::BytesOut, inbound.plaintext_bytes);
        self.clients[slot.client].totals.bytes_out += inbound.plaintext_bytes;
        self.conclude(index, &inbound);
        if let Some(connection) = &mut self.slots[index].connection
            && connection.flush(&mut self.scratch).is_err()
        {
            self.write_failed(index);
        }
        if inbound.has_more {
            self.unread.push(index);
        }
    }

    fn conclude(&mut self, index: usize, inbound: &Inbound) {
        if let Some(handshake) = inbound.handshake {
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
        if let Some(end) = inbound.end {
            self.on_end(index, end);
        }
    }

    fn on_handshake(&mut self, index: usize, handshake: Handshake) {
        let slot = &mut self.slots[index];
        let totals = &mut self.clients[slot.client].totals;
        if handshake.resumed {
            self.ledger.count(LoadCounter::HandshakesResumed);
            totals.handshakes_resumed += 1;
        } else {
            self.ledger.count(LoadCounter::HandshakesFull);
            totals.handshakes_full += 1;
        }
        if let (Some(connection), Some(request)) = (&slot.connection, &slot.request)
            && !request.warmup
        {
            let class =
                if handshake.resumed { LoadLatency::HandshakeResumed } else { LoadLatency::HandshakeFull };
            self.ledger.time(class, Some(connection.established_ns), now_ns());
            self.ledger.tally(handshake.event(), || handshake.describe());
        }
        if slot.phase == Phase::Handshaking {
            // The request goes out together with the end of the handshake.
            self.start_request(index);
        }
    }

    /// Hands the slot's request to its connection.
    fn start_request(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let (Some(connection), Some(request)) = (&mut slot.connection, &mut slot.request) else { return };
        slot.phase = Phase::Exchanging;
        slot.deadline_ns = request.deadline_ns;
        slot.handed = 0;
        connection.requests += 1;
        slot.first_byte_ns = None;
        let is_old =
            self.setup.lifetime_ns.is_some_and(|most| now_ns().saturating_sub(connection.opened_ns) >= most);
        slot.is_last = match self.keepalive {
            KeepAlive::Requests(most) => connection.requests >= most || is_old,
            KeepAlive::Unlimited => is_old,
        };
        let prepared = self.requests.at(request.template);
        connection.parser.expect(&prepared.expected);
        if !request.warmup && request.sent_ns.is_none() {
            self.ledger.add(LoadCounter::BodyIn, prepared.body_bytes);
            self.ledger.add(LoadCounter::Reused, u64::from(connection.requests > 1));
        }
        // Not the time of the turn: the last of many requests that are sent in one turn is sent later than the first.
        self.ledger.sent(request, now_ns());
        self.send(index);
    }

    /// Hands over as much of the request as the socket takes.
    fn send(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let (Some(connection), Some(request)) = (&mut slot.connection, &slot.request) else { return };
        let bytes = self.requests.at(request.template).bytes(slot.is_last);
        match connection.send(&bytes[slot.handed..], &mut self.scratch) {
            Ok(handed) => {
                slot.handed += handed;
                self.ledger.add(LoadCounter::BytesIn, handed as u64);
                self.clients[slot.client].totals.bytes_in += handed as u64;
            }
            Err(_) => self.write_failed(index),
        }
    }

    fn go_on_writing(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        let Some(connection) = &mut slot.connection else { return };
        if connection.flush(&mut self.scratch).is_err() {
            return self.write_failed(index);
        }
        let is_partial = slot.request.as_ref().is_some_and(|request| {
            slot.handed < self.requests.at(request.template).bytes(slot.is_last).len()
        });
        if slot.phase == Phase::Exchanging && is_partial {
            self.send(index);
        }
    }

    /// Looks for what the server may have said before the connection broke.
    fn write_failed(&mut self, index: usize) {
        if let Some(connection) = &mut self.slots[index].connection {
            connection.note_broken();
            self.unread.push(index);
        }
    }

    fn on_answer(&mut self, index: usize, answer: Answer, arrived: Arrived, has_excess: bool) {
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

    /// A slot's connection is over.
    pub(super) fn on_end(&mut self, index: usize, end: End) {
        let slot = &mut self.slots[index];
        let Some(connection) = &mut slot.connection else { return };
        match slot.phase {
            Phase::Vacant | Phase::BackingOff | Phase::Connecting => {}
            Phase::Handshaking => {
                let failure = match end {
                    End::Tls => connection.take_trouble(),
                    End::Clean | End::Cut => {
                        Failure::new(LoadEvent::HandshakeCut, "the connection ended during the handshake")
                    }
                };
                // An alert may say why; whether it arrives makes no difference here.
                let _ = connection.flush(&mut self.scratch);
                self.fail(index, failure);
            }
            Phase::Exchanging => self.on_end_of_exchange(index, end),
            Phase::Ready => {
                let _ = connection.close(&mut self.scratch);
                self.drop_connection(index);
                self.slots[index].enter(Phase::Vacant, u64::MAX);
            }
            Phase::Parting | Phase::Closing => {
                let _ = connection.close(&mut self.scratch);
                self.release(index);
            }
        }
    }

    fn on_end_of_exchange(&mut self, index: usize, end: End) {
        let slot = &mut self.slots[index];
        let (Some(connection), Some(request)) = (&mut slot.connection, &mut slot.request) else { return };
        if end == End::Tls {
            let failure = connection.take_trouble();
            let _ = connection.flush(&mut self.scratch);
            return self.fail(index, failure);
        }
        if end == End::Clean
            && let Some(answer) = connection.parser.end()
        {
            let done_ns = now_ns();
            let arrived = Arrived { first_ns: slot.first_byte_ns.take().unwrap_or(done_ns), done_ns };
            self.on_answer(index, answer, arrived, false);
            return self.on_end(index, end);
        }
        // The server closed while the request was on its way (RFC 9112, section 9.3.1).
        if connection.answers > 0 && !connection.parser.has_begun() && !request.retried {
            request.retried = true;
            let name = &self.requests.at(request.template).name;
            self.ledger.count(LoadCounter::Retried);
            self.ledger.tally(LoadEvent::Retried, || name.clone());
            self.drop_connection(index);
            return self.connect(index);
        }
        let event = if connection.parser.has_begun() { LoadEvent::Short } else { LoadEvent::Reset };
        let how = if end == End::Clean { "closed" } else { "cut" };
        let detail = format!("{how} after {} answers", connection.answers);
        self.fail_with(index, event, &detail);
    }

    /// A phase has lasted until its deadline.
    pub(super) fn expire(&mut self, index: usize) {
        match self.slots[index].phase {
            Phase::BackingOff | Phase::Closing => self.release(index),
            Phase::Connecting => self.fail_with(index, LoadEvent::ConnectTimeout, ""),
            Phase::Handshaking => self.fail_with(index, LoadEvent::HandshakeTimeout, ""),
            Phase::Exchanging => {
                let connection = self.slots[index].connection.as_ref();
                let has_begun = connection.is_some_and(|connection| connection.parser.has_begun());
                let event = if has_begun { LoadEvent::BodyTimeout } else { LoadEvent::AnswerTimeout };
                self.fail_with(index, event, "");
            }
            Phase::Parting => self.close(index),
            Phase::Vacant | Phase::Ready => {}
        }
    }

    /// Closes from our side, and waits for the server's end.
    pub(super) fn close(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        slot.enter(Phase::Closing, now_ns().saturating_add(CLOSING_NS));
        let Some(connection) = &mut slot.connection else { return };
        if connection.close(&mut self.scratch).is_err() {
            self.release(index);
        }
    }

    /// The same as [`Self::fail`], told with the request's name.
    fn fail_with(&mut self, index: usize, event: LoadEvent, detail: &str) {
        let template = self.slots[index].request.as_ref().map(|request| request.template);
        let name = template.map_or("", |template| self.requests.at(template).name.as_str());
        let colon = if detail.is_empty() { "" } else { ": " };
        self.fail(index, Failure::new(event, format!("{name}{colon}{detail}")));
    }

    /// The slot's request has failed, and its connection with it.
    fn fail(&mut self, index: usize, failure: Failure) {
        let slot = &mut self.slots[index];
        let now_ns = now_ns();
        if let Some(request) = slot.request.take() {
            self.ledger.failed(&request, failure, now_ns);
        }
        // A server that never answers is not to be hammered, one that did may have the next connection at once.
        let has_answered = slot.connection.as_ref().is_some_and(|connection| connection.answers > 0);
        if has_answered {
            self.release(index);
        } else {
            self.drop_connection(index);
            self.slots[index].back_off(now_ns);
        }
    }

    /// Frees the slot for another connection.
    fn release(&mut self, index: usize) {
        self.drop_connection(index);
        self.slots[index].enter(Phase::Vacant, u64::MAX);
        self.offer(index, now_ns());
    }

    /// Lets a slot take the next request, unless there are to be fewer of them.
    fn offer(&mut self, index: usize, now_ns: u64) {
        if index < self.active {
            self.slots[index].free_ns = now_ns;
            self.free.push_back(index);
        } else if self.slots[index].phase == Phase::Ready {
            self.close(index);
        }
    }

    pub(super) fn drop_connection(&mut self, index: usize) {
        self.scratch.clear();
        let slot = &mut self.slots[index];
        let Some(connection) = slot.connection.take() else { return };
        self.ledger.add(LoadCounter::Closed, u64::from(connection.is_established()));
        self.ledger.add(LoadCounter::HandshakesFailed, u64::from(slot.phase == Phase::Handshaking));
    }
}
