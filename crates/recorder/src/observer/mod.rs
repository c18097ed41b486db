//! What the producers share that watch servers of others: a thread that counts, its counter, and intervals in the own time
//! of a log or a capture.

mod counter;
mod intervals;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use records::delta::{Collector, ProxyDelta, Reporter};
use records::kinds::NoticeRecord;

pub use counter::{NO_VALUE, ObservedCounter, ObservedHandshake};
pub use intervals::{Intervals, PublishError};

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

/// The observer's other end, on its thread.
#[derive(Debug)]
pub struct ObserverLink {
    pub reporter: Reporter<ProxyDelta>,
    state: Arc<ObserverState>,
}

impl Observer {
    /// Starts a thread of this name, which opens a source and counts what comes from it until the link says that it must
    /// end. The thread itself calls `open`, because some sources cannot move between threads.
    ///
    /// # Errors
    /// The errors of `open`, or if the thread cannot be started.
    pub fn start<S>(
        name: &str,
        open: impl FnOnce() -> io::Result<S> + Send + 'static,
        count: impl FnOnce(S, ObserverLink) + Send + 'static,
    ) -> io::Result<Self> {
        let mut collector = Collector::default();
        // The thread looks many times a second whether it has been asked.
        let reporter = collector.add_worker(|| {});
        let state = Arc::new(ObserverState::default());
        let link = ObserverLink { reporter, state: Arc::clone(&state) };
        let (opened, is_open) = sync_channel(1);
        let run = move || match open() {
            // The caller waits for the answer.
            Ok(source) => {
                let _ = opened.send(Ok(()));
                count(source, link);
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

impl ObserverLink {
    /// Whether [`Observer::stop`] was called.
    pub fn must_end(&self) -> bool {
        self.state.must_end.load(Ordering::Relaxed)
    }

    /// Hands over notices for the run.
    pub fn tell(&self, notices: impl IntoIterator<Item = NoticeRecord>) {
        let mut notices = notices.into_iter().peekable();
        if notices.peek().is_some() {
            self.state.notices.lock().unwrap_or_else(PoisonError::into_inner).extend(notices);
        }
    }
}
