//! The futures of one connection: hyper's own, and one for each HTTP/2 stream. The worker that owns the connection polls
//! them; there is no runtime.

use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use hyper::rt::Executor;
use slab::Slab;

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Keys of the connections that were woken. A waker must be `Send`, hence the lock; no other thread ever takes it.
#[derive(Clone, Debug, Default)]
pub(crate) struct WokenConnections(Arc<Mutex<Vec<usize>>>);

impl WokenConnections {
    pub(crate) fn take(&self) -> Vec<usize> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The tasks of one connection.
#[derive(Clone)]
pub(crate) struct Tasks {
    slots: Rc<RefCell<Slab<Slot>>>,
    woken: Arc<WokenTasks>,
}

struct Slot {
    /// `None` while it is polled.
    task: Option<Task>,
    waker: Waker,
}

struct WokenTasks {
    tasks: Mutex<Vec<usize>>,
    /// Whether the connection's tasks are being polled: whoever is woken meanwhile is polled in the same run.
    is_running: AtomicBool,
    connection: usize,
    connections: WokenConnections,
}

struct TaskWaker {
    task: usize,
    woken: Arc<WokenTasks>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.push(self.task);
    }
}

impl WokenTasks {
    fn push(&self, task: usize) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if tasks.contains(&task) {
            return;
        }
        tasks.push(task);
        if tasks.len() == 1 && !self.is_running.load(Ordering::Relaxed) {
            let mut connections = self.connections.0.lock().unwrap_or_else(PoisonError::into_inner);
            connections.push(self.connection);
        }
    }
}

impl Tasks {
    /// No tasks yet, of the connection of this key.
    pub(crate) fn new(connection: usize, connections: WokenConnections) -> Self {
        let woken = WokenTasks {
            tasks: Mutex::default(),
            is_running: AtomicBool::new(false),
            connection,
            connections,
        };
        Self { slots: Rc::default(), woken: Arc::new(woken) }
    }

    /// Adds a task, to be polled soon.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        let mut slots = self.slots.borrow_mut();
        let entry = slots.vacant_entry();
        let task = entry.key();
        let waker = Waker::from(Arc::new(TaskWaker { task, woken: Arc::clone(&self.woken) }));
        entry.insert(Slot { task: Some(Box::pin(future)), waker });
        drop(slots);
        self.woken.push(task);
    }

    /// Polls the tasks that were woken, and those that they wake, until none is; at most `rounds` times. True if some
    /// are still woken.
    pub(crate) fn run(&self, rounds: usize) -> bool {
        self.woken.is_running.store(true, Ordering::Relaxed);
        let is_woken = self.run_rounds(rounds);
        self.woken.is_running.store(false, Ordering::Relaxed);
        is_woken
    }

    fn run_rounds(&self, rounds: usize) -> bool {
        for _ in 0..rounds {
            let woken = std::mem::take(&mut *self.woken.tasks.lock().unwrap_or_else(PoisonError::into_inner));
            if woken.is_empty() {
                return false;
            }
            for task in woken {
                self.poll(task);
            }
        }
        !self.woken.tasks.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn poll(&self, key: usize) {
        let taken = self
            .slots
            .borrow_mut()
            .get_mut(key)
            .and_then(|slot| Some((slot.task.take()?, slot.waker.clone())));
        let Some((mut task, waker)) = taken else { return };
        let polled = task.as_mut().poll(&mut Context::from_waker(&waker));
        let mut slots = self.slots.borrow_mut();
        match polled {
            Poll::Pending => slots[key].task = Some(task),
            Poll::Ready(()) => {
                slots.remove(key);
                drop(slots);
            }
        }
    }

    pub(crate) fn clear(&self) {
        let slots = std::mem::take(&mut *self.slots.borrow_mut());
        drop(slots);
    }
}

impl<F: Future<Output = ()> + 'static> Executor<F> for Tasks {
    fn execute(&self, future: F) {
        self.spawn(future);
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks").finish_non_exhaustive()
    }
}
