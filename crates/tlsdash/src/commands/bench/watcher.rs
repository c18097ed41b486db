//! The progress of `bench`: a line on the terminal, and failures at once.

use std::cell::Cell;
use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ::bench::output::ComparisonProgress;
use ::bench::run::Observer;
use rustix::termios::tcgetwinsize;

use crate::say::rewrite_line;

/// Time between two drawings of the line.
const REDRAW: Duration = Duration::from_millis(250);
/// The width of a terminal that does not report it.
const COLUMNS: u16 = 80;

/// Shows progress where standard error is a terminal.
#[derive(Debug)]
pub(super) struct Watcher {
    interrupted: Arc<AtomicBool>,
    is_terminal: bool,
    /// When the line was drawn last; `None` while there is none.
    drawn: Cell<Option<Instant>>,
}

impl Watcher {
    pub(super) fn new(interrupted: Arc<AtomicBool>) -> Self {
        Self { interrupted, is_terminal: io::stderr().is_terminal(), drawn: Cell::new(None) }
    }

    /// Erases the line.
    pub(super) fn clear(&self) {
        if self.drawn.take().is_some() {
            rewrite_line("");
        }
    }
}

impl Observer for Watcher {
    fn note(&self, text: &str) {
        self.clear();
        crate::say(text);
    }

    fn progress(&self, progress: &ComparisonProgress<'_>) {
        let is_due = self.drawn.get().is_none_or(|drawn| drawn.elapsed() >= REDRAW);
        if self.is_terminal && is_due {
            self.drawn.set(Some(Instant::now()));
            // A full line would wrap on some terminals.
            rewrite_line(&progress.line(usize::from(columns()) - 1));
        }
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }
}

fn columns() -> u16 {
    let told = tcgetwinsize(io::stderr()).map_or(0, |size| size.ws_col);
    if told > 0 { told } else { COLUMNS }
}
