//! The wall time of a completed handshake, in parts that add up to it.

use std::time::Duration;

use records::metrics::{ProxyLatency, TlsCounter, TlsLatency};

use crate::stats::proxy_stats::ProxyStats;

/// Where the wall time of one handshake went, in nanoseconds: network, client, worker and compute add up to the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HandshakeTime {
    /// From the worker's learning of the `ClientHello` to the end of the last computation.
    pub(crate) whole_ns: u64,
    /// Round trips; `None` if the kernel reports no round-trip time.
    pub(crate) network_ns: Option<u64>,
    /// Waiting for the client, without the round trips.
    pub(crate) client_ns: u64,
    /// Received bytes waited for the worker.
    pub(crate) worker_ns: u64,
    /// Spent in rustls.
    pub(crate) compute_ns: u64,
    /// The part spent on the key exchange; zero if there was none.
    pub(crate) key_exchange_ns: u64,
    /// The part spent on the signature; zero if there was none.
    pub(crate) signature_ns: u64,
    /// The round-trip time that the kernel estimates; `None` before the first.
    pub(crate) rtt: Option<Duration>,
    /// Segments that the kernel sent again.
    pub(crate) retransmits: u32,
}

impl ProxyStats {
    /// Counts the wall time of a handshake and its parts.
    pub(super) fn handshake_time(&mut self, is_resumed: bool, time: &HandshakeTime) {
        use {ProxyLatency as P, TlsLatency as T};
        let (whole, compute, network, client, worker) = if is_resumed {
            (P::HandshakeResumed, P::ComputeResumed, T::NetworkResumed, T::ClientResumed, T::WorkerResumed)
        } else {
            (P::HandshakeFull, P::ComputeFull, T::NetworkFull, T::ClientFull, T::WorkerFull)
        };
        self.delta.latencies[whole].record_ns(time.whole_ns);
        self.delta.latencies[compute].record_ns(time.compute_ns);
        let tls = &mut self.delta.tls;
        if let Some(network_ns) = time.network_ns {
            tls.latencies[network].record_ns(network_ns);
        }
        tls.latencies[client].record_ns(time.client_ns);
        tls.latencies[worker].record_ns(time.worker_ns);
        if time.key_exchange_ns > 0 {
            tls.latencies[T::KeyExchange].record_ns(time.key_exchange_ns);
        }
        if time.signature_ns > 0 {
            tls.latencies[T::Signature].record_ns(time.signature_ns);
        }
        if time.retransmits > 0 {
            tls.counters[TlsCounter::HandshakesRetransmitted] += 1;
            tls.counters[TlsCounter::Retransmits] += u64::from(time.retransmits);
        }
    }
}
