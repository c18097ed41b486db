//! What the producers share that watch servers of others: a thread that counts, its counter, and intervals in the own time
//! of a log or a capture.

mod counter;
mod intervals;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use records::delta::{Collector, HandoverResult, ProxyDelta, Reporter};
use records::kinds::{Level, NoticeRecord};

pub use counter::{NO_VALUE, ObservedCounter, ObservedHandshake};
pub use intervals::{AHEAD, Intervals, PublishError, plausible_us};

/// The longest that a source which never falls silent may be read after the end.
const END_PATIENCE: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
struct ObserverState {
    must_end: AtomicBool,
    /// Taken once an interval by the controller, and only locked by the thread when there is a notice.
    notices: Mutex<Vec<NoticeRecord>>,
}

/// A producer of records that counts on a thread of its own.
#[derive(Debug)]
pub struct Observer {
    collector: Collector<ProxyDelta>,
    state: Arc<ObserverState>,
    thread: Option<JoinHandle<()>>,
}

/// What counts on the thread of an observer.
pub trait Counting {
    /// The topic of notices about the source, and its name in them.
    const SOURCE: (&'static str, &'static str);

    /// Counts what has come, and waits a moment for the first if `may_wait`. Gives 0 if there was nothing.
    ///
    /// # Errors
    /// When the source can no longer be read.
    fn read(&mut self, may_wait: bool) -> io::Result<usize>;

    fn counter(&mut self) -> &mut ObservedCounter;

    /// Counts what is known to be lost, and gives what there is to say.
    fn report(&mut self, is_last: bool) -> Vec<NoticeRecord>;
}

impl Observer {
    /// Starts a thread of this name, which counts until it must end. The thread itself calls `open`, because some sources
    /// cannot move between threads.
    ///
    /// # Errors
    /// The errors of `open`, or if the thread cannot be started.
    pub fn start<C: Counting>(
        name: &str,
        open: impl FnOnce() -> io::Result<C> + Send + 'static,
    ) -> io::Result<Self> {
        let mut collector = Collector::default();
        // The thread looks many times a second whether it has been asked.
        let reporter = collector.add_worker(|| {});
        let state = Arc::new(ObserverState::default());
        let of_thread = Arc::clone(&state);
        let (opened, is_open) = sync_channel(1);
        let run = move || match open() {
            // The caller waits for the answer.
            Ok(counting) => {
                let _ = opened.send(Ok(()));
                count(counting, reporter, &of_thread);
            }
            Err(error) => {
                let _ = opened.send(Err(error));
            }
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run)?;
        let ended = || io::Error::other(format!("the thread {name} ended at once"));
        is_open.recv().unwrap_or_else(|_| Err(ended()))?;
        Ok(Self { collector, state, thread: Some(thread) })
    }

    /// Adds what was counted since the last call.
    pub fn collect(&mut self, into: &mut ProxyDelta, patience: Duration) {
        self.collector.collect(into, patience);
    }

    /// Ends counting once what has arrived is counted.
    pub fn stop(&self) {
        self.state.must_end.store(true, Ordering::Relaxed);
    }

    /// True once nothing is counted any more.
    pub fn is_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Takes the notices made since the last call.
    pub fn take_notices(&self) -> Vec<NoticeRecord> {
        std::mem::take(&mut *self.state.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ObserverState {
    fn tell(&self, notices: Vec<NoticeRecord>) {
        if !notices.is_empty() {
            self.notices.lock().unwrap_or_else(PoisonError::into_inner).extend(notices);
        }
    }
}

/// Counts until the observer must end and all that has come is counted, or the source ends.
fn count<C: Counting>(mut counting: C, reporter: Reporter<ProxyDelta>, state: &ObserverState) {
    let mut ends_at: Option<Instant> = None;
    loop {
        let must_end = state.must_end.load(Ordering::Relaxed);
        if must_end {
            ends_at.get_or_insert_with(|| Instant::now() + END_PATIENCE);
        }
        let read = counting.read(!must_end);
        state.tell(counting.report(false));
        let is_late = ends_at.is_some_and(|at| Instant::now() >= at);
        if let Err(error) = &read {
            let (topic, name) = C::SOURCE;
            let text = format!("cannot read {name} any more: {error}; the counts end here");
            state.tell(vec![NoticeRecord::new(Level::Warning, topic, &text)]);
        }
        if read.is_err() || (must_end && matches!(read, Ok(0))) || is_late {
            break;
        }
        let (delta, seal) = counting.counter().parts();
        if reporter.answer(delta, seal) == HandoverResult::CollectorGone {
            return;
        }
    }
    state.tell(counting.report(true));
    let counter = counting.counter();
    counter.seal();
    reporter.finish(std::mem::take(&mut counter.delta), |_| {});
}
