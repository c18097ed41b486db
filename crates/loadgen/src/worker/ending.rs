//! The ways in which requests fail and connections end.

use telemetry::{LoadCounter, LoadEvent};

use super::Worker;
use super::slot::Phase;
use crate::clock::now_ns;
use crate::ledger::{Arrived, Failure};
use crate::transport::End;

/// How long the server's end is waited for after we have closed.
const CLOSING_NS: u64 = 1_000_000_000;

impl Worker {
    /// Looks for what the server may have said before the connection broke.
    pub(super) fn write_failed(&mut self, index: usize) {
        if let Some(connection) = &mut self.slots[index].connection {
            connection.transport.note_broken();
            self.unread.push(index);
        }
    }

    /// A slot's connection is over.
    pub(super) fn on_end(&mut self, index: usize, end: End) {
        let slot = &mut self.slots[index];
        let Some(connection) = &mut slot.connection else { return };
        match slot.phase {
            Phase::Vacant | Phase::BackingOff | Phase::Connecting => {}
            Phase::Handshaking => {
                let failure = connection.transport.handshake_failure(end, &mut self.scratch);
                self.fail(index, failure);
            }
            Phase::Exchanging => self.on_end_of_exchange(index, end),
            Phase::Ready => {
                let _ = connection.transport.close(&mut self.scratch);
                self.drop_connection(index);
                self.slots[index].enter(Phase::Vacant, u64::MAX);
            }
            Phase::Parting | Phase::Closing => {
                let _ = connection.transport.close(&mut self.scratch);
                self.release(index);
            }
        }
    }

    pub(super) fn on_end_of_exchange(&mut self, index: usize, end: End) {
        let slot = &mut self.slots[index];
        let (Some(connection), Some(request)) = (&mut slot.connection, &mut slot.request) else { return };
        if end == End::Tls {
            let failure = connection.transport.take_trouble();
            let _ = connection.transport.flush(&mut self.scratch);
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
        if connection.transport.close(&mut self.scratch).is_err() {
            self.release(index);
        }
    }

    /// The same as [`Self::fail`], told with the request's name.
    pub(super) fn fail_with(&mut self, index: usize, event: LoadEvent, detail: &str) {
        let template = self.slots[index].request.as_ref().map(|request| request.template);
        let name = template.map_or("", |template| self.requests.at(template).name.as_str());
        let colon = if detail.is_empty() { "" } else { ": " };
        self.fail(index, Failure::new(event, format!("{name}{colon}{detail}")));
    }

    /// The slot's request has failed, and its connection with it.
    pub(super) fn fail(&mut self, index: usize, failure: Failure) {
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
    pub(super) fn release(&mut self, index: usize) {
        self.drop_connection(index);
        self.slots[index].enter(Phase::Vacant, u64::MAX);
        self.offer(index, now_ns());
    }

    /// Lets a slot take the next request, unless there are to be fewer of them.
    pub(super) fn offer(&mut self, index: usize, now_ns: u64) {
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
        self.ledger.add(LoadCounter::Closed, u64::from(connection.transport.is_established()));
        self.ledger.add(LoadCounter::HandshakesFailed, u64::from(slot.phase == Phase::Handshaking));
    }
}
