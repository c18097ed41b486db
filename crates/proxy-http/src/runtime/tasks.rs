//! The futures of one connection: hyper's own, and one for each HTTP/2 stream. The worker that owns the connection polls
//! them; there is no runtime.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use hyper::rt::Executor;

/// Slots that a connection keeps while it has few tasks.
const SPARE_SLOTS_MAX: usize = 64;

/// Tasks whose memory a worker keeps, of each type.
const SPARE_TASKS_MAX: usize = 256;

/// A future in memory that is used again.
trait Task {
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()>;

    /// Drops the future, and keeps its memory.
    fn recycle(self: Pin<Box<Self>>, spare: &SpareTasks);
}

impl<F: Future<Output = ()> + 'static> Task for Option<F> {
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.as_pin_mut().map_or(Poll::Ready(()), |future| future.poll(cx))
    }

    fn recycle(mut self: Pin<Box<Self>>, spare: &SpareTasks) {
        self.as_mut().set(None);
        spare.keep(self);
    }
}

/// The memory of tasks that are over, for later ones of the same type: there are hundreds at once, more than an allocator
/// keeps at hand.
#[derive(Clone, Default)]
pub(crate) struct SpareTasks(Rc<RefCell<Vec<Box<dyn Any>>>>);

type SpareTasksOf<F> = Vec<Pin<Box<Option<F>>>>;

impl SpareTasks {
    fn of<F: 'static, T>(&self, act: impl FnOnce(&mut SpareTasksOf<F>) -> T) -> T {
        let mut all = self.0.borrow_mut();
        let known = all.iter().position(|of| of.is::<SpareTasksOf<F>>());
        let at = known.unwrap_or_else(|| {
            all.push(Box::new(SpareTasksOf::<F>::new()));
            all.len() - 1
        });
        act(all[at].downcast_mut().expect("has this type"))
    }

    fn keep<F: 'static>(&self, task: Pin<Box<Option<F>>>) {
        self.of(|spare: &mut SpareTasksOf<F>| {
            if spare.len() < SPARE_TASKS_MAX {
                spare.push(task);
            }
        });
    }

    fn boxed<F: 'static>(&self, future: F) -> Pin<Box<Option<F>>> {
        match self.of(|spare: &mut SpareTasksOf<F>| spare.pop()) {
            Some(mut task) => {
                task.set(Some(future));
                task
            }
            None => Box::pin(Some(future)),
        }
    }
}

impl fmt::Debug for SpareTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpareTasks").finish_non_exhaustive()
    }
}

/// Keys of the connections that were woken. A waker must be `Send`, so there is a lock. No other thread ever takes it.
#[derive(Clone, Debug, Default)]
pub(crate) struct WokenConnections(Arc<Mutex<Vec<usize>>>);

impl WokenConnections {
    pub(crate) fn push(&self, connection: usize) {
        lock(&self.0).push(connection);
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }

    pub(crate) fn take(&self) -> Vec<usize> {
        mem::take(&mut *lock(&self.0))
    }
}

/// The tasks of one connection.
#[derive(Clone)]
pub(crate) struct Tasks(Rc<TaskSet>);

struct TaskSet {
    slots: RefCell<TaskSlots>,
    /// Tasks that are being polled, or are to be.
    round: RefCell<Vec<usize>>,
    woken: Arc<WokenTasks>,
    spare: SpareTasks,
}

/// The slots of tasks. A slot keeps its waker for the next task, which a late wake of the former task may poll in vain.
#[derive(Default)]
struct TaskSlots {
    slots: Vec<TaskSlot>,
    /// The indices of slots without a task.
    free: Vec<usize>,
}

struct TaskSlot {
    /// `None` while it is polled, or if there is none.
    task: Option<Pin<Box<dyn Task>>>,
    state: Arc<TaskWaker>,
    waker: Waker,
}

struct WokenTasks {
    tasks: Mutex<Vec<usize>>,
    /// Whether the connection's tasks are being polled: a task woken meanwhile is polled in the same run.
    is_running: AtomicBool,
    connection: usize,
    connections: WokenConnections,
}

struct TaskWaker {
    task: usize,
    is_woken: AtomicBool,
    woken: Arc<WokenTasks>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Two operations cost less than an atomic one. A second thread could only have the task polled twice.
        if !self.is_woken.load(Ordering::Relaxed) {
            self.is_woken.store(true, Ordering::Relaxed);
            self.woken.push(self.task);
        }
    }
}

impl WokenTasks {
    fn push(&self, task: usize) {
        let mut tasks = lock(&self.tasks);
        tasks.push(task);
        if tasks.len() == 1 && !self.is_running.load(Ordering::Relaxed) {
            self.connections.push(self.connection);
        }
    }
}

impl TaskSlots {
    /// Puts a task into a place, and wakes it.
    fn insert(&mut self, task: Pin<Box<dyn Task>>, woken: &Arc<WokenTasks>) {
        let at = self.free.pop().unwrap_or_else(|| {
            let task = self.slots.len();
            let woken = Arc::clone(woken);
            let state = Arc::new(TaskWaker { task, is_woken: AtomicBool::new(false), woken });
            let waker = Waker::from(Arc::clone(&state));
            self.slots.push(TaskSlot { task: None, state, waker });
            task
        });
        let slot = &mut self.slots[at];
        slot.task = Some(task);
        slot.waker.wake_by_ref();
    }

    /// Frees the place of a task that is over, and the memory of most places once few are taken.
    fn free(&mut self, at: usize) {
        self.free.push(at);
        let taken = self.slots.len() - self.free.len();
        if taken <= 1 && self.slots.len() > SPARE_SLOTS_MAX {
            let is_free = |slot: &TaskSlot| slot.task.is_none();
            while self.slots.len() > 1 && self.slots.last().is_some_and(is_free) {
                self.slots.pop();
            }
            self.slots.shrink_to_fit();
            let len = self.slots.len();
            self.free.retain(|&at| at < len);
            self.free.shrink_to_fit();
        }
    }
}

impl Tasks {
    /// No tasks yet, of the connection of this key.
    pub(crate) fn new(connection: usize, connections: WokenConnections, spare: SpareTasks) -> Self {
        let woken = WokenTasks {
            tasks: Mutex::default(),
            is_running: AtomicBool::new(false),
            connection,
            connections,
        };
        Self(Rc::new(TaskSet {
            slots: RefCell::default(),
            round: RefCell::default(),
            woken: Arc::new(woken),
            spare,
        }))
    }

    /// Adds a task, to be polled soon.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        self.0.slots.borrow_mut().insert(self.0.spare.boxed(future), &self.0.woken);
    }

    /// Polls the tasks that were woken, and those that they wake, until none is; at most `rounds` times. True if some
    /// are still woken.
    pub(crate) fn run(&self, rounds: usize) -> bool {
        self.0.woken.is_running.store(true, Ordering::Relaxed);
        let is_woken = self.run_rounds(rounds);
        self.0.woken.is_running.store(false, Ordering::Relaxed);
        is_woken
    }

    fn run_rounds(&self, rounds: usize) -> bool {
        let mut round = self.0.round.borrow_mut();
        for _ in 0..rounds {
            mem::swap(&mut *round, &mut *lock(&self.0.woken.tasks));
            if round.is_empty() {
                return false;
            }
            for task in round.drain(..) {
                self.poll(task);
            }
        }
        self.are_woken()
    }

    /// Whether any task is to be polled.
    pub(crate) fn are_woken(&self) -> bool {
        !lock(&self.0.woken.tasks).is_empty()
    }

    fn poll(&self, at: usize) {
        let taken = self.0.slots.borrow_mut().slots.get_mut(at).and_then(|slot| {
            slot.state.is_woken.store(false, Ordering::Relaxed);
            // Cloning the waker would count references, which costs more.
            Some((slot.task.take()?, mem::replace(&mut slot.waker, Waker::noop().clone())))
        });
        let Some((mut task, waker)) = taken else { return };
        let polled = task.as_mut().poll(&mut Context::from_waker(&waker));
        let rest = match polled {
            Poll::Pending => Some(task),
            Poll::Ready(()) => {
                task.recycle(&self.0.spare);
                None
            }
        };
        let mut slots = self.0.slots.borrow_mut();
        let Some(slot) = slots.slots.get_mut(at) else { return };
        slot.waker = waker;
        slot.task = rest;
        if polled.is_ready() {
            slots.free(at);
        }
    }

    pub(crate) fn clear(&self) {
        let slots = mem::take(&mut *self.0.slots.borrow_mut());
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

/// A panic while it is held leaves a list of keys, and those may be woken for nothing.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::poll_fn;
    use std::task::Poll;

    use super::*;

    #[test]
    fn a_woken_task_is_polled_once_and_its_connection_is_named_once() {
        let connections = WokenConnections::default();
        let tasks = Tasks::new(7, connections.clone(), SpareTasks::default());
        let polls = Rc::new(Cell::new(0));
        let kept = Rc::new(RefCell::new(None::<Waker>));
        let (count, keep) = (Rc::clone(&polls), Rc::clone(&kept));
        tasks.spawn(poll_fn(move |cx| {
            count.set(count.get() + 1);
            *keep.borrow_mut() = Some(cx.waker().clone());
            Poll::Pending
        }));
        assert_eq!(connections.take(), [7]);
        assert!(!tasks.run(4));
        let waker = kept.borrow().clone().unwrap();
        (0..3).for_each(|_| waker.wake_by_ref());
        assert_eq!(connections.take(), [7]);
        assert!(!tasks.run(4));
        assert_eq!(polls.get(), 2);
    }

    #[test]
    fn a_task_that_wakes_itself_gets_no_more_than_the_rounds() {
        let tasks = Tasks::new(0, WokenConnections::default(), SpareTasks::default());
        let polls = Rc::new(Cell::new(0));
        let count = Rc::clone(&polls);
        tasks.spawn(poll_fn(move |cx| {
            count.set(count.get() + 1);
            cx.waker().wake_by_ref();
            Poll::Pending
        }));
        assert!(tasks.run(3));
        assert_eq!(polls.get(), 3);
    }

    #[test]
    fn a_task_gets_the_memory_of_one_that_is_over_and_has_dropped_its_future() {
        struct OnDrop(Rc<Cell<usize>>, u64);
        impl Drop for OnDrop {
            fn drop(&mut self) {
                self.0.set(self.0.get() + 1);
            }
        }
        let spare = SpareTasks::default();
        let tasks = Tasks::new(0, WokenConnections::default(), spare.clone());
        let (drops, places) = (Rc::new(Cell::new(0)), Rc::new(RefCell::new(Vec::new())));
        for n in 0..3 {
            let (on_drop, places) = (OnDrop(Rc::clone(&drops), n), Rc::clone(&places));
            tasks.spawn(async move { places.borrow_mut().push((&raw const on_drop.1, on_drop.1)) });
            assert_eq!(drops.get(), n as usize);
            tasks.run(1);
        }
        let places = places.borrow();
        assert!(places.iter().all(|(place, _)| *place == places[0].0));
        assert_eq!(places.iter().map(|(_, n)| *n).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!((drops.get(), spare.0.borrow().len()), (3, 1));
    }

    #[test]
    fn task_slots_are_reused_and_freed_when_few_are_taken() {
        let tasks = Tasks::new(0, WokenConnections::default(), SpareTasks::default());
        tasks.spawn(std::future::pending());
        for _ in 0..3 {
            (0..2 * SPARE_SLOTS_MAX).for_each(|_| tasks.spawn(async {}));
            assert_eq!(tasks.0.slots.borrow().slots.len(), 1 + 2 * SPARE_SLOTS_MAX);
            tasks.run(2);
            assert_eq!(tasks.0.slots.borrow().slots.len(), 1);
        }
    }
}
