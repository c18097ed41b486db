//! The handle on a running proxy.

use std::fmt;
use std::io;
use std::mem;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mio::Waker;
use telemetry::{Collector, ProxyDelta, Setting, SettingError, Value};

use crate::config::ProxyConfig;
use crate::control::Control;
use crate::descriptors::{self, DescriptorsError};
use crate::listen::{self, ListenError};
use crate::settings;
use crate::tls::{LiveTls, Presented, Refreshed, Tls, TlsConfigError};
use crate::upstream::ResolveError;
use crate::worker::{Setup, Worker};

/// How often [`Proxy::wait`] looks.
const WAIT_STEP: Duration = Duration::from_millis(2);

/// Why a proxy did not start. Nothing of it is left running then.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No address to listen at was given.
    #[error("there is no address to listen at")]
    NoListener,
    /// An address cannot be listened at.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The upstream's name is unknown.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// There are not enough descriptors for the connections asked for.
    #[error(transparent)]
    Descriptors(#[from] DescriptorsError),
    /// TLS could not be set up.
    #[error(transparent)]
    Tls(#[from] TlsConfigError),
    /// The kernel refused an event loop or a thread.
    #[error("cannot start the proxy's worker {worker}: {source}")]
    Worker {
        /// The worker's number.
        worker: usize,
        /// Why.
        source: io::Error,
    },
}

/// A worker ended by a panic, which is a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a worker of the proxy panicked")]
pub struct WorkerPanicked;

/// A running proxy. Dropping it cuts whatever is still open; [`Proxy::drain`] and [`Proxy::join`] end it well.
#[derive(Debug)]
pub struct Proxy {
    config: ProxyConfig,
    /// Connections that the descriptors allow.
    possible: usize,
    addrs: Vec<SocketAddr>,
    control: Arc<Control>,
    /// Taken by whoever reads or changes settings, never by a worker.
    tls: Mutex<LiveTls>,
    collector: Collector<ProxyDelta>,
    workers: Vec<(Arc<Waker>, Option<JoinHandle<()>>)>,
}

/// A proxy that has everything it can be refused, and serves nobody yet: connections wait in its backlog. Dropping
/// it gives its addresses back.
pub struct BoundProxy {
    config: ProxyConfig,
    possible: usize,
    addrs: Vec<SocketAddr>,
    control: Arc<Control>,
    tls: LiveTls,
    workers: Vec<(Worker, Waker)>,
}

#[cfg(test)]
impl BoundProxy {
    /// Where it listens, and a worker to be driven by hand.
    pub(crate) fn into_first_worker(mut self) -> (SocketAddr, Worker) {
        (self.addrs[0], self.workers.remove(0).0)
    }
}

impl BoundProxy {
    /// Where it will serve, in the order of the configuration.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.addrs
    }

    /// Starts the workers, named `proxy-0`, `proxy-1` and so on.
    ///
    /// # Errors
    /// When the kernel refuses a thread; none is left running.
    pub fn start(self) -> Result<Proxy, StartError> {
        let mut proxy = Proxy {
            config: self.config,
            possible: self.possible,
            addrs: self.addrs,
            control: self.control,
            tls: Mutex::new(self.tls),
            collector: Collector::default(),
            workers: Vec::new(),
        };
        for (index, (worker, waker)) in self.workers.into_iter().enumerate() {
            // What was started before a failure ends when the half-made proxy is dropped here.
            proxy
                .spawn(index, worker, waker)
                .map_err(|source| StartError::Worker { worker: index, source })?;
        }
        Ok(proxy)
    }
}

impl fmt::Debug for BoundProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundProxy").field("addrs", &self.addrs).finish_non_exhaustive()
    }
}

impl Proxy {
    /// Binds every address and prepares the workers, without serving yet. Raises the process's limit on
    /// descriptors as far as it may.
    ///
    /// # Errors
    /// When an address is taken, the upstream's name is unknown, or the kernel or the library of cryptography
    /// refuses.
    pub fn bind(mut config: ProxyConfig) -> Result<BoundProxy, StartError> {
        let limit = descriptors::raise_limit();
        let possible = descriptors::connections_max(None, limit)?;
        let connections_max = descriptors::connections_max(config.limits.connections_max, limit)?;
        let target = config.upstream.resolve()?;
        // Taken out, so that keys that are replaced are not kept here.
        let tls = Tls {
            certificates: mem::take(&mut config.tls.certificates),
            ticket_keys: config.tls.ticket_keys.take(),
            ..config.tls.clone()
        };
        let mut tls = LiveTls::new(tls)?;
        let workers = config.workers.get();
        let bound =
            config.listen.iter().map(|&addr| listen::bind(addr, workers)).collect::<Result<Vec<_>, _>>()?;
        if bound.is_empty() {
            return Err(StartError::NoListener);
        }
        let addrs = bound.iter().map(|bound| bound.addr).collect();
        let control = Arc::new(Control::new(config.limits.clone(), connections_max, tls.config()?));
        let mut listeners: Vec<_> = bound.into_iter().map(|bound| bound.listeners.into_iter()).collect();
        let prepare = |index| {
            let setup = Setup {
                index,
                workers,
                clients_max: config.clients_max,
                listeners: listeners.iter_mut().filter_map(Iterator::next).collect(),
                target: target.clone(),
                control: Arc::clone(&control),
            };
            Worker::new(setup).map_err(|source| StartError::Worker { worker: index, source })
        };
        let workers = (0..workers).map(prepare).collect::<Result<_, _>>()?;
        Ok(BoundProxy { config, possible, addrs, control, tls, workers })
    }

    /// Binds and starts at once.
    ///
    /// # Errors
    /// Those of [`Proxy::bind`] and [`BoundProxy::start`]; nothing is left half started.
    pub fn start(config: ProxyConfig) -> Result<Self, StartError> {
        Self::bind(config)?.start()
    }

    fn spawn(&mut self, index: usize, worker: Worker, waker: Waker) -> io::Result<()> {
        let waker = Arc::new(waker);
        let wake = Arc::clone(&waker);
        let reporter = self.collector.add_worker(move || wake_up(&wake));
        let thread = thread::Builder::new().name(format!("proxy-{index}")).spawn(|| worker.run(reporter))?;
        self.workers.push((waker, Some(thread)));
        Ok(())
    }

    /// Where it listens, in the order of the configuration.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.addrs
    }

    /// Its settings as they stand.
    pub fn settings(&self) -> Vec<Setting> {
        let mut settings = settings::list(&self.config, &self.control.limits(), self.possible);
        settings.extend(self.lock_tls().list());
        settings
    }

    /// Changes a setting and returns it as it stood before.
    ///
    /// # Errors
    /// When there is no such setting, it cannot change while the proxy runs, or the value is out of its range.
    pub fn set(&self, name: &str, value: &Value) -> Result<Setting, SettingError> {
        if let Some(result) = self.lock_tls().set(name, value) {
            let (before, tls) = result?;
            self.control.set_tls(tls);
            self.wake();
            return Ok(before);
        }
        let before =
            self.control.change(|limits| settings::set(&self.config, limits, self.possible, name, value))?;
        self.wake();
        Ok(before)
    }

    /// The certificates that it may present, now and after each [`Proxy::refresh`].
    pub fn presented(&self) -> Presented {
        self.lock_tls().presented()
    }

    /// Reads certificates, authorities and ticket keys again where their files have changed and have stayed so since
    /// the last call, and makes a new ticket key of its own when it is due. To be called about once a second; files
    /// are only looked at, on the caller's thread. Open connections go on as they are.
    pub fn refresh(&self) -> Refreshed {
        self.look(false)
    }

    /// The same, with all files read at once and whether they have changed or not.
    pub fn reload(&self) -> Refreshed {
        self.look(true)
    }

    fn look(&self, at_once: bool) -> Refreshed {
        let (refreshed, tls) = self.lock_tls().refresh(at_once);
        if let Some(tls) = tls {
            self.control.set_tls(tls);
            self.wake();
        }
        refreshed
    }

    fn lock_tls(&self) -> MutexGuard<'_, LiveTls> {
        // A panic in the midst of a change leaves what was there before it, or what follows it.
        self.tls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to `into` what all workers counted since the last call. Waits up to `patience` for busy ones; what a
    /// late one counted comes with the next call.
    pub fn collect(&mut self, into: &mut ProxyDelta, patience: Duration) {
        self.collector.collect(into, patience);
    }

    /// Stops accepting once the connections that wait in the backlog are taken, lets handshakes and transfers
    /// finish up to the drain timeout, then closes what is left. Returns at once.
    ///
    /// Without knowing the protocol inside, a connection counts as being between two exchanges, and is closed,
    /// when the upstream has answered, nothing waits to be sent, and nothing has moved for the drain's quiet time.
    pub fn drain(&self) {
        self.control.drain();
        self.wake();
    }

    /// True once every worker has ended; one more [`Proxy::collect`] then gets all that was counted.
    pub fn is_drained(&self) -> bool {
        self.workers.iter().all(|(_, thread)| thread.as_ref().is_none_or(JoinHandle::is_finished))
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

    /// Waits for the workers to end, without a limit of its own: a drain has one.
    ///
    /// # Errors
    /// When a worker panicked.
    pub fn join(mut self) -> Result<(), WorkerPanicked> {
        self.join_all()
    }

    fn join_all(&mut self) -> Result<(), WorkerPanicked> {
        let mut result = Ok(());
        for (_, thread) in &mut self.workers {
            if thread.take().is_some_and(|thread| thread.join().is_err()) {
                result = Err(WorkerPanicked);
            }
        }
        result
    }

    fn wake(&self) {
        self.workers.iter().for_each(|(waker, _)| wake_up(waker));
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.control.stop();
        self.wake();
        // A panic has been printed by the thread itself, and there is nobody to return it to.
        let _ = self.join_all();
    }
}

fn wake_up(waker: &Waker) {
    // It only fails when the event loop is gone, and then there is nobody to wake.
    let _ = waker.wake();
}
