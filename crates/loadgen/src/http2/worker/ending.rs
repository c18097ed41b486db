//! The ways in which requests fail and connections end.

use telemetry::{LoadCounter, LoadEvent};

use super::{LOOK_NS_MAX, LOOKS, Phase, Worker};
use crate::clock::now_ns;
use crate::http2::session::{Broken, Outcome};
use crate::ledger::Failure;
use crate::transport::End;
use crate::worker::TICK_NS;

/// How long the server's end is waited for after we have closed.
const CLOSING_NS: u64 = 1_000_000_000;

impl Worker {
    /// Looks for what the server may have said before the connection broke.
    pub(super) fn write_failed(&mut self, key: usize) {
        if let Some(connection) = self.connections.get_mut(key) {
            connection.transport.note_broken();
            self.unread.push(key);
        }
    }

    /// A connection is over.
    pub(super) fn on_end(&mut self, key: usize, end: End) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        match connection.phase {
            Phase::Connecting => {}
            Phase::Handshaking => {
                let failure = connection.transport.handshake_failure(end, &mut self.scratch);
                self.fail_connection(key, &failure);
            }
            Phase::Open if end == End::Tls => {
                let failure = connection.transport.take_trouble();
                let _ = connection.transport.flush(&mut self.scratch);
                self.fail_streams(key, &failure);
                self.lose(key);
            }
            Phase::Open => {
                let how = if end == End::Clean { "closed" } else { "cut" };
                let how = format!("{how} after {} answers", connection.session.answers());
                connection.session.cut(&how, &mut self.ended);
                let _ = connection.transport.close(&mut self.scratch);
                self.account(key);
                self.lose(key);
            }
            Phase::Closing => self.drop_connection(key),
        }
    }

    /// The server has broken the protocol.
    pub(super) fn on_broken(&mut self, key: usize, broken: Broken) {
        self.fail_streams(key, &broken.failure());
        let connection = &mut self.connections[key];
        if connection.phase == Phase::Open {
            connection.session.close();
            self.flush(key);
            // It may hear of it, or not.
            let _ = self.connections[key].transport.close(&mut self.scratch);
        }
        self.lose(key);
    }

    fn fail_streams(&mut self, key: usize, failure: &Failure) {
        let session = &mut self.connections[key].session;
        self.ended.extend(session.give_up().map(|request| (request, Outcome::Failed(failure.clone()))));
        self.account(key);
    }

    /// Lets go of a connection that has ended by itself.
    fn lose(&mut self, key: usize) {
        let connection = &self.connections[key];
        let (index, was_futile) = (connection.lane, connection.was_futile());
        self.drop_connection(key);
        if was_futile {
            self.back_off(index);
        }
    }

    /// The connection came to nothing.
    pub(super) fn fail_connection(&mut self, key: usize, failure: &Failure) {
        let index = self.connections[key].lane;
        self.drop_connection(key);
        self.fail_waiting(index, failure);
    }

    /// No connection could be made for a lane's requests.
    pub(super) fn fail_waiting(&mut self, index: usize, failure: &Failure) {
        let (lane, now_ns) = (&mut self.lanes[index], now_ns());
        for request in lane.waiting.drain(..) {
            self.ledger.failed(&request, failure.clone(), now_ns);
            lane.under_way -= 1;
            self.under_way -= 1;
        }
        self.back_off(index);
    }

    fn back_off(&mut self, index: usize) {
        self.lanes[index].back_off(now_ns());
        if std::mem::take(&mut self.lanes[index].is_free) {
            self.free.retain(|free| *free != index);
        }
    }

    /// Ends what has lasted until its deadline.
    pub(super) fn expire(&mut self, now_ns: u64) {
        let looks = now_ns >= self.next_look_ns;
        if looks {
            self.next_look_ns = now_ns + (self.setup.timeout_ns / LOOKS).clamp(TICK_NS, LOOK_NS_MAX);
        }
        for key in 0..self.connections.capacity() {
            let Some(connection) = self.connections.get_mut(key) else { continue };
            let is_over = connection.deadline_ns <= now_ns;
            match connection.phase {
                Phase::Connecting if is_over => self.give_up_dialling(key, LoadEvent::ConnectTimeout, now_ns),
                Phase::Handshaking if is_over => {
                    self.give_up_dialling(key, LoadEvent::HandshakeTimeout, now_ns);
                }
                Phase::Closing if is_over => self.drop_connection(key),
                Phase::Open if looks => {
                    connection.session.expire(now_ns, &mut self.ended);
                    if !self.ended.is_empty() {
                        let index = connection.lane;
                        self.account(key);
                        self.touch(key);
                        self.release_if_done(key);
                        self.go_on(index);
                    }
                }
                _ => {}
            }
        }
        for index in 0..self.lanes.len() {
            if looks && !self.lanes[index].waiting.is_empty() {
                self.expire_waiting(index, LoadEvent::ConnectTimeout, now_ns);
            }
            if self.lanes[index].backs_off_until_ns.take_if(|until_ns| *until_ns <= now_ns).is_some() {
                self.go_on(index);
            }
        }
    }

    /// A connection has not come about in the time of the request that it was made for.
    fn give_up_dialling(&mut self, key: usize, event: LoadEvent, now_ns: u64) {
        let index = self.connections[key].lane;
        self.drop_connection(key);
        self.expire_waiting(index, event, now_ns);
        self.back_off(index);
    }

    fn expire_waiting(&mut self, index: usize, event: LoadEvent, now_ns: u64) {
        let before = self.lanes[index].waiting.len();
        let (requests, ledger) = (&self.requests, &mut self.ledger);
        let lane = &mut self.lanes[index];
        lane.waiting.retain(|request| {
            if request.deadline_ns > now_ns {
                return true;
            }
            ledger.failed(request, Failure::new(event, requests.at(request.template).name.clone()), now_ns);
            false
        });
        let over = before - lane.waiting.len();
        lane.under_way -= over;
        self.under_way -= over;
        if over > 0 {
            self.offer(index, now_ns);
        }
    }

    /// Closes a connection that may take nothing more, once it has nothing left.
    pub(super) fn release_if_done(&mut self, key: usize) {
        let connection = &self.connections[key];
        if connection.phase != Phase::Open || !connection.session.is_spent() {
            return;
        }
        let (index, was_futile) = (connection.lane, connection.was_futile());
        self.lanes[index].part_from(key);
        if connection.session.is_idle() {
            self.close(key);
            if was_futile {
                self.back_off(index);
            }
        }
    }

    /// Closes a lane's connection, if it carries nothing.
    pub(super) fn close_idle(&mut self, index: usize) {
        let Some(key) = self.lanes[index].connection.filter(|_| self.lanes[index].under_way == 0) else {
            return;
        };
        if self.connections[key].phase == Phase::Open {
            self.close(key);
        } else {
            self.drop_connection(key);
        }
    }

    /// Closes from our side, and waits for the server's end.
    fn close(&mut self, key: usize) {
        self.connections[key].session.close();
        self.flush(key);
        let connection = &mut self.connections[key];
        connection.phase = Phase::Closing;
        connection.deadline_ns = now_ns().saturating_add(CLOSING_NS);
        self.lanes[connection.lane].part_from(key);
        if connection.transport.close(&mut self.scratch).is_err() {
            self.drop_connection(key);
        }
    }

    /// Accounts for what has no answer yet, and drops all connections.
    pub(super) fn cut(&mut self, now_ns: u64) {
        for key in 0..self.connections.capacity() {
            let Some(connection) = self.connections.get_mut(key) else { continue };
            let ledger = &mut self.ledger;
            connection.session.give_up().for_each(|request| ledger.ended(&request, now_ns));
            self.drop_connection(key);
        }
        for lane in &mut self.lanes {
            let is_throttled = lane.backs_off_until_ns.is_some();
            for request in lane.waiting.drain(..) {
                let is_counted = request.sent_ns.is_none() && !request.warmup;
                self.ledger.add(LoadCounter::Throttled, u64::from(is_throttled && is_counted));
                self.ledger.ended(&request, now_ns);
            }
            lane.under_way = 0;
        }
        self.under_way = 0;
    }

    pub(super) fn drop_connection(&mut self, key: usize) {
        self.scratch.clear();
        let connection = self.connections.remove(key);
        if let Some(lane) = self.lanes.get_mut(connection.lane) {
            lane.part_from(key);
        }
        let is_established = connection.transport.is_established();
        self.ledger.add(LoadCounter::Closed, u64::from(is_established));
        self.ledger.add(LoadCounter::HandshakesFailed, u64::from(connection.phase == Phase::Handshaking));
    }
}
