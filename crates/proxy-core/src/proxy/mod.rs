//! The handle on a running proxy.

mod bind;
mod upstreams;

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use records::delta::ProxyDelta;
use records::kinds::{CertificateRecord, NoticeRecord};
use records::setting::{Setting, SettingError, Value};

pub use self::bind::{BoundProxy, ProxyStartError};
use crate::accept::access::{AccessFiles, AccessLists};
use crate::accept::descriptors::{Descriptors, DescriptorsError};
use crate::accept::listen::ListenerSets;
use crate::config::handler_settings::HandlerSettings;
use crate::config::options::{PREFIX, refused};
use crate::config::{ProxyConfig, settings};
use crate::notices::NoticeLog;
use crate::tls::{
    FileChanges, LiveTls, PresentedCertificates, TicketKeyError, TicketKeySnapshot, TlsConfig, TlsFiles,
    TlsRefresh,
};
use crate::upstream::balance::Upstreams;
use crate::upstream::check::checker::CheckSettings;
use crate::worker::control::ProxyControl;
use crate::worker::pool::{WorkerFailure, WorkerPool};

/// How often [`Proxy::wait`] checks.
const WAIT_STEP: Duration = Duration::from_millis(2);

/// A running proxy. Dropping it cuts open connections; [`Proxy::drain`] and [`Proxy::join`] end it cleanly.
#[derive(Debug)]
pub struct Proxy {
    config: ProxyConfig,
    descriptors: Descriptors,
    addrs: Vec<SocketAddr>,
    control: Arc<ProxyControl>,
    notices: Arc<NoticeLog>,
    upstreams: Arc<Upstreams>,
    /// How upstreams are checked, if they are.
    checks: Option<CheckSettings>,
    /// Locked by the thread that reads or changes settings, never by a worker.
    tls: Mutex<LiveTls>,
    files: TlsFiles,
    handler_settings: Arc<dyn HandlerSettings>,
    /// Locked by the thread that uses the handle, never by a worker.
    pool: Mutex<WorkerPool>,
}

impl Proxy {
    /// Binds and starts at once.
    ///
    /// # Errors
    /// The errors of [`Proxy::bind`] and [`BoundProxy::start`]. Nothing is left half started.
    pub fn start(config: ProxyConfig) -> Result<Self, ProxyStartError> {
        Self::bind(config)?.start()
    }

    /// Where it listens, in the order of the configuration.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.addrs
    }

    /// The notices since the last call: an upstream that is down or up again, connections that cannot be
    /// accepted, a bound that is reached. Each episode has one, and each subject at most four, then two a
    /// minute. Call it about once a second.
    pub fn take_notices(&self) -> Vec<NoticeRecord> {
        self.notices.take(Instant::now())
    }

    pub fn settings(&self) -> Vec<Setting> {
        let mut settings =
            settings::list(&self.config, &self.control.limits(), self.possible(), self.pool().len());
        settings.retain(|setting| !self.is_unused(&setting.name));
        settings.extend(self.handler_settings.list());
        settings.extend(self.lock_tls().list());
        settings
    }

    /// Changes a setting and returns its former state.
    ///
    /// # Errors
    /// When there is no such setting, it cannot change while the proxy runs, or the value is out of its range.
    pub fn set(&self, name: &str, value: &Value) -> Result<Setting, SettingError> {
        if let Some(result) = self.lock_tls().set(name, value) {
            let (before, tls) = result?;
            self.control.set_tls(tls);
            self.pool().wake();
            return Ok(before);
        }
        if let Some(result) = self.handler_settings.set(name, value) {
            let before = result?;
            self.fit_connections().map_err(|error| {
                // It had this value, so it may have it again.
                let _ = self.handler_settings.set(name, &before.value);
                refused(name, value, error.to_string())
            })?;
            self.pool().wake();
            return Ok(before);
        }
        if self.is_unused(name) {
            return Err(SettingError::Unknown(records::text::clean::text(name)));
        }
        let mut pool = self.pool();
        let workers = pool.len();
        let (before, wanted) = self
            .control
            .change(|limits| settings::set(&self.config, limits, self.possible(), workers, name, value))?;
        if let Some(wanted) = wanted.filter(|_| !self.control.is_draining()) {
            let resized = pool.resize(wanted);
            self.control.set_workers(pool.len());
            self.handler_settings.set_workers(pool.len());
            self.control.announce_change();
            resized.map_err(|error| refused(name, value, error.to_string()))?;
        }
        pool.wake();
        Ok(before)
    }

    /// Connections of clients that the descriptors allow.
    fn possible(&self) -> usize {
        self.descriptors.possible(self.handler_settings.upstream_sockets())
    }

    /// Adjusts the limit on clients' connections to the descriptors that upstreams may take, and lets the workers read
    /// the change.
    fn fit_connections(&self) -> Result<(), DescriptorsError> {
        self.control.change(|limits| {
            let upstreams = self.handler_settings.upstream_sockets();
            let max = self.descriptors.connections_max(limits.connections_max, upstreams)?;
            self.control.limiter.set_max(max);
            Ok(())
        })
    }

    fn is_unused(&self, name: &str) -> bool {
        let limit = name.strip_prefix(PREFIX);
        limit.is_some_and(|limit| self.handler_settings.unused_settings().contains(&limit))
    }

    /// The certificates that it may present, now and after each [`Proxy::refresh`].
    pub fn presented(&self) -> PresentedCertificates {
        self.lock_tls().presented()
    }

    /// The certificates that it serves or served, with their handshakes.
    pub fn certificates(&self) -> Vec<CertificateRecord> {
        self.lock_tls().certificate_records()
    }

    /// The files of its certificates, authorities and ticket keys. A thread that may block checks them about once a
    /// second, and [`Proxy::take`] applies the result.
    pub fn files(&self) -> TlsFiles {
        self.files.clone()
    }

    /// Takes over changed files, and makes a new ticket key when one is due. Open connections go on as they
    /// are.
    pub fn take(&self, changes: FileChanges) -> TlsRefresh {
        let (refreshed, tls) = self.lock_tls().take(changes);
        if let Some(error) = &refreshed.shortage {
            self.notices
                .report_shortage(|| format!("{error}; it is tried again every second"), Instant::now());
        }
        if let Some(tls) = tls {
            self.control.set_tls(tls);
            self.pool().wake();
        }
        refreshed
    }

    /// Checks the files and applies changes, on the caller's thread.
    pub fn refresh(&self) -> TlsRefresh {
        self.take(self.files.check(false))
    }

    /// Reads all files again, whether they have changed or not, and takes them over.
    pub fn reload(&self) -> TlsRefresh {
        self.take(self.files.check(true))
    }

    /// The files of the address lists, for a thread that may block on them: what it reads is for
    /// [`Proxy::set_access`].
    pub fn access_files(&self) -> AccessFiles {
        self.config.access.files().clone()
    }

    /// Replaces the address lists. Open connections go on.
    pub fn set_access(&self, lists: AccessLists) {
        self.control.set_access(Arc::new(lists));
        self.pool().wake();
    }

    /// Forgets all sessions and the keys of all tickets: new connections begin with full handshakes.
    ///
    /// # Errors
    /// When the keys come from a file that others may have too; then nothing is forgotten.
    pub fn forget_sessions(&self) -> Result<(), TicketKeyError> {
        self.replace_ticket_keys(LiveTls::forget_sessions)
    }

    /// Makes a new ticket key. Tickets of the former keys are accepted to the end of their lifetime, unless there are
    /// more than 32 keys.
    ///
    /// # Errors
    /// If the keys come from a file, or there are no tickets; then nothing changes.
    pub fn rotate_tickets(&self) -> Result<(), TicketKeyError> {
        self.replace_ticket_keys(LiveTls::rotate_tickets)
    }

    fn replace_ticket_keys(
        &self,
        replace: impl FnOnce(&mut LiveTls) -> Result<TlsConfig, TicketKeyError>,
    ) -> Result<(), TicketKeyError> {
        let tls = replace(&mut self.lock_tls())?;
        self.control.set_tls(tls);
        self.pool().wake();
        Ok(())
    }

    fn lock_tls(&self) -> MutexGuard<'_, LiveTls> {
        // A panic during a change leaves the former state or the new one.
        self.tls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to `into` the counts of all workers since the last call, and the state of each upstream. Waits up to `patience` for busy workers; a late
    /// worker's counts come with the next call.
    pub fn collect(&mut self, into: &mut ProxyDelta, patience: Duration) {
        let pool = self.pool.get_mut().unwrap_or_else(PoisonError::into_inner);
        pool.collect(into, patience);
        self.upstreams.report(&mut into.upstreams, Instant::now());
    }

    /// Turns new connections away, accepts those that have begun, lets all of them run to their end, and at the drain
    /// timeout cuts the rest. Returns at once.
    ///
    /// Without parsing the protocol inside, a pause in an answer cannot be told from its end, so cut connections end
    /// without a `close_notify`. Only connections on which nothing has ever moved are closed earlier, and cleanly.
    pub fn drain(&self) {
        let mut pool = self.pool();
        pool.release_listeners();
        self.control.drain();
        pool.wake();
    }

    /// Cuts what a drain still waits for, as its timeout does. Returns at once.
    pub fn cut(&self) {
        self.control.stop();
        self.pool().wake();
    }

    /// Its listening sockets, for the process that will replace this one.
    ///
    /// # Errors
    /// If there are no descriptors for them.
    pub fn listeners(&self) -> io::Result<ListenerSets> {
        let is_managed = self.control.is_managed();
        Ok(ListenerSets { listen: self.config.listen.clone(), sets: self.pool().listeners()?, is_managed })
    }

    /// The keys of tickets, for the process that is to replace this one. They are not rotated until
    /// [`Proxy::release_ticket_keys`].
    pub fn hold_ticket_keys(&self) -> TicketKeySnapshot {
        self.lock_tls().hold_ticket_keys()
    }

    /// Rotates the keys of tickets again.
    pub fn release_ticket_keys(&self) {
        self.lock_tls().release_ticket_keys();
    }

    /// Drains, and leaves the waiting connections in the backlogs at `addrs` to the process that replaces this one.
    pub fn hand_over(&self, addrs: Vec<SocketAddr>) {
        self.control.hand_over(addrs);
        self.drain();
    }

    /// True once every worker has ended; one more [`Proxy::collect`] then gets all counts.
    pub fn is_drained(&self) -> bool {
        self.pool().have_all_ended()
    }

    /// The first failure of a worker: it panicked, or cannot wait for events. Call this regularly. The failed worker's
    /// clients are cut, and new clients may wait for it in vain, so call [`Proxy::drain`]: the other workers then
    /// accept them.
    pub fn failure(&self) -> Option<WorkerFailure> {
        self.pool().failure().cloned()
    }

    /// Whether every worker has had a turn since the last call, for a watchdog that asks now and then.
    pub fn is_responsive(&self) -> bool {
        self.pool().have_all_checked_commands()
    }

    /// Waits for the workers to end, which they do after [`Proxy::drain`]; false if `patience` ran out first.
    pub fn wait(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        while !self.is_drained() {
            if Instant::now() >= deadline {
                return false;
            }
            thread::sleep(WAIT_STEP);
        }
        true
    }

    /// Waits for the workers to end. The drain timeout bounds this.
    ///
    /// # Errors
    /// When a worker has failed.
    pub fn join(self) -> Result<(), WorkerFailure> {
        self.pool().join()
    }

    fn pool(&self) -> MutexGuard<'_, WorkerPool> {
        // A panic during a change leaves the running workers, which are all that the caller needs.
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
        // The thread itself has printed its panic, and a failure has no receiver here.
        let _ = self.pool().join();
    }
}

#[cfg(test)]
mod tests;
