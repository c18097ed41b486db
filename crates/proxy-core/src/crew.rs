//! The workers as the handle knows them: started, added, and sent into retirement while the proxy runs.
//!
//! Closing a socket resets the connections that wait in its backlog. The handle therefore keeps each worker's
//! listening sockets too. When a worker is to end, the others share its sockets first; when one is added, it takes
//! over the sockets of one that has ended, if there are any.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mio::Waker;
use telemetry::{Collector, ProxyDelta};

use crate::listen;
use crate::listeners::Set;
use crate::worker::{Setup, Shared, Worker};

/// What a worker is told while it runs. The mutex is taken by the handle when it has something to say, and by the
/// worker when it is woken, which happens about once a second.
#[derive(Debug)]
pub(crate) struct Mailbox {
    orders: Mutex<Vec<Order>>,
    /// Whether the worker has looked since it was last asked.
    looked: AtomicBool,
}

impl Default for Mailbox {
    fn default() -> Self {
        Self { orders: Mutex::default(), looked: AtomicBool::new(true) }
    }
}

/// What a worker is told.
#[derive(Debug)]
pub(crate) enum Order {
    /// To accept from the sockets of another worker too.
    Share(Set, Vec<TcpListener>),
    /// To give up the sockets of another worker that it shares.
    GiveUp(Set),
    /// To accept no more, serve what it has, and end.
    Retire,
}

impl Mailbox {
    fn post(&self, order: Order) {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner).push(order);
    }

    pub(crate) fn take(&self) -> Vec<Order> {
        self.looked.store(true, Ordering::Relaxed);
        std::mem::take(&mut *self.orders.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A worker that is prepared, or that runs.
#[derive(Debug)]
struct Hand {
    waker: Arc<Waker>,
    mailbox: Arc<Mailbox>,
    thread: Option<JoinHandle<()>>,
}

/// All workers of a proxy.
pub(crate) struct Crew {
    shared: Shared,
    addrs: Vec<SocketAddr>,
    /// The sockets of each worker that there is or has been.
    sets: Vec<Vec<TcpListener>>,
    /// Prepared, and not started yet.
    waiting: Vec<Worker>,
    hands: Vec<Hand>,
    /// Those that serve what they have, and end.
    retired: Vec<Hand>,
    collector: Collector<ProxyDelta>,
}

impl std::fmt::Debug for Crew {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Crew")
            .field("hands", &self.hands)
            .field("retired", &self.retired)
            .finish_non_exhaustive()
    }
}

impl Crew {
    /// Prepares a worker for each of `sets`.
    ///
    /// # Errors
    /// The number of the worker for which the kernel refuses something.
    pub(crate) fn new(
        shared: Shared,
        addrs: Vec<SocketAddr>,
        sets: Vec<Vec<TcpListener>>,
    ) -> Result<Self, (usize, io::Error)> {
        let (waiting, hands, retired) = (Vec::new(), Vec::new(), Vec::new());
        let mut crew = Self { shared, addrs, sets, waiting, hands, retired, collector: Collector::default() };
        for index in 0..crew.sets.len() {
            crew.prepare(index).map_err(|error| (index, error))?;
        }
        Ok(crew)
    }

    /// Starts those that are prepared.
    ///
    /// # Errors
    /// The number of the worker for which the kernel refuses a thread.
    pub(crate) fn start(&mut self) -> Result<(), (usize, io::Error)> {
        let first = self.hands.len() - self.waiting.len();
        for (index, worker) in (first..).zip(std::mem::take(&mut self.waiting)) {
            let waker = Arc::clone(&self.hands[index].waker);
            let reporter = self.collector.add_worker(move || wake_up(&waker));
            let thread = thread::Builder::new()
                .name(format!("proxy-{index}"))
                .spawn(|| worker.run(reporter))
                .map_err(|error| (index, error))?;
            self.hands[index].thread = Some(thread);
        }
        Ok(())
    }

    fn prepare(&mut self, index: usize) -> io::Result<()> {
        let mailbox = Arc::new(Mailbox::default());
        let listeners = clones(&self.sets[index])?;
        let setup = Setup { index, listeners, mailbox: Arc::clone(&mailbox), shared: self.shared.clone() };
        let (worker, waker) = Worker::new(setup)?;
        self.waiting.push(worker);
        self.hands.push(Hand { waker: Arc::new(waker), mailbox, thread: None });
        Ok(())
    }

    /// How many there are, less those that only serve what they have.
    pub(crate) fn len(&self) -> usize {
        self.hands.len()
    }

    /// Adds workers or retires some, so that there are `n`, at least one.
    ///
    /// # Errors
    /// When the kernel refuses a socket or a thread; there may be more workers than before then, and never fewer.
    pub(crate) fn resize(&mut self, n: usize) -> io::Result<()> {
        self.retired.retain(|hand| hand.thread.as_ref().is_some_and(|thread| !thread.is_finished()));
        while self.hands.len() < n {
            self.add()?;
        }
        while self.hands.len() > n {
            self.retire_last()?;
        }
        Ok(())
    }

    fn add(&mut self) -> io::Result<()> {
        let index = self.hands.len();
        let has_ended = self.sets.len() > index;
        if !has_ended {
            let another = |addr: &SocketAddr| listen::another(*addr);
            let set = if self.shared.control.is_handed_over() {
                clones(&self.sets[0])
            } else {
                self.addrs.iter().map(another).collect()
            };
            self.sets.push(set?);
        }
        let added = self.prepare(index).and_then(|()| self.start().map_err(|(_, error)| error));
        if added.is_err() {
            // Sockets that nobody accepts from would keep clients waiting.
            self.sets.truncate(if has_ended { self.sets.len() } else { index });
            self.hands.truncate(index);
            self.waiting.clear();
        } else if has_ended {
            self.hands[..index].iter().for_each(|hand| hand.tell(Order::GiveUp(index)));
        }
        added
    }

    fn retire_last(&mut self) -> io::Result<()> {
        let set = self.hands.len() - 1;
        if !self.shared.control.is_handed_over() {
            let shares: Vec<_> = (0..set).map(|_| clones(&self.sets[set])).collect::<Result<_, _>>()?;
            for (hand, share) in self.hands.iter().zip(shares) {
                hand.tell(Order::Share(set, share));
            }
        }
        if let Some(hand) = self.hands.pop() {
            hand.tell(Order::Retire);
            self.retired.push(hand);
        }
        Ok(())
    }

    pub(crate) fn collect(&mut self, into: &mut ProxyDelta, patience: Duration) {
        self.collector.collect(into, patience);
    }

    /// Leaves the listening sockets to the workers, which close them when they have emptied their backlogs.
    pub(crate) fn let_go(&mut self) {
        self.sets.clear();
    }

    pub(crate) fn wake(&self) {
        self.everybody().for_each(|hand| wake_up(&hand.waker));
    }

    /// Whether all that have not ended have looked into their mailboxes since the last call; wakes them to do so
    /// again.
    pub(crate) fn have_all_turned(&self) -> bool {
        let is_stuck = |hand: &&Hand| {
            !hand.mailbox.looked.swap(false, Ordering::Relaxed)
                && hand.thread.as_ref().is_some_and(|thread| !thread.is_finished())
        };
        let stuck = self.everybody().filter(is_stuck).count();
        self.wake();
        stuck == 0
    }

    pub(crate) fn have_all_ended(&self) -> bool {
        self.everybody().all(|hand| hand.thread.as_ref().is_none_or(JoinHandle::is_finished))
    }

    /// Waits for all to end; false if one of them panicked.
    pub(crate) fn join(&mut self) -> bool {
        let has_panicked = |hand: &mut Hand| hand.thread.take().is_some_and(|thread| thread.join().is_err());
        self.hands.iter_mut().chain(&mut self.retired).map(has_panicked).filter(|&has| has).count() == 0
    }

    fn everybody(&self) -> impl Iterator<Item = &Hand> {
        self.hands.iter().chain(&self.retired)
    }

    #[cfg(test)]
    pub(crate) fn into_first_worker(mut self) -> Worker {
        self.waiting.remove(0)
    }
}

impl Hand {
    fn tell(&self, order: Order) {
        self.mailbox.post(order);
        wake_up(&self.waker);
    }
}

fn clones(set: &[TcpListener]) -> io::Result<Vec<TcpListener>> {
    set.iter().map(TcpListener::try_clone).collect()
}

fn wake_up(waker: &Waker) {
    // It only fails when the event loop is gone, and then there is nobody to wake.
    let _ = waker.wake();
}
