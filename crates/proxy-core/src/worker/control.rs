//! State shared by the handle and the workers: limits, TLS, bounds, drain and stop.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::accept::access::AccessLists;
use crate::accept::client_conn_counts::ClientConnCounts;
use crate::accept::client_rates::ClientRates;
use crate::accept::limiter::ConnectionLimiter;
use crate::config::Limits;
use crate::memory::MemoryGuard;
use crate::stats::proxy_stats::ConnIds;
use crate::tls::TlsConfig;

/// Shared by the handle and all workers, and never touched on the path of a byte: workers read it when they are woken,
/// and the limiter when they accept.
#[derive(Debug)]
pub(crate) struct ProxyControl {
    draining: AtomicBool,
    stopping: AtomicBool,
    /// Rises with each change of the limits, the address lists or TLS.
    generation: AtomicU64,
    /// Locked by the thread that changes a setting, and by a worker once for each change.
    limits: Mutex<Arc<Limits>>,
    /// Locked in the same cases as `limits`.
    tls: Mutex<TlsConfig>,
    /// Locked in the same cases as `limits`.
    access: Mutex<Arc<AccessLists>>,
    pub(crate) limiter: ConnectionLimiter,
    workers: AtomicUsize,
    /// Whether the listening sockets belong to a service manager, which keeps them open during a drain.
    is_managed: bool,
    /// The addresses at which another process has the listening sockets too, and stays; set before a drain.
    handed_over: OnceLock<Vec<SocketAddr>>,
    pub(crate) memory: MemoryGuard,
    pub(crate) per_client: ClientConnCounts,
    pub(crate) connection_rates: ClientRates,
    pub(crate) handshake_rates: ClientRates,
    pub(crate) ids: ConnIds,
}

impl ProxyControl {
    /// `connections_max` is the effective bound. `is_managed`: the listening sockets belong to a service
    /// manager.
    pub(crate) fn new(limits: Limits, connections_max: usize, tls: TlsConfig, is_managed: bool) -> Self {
        Self {
            draining: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            generation: AtomicU64::new(0),
            limits: Mutex::new(Arc::new(limits)),
            tls: Mutex::new(tls),
            access: Mutex::default(),
            limiter: ConnectionLimiter::new(connections_max),
            workers: AtomicUsize::new(1),
            is_managed,
            handed_over: OnceLock::new(),
            memory: MemoryGuard::default(),
            per_client: ClientConnCounts::default(),
            connection_rates: ClientRates::default(),
            handshake_rates: ClientRates::default(),
            ids: ConnIds::default(),
        }
    }

    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Release);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Acquire)
    }

    /// Asks the workers to cut everything.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    pub(crate) fn limits(&self) -> Arc<Limits> {
        Arc::clone(&self.lock())
    }

    /// Replaces the limits by the result of `change`, unless it fails.
    pub(crate) fn change<T, E>(&self, change: impl FnOnce(&mut Limits) -> Result<T, E>) -> Result<T, E> {
        let mut current = self.lock();
        let mut limits = Limits::clone(&current);
        let result = change(&mut limits)?;
        if let Some(max) = limits.connections_max {
            self.limiter.set_max(max);
        }
        *current = Arc::new(limits);
        self.announce_change();
        Ok(result)
    }

    /// Tells the workers to read the changed settings.
    pub(crate) fn announce_change(&self) {
        self.generation.fetch_add(1, Ordering::Release);
    }

    pub(crate) fn tls(&self) -> TlsConfig {
        self.lock_tls().clone()
    }

    pub(crate) fn set_tls(&self, tls: TlsConfig) {
        *self.lock_tls() = tls;
        self.announce_change();
    }

    pub(crate) fn access(&self) -> Arc<AccessLists> {
        Arc::clone(&self.lock_access())
    }

    pub(crate) fn set_access(&self, access: Arc<AccessLists>) {
        *self.lock_access() = access;
        self.announce_change();
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(crate) fn is_managed(&self) -> bool {
        self.is_managed
    }

    /// Notes that another process serves the listening sockets at these addresses.
    pub(crate) fn hand_over(&self, addrs: Vec<SocketAddr>) {
        // The first one has the sockets.
        let _ = self.handed_over.set(addrs);
    }

    /// Whether others keep the listening socket at `addr` open when this process closes it.
    pub(crate) fn is_kept_open(&self, addr: SocketAddr) -> bool {
        self.is_managed || self.handed_over.get().is_some_and(|addrs| addrs.contains(&addr))
    }

    pub(crate) fn set_workers(&self, n: usize) {
        self.workers.store(n, Ordering::Relaxed);
    }

    /// A worker's share of the pending bytes that all of them may hold.
    pub(crate) fn pending_share(&self, limits: &Limits) -> usize {
        self.share(self.memory.pending_bytes_max(limits.pending_bytes_max))
    }

    /// A worker's share of a limit on all of them.
    pub(crate) fn share(&self, max: usize) -> usize {
        max.div_ceil(self.workers.load(Ordering::Relaxed).max(1))
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Limits>> {
        // Nothing can panic between taking it and storing a whole new value.
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_access(&self) -> MutexGuard<'_, Arc<AccessLists>> {
        // The same.
        self.access.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_tls(&self) -> MutexGuard<'_, TlsConfig> {
        // The same.
        self.tls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
