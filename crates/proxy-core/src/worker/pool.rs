//! The workers of a proxy: started, added and retired while it runs.
//!
//! Closing a listening socket resets the connections in its backlog. So the pool keeps each worker's listening sockets
//! too. Before a worker retires, the others share its sockets; a new worker takes over the sockets of a retired one,
//! if there are any.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mio::Waker;
use records::delta::{Collector, ProxyDelta, Reporter};

use crate::accept::listen;
use crate::accept::listeners::Set;
use crate::connection::handler::Handler;
use crate::worker::Worker;
use crate::worker::setup::{PreparedWorker, WorkerShared};

/// Commands to a running worker. The handle takes the mutex to send one, and the worker when it is woken,
/// about once a second.
#[derive(Debug)]
pub(crate) struct CommandQueue {
    queue: Mutex<Vec<WorkerCommand>>,
    /// Whether the worker has checked its commands since the last watchdog check.
    has_checked: AtomicBool,
}

impl Default for CommandQueue {
    fn default() -> Self {
        Self { queue: Mutex::default(), has_checked: AtomicBool::new(true) }
    }
}

#[derive(Debug)]
pub(crate) enum WorkerCommand {
    /// Accept from the sockets of another worker too.
    ShareListeners(Set, Vec<TcpListener>),
    /// Stop accepting from the sockets of another worker.
    ReleaseListeners(Set),
    /// Accept no more, serve the open connections, and end.
    Retire,
    #[cfg(test)]
    Panic,
}

impl CommandQueue {
    fn post(&self, command: WorkerCommand) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).push(command);
    }

    pub(crate) fn take(&self) -> Vec<WorkerCommand> {
        self.has_checked.store(true, Ordering::Relaxed);
        std::mem::take(&mut *self.queue.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A worker ended without a command to do so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the proxy's worker {worker} {cause}")]
pub struct WorkerFailure {
    worker: usize,
    cause: String,
}

/// A worker, from its preparation to its end.
#[derive(Debug)]
struct WorkerHandle {
    index: usize,
    waker: Arc<Waker>,
    commands: Arc<CommandQueue>,
    /// `None` before the start, and after the end has been noted.
    thread: Option<JoinHandle<io::Result<()>>>,
}

/// Runs a worker on the calling thread, until it ends. The pool does not depend on the type of handler.
pub(crate) type RunWorker = Arc<dyn Fn(PreparedWorker, Reporter<ProxyDelta>) -> io::Result<()> + Send + Sync>;

/// Runs workers whose clients are served by `H`; `resources` creates the shared resources of a worker's handlers.
pub(crate) fn run_with<H: Handler>(
    resources: impl Fn(usize) -> H::Resources + Send + Sync + 'static,
) -> RunWorker {
    Arc::new(move |prepared, reporter| {
        let resources = resources(prepared.index);
        Worker::<H>::new(prepared, resources).run(reporter)
    })
}

pub(crate) struct WorkerPool {
    run: RunWorker,
    shared: WorkerShared,
    addrs: Vec<SocketAddr>,
    /// The listening sockets of each worker, retired ones included.
    sets: Vec<Vec<TcpListener>>,
    /// Workers that are not started yet.
    prepared: Vec<PreparedWorker>,
    active: Vec<WorkerHandle>,
    /// Workers that accept no more and end with their last connection.
    retired: Vec<WorkerHandle>,
    /// The first failure of a worker.
    failure: Option<WorkerFailure>,
    collector: Collector<ProxyDelta>,
}

impl std::fmt::Debug for WorkerPool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkerPool")
            .field("active", &self.active)
            .field("retired", &self.retired)
            .finish_non_exhaustive()
    }
}

impl WorkerPool {
    /// Prepares `workers`, each with one of `sets`. They share the sets beyond those, as they do after a worker has
    /// retired.
    ///
    /// # Errors
    /// The worker's number and the error, when the kernel refuses something.
    pub(crate) fn new(
        run: RunWorker,
        shared: WorkerShared,
        addrs: Vec<SocketAddr>,
        sets: Vec<Vec<TcpListener>>,
        workers: usize,
    ) -> Result<Self, (usize, io::Error)> {
        let (prepared, active, retired) = (Vec::new(), Vec::new(), Vec::new());
        let (failure, collector) = (None, Collector::default());
        let mut pool = Self { run, shared, addrs, sets, prepared, active, retired, failure, collector };
        for index in 0..workers {
            pool.prepare(index).map_err(|error| (index, error))?;
        }
        for set in workers..pool.sets.len() {
            pool.share(set).map_err(|error| (0, error))?;
        }
        Ok(pool)
    }

    /// The listening sockets of all workers, including retired ones. A service manager's sockets are the same for all
    /// workers.
    ///
    /// # Errors
    /// If there are no descriptors for them.
    pub(crate) fn listeners(&self) -> io::Result<Vec<Vec<TcpListener>>> {
        let count = if self.shared.control.is_managed() { 1 } else { self.sets.len() };
        self.sets.iter().take(count).map(|set| clones(set)).collect()
    }

    /// Starts the workers that are prepared.
    ///
    /// # Errors
    /// The worker's number and the error, when the kernel refuses a thread.
    pub(crate) fn start(&mut self) -> Result<(), (usize, io::Error)> {
        let first = self.active.len() - self.prepared.len();
        for (index, worker) in (first..).zip(std::mem::take(&mut self.prepared)) {
            let waker = Arc::clone(&self.active[index].waker);
            let reporter = self.collector.add_worker(move || wake_up(&waker));
            let run = Arc::clone(&self.run);
            let thread = thread::Builder::new()
                .name(format!("proxy-{index}"))
                .spawn(move || run(worker, reporter))
                .map_err(|error| (index, error))?;
            self.active[index].thread = Some(thread);
        }
        Ok(())
    }

    fn prepare(&mut self, index: usize) -> io::Result<()> {
        let commands = Arc::new(CommandQueue::default());
        let listeners = clones(&self.sets[index])?;
        let (prepared, waker) =
            PreparedWorker::new(index, listeners, Arc::clone(&commands), self.shared.clone())?;
        self.prepared.push(prepared);
        self.active.push(WorkerHandle { index, waker: Arc::new(waker), commands, thread: None });
        Ok(())
    }

    /// The number of workers, retired ones excluded.
    pub(crate) fn len(&self) -> usize {
        self.active.len()
    }

    /// Adds or retires workers until there are `n`, at least one.
    ///
    /// # Errors
    /// When the kernel refuses a socket or a thread; there may be more workers than before then, and never fewer.
    pub(crate) fn resize(&mut self, n: usize) -> io::Result<()> {
        self.failure();
        self.retired.retain(|worker| !worker.has_ended());
        while self.active.len() < n {
            self.add()?;
        }
        while self.active.len() > n {
            self.retire_last()?;
        }
        Ok(())
    }

    fn add(&mut self) -> io::Result<()> {
        let index = self.active.len();
        let has_ended = self.sets.len() > index;
        if !has_ended {
            let another = |addr: &SocketAddr| listen::another(*addr);
            let set = if self.shared.control.is_managed() {
                clones(&self.sets[0])
            } else {
                self.addrs.iter().map(another).collect()
            };
            self.sets.push(set?);
        }
        let added = self.prepare(index).and_then(|()| self.start().map_err(|(_, error)| error));
        if added.is_err() {
            // Clients would wait on sockets without a worker.
            self.sets.truncate(if has_ended { self.sets.len() } else { index });
            self.active.truncate(index);
            self.prepared.clear();
        } else if has_ended {
            self.active[..index]
                .iter()
                .for_each(|worker| worker.tell(WorkerCommand::ReleaseListeners(index)));
        }
        added
    }

    /// Lets the workers before number `set` accept from the sockets of `set` too.
    fn share(&self, set: Set) -> io::Result<()> {
        let others = &self.active[..self.active.len().min(set)];
        let shares: Vec<_> = others.iter().map(|_| clones(&self.sets[set])).collect::<Result<_, _>>()?;
        for (worker, share) in others.iter().zip(shares) {
            worker.tell(WorkerCommand::ShareListeners(set, share));
        }
        Ok(())
    }

    fn retire_last(&mut self) -> io::Result<()> {
        let set = self.active.len() - 1;
        if !self.shared.control.is_managed() {
            self.share(set)?;
        }
        if let Some(worker) = self.active.pop() {
            worker.tell(WorkerCommand::Retire);
            self.retired.push(worker);
        }
        Ok(())
    }

    pub(crate) fn collect(&mut self, into: &mut ProxyDelta, patience: Duration) {
        self.collector.collect(into, patience);
    }

    /// Leaves the listening sockets to the workers, which close them once their backlogs are empty. The
    /// sockets of a worker that has ended go to another one.
    pub(crate) fn release_listeners(&mut self) {
        for (index, set) in std::mem::take(&mut self.sets).into_iter().enumerate() {
            let has_ended = self.active.get(index).is_some_and(WorkerHandle::has_ended);
            let other = self.active.iter().find(|worker| has_ended && !worker.has_ended());
            if let Some(other) = other.filter(|_| !self.shared.control.is_managed()) {
                other.tell(WorkerCommand::ShareListeners(index, set));
            }
        }
    }

    pub(crate) fn wake(&self) {
        self.all().for_each(|worker| wake_up(&worker.waker));
    }

    /// Whether every running worker has checked its commands since the last call. Wakes them all to check again.
    pub(crate) fn have_all_checked_commands(&self) -> bool {
        let is_stuck = |worker: &&WorkerHandle| {
            !worker.commands.has_checked.swap(false, Ordering::Relaxed) && !worker.has_ended()
        };
        let stuck = self.all().filter(is_stuck).count();
        self.wake();
        stuck == 0
    }

    pub(crate) fn have_all_ended(&self) -> bool {
        self.all().all(WorkerHandle::has_ended)
    }

    /// Notes which workers have ended, and returns the first failure.
    pub(crate) fn failure(&mut self) -> Option<&WorkerFailure> {
        self.join_if(WorkerHandle::has_ended)
    }

    /// Waits until all workers have ended.
    ///
    /// # Errors
    /// The first failure of a worker.
    pub(crate) fn join(&mut self) -> Result<(), WorkerFailure> {
        self.join_if(|_| true).cloned().map_or(Ok(()), Err)
    }

    fn join_if(&mut self, is_wanted: fn(&WorkerHandle) -> bool) -> Option<&WorkerFailure> {
        for worker in self.active.iter_mut().chain(&mut self.retired).filter(|worker| is_wanted(worker)) {
            let failed = worker.join().err();
            self.failure = self.failure.take().or(failed);
        }
        self.failure.as_ref()
    }

    #[cfg(test)]
    pub(crate) fn have_retired_ended(&self) -> bool {
        self.retired.iter().all(WorkerHandle::has_ended)
    }

    #[cfg(test)]
    pub(crate) fn tell(&self, index: usize, command: WorkerCommand) {
        let worker = self.all().find(|worker| worker.index == index && !worker.has_ended());
        worker.expect("it runs").tell(command);
    }

    fn all(&self) -> impl Iterator<Item = &WorkerHandle> {
        self.active.iter().chain(&self.retired)
    }

    #[cfg(test)]
    pub(crate) fn take_first_prepared(&mut self) -> PreparedWorker {
        self.prepared.remove(0)
    }
}

impl WorkerHandle {
    fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn join(&mut self) -> Result<(), WorkerFailure> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let cause = match thread.join() {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => format!("is told of no more events: {error}"),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                format!("panicked: {}", text.unwrap_or("it did not say why"))
            }
        };
        Err(WorkerFailure { worker: self.index, cause })
    }

    fn tell(&self, command: WorkerCommand) {
        self.commands.post(command);
        wake_up(&self.waker);
    }
}

fn clones(set: &[TcpListener]) -> io::Result<Vec<TcpListener>> {
    set.iter().map(TcpListener::try_clone).collect()
}

fn wake_up(waker: &Waker) {
    // It only fails after the event loop has ended, and then no thread needs to wake.
    let _ = waker.wake();
}
