//! Connections of QUIC, which are counted by their packets: their handshakes are not read.

use foldhash::HashMap;

use crate::options::FlowKey;

/// The connections that are known again, of each generation.
const GENERATION_MAX: usize = 1 << 15;
/// How long a connection is known that says nothing: as long as a NAT has to keep it (RFC 4787, REQ-5), in nanoseconds.
const IDLE_NS: u64 = 120_000_000_000;

/// The connections that were seen lately. Once there are many recent ones, these replace the older ones: only a connection
/// that stands still while so many others come is forgotten early.
#[derive(Debug, Default)]
pub(crate) struct QuicFlows {
    recent: HashMap<FlowKey, QuicFlow>,
    older: HashMap<FlowKey, QuicFlow>,
}

#[derive(Clone, Copy, Debug)]
struct QuicFlow {
    /// The interface that it was seen on first; what others show of it is the same again.
    interface: u32,
    last_ns: u64,
}

impl QuicFlows {
    /// Whether a packet begins a connection; `None` if another interface shows it too.
    pub(crate) fn is_new(&mut self, key: FlowKey, interface: u32, now_ns: u64) -> Option<bool> {
        let known = self.recent.get(&key).or_else(|| self.older.get(&key));
        let known = known.filter(|flow| now_ns.saturating_sub(flow.last_ns) < IDLE_NS).copied();
        let interface_of_flow = known.map_or(interface, |flow| flow.interface);
        if interface_of_flow != interface {
            return None;
        }
        if self.recent.len() >= GENERATION_MAX {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(key, QuicFlow { interface, last_ns: now_ns });
        Some(known.is_none())
    }
}
