//! The wall time of a completed handshake, in parts that add up to it.

use std::time::Duration;

use telemetry::TlsLatency;

use crate::stats::proxy_stats::ProxyStats;

/// Where the wall time of one handshake went: network, client, worker and compute add up to the whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct HandshakeTime {
    /// From the worker's learning of the `ClientHello` to the end of the last computation.
    pub(crate) whole: Duration,
    /// Round trips; `None` if the kernel does not tell how long one takes.
    pub(crate) network: Option<Duration>,
    /// Waiting for the client, without the round trips.
    pub(crate) client: Duration,
    /// What had come waited for the worker.
    pub(crate) worker: Duration,
    /// Spent in rustls.
    pub(crate) compute: Duration,
    /// Of that, the key exchange; zero if there was none.
    pub(crate) key_exchange: Duration,
    /// Of that, the signature; zero if there was none.
    pub(crate) signature: Duration,
}

impl ProxyStats {
    /// Counts the parts of a handshake's wall time that the proxy's own latencies lack.
    pub(crate) fn handshake_parts(&mut self, is_resumed: bool, time: &HandshakeTime) {
        let (network, client, worker) = if is_resumed {
            (TlsLatency::NetworkResumed, TlsLatency::ClientResumed, TlsLatency::WorkerResumed)
        } else {
            (TlsLatency::NetworkFull, TlsLatency::ClientFull, TlsLatency::WorkerFull)
        };
        let latencies = &mut self.delta.tls.latencies;
        if let Some(took) = time.network {
            latencies[network].record(took);
        }
        latencies[client].record(time.client);
        latencies[worker].record(time.worker);
        let crypto = [(TlsLatency::KeyExchange, time.key_exchange), (TlsLatency::Signature, time.signature)];
        for (latency, took) in crypto {
            if took > Duration::ZERO {
                latencies[latency].record(took);
            }
        }
    }
}
