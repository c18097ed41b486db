//! Forgets connections that are over, and gives up the oldest when there is no room for more.

use records::metrics::ProxyCounter;

use super::{FLOWS_MAX, ROOM_BYTES, WireCounter};
use crate::flow::Flow;
use crate::options::FlowKey;
use crate::order::Order;
use hello::handshake::{End, Step};

/// How much of the memory for parts is left when no more of them are given up, in bytes.
const ROOM_REGAINED_BYTES: usize = ROOM_BYTES / 4;
/// How long a closed connection is known, so that what comes late does not look like a new one.
const CLOSED_NS: u64 = 2_000_000_000;
/// How long a connection that is not open, or closed by one end only, may stand still.
const HALF_OPEN_NS: u64 = 60_000_000_000;

impl WireCounter {
    /// Forgets what is over, or was never opened.
    pub(super) fn sweep(&mut self) {
        let now_ns = self.now_ns;
        let mut stale = Vec::new();
        for (key, flow) in &self.flows {
            let still_ns = now_ns.saturating_sub(flow.last_ns);
            let is_half = flow.opened.established_ns == 0 || flow.first_close.is_some();
            if (flow.has_ended() && still_ns > CLOSED_NS) || (is_half && still_ns > HALF_OPEN_NS) {
                stale.push(*key);
            }
        }
        self.forget(&stale);
    }

    /// Forgets the sixteenth of the connections that have stood still for longest, those that never opened first.
    pub(super) fn make_room(&mut self) {
        let mut by_age: Vec<_> = self
            .flows
            .iter()
            .map(|(key, flow)| (flow.opened.established_ns > 0 && !flow.is_closed, flow.last_ns, *key))
            .collect();
        let forgotten = FLOWS_MAX / 16;
        by_age.select_nth_unstable_by_key(forgotten, |&(is_open, last_ns, _)| (is_open, last_ns));
        let keys: Vec<_> = by_age[..forgotten].iter().map(|&(.., key)| key).collect();
        self.forget(&keys);
    }

    /// Gives up the parts that have waited for longest for their rest: whoever sends only parts must not keep others from
    /// being judged.
    pub(super) fn give_up_parts(&mut self) {
        let has_parts = |flow: &Flow| flow.kept_bytes > 0 || flow.orders.iter().any(Order::has_waiting);
        let mut by_age: Vec<_> = self
            .flows
            .iter()
            .filter(|(_, flow)| has_parts(flow))
            .map(|(key, flow)| (flow.last_ns, *key))
            .collect();
        by_age.sort_unstable_by_key(|&(last_ns, _)| last_ns);
        for (_, key) in by_age {
            if self.room >= ROOM_REGAINED_BYTES {
                break;
            }
            let Some(mut flow) = self.flows.remove(&key) else { continue };
            self.count_unanswered(key, &mut flow);
            self.give_up_missing(key, &mut flow);
            self.give_up_handshake(&mut flow);
            self.flows.insert(key, flow);
        }
    }

    /// Counts a handshake that is not over as not judged.
    fn give_up_handshake(&mut self, flow: &mut Flow) {
        if flow.handshake.is_some() && flow.step() < Step::Complete {
            let counted = self.counted.counter_mut(flow.counter);
            counted.add(ProxyCounter::Unjudged, u64::from(flow.is_counted));
            flow.forget_handshake(&mut self.room);
        }
    }

    /// Gives up the bytes that are missing: those behind them are counted, and not read.
    pub(super) fn give_up_missing(&mut self, key: FlowKey, flow: &mut Flow) {
        for end in [End::Client, End::Server] {
            if flow.orders[end as usize].has_waiting() {
                let added = flow.give_up(end, &mut self.room);
                flow.bytes[end as usize] += added.plain;
                self.traffic(key, flow, end, &added);
            }
        }
    }

    pub(super) fn forget(&mut self, keys: &[FlowKey]) {
        for key in keys {
            let Some(mut flow) = self.flows.remove(key) else { continue };
            if !flow.is_closed {
                self.count_unanswered(*key, &mut flow);
            }
            if flow.is_counted && !flow.is_closed {
                self.give_up_handshake(&mut flow);
                self.close(*key, &mut flow);
            }
            flow.release(&mut self.room);
        }
    }
}
