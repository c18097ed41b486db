//! Requests and their answers.

use mio::event::Event;
use telemetry::{LoadCounter, LoadEvent};

use super::{Connection, Phase, Worker};
use crate::clock::now_ns;
use crate::http2::session::Outcome;
use crate::ledger::{Failure, Over, Request};
use crate::pacer::Due;
use crate::plan::KeepAlive;

impl Worker {
    /// Gives a request to a free lane.
    pub(super) fn take_on(&mut self, index: usize, due: Due, now_ns: u64) {
        let template = self.requests.next(&self.setup.sequence);
        let warmup = self.course.is_warmup(due, now_ns);
        let request = Request::new(template, due, now_ns, self.setup.timeout_ns, warmup);
        let lane = &mut self.lanes[index];
        lane.waiting.push_back(request);
        lane.under_way += 1;
        self.under_way += 1;
        self.serve(index);
    }

    /// Lets the lane's requests begin, as far as there is a connection for them; if there is none, one is made.
    pub(super) fn serve(&mut self, index: usize) {
        while !self.lanes[index].waiting.is_empty() {
            let Some(key) = self.lanes[index].connection else {
                if self.lanes[index].backs_off_until_ns.is_none() {
                    self.connect(index);
                }
                return;
            };
            let connection = &self.connections[key];
            if connection.phase != Phase::Open {
                return;
            }
            if self.is_worn_out(connection) {
                self.connections[key].session.retire();
                self.release_if_done(key);
            } else if !connection.session.has_room() {
                return;
            } else if let Some(request) = self.lanes[index].waiting.pop_front() {
                self.begin(key, request);
            }
        }
    }

    /// True if a connection is to carry no more requests.
    fn is_worn_out(&self, connection: &Connection) -> bool {
        let Connection { session, transport, .. } = connection;
        let is_old = self.setup.lifetime_ns.is_some_and(|most_ns| {
            now_ns().saturating_sub(transport.opened_ns) >= most_ns && session.carried() > 0
        });
        let is_spent = matches!(self.keepalive, KeepAlive::Requests(most) if session.carried() >= most);
        is_old || is_spent || session.is_spent()
    }

    fn begin(&mut self, key: usize, mut request: Request) {
        let connection = &mut self.connections[key];
        let prepared = self.requests.at(request.template);
        if !request.warmup && request.sent_ns.is_none() {
            self.ledger.add(LoadCounter::BodyIn, prepared.body_bytes);
            self.ledger.add(LoadCounter::Reused, u64::from(connection.session.carried() > 0));
        }
        request.over = if request.begun_ns <= connection.ready_ns { connection.over } else { Over::Kept };
        self.ledger.sent(&mut request, now_ns());
        connection.session.begin(request, &prepared.http2);
        self.touch(key);
    }

    /// Notes that a connection may have something to send.
    pub(super) fn touch(&mut self, key: usize) {
        let connection = &mut self.connections[key];
        if !std::mem::replace(&mut connection.is_touched, true) {
            self.touched.push(key);
        }
    }

    /// Sends what the socket takes for now.
    pub(super) fn flush(&mut self, key: usize) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.is_touched = false;
        if connection.phase != Phase::Open {
            return;
        }
        loop {
            connection.session.pump();
            let output = connection.session.output();
            if output.is_empty() {
                return;
            }
            let Ok(handed) = connection.transport.send(output, &mut self.scratch) else {
                return self.write_failed(key);
            };
            let is_all = handed == output.len();
            connection.session.note_sent(handed);
            self.ledger.add(LoadCounter::BytesIn, handed as u64);
            self.clients[connection.client].totals.bytes_in += handed as u64;
            if !is_all {
                return;
            }
        }
    }

    /// The poll says that something can be done about a connection.
    pub(super) fn on_event(&mut self, key: usize, event: &Event) {
        // An event may be left from a connection that had this key before; whatever is tried then says so itself.
        let Some(connection) = self.connections.get_mut(key) else { return };
        if connection.phase == Phase::Connecting {
            match connection.transport.establish() {
                Ok(true) => self.on_established(key),
                Ok(false) => return,
                Err(error) => return self.connect_failed(key, &error),
            }
        }
        let Some(connection) = self.connections.get_mut(key) else { return };
        if event.is_read_closed() || event.is_error() {
            connection.transport.note_peer_shut();
        }
        if event.is_writable() {
            if connection.transport.flush(&mut self.scratch).is_err() {
                self.write_failed(key);
            }
            self.touch(key);
        }
        if event.is_readable() || event.is_read_closed() || event.is_error() {
            self.read(key);
        } else {
            // Without TLS a connection is ready as soon as it stands.
            self.go_on(self.connections[key].lane);
        }
    }

    /// Reads, and draws the conclusions.
    pub(super) fn read(&mut self, key: usize) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if !connection.transport.is_established() {
            return;
        }
        let Connection { transport, session, client, lane, .. } = connection;
        let (requests, ended) = (&self.requests, &mut self.ended);
        let received =
            transport.receive(&mut self.scratch, |plaintext| session.receive(plaintext, requests, ended));
        self.ledger.add(LoadCounter::BytesOut, received.plaintext_bytes);
        self.clients[*client].totals.bytes_out += received.plaintext_bytes;
        let index = *lane;
        // What TLS itself has to say goes out before anything else makes use of what it is kept in.
        if transport.flush(&mut self.scratch).is_err() {
            self.write_failed(key);
        }
        if let Some(handshake) = received.handshake {
            self.on_handshake(key, &handshake);
        }
        self.conclude(key);
        if let Some(end) = received.end {
            self.on_end(key, end);
        }
        if self.connections.contains(key) {
            self.touch(key);
            self.release_if_done(key);
            if received.has_more && self.connections.contains(key) {
                self.unread.push(key);
            }
        }
        self.go_on(index);
    }

    /// Lets a lane make use of what has changed.
    pub(super) fn go_on(&mut self, index: usize) {
        // It may be gone, while one of its connections still closes.
        if index < self.lanes.len() {
            self.serve(index);
            self.offer(index, now_ns());
        }
    }

    /// Draws the conclusions from what a connection has brought.
    fn conclude(&mut self, key: usize) {
        self.account(key);
        let Some(connection) = self.connections.get(key) else { return };
        if let Some(broken) = connection.session.broken() {
            self.on_broken(key, broken);
        }
    }

    /// Enters what has become of requests.
    pub(super) fn account(&mut self, key: usize) {
        if self.ended.is_empty() {
            return;
        }
        let connection = &self.connections[key];
        let lane = &mut self.lanes[connection.lane];
        for (mut request, outcome) in self.ended.drain(..) {
            let prepared = self.requests.at(request.template);
            match outcome {
                Outcome::Answered(answer, arrived) => {
                    lane.note_success();
                    if self.ledger.answered(&request, answer, arrived, || prepared.name.clone()) {
                        self.clients[connection.client].totals.requests_ok += 1;
                    }
                }
                // It goes once more, if that is not all there is to the connection.
                Outcome::Unheard(_) if !request.retried && connection.session.carried() > 1 => {
                    request.retried = true;
                    self.ledger.count(LoadCounter::Retried);
                    self.ledger.tally(LoadEvent::Retried, || prepared.name.clone());
                    lane.waiting.push_back(request);
                    continue;
                }
                Outcome::Failed(failure) | Outcome::Unheard(failure) => {
                    let Failure { event, example } = failure;
                    let colon = if example.is_empty() { "" } else { ": " };
                    let failure = Failure::new(event, format!("{}{colon}{example}", prepared.name));
                    self.ledger.failed(&request, failure, now_ns());
                }
            }
            lane.under_way -= 1;
            self.under_way -= 1;
        }
    }
}
