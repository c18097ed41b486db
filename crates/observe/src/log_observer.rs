//! Reads the lines of a running terminator on a thread of its own.

use std::io;
use std::time::{Duration, Instant};

use recorder::observer::{Observer, ObserverLink};
use records::delta::HandoverResult;
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

/// Begins to count what the lines of a source say. The reading thread calls `open`.
///
/// # Errors
/// The errors of `open`, or if the thread cannot be started.
pub fn observe_log<S: LineSource>(
    open: impl FnOnce() -> io::Result<S> + Send + 'static,
    parser: LogParser,
) -> io::Result<Observer> {
    Observer::start("observe", open, move |source, link| {
        let health = LineHealth::new(source.transport());
        let began = Instant::now();
        Reader { source, parser, counter: LogCounter::default(), health, link, began }.run();
    })
}

/// The state of the reading thread.
struct Reader<S> {
    source: S,
    parser: LogParser,
    counter: LogCounter,
    health: LineHealth,
    link: ObserverLink,
    began: Instant,
}

impl<S: LineSource> Reader<S> {
    fn run(mut self) {
        let mut ends_at: Option<Instant> = None;
        loop {
            let must_end = self.link.must_end();
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
            let (delta, seal) = self.counter.counted.parts();
            if self.link.reporter.answer(delta, seal) == HandoverResult::CollectorGone {
                return;
            }
        }
        self.publish(true);
        self.counter.counted.seal();
        self.link.reporter.finish(self.counter.counted.delta, |_| {});
    }

    fn read(&mut self, may_wait: bool) -> io::Result<usize> {
        let Self { source, parser, counter, health, .. } = self;
        source.read(health, may_wait, &mut |health, line| count_line(parser, counter, health, line))
    }

    fn publish(&mut self, is_last: bool) {
        let Self { counter, health, link, began, .. } = self;
        let now = began.elapsed();
        health.expect(now, is_last);
        health.tell(now, is_last);
        health.count_into(&mut counter.counted.delta);
        link.tell(health.take_notices());
    }

    fn report_end(&self, error: Option<io::Error>) {
        let Some(error) = error else { return };
        let text = format!("cannot read the log any more: {error}; the counts end here");
        self.link.tell([NoticeRecord::new(Level::Warning, "log", &text)]);
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
