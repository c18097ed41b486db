//! A dashboard without a terminal, for benchmarks.

use std::cell::Cell;
use std::io::{self, Write};
use std::rc::Rc;
use std::time::Duration;

use model::history::Update;
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};

use super::action::{Action, Effect};
use super::update::{prepare, update};
use crate::clock::ClockReading;
use crate::frame::view;
use crate::options::Options;
use crate::state::State;

/// Counts the bytes that a terminal would receive.
#[derive(Clone, Debug, Default)]
struct CountingWriter(Rc<Cell<u64>>);

impl Write for CountingWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.set(self.0.get() + bytes.len() as u64);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An invisible dashboard of a fixed size. Its clock advances only on request.
pub struct Offscreen {
    state: State,
    now: ClockReading,
    size: Rect,
    terminal: Terminal<CrosstermBackend<CountingWriter>>,
    written: CountingWriter,
}

impl std::fmt::Debug for Offscreen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Offscreen").field("size", &self.size).finish_non_exhaustive()
    }
}

impl Offscreen {
    /// Returns a dashboard that has read nothing yet.
    pub fn new(options: Options, columns: u16, rows: u16) -> Self {
        let (size, written) = (Rect::new(0, 0, columns, rows), CountingWriter::default());
        let options_of_terminal = TerminalOptions { viewport: Viewport::Fixed(size) };
        let terminal = Terminal::with_options(CrosstermBackend::new(written.clone()), options_of_terminal)
            .expect("nothing is asked of a terminal of fixed size");
        Self {
            state: State::new(options, (columns, rows)),
            now: ClockReading::read(),
            size,
            terminal,
            written,
        }
    }

    /// Processes an update; returns whether to draw.
    pub fn take(&mut self, news: Update) -> bool {
        self.apply(Action::Update(news))
    }

    /// Advances the clock; returns whether to draw.
    pub fn wait(&mut self, time: Duration) -> bool {
        self.now.instant += time;
        self.now.realtime_us += time.as_micros() as u64;
        self.apply(Action::Tick)
    }

    fn apply(&mut self, action: Action) -> bool {
        let effects = update(&mut self.state, action, self.now);
        effects.iter().any(|effect| matches!(effect, Effect::Draw(_) | Effect::Redraw))
    }

    /// Draws a frame, and returns the bytes that a terminal would receive for the changed cells.
    pub fn draw(&mut self) -> u64 {
        prepare(&mut self.state, self.now);
        let before = self.written.0.get();
        self.terminal.draw(|frame| view(&self.state, frame)).expect("counting bytes cannot fail");
        self.written.0.get() - before
    }
}
