//! Reads the lines of a running terminator on a thread of its own.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use records::delta::{Collector, HandoverResult, ProxyDelta, Reporter};
use records::kinds::{Level, NoticeRecord};

use crate::format::LogParser;
use crate::lines::health::{LineHealth, LogTransport};
use crate::log_counter::LogCounter;

/// The longest that a source which never falls silent may be read after the end.
const END_PATIENCE: Duration = Duration::from_secs(2);

pub trait LineSource: 'static {
    fn transport(&self) -> LogTransport;

    /// Passes the lines that there are to `line`, and waits a moment for the first if `may_wait`. Gives 0 if there was
    /// none.
    ///
    /// # Errors
    /// When the source can no longer be read.
    fn read(
        &mut self,
        health: &mut LineHealth,
        may_wait: bool,
        line: &mut dyn FnMut(&mut LineHealth, &[u8]),
    ) -> io::Result<usize>;
}

#[derive(Debug, Default)]
struct ObserverState {
    must_end: AtomicBool,
    /// Taken once an interval by the controller, and only locked by the thread when there is a notice.
    notices: Mutex<Vec<NoticeRecord>>,
}

/// A producer of records: it counts what the lines of a source say.
#[derive(Debug)]
pub struct LogObserver {
    collector: Collector<ProxyDelta>,
    shared: Arc<ObserverState>,
    thread: Option<JoinHandle<()>>,
}

impl LogObserver {
    /// Begins to read.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(source: impl LineSource + Send, parser: LogParser) -> io::Result<Self> {
        Self::start_with(move || Ok(source), parser)
    }

    /// Starts reading what `open` opens. The reading thread calls `open`, because some sources cannot move between
    /// threads.
    ///
    /// # Errors
    /// The errors of `open`, or if the thread cannot be started.
    pub fn start_with<S: LineSource>(
        open: impl FnOnce() -> io::Result<S> + Send + 'static,
        parser: LogParser,
    ) -> io::Result<Self> {
        let mut collector = Collector::default();
        // The thread looks many times a second whether it has been asked.
        let reporter = collector.add_worker(|| {});
        let shared = Arc::new(ObserverState::default());
        let reader_state = Arc::clone(&shared);
        let (opened, is_open) = sync_channel(1);
        let read = move || {
            let source = match open() {
                Ok(source) => source,
                Err(error) => {
                    // The caller waits for it.
                    let _ = opened.send(Err(error));
                    return;
                }
            };
            let _ = opened.send(Ok(()));
            let (counter, health) = (LogCounter::default(), LineHealth::new(source.transport()));
            let began = Instant::now();
            Reader { source, parser, counter, health, shared: reader_state, began }.run(reporter);
        };
        let thread = std::thread::Builder::new().name("observe".to_owned()).spawn(read)?;
        is_open.recv().unwrap_or_else(|_| Err(io::Error::other("the thread observe ended at once")))?;
        Ok(Self { collector, shared, thread: Some(thread) })
    }

    /// Adds what was counted since the last call.
    pub fn collect(&mut self, into: &mut ProxyDelta, patience: Duration) {
        self.collector.collect(into, patience);
    }

    /// Ends reading once the lines that have arrived are counted.
    pub fn stop(&self) {
        self.shared.must_end.store(true, Ordering::Relaxed);
    }

    /// True once nothing is read any more.
    pub fn is_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Takes the notices made since the last call.
    pub fn take_notices(&self) -> Vec<NoticeRecord> {
        std::mem::take(&mut *self.shared.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The state of the reading thread.
struct Reader<S> {
    source: S,
    parser: LogParser,
    counter: LogCounter,
    health: LineHealth,
    shared: Arc<ObserverState>,
    began: Instant,
}

impl<S: LineSource> Reader<S> {
    fn run(mut self, reporter: Reporter<ProxyDelta>) {
        let mut ends_at: Option<Instant> = None;
        loop {
            let must_end = self.shared.must_end.load(Ordering::Relaxed);
            if must_end {
                ends_at.get_or_insert_with(|| Instant::now() + END_PATIENCE);
            }
            let read = self.read(!must_end);
            self.publish(false);
            let is_late = ends_at.is_some_and(|at| Instant::now() >= at);
            if read.is_err() || (must_end && matches!(read, Ok(0))) || is_late {
                self.report_end(read.err());
                break;
            }
            let (delta, seal) = self.counter.parts();
            if reporter.answer(delta, seal) == HandoverResult::CollectorGone {
                return;
            }
        }
        self.publish(true);
        self.counter.seal();
        reporter.finish(self.counter.delta, |_| {});
    }

    fn read(&mut self, may_wait: bool) -> io::Result<usize> {
        let Self { source, parser, counter, health, .. } = self;
        source.read(health, may_wait, &mut |health, line| count_line(parser, counter, health, line))
    }

    fn publish(&mut self, is_last: bool) {
        let Self { counter, health, shared, began, .. } = self;
        let now = began.elapsed();
        health.expect(now, is_last);
        health.tell(now, is_last);
        health.count_into(&mut counter.delta);
        let notices = health.take_notices();
        if !notices.is_empty() {
            shared.notices.lock().unwrap_or_else(PoisonError::into_inner).extend(notices);
        }
    }

    fn report_end(&self, error: Option<io::Error>) {
        let Some(error) = error else { return };
        let text = format!("cannot read the log any more: {error}; the counts end here");
        let notice = NoticeRecord::new(Level::Warning, "log", &text);
        self.shared.notices.lock().unwrap_or_else(PoisonError::into_inner).push(notice);
    }
}

/// Counts a line. A line that cannot be read is counted as such, never fatal.
fn count_line(parser: &mut LogParser, counter: &mut LogCounter, health: &mut LineHealth, line: &[u8]) {
    let outcome = parser.parse(line, |event| {
        let Some(event) = event else { return Ok(()) };
        health.note(&event)?;
        counter.count(&event);
        Ok(())
    });
    health.close(parser, line, outcome);
}
