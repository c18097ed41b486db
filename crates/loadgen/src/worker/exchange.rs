//! Sends requests and receives responses.

use mio::event::Event;
use records::metrics::LoadCounter;
use records::values::LoadEvent;

use super::LoadWorker;
use super::connection::{ConnectionPhase, LoadConnection};
use crate::clock::now_ns;
use crate::plan::KeepAlive;
use crate::protocol::{ConnectionReuse, Failure, ProtocolSession, Request, RequestOutcome};
use crate::schedule::DueRequest;

impl<S: ProtocolSession> LoadWorker<S> {
    /// Assigns a request to a free slot.
    pub(super) fn assign(&mut self, index: usize, due: DueRequest, now_ns: u64) {
        let template = match due.scripted {
            Some(scripted) => self.requests.number(scripted.template as usize),
            None => self.requests.next(&self.setup.sequence),
        };
        let warmup = self.load.is_warmup(due, now_ns);
        let request = Request::new(template, due.intended_ns, now_ns, self.setup.timeout_ns, warmup);
        let slot = &mut self.slots[index];
        slot.waiting.push_back(request);
        slot.under_way += 1;
        self.under_way += 1;
        self.serve(index);
    }

    /// Begins the slot's requests as far as its connection has room; without a connection, one is made.
    pub(super) fn serve(&mut self, index: usize) {
        while !self.slots[index].waiting.is_empty() {
            let Some(key) = self.slots[index].connection else {
                if self.slots[index].backs_off_until_ns.is_none() {
                    self.connect(index);
                }
                return;
            };
            if self.connections[key].phase != ConnectionPhase::Open {
                return;
            }
            if S::IS_MULTIPLEXED && self.is_worn_out(&self.connections[key]) {
                self.connections[key].session.retire();
            }
            let session = &self.connections[key].session;
            if session.fate() != ConnectionReuse::Open {
                self.apply_fate(key);
            } else if !session.has_room() {
                return;
            } else if let Some(request) = self.slots[index].waiting.pop_front() {
                self.begin(key, request);
                if !S::IS_MULTIPLEXED {
                    return self.flush(key);
                }
                self.touch(key);
            }
        }
    }

    fn is_old(&self, connection: &LoadConnection<S>) -> bool {
        let opened_ns = connection.transport.opened_ns;
        self.setup.lifetime_ns.is_some_and(|most_ns| now_ns().saturating_sub(opened_ns) >= most_ns)
    }

    /// True if a connection has carried its last request.
    fn is_worn_out(&self, connection: &LoadConnection<S>) -> bool {
        let carried = connection.session.carried();
        matches!(self.keepalive, KeepAlive::Requests(most) if carried >= most)
            || (carried > 0 && self.is_old(connection))
    }

    /// True if the next request of a connection is its last.
    pub(super) fn is_last(&self, connection: &LoadConnection<S>) -> bool {
        let carried = connection.session.carried();
        let is_only = self.slots[connection.slot].under_way == 1;
        self.lane_of(connection.slot).is_some_and(|(lanes, lane)| is_only && lanes.is_over(lane))
            || matches!(self.keepalive, KeepAlive::Requests(most) if carried + 1 >= most)
            || self.is_old(connection)
    }

    /// Begins a request. It is sent with the next [`Self::flush`].
    pub(super) fn begin(&mut self, key: usize, mut request: Request) {
        let is_last = !S::IS_MULTIPLEXED && self.is_last(&self.connections[key]);
        let connection = &mut self.connections[key];
        connection.is_warmup &= request.warmup;
        let prepared = self.requests.at(request.template);
        if !request.warmup && request.sent_ns.is_none() {
            self.stats.add(LoadCounter::BodyIn, prepared.body_bytes);
            self.stats.add(LoadCounter::Reused, u64::from(connection.session.carried() > 0));
        }
        // Not the time of the turn: one turn sends many requests in succession.
        self.stats.sent(&mut request, now_ns());
        connection.session.begin(request, prepared, is_last);
    }

    /// Notes that a connection may have something to send.
    pub(super) fn touch(&mut self, key: usize) {
        let connection = &mut self.connections[key];
        if !std::mem::replace(&mut connection.is_touched, true) {
            self.touched.push(key);
        }
    }

    /// Sends as much as the socket accepts now.
    pub(super) fn flush(&mut self, key: usize) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.is_touched = false;
        if connection.phase != ConnectionPhase::Open {
            return;
        }
        loop {
            let output = connection.session.output(&self.requests);
            if output.is_empty() {
                return;
            }
            let Ok(handed) = connection.transport.send(output, &mut self.scratch) else {
                return self.write_failed(key);
            };
            let is_all = handed == output.len();
            connection.session.note_sent(handed);
            if !connection.is_warmup {
                self.stats.add(LoadCounter::BytesIn, handed as u64);
            }
            self.clients[connection.client].totals.bytes_in += handed as u64;
            if !is_all {
                return;
            }
        }
    }

    pub(super) fn on_event(&mut self, key: usize, event: &Event) {
        // The event may belong to an earlier connection of this key. Reading and writing then have no effect.
        let Some(connection) = self.connections.get_mut(key) else { return };
        let slot = connection.slot;
        if connection.phase == ConnectionPhase::Connecting {
            match connection.transport.establish() {
                Ok(true) => self.on_established(key),
                Ok(false) => return,
                Err(error) => return self.connect_failed(key, &error),
            }
        }
        if let Some(connection) = self.connections.get_mut(key) {
            let has_ended = event.is_read_closed() || event.is_error();
            if has_ended {
                connection.transport.note_peer_shut();
            }
            if event.is_writable() {
                if connection.transport.flush(&mut self.scratch).is_err() {
                    self.write_failed(key);
                }
                self.flush(key);
            }
            if event.is_readable() || has_ended {
                return self.read(key);
            }
        }
        self.go_on(slot, now_ns());
    }

    /// Reads from a connection, and processes the bytes.
    pub(super) fn read(&mut self, key: usize) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if !connection.transport.is_established() {
            return;
        }
        let LoadConnection { transport, session, client, slot, is_warmup, .. } = connection;
        let (index, requests, ended) = (*slot, &self.requests, &mut self.ended);
        let received =
            transport.receive(&mut self.scratch, |plaintext| session.receive(plaintext, requests, ended));
        if !*is_warmup {
            self.stats.add(LoadCounter::BytesOut, received.plaintext_bytes);
        }
        self.clients[*client].totals.bytes_out += received.plaintext_bytes;
        if let Some(handshake) = received.handshake {
            self.on_handshake(key, &handshake);
        }
        // TLS's own messages go out before another connection uses the buffer.
        if let Some(connection) = self.connections.get_mut(key)
            && connection.transport.flush(&mut self.scratch).is_err()
        {
            self.write_failed(key);
        }
        let answered_ns = self.account(key);
        self.apply_fate(key);
        if let Some(end) = received.end {
            self.on_end(key, end);
        }
        if self.connections.contains(key) {
            if S::IS_MULTIPLEXED {
                self.touch(key);
            }
            if received.has_more {
                self.unread.push(key);
            }
        }
        self.go_on(index, answered_ns.unwrap_or_else(now_ns));
    }

    /// Lets a slot use the changed state.
    pub(super) fn go_on(&mut self, index: usize, now_ns: u64) {
        // The slot may be gone while one of its connections still closes.
        if index < self.slots.len() {
            self.serve(index);
            self.offer(index, now_ns);
        }
    }

    /// Records the requests that have ended, and returns the time of the last answer.
    pub(super) fn account(&mut self, key: usize) -> Option<u64> {
        let mut answered_ns = None;
        if self.ended.is_empty() {
            return answered_ns;
        }
        let connection = &self.connections[key];
        let slot = &mut self.slots[connection.slot];
        for (mut request, outcome) in self.ended.drain(..) {
            let prepared = self.requests.at(request.template);
            match outcome {
                RequestOutcome::Answered(answer, arrived) => {
                    answered_ns = Some(arrived.done_ns);
                    slot.reset_backoff();
                    let origin = connection.origin_for(&request);
                    let (expected, name) = (prepared.expected.status, || prepared.name.clone());
                    if self.stats.answered(&request, origin, answer, arrived, expected, name) {
                        self.clients[connection.client].totals.requests_ok += 1;
                    }
                }
                // It is sent once more, unless it was the connection's first request.
                RequestOutcome::Unprocessed(_) if !request.retried && connection.session.carried() > 1 => {
                    request.retried = true;
                    self.load.count_retry(&request);
                    self.stats.count(LoadCounter::Retried);
                    self.stats.count_event(LoadEvent::Retried, || prepared.name.clone());
                    slot.waiting.push_back(request);
                    continue;
                }
                RequestOutcome::Failed(failure) | RequestOutcome::Unprocessed(failure) => {
                    let Failure { event, example } = failure;
                    let colon = if example.is_empty() { "" } else { ": " };
                    let failure = Failure::new(event, format!("{}{colon}{example}", prepared.name));
                    self.stats.failed(&request, failure, now_ns());
                }
            }
            slot.under_way -= 1;
            self.under_way -= 1;
        }
        answered_ns
    }
}
