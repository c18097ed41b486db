//! Reads the lines of a running terminator on a thread of its own.

use std::io;
use std::time::Instant;

use recorder::observer::{Counting, ObservedCounter, Observer};
use records::kinds::NoticeRecord;

use crate::format::LogParser;
use crate::lines::health::{LineHealth, LogTransport};
use crate::log_counter::LogCounter;

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
    Observer::start("observe", move || {
        let source = open()?;
        let health = LineHealth::new(source.transport());
        Ok(Reader {
            source,
            parser,
            counter: LogCounter { counted: ObservedCounter::live() },
            health,
            began: Instant::now(),
        })
    })
}

/// The state of the reading thread.
struct Reader<S> {
    source: S,
    parser: LogParser,
    counter: LogCounter,
    health: LineHealth,
    began: Instant,
}

impl<S: LineSource> Counting for Reader<S> {
    const SOURCE: (&'static str, &'static str) = ("log", "the log");

    fn read(&mut self, may_wait: bool) -> io::Result<usize> {
        let Self { source, parser, counter, health, .. } = self;
        source.read(health, may_wait, &mut |health, line| count_line(parser, counter, health, line))
    }

    fn counter(&mut self) -> &mut ObservedCounter {
        &mut self.counter.counted
    }

    fn report(&mut self, is_last: bool) -> Vec<NoticeRecord> {
        let Self { counter, health, began, .. } = self;
        let now = began.elapsed();
        health.expect(now, is_last);
        health.tell(now, is_last);
        health.count_into(&mut counter.counted.delta);
        health.take_notices()
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
