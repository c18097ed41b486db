//! The handle on a running proxy.

use std::fmt;
use std::io;
use std::mem;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use telemetry::{NoticeRecord, ProxyDelta, Setting, SettingError, Value};

use crate::accept::descriptors::{self, DescriptorsError};
use crate::accept::listen::{self, ListenAddr, ListenError};
use crate::config::ProxyConfig;
use crate::config::cpus::{Cpus, CpusError};
use crate::config::settings::{self, ConfigError};
use crate::connection::handler::Handler;
use crate::notices::NoticeLog;
use crate::relay::Relay;
use crate::tls::{ForgetError, LiveTls, Looked, Presented, Refreshed, Tls, TlsConfigError, TlsFiles};
use crate::upstream::balance::{UPSTREAMS_MAX, Upstreams};
use crate::upstream::dial::UpstreamDialer;
use crate::upstream::target::{ResolveError, Upstream};
use crate::worker::control::Control;
use crate::worker::pool::{RunWorker, WorkerFailed, WorkerPool, run_with};
use crate::worker::setup::Shared;

/// How often [`Proxy::wait`] looks.
const WAIT_STEP: Duration = Duration::from_millis(2);

/// Why a proxy did not start. Nothing of it is left running then.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No address to listen at was given.
    #[error("there is no address to listen at")]
    NoListener,
    /// It was told something that cannot be.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// It would forward to itself.
    #[error("the upstream {0} is where the proxy itself listens")]
    Itself(Upstream),
    /// An address cannot be listened at.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// There are no upstreams, or too many.
    #[error("{0} upstreams were given; expected 1 to {UPSTREAMS_MAX}")]
    Upstreams(usize),
    /// An upstream's name is unknown.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// There are not enough descriptors for the connections asked for.
    #[error(transparent)]
    Descriptors(#[from] DescriptorsError),
    /// A core that the workers shall run on is not there.
    #[error(transparent)]
    Cpus(#[from] CpusError),
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

/// A running proxy. Dropping it cuts whatever is still open; [`Proxy::drain`] and [`Proxy::join`] end it well.
#[derive(Debug)]
pub struct Proxy {
    config: ProxyConfig,
    /// Connections that the descriptors allow.
    possible: usize,
    addrs: Vec<SocketAddr>,
    control: Arc<Control>,
    notices: Arc<NoticeLog>,
    /// Taken by whoever reads or changes settings, never by a worker.
    tls: Mutex<LiveTls>,
    files: TlsFiles,
    /// Taken by whoever uses the handle, never by a worker.
    pool: Mutex<WorkerPool>,
}

/// A proxy that has everything it can be refused, and serves nobody yet: connections wait in its backlog. Dropping
/// it gives its addresses back.
pub struct BoundProxy {
    config: ProxyConfig,
    possible: usize,
    addrs: Vec<SocketAddr>,
    control: Arc<Control>,
    notices: Arc<NoticeLog>,
    tls: LiveTls,
    pool: WorkerPool,
}

#[cfg(test)]
impl BoundProxy {
    /// Where it listens, and a worker to be driven by hand.
    pub(crate) fn into_first_worker(self) -> (SocketAddr, crate::worker::Worker<Relay>) {
        let upstreams = Upstreams::resolve(&self.config.upstreams, self.notices).expect("it was resolved");
        let dialer = UpstreamDialer::new(Arc::new(upstreams), 0);
        (self.addrs[0], crate::worker::Worker::new(self.pool.into_first_prepared(), dialer))
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
        let Self { config, possible, addrs, control, notices, tls, pool } = self;
        let files = tls.files();
        let (tls, pool) = (Mutex::new(tls), Mutex::new(pool));
        let proxy = Proxy { config, possible, addrs, control, notices, tls, files, pool };
        // What was started before a failure ends when the half-made proxy is dropped here.
        proxy.pool().start().map_err(|(worker, source)| StartError::Worker { worker, source })?;
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
    pub fn bind(config: ProxyConfig) -> Result<BoundProxy, StartError> {
        Self::bind_to(config, relay)
    }

    /// The same for a proxy whose clients are served by another handler than the one that relays bytes to an upstream.
    /// `resources` makes what the handlers of a worker share, on its thread, from the worker's number.
    ///
    /// # Errors
    /// For the reasons of [`Proxy::bind`].
    pub fn bind_with<H: Handler>(
        config: ProxyConfig,
        resources: impl Fn(usize) -> H::Resources + Send + Sync + 'static,
    ) -> Result<BoundProxy, StartError> {
        Self::bind_to(config, |_| run_with::<H>(resources))
    }

    fn bind_to(
        config: ProxyConfig,
        run: impl FnOnce(Arc<Upstreams>) -> RunWorker,
    ) -> Result<BoundProxy, StartError> {
        settings::check(&config)?;
        let workers = config.workers.get();
        let bound =
            config.listen.iter().map(|&addr| listen::bind(addr, workers)).collect::<Result<Vec<_>, _>>()?;
        let addrs = bound.iter().map(|bound| bound.addr).collect();
        let mut listeners: Vec<_> = bound.into_iter().map(|bound| bound.listeners.into_iter()).collect();
        let set = |_| listeners.iter_mut().filter_map(Iterator::next).collect();
        let sets = (0..workers).map(set).collect();
        Self::prepare(config, addrs, sets, false, run)
    }

    /// The same on sockets that listen already, which serve all workers, instead of the addresses of `config`. They
    /// are taken for those of a service manager that keeps them open: a drain leaves to it what waits in their
    /// backlogs.
    ///
    /// # Errors
    /// When a socket is no use, or for the reasons of [`Proxy::bind`].
    pub fn bind_inherited(
        mut config: ProxyConfig,
        listeners: Vec<TcpListener>,
    ) -> Result<BoundProxy, StartError> {
        settings::check(&config)?;
        let inherited = listeners.into_iter().map(listen::inherit).collect::<io::Result<Vec<_>>>();
        let (addrs, set): (Vec<_>, Vec<_>) = inherited.map_err(ListenError::Inherited)?.into_iter().unzip();
        config.listen = addrs.iter().copied().map(ListenAddr::Addr).collect();
        let clones = |_| set.iter().map(TcpListener::try_clone).collect();
        let sets = (0..config.workers.get()).map(clones).collect::<io::Result<_>>();
        Self::prepare(config, addrs, sets.map_err(ListenError::Inherited)?, true, relay)
    }

    fn prepare(
        mut config: ProxyConfig,
        addrs: Vec<SocketAddr>,
        sets: Vec<Vec<TcpListener>>,
        is_handed_over: bool,
        run: impl FnOnce(Arc<Upstreams>) -> RunWorker,
    ) -> Result<BoundProxy, StartError> {
        if addrs.is_empty() {
            return Err(StartError::NoListener);
        }
        let limit = descriptors::raise_limit();
        let possible = descriptors::possible(limit, config.workers.get(), addrs.len());
        let connections_max = descriptors::connections_max(config.limits.connections_max, possible, limit)?;
        config.cpus.as_ref().map_or(Ok(()), Cpus::check)?;
        let n = config.upstreams.len();
        if !(1..=UPSTREAMS_MAX).contains(&n) {
            return Err(StartError::Upstreams(n));
        }
        // Taken out, so that keys that are replaced are not kept here.
        let tls = Tls {
            certificates: mem::take(&mut config.tls.certificates),
            ticket_keys: config.tls.ticket_keys.take(),
            ..config.tls.clone()
        };
        let mut tls = LiveTls::new(tls)?;
        let notices = Arc::new(NoticeLog::default());
        let control = Control::new(config.limits.clone(), connections_max, tls.config()?, is_handed_over);
        let control = Arc::new(control);
        control.set_workers(config.workers.get());
        let upstreams = Upstreams::resolve(&config.upstreams, Arc::clone(&notices))?;
        if let Some(itself) = upstreams.any_at(&addrs) {
            return Err(StartError::Itself(config.upstreams[itself].clone()));
        }
        let shared = Shared {
            clients_max: config.clients_max,
            cpus: config.cpus.clone(),
            sends_header: config.proxy_protocol,
            trusted: Arc::new(config.accept_proxy.clone()),
            control: Arc::clone(&control),
            notices: Arc::clone(&notices),
        };
        let pool = WorkerPool::new(run(Arc::new(upstreams)), shared, addrs.clone(), sets)
            .map_err(|(worker, source)| StartError::Worker { worker, source })?;
        Ok(BoundProxy { config, possible, addrs, control, notices, tls, pool })
    }

    /// Binds and starts at once.
    ///
    /// # Errors
    /// Those of [`Proxy::bind`] and [`BoundProxy::start`]; nothing is left half started.
    pub fn start(config: ProxyConfig) -> Result<Self, StartError> {
        Self::bind(config)?.start()
    }

    /// Where it listens, in the order of the configuration.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.addrs
    }

    /// What it had to say to the person on the box since the last call: an upstream that is gone or back, connections
    /// that cannot be accepted, a bound that is reached. Once an episode each, and of one matter four times and then
    /// twice a minute at the most. To be called about once a second.
    pub fn take_notices(&self) -> Vec<NoticeRecord> {
        self.notices.take(Instant::now())
    }

    /// Its settings as they stand.
    pub fn settings(&self) -> Vec<Setting> {
        let mut settings =
            settings::list(&self.config, &self.control.limits(), self.possible, self.pool().len());
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
            self.pool().wake();
            return Ok(before);
        }
        let mut pool = self.pool();
        let workers = pool.len();
        let (before, wanted) = self
            .control
            .change(|limits| settings::set(&self.config, limits, self.possible, workers, name, value))?;
        if let Some(wanted) = wanted.filter(|_| !self.control.is_draining()) {
            let resized = pool.resize(wanted);
            self.control.set_workers(pool.len());
            resized.map_err(|error| settings::refused(name, value, error.to_string()))?;
        }
        pool.wake();
        Ok(before)
    }

    /// The certificates that it may present, now and after each [`Proxy::refresh`].
    pub fn presented(&self) -> Presented {
        self.lock_tls().presented()
    }

    /// The files of its certificates, authorities and ticket keys, to be looked at about once a second by a thread that
    /// may wait for them; what it finds is for [`Proxy::take`].
    pub fn files(&self) -> TlsFiles {
        self.files.clone()
    }

    /// Goes on with what was read from the files again, and makes a new ticket key of its own when it is due. Open
    /// connections go on as they are.
    pub fn take(&self, looked: Looked) -> Refreshed {
        let (refreshed, tls) = self.lock_tls().take(looked);
        if let Some(error) = &refreshed.shortage {
            self.notices.short_of(|| format!("{error}; it is tried again every second"), Instant::now());
        }
        if let Some(tls) = tls {
            self.control.set_tls(tls);
            self.pool().wake();
        }
        refreshed
    }

    /// Looks at the files and takes what has changed, both on the caller's thread.
    pub fn refresh(&self) -> Refreshed {
        self.take(self.files.look(false))
    }

    /// The same, with all files read at once and whether they have changed or not.
    pub fn reload(&self) -> Refreshed {
        self.take(self.files.look(true))
    }

    /// Forgets all sessions and the keys of all tickets: new connections begin with full handshakes.
    ///
    /// # Errors
    /// When the keys come from a file that others may have too; then nothing is forgotten.
    pub fn forget_sessions(&self) -> Result<(), ForgetError> {
        let tls = self.lock_tls().forget_sessions()?;
        self.control.set_tls(tls);
        self.pool().wake();
        Ok(())
    }

    fn lock_tls(&self) -> MutexGuard<'_, LiveTls> {
        // A panic in the midst of a change leaves what was there before it, or what follows it.
        self.tls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds to `into` what all workers counted since the last call. Waits up to `patience` for busy ones; what a
    /// late one counted comes with the next call.
    pub fn collect(&mut self, into: &mut ProxyDelta, patience: Duration) {
        let pool = self.pool.get_mut().unwrap_or_else(PoisonError::into_inner);
        pool.collect(into, patience);
    }

    /// Turns new connections away, takes those that have begun, lets all of them go on until they end by themselves,
    /// and at the drain timeout cuts what is left. Returns at once.
    ///
    /// Without knowing the protocol inside nobody can tell a pause in an answer from its end, so that what is cut ends
    /// without a `close_notify`. Only connections on which nothing has ever moved are closed earlier, and cleanly.
    pub fn drain(&self) {
        let mut pool = self.pool();
        pool.let_go();
        self.control.drain();
        pool.wake();
    }

    /// True once every worker has ended; one more [`Proxy::collect`] then gets all that was counted.
    pub fn is_drained(&self) -> bool {
        self.pool().have_all_ended()
    }

    /// The first failure of a worker, if there was any: it panicked, or cannot wait for events. To be asked for now and
    /// then. What a failed worker served is cut off, and those who come next may wait for it in vain, so that
    /// [`Proxy::drain`] should follow: it lets the others take those who wait.
    pub fn failure(&self) -> Option<WorkerFailed> {
        self.pool().failure().cloned()
    }

    /// Whether every worker has had a turn since the last call, for a watchdog that asks now and then.
    pub fn is_responsive(&self) -> bool {
        self.pool().have_all_turned()
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
    /// When a worker has failed.
    pub fn join(self) -> Result<(), WorkerFailed> {
        self.pool().join()
    }

    fn pool(&self) -> MutexGuard<'_, WorkerPool> {
        // A panic in the midst of a change leaves workers that run, and those are what it is asked for.
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Runs workers that relay bytes to the upstreams.
fn relay(upstreams: Arc<Upstreams>) -> RunWorker {
    run_with::<Relay>(move |worker| UpstreamDialer::new(Arc::clone(&upstreams), worker))
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.control.stop();
        let mut pool = self.pool();
        pool.wake();
        // A panic has been printed by the thread itself, and there is nobody to return a failure to.
        let _ = pool.join();
    }
}

#[cfg(test)]
mod tests;
