//! State that the connections of a worker share.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use mio::Registry;

use crate::accept::access::AccessLists;
use crate::accept::networks::Networks;
use crate::accept::proxy_protocol::ProxyProtocol;
use crate::config::Limits;
use crate::io::buffer::BufferPool;
use crate::memory::MemoryLevel;
use crate::notices::NoticeLog;
use crate::stats::proxy_stats::ProxyStats;
use crate::tls::TlsConfig;
use crate::upstream::route::NameRoutes;
use crate::upstream::stream::WorkerTls;
use crate::worker::control::ProxyControl;
use crate::worker::pending::PendingBytes;
use crate::worker::timers::ConnTimers;

/// The data that the connections of a worker share, for the session and for their handlers.
#[derive(Debug)]
pub struct WorkerContext {
    /// Where a handler registers its socket.
    pub registry: Rc<Registry>,
    pub(crate) tls: TlsConfig,
    /// TLS to upstreams.
    pub upstream_tls: Rc<WorkerTls>,
    pub limits: Arc<Limits>,
    pub(crate) access: Arc<AccessLists>,
    /// The header that goes to the upstream, and who must send one to us.
    pub(crate) sends_header: Option<ProxyProtocol>,
    pub(crate) trusted: Arc<Networks>,
    pub(crate) routes: Arc<NameRoutes>,
    /// Whether a connection may be passed or answer a challenge, so its `ClientHello` is read before TLS begins.
    pub(crate) awaits_hello: bool,
    pub(crate) timers: ConnTimers,
    pub(crate) pool: BufferPool,
    pub(crate) pending: PendingBytes,
    /// How much memory is left to the process.
    pub(crate) memory: MemoryLevel,
    /// The pending bytes that the worker may hold until the next sample of memory.
    pub(crate) pending_bytes_left: usize,
    pub(crate) stats: ProxyStats,
    /// Every read goes through it; [`SCRATCH_BYTES`](crate::connection::SCRATCH_BYTES) long.
    pub(crate) scratch: Box<[u8]>,
    /// Whether a drain has begun: no new connections are accepted.
    pub is_draining: bool,
    /// Handshakes that are under way.
    pub(crate) handshaking: usize,
    pub(crate) control: Arc<ProxyControl>,
    pub(crate) notices: Arc<NoticeLog>,
    /// Since when the handshake that has its turn has been ready: when the worker woke up and learned of its bytes.
    pub(crate) ready_at: Instant,
    /// When the worker last read the clock, which it does at least once for each connection that it serves.
    pub now: Instant,
}

/// Pending bytes that every worker may hold, however small its share of the bound: a few connections' worth.
const HELD_BYTES_MIN: usize = 1 << 20;

impl WorkerContext {
    /// Uses the present configuration of TLS for further connections.
    pub(crate) fn update_tls(&mut self) {
        self.tls = self.control.tls().for_worker();
        self.upstream_tls.update(self.tls.upstream());
    }

    /// Whether the worker holds more pending bytes than its share of the bound.
    pub(crate) fn has_too_much_pending(&self) -> bool {
        let held = self.pending.held_bytes;
        held > HELD_BYTES_MIN && held > self.control.pending_share(&self.limits).min(self.pending_bytes_left)
    }

    /// Whether the worker, or the process, holds so much that its connections should hold less.
    pub fn is_short_of_memory(&self) -> bool {
        self.memory > MemoryLevel::Enough
            || self.pending.held_bytes > self.control.pending_share(&self.limits) / 2
    }

    /// The next send timeout, and the connection that it cuts.
    pub(crate) fn next_send_timeout(&self) -> Option<(Instant, usize)> {
        let (since, key) = self.pending.to_client.oldest()?;
        Some((since + self.limits.send_timeout, key))
    }
}
