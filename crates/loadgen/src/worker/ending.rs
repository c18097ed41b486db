//! How requests fail and connections end.

use records::metrics::LoadCounter;
use records::values::LoadEvent;

use super::connection::ConnectionPhase;
use super::{LoadWorker, TICK_NS};
use crate::clock::now_ns;
use crate::protocol::{ConnectionEnd, ConnectionReuse, Failure, ProtocolSession};

/// How long to wait for the server to close after we have.
const CLOSING_NS: u64 = 1_000_000_000;
/// How long the server may take to close first.
const AWAIT_CLOSE_NS: u64 = 100_000_000;
/// How often within a timeout the deadlines of requests on multiplexed connections are checked.
const REQUEST_CHECKS: u64 = 100;
const REQUEST_CHECK_NS_MAX: u64 = 500_000_000;

impl<S: ProtocolSession> LoadWorker<S> {
    /// A write failed: reads bytes that the server may have sent before.
    pub(super) fn write_failed(&mut self, key: usize) {
        if let Some(connection) = self.connections.get_mut(key) {
            connection.transport.note_broken();
            self.unread.push(key);
        }
    }

    /// Applies the action that a connection's session requests.
    pub(super) fn apply_fate(&mut self, key: usize) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        match (connection.phase, connection.session.fate()) {
            (ConnectionPhase::Open, ConnectionReuse::Retired) => self.slots[connection.slot].release(key),
            (ConnectionPhase::Open, ConnectionReuse::ServerCloses) => {
                connection.enter(ConnectionPhase::AwaitingClose, now_ns().saturating_add(AWAIT_CLOSE_NS));
            }
            (ConnectionPhase::Open, ConnectionReuse::ClientCloses) => {
                let (index, has_no_responses) = (connection.slot, connection.has_no_responses());
                self.close(key);
                if has_no_responses {
                    self.back_off(index);
                }
            }
            (ConnectionPhase::Open, ConnectionReuse::Broken) => {
                connection.session.close();
                self.flush(key);
                // Whether this arrives makes no difference.
                let _ = self.connections[key].transport.close(&mut self.scratch);
                self.lose(key);
            }
            (ConnectionPhase::Closing, ConnectionReuse::Broken)
            | (ConnectionPhase::Open, ConnectionReuse::Lost) => self.lose(key),
            (ConnectionPhase::Open, ConnectionReuse::Open)
            | (
                ConnectionPhase::Connecting
                | ConnectionPhase::Handshaking
                | ConnectionPhase::AwaitingClose
                | ConnectionPhase::Closing,
                _,
            ) => {}
        }
    }

    /// A connection has ended.
    pub(super) fn on_end(&mut self, key: usize, end: ConnectionEnd) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        match connection.phase {
            ConnectionPhase::Connecting => {}
            ConnectionPhase::Handshaking => {
                let failure = connection.transport.handshake_failure(end, &mut self.scratch);
                self.fail_connection(key, &failure);
            }
            ConnectionPhase::Open if end == ConnectionEnd::Tls => {
                let failure = connection.transport.take_trouble();
                let _ = connection.transport.flush(&mut self.scratch);
                self.fail_requests(key, &failure);
                self.lose(key);
            }
            ConnectionPhase::Open => {
                connection.session.end(end, &mut self.ended);
                let _ = connection.transport.close(&mut self.scratch);
                self.account(key);
                self.lose(key);
            }
            ConnectionPhase::AwaitingClose | ConnectionPhase::Closing => {
                let _ = connection.transport.close(&mut self.scratch);
                self.drop_connection(key);
            }
        }
    }

    /// Drops an unusable connection. The slot backs off if no request was answered, so a failing server is not
    /// hammered.
    fn lose(&mut self, key: usize) {
        let connection = &self.connections[key];
        let (index, has_no_responses) = (connection.slot, connection.has_no_responses());
        self.drop_connection(key);
        if has_no_responses {
            self.back_off(index);
        }
    }

    /// No connection could be made: its requests fail.
    pub(super) fn fail_connection(&mut self, key: usize, failure: &Failure) {
        let index = self.connections[key].slot;
        self.fail_requests(key, failure);
        self.drop_connection(key);
        self.fail_waiting(index, failure);
    }

    /// Fails the requests that a connection carries.
    fn fail_requests(&mut self, key: usize, failure: &Failure) {
        let (connection, now_ns) = (&mut self.connections[key], now_ns());
        for request in connection.session.give_up() {
            self.stats.failed(&request, failure.clone(), now_ns);
            self.slots[connection.slot].under_way -= 1;
            self.under_way -= 1;
        }
    }

    /// Fails the requests that wait in a slot.
    pub(super) fn fail_waiting(&mut self, index: usize, failure: &Failure) {
        let (slot, now_ns) = (&mut self.slots[index], now_ns());
        for request in slot.waiting.drain(..) {
            self.stats.failed(&request, failure.clone(), now_ns);
            slot.under_way -= 1;
            self.under_way -= 1;
        }
        self.back_off(index);
    }

    fn back_off(&mut self, index: usize) {
        self.slots[index].back_off(now_ns());
        self.withhold(index);
    }

    /// Takes a slot out of the queue of free slots.
    fn withhold(&mut self, index: usize) {
        if self.slots.get_mut(index).is_some_and(|slot| std::mem::take(&mut slot.is_free)) {
            self.free.retain(|free| *free != index);
        }
    }

    /// Ends connections and requests whose deadline has passed.
    pub(super) fn expire(&mut self, now_ns: u64) {
        let checks_requests = now_ns >= self.next_request_check_ns;
        if checks_requests {
            let every_ns = (self.setup.timeout_ns / REQUEST_CHECKS).clamp(TICK_NS, REQUEST_CHECK_NS_MAX);
            self.next_request_check_ns = now_ns + if S::IS_MULTIPLEXED { every_ns } else { TICK_NS };
        }
        for key in 0..self.connections.capacity() {
            let Some(connection) = self.connections.get_mut(key) else { continue };
            let (index, is_over) = (connection.slot, connection.deadline_ns <= now_ns);
            match connection.phase {
                ConnectionPhase::Connecting if is_over => {
                    self.give_up_dialling(key, LoadEvent::ConnectTimeout, now_ns);
                }
                ConnectionPhase::Handshaking if is_over => {
                    self.give_up_dialling(key, LoadEvent::HandshakeTimeout, now_ns);
                }
                ConnectionPhase::AwaitingClose if is_over => self.close(key),
                ConnectionPhase::Closing if is_over => self.drop_connection(key),
                ConnectionPhase::Open if checks_requests => {
                    connection.session.expire(now_ns, &mut self.ended);
                    if self.ended.is_empty() {
                        continue;
                    }
                    self.account(key);
                    if S::IS_MULTIPLEXED {
                        self.touch(key);
                    }
                    self.apply_fate(key);
                }
                ConnectionPhase::Connecting
                | ConnectionPhase::Handshaking
                | ConnectionPhase::Open
                | ConnectionPhase::AwaitingClose
                | ConnectionPhase::Closing => continue,
            }
            self.go_on(index, now_ns);
        }
        for index in 0..self.slots.len() {
            if checks_requests && !self.slots[index].waiting.is_empty() {
                self.expire_waiting(index, LoadEvent::ConnectTimeout, now_ns);
            }
            if self.slots[index].backs_off_until_ns.take_if(|until_ns| *until_ns <= now_ns).is_some() {
                self.go_on(index, now_ns);
            }
        }
    }

    /// Connecting took longer than its request may take.
    fn give_up_dialling(&mut self, key: usize, event: LoadEvent, now_ns: u64) {
        let connection = &mut self.connections[key];
        let index = connection.slot;
        // A request may have been sent as early data.
        self.slots[index].waiting.extend(connection.session.give_up());
        self.drop_connection(key);
        self.expire_waiting(index, event, now_ns);
        self.back_off(index);
    }

    fn expire_waiting(&mut self, index: usize, event: LoadEvent, now_ns: u64) {
        let before = self.slots[index].waiting.len();
        let (requests, stats) = (&self.requests, &mut self.stats);
        let slot = &mut self.slots[index];
        slot.waiting.retain(|request| {
            if request.deadline_ns > now_ns {
                return true;
            }
            stats.failed(request, Failure::new(event, requests.at(request.template).name.clone()), now_ns);
            false
        });
        let over = before - slot.waiting.len();
        slot.under_way -= over;
        self.under_way -= over;
        if over > 0 {
            self.offer(index, now_ns);
        }
    }

    /// Closes a slot's connection if it carries no request.
    pub(super) fn close_idle(&mut self, index: usize) {
        let Some(key) = self.slots[index].connection.filter(|_| self.slots[index].under_way == 0) else {
            return;
        };
        match self.connections[key].phase {
            ConnectionPhase::Connecting | ConnectionPhase::Handshaking => self.drop_connection(key),
            ConnectionPhase::Open => self.close(key),
            ConnectionPhase::AwaitingClose | ConnectionPhase::Closing => {}
        }
    }

    /// Closes our side, and waits for the server to close.
    fn close(&mut self, key: usize) {
        self.connections[key].session.close();
        self.flush(key);
        let connection = &mut self.connections[key];
        connection.enter(ConnectionPhase::Closing, now_ns().saturating_add(CLOSING_NS));
        let index = connection.slot;
        if S::IS_MULTIPLEXED {
            self.slots[index].release(key);
        } else {
            self.withhold(index);
        }
        if self.connections[key].transport.close(&mut self.scratch).is_err() {
            self.drop_connection(key);
        }
    }

    /// Records all unanswered requests, and drops their connections.
    pub(super) fn cut(&mut self, now_ns: u64) {
        for key in 0..self.connections.capacity() {
            let Some(connection) = self.connections.get_mut(key) else { continue };
            let is_being_made =
                matches!(connection.phase, ConnectionPhase::Connecting | ConnectionPhase::Handshaking);
            let mut had_requests = false;
            for request in connection.session.give_up() {
                self.stats.ended(&request, now_ns);
                had_requests = true;
            }
            if is_being_made || had_requests {
                self.drop_connection(key);
            }
        }
        for slot in &mut self.slots {
            let is_throttled = slot.backs_off_until_ns.is_some();
            for request in slot.waiting.drain(..) {
                let is_counted = request.sent_ns.is_none() && !request.warmup;
                self.stats.add(LoadCounter::Throttled, u64::from(is_throttled && is_counted));
                self.stats.ended(&request, now_ns);
            }
            slot.under_way = 0;
        }
        self.under_way = 0;
    }

    pub(super) fn drop_all_connections(&mut self) {
        for key in 0..self.connections.capacity() {
            if self.connections.contains(key) {
                self.drop_connection(key);
            }
        }
    }

    pub(super) fn drop_connection(&mut self, key: usize) {
        self.scratch.clear();
        let connection = self.connections.remove(key);
        if let Some(slot) = self.slots.get_mut(connection.slot) {
            slot.release(key);
        }
        let is_established = connection.transport.is_established();
        self.stats.add(LoadCounter::Closed, u64::from(is_established));
        self.stats
            .add(LoadCounter::HandshakesFailed, u64::from(connection.phase == ConnectionPhase::Handshaking));
    }
}
