//! A bar on the terminal while a journal is read; nothing if standard error is not a terminal.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use crate::say::rewrite_line;

/// The bar appears after this time; most journals are read sooner.
const SOON: Duration = Duration::from_millis(500);
/// Time between two drawings of a bar.
const REDRAW: Duration = Duration::from_millis(200);
/// Width of a bar, in columns.
const BAR_COLUMNS: usize = 30;

/// How far a journal has been read.
#[derive(Debug)]
pub(crate) struct Bar {
    /// In bytes; 0 if standard error is not a terminal.
    total: Option<u64>,
    begun: Instant,
    next: Duration,
    is_shown: bool,
}

impl Bar {
    /// A bar over a total of bytes. `total` is only called if there is a terminal.
    pub(crate) fn new(total: impl FnOnce() -> u64) -> Self {
        let total = std::io::stderr().is_terminal().then(total);
        Self { total, begun: Instant::now(), next: SOON, is_shown: false }
    }

    /// Draws the bar if it is due.
    pub(crate) fn show(&mut self, read_bytes: u64) {
        let Some(total) = self.total.filter(|total| *total > 0) else { return };
        let elapsed = self.begun.elapsed();
        if elapsed < self.next {
            return;
        }
        self.next = elapsed + REDRAW;
        self.is_shown = true;
        rewrite_line(&bar_line(read_bytes, total, elapsed));
    }

    /// Erases the line.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            rewrite_line("");
        }
    }
}

fn bar_line(read_bytes: u64, total: u64, elapsed: Duration) -> String {
    let share = (read_bytes as f64 / total as f64).min(1.0);
    let full = (share * BAR_COLUMNS as f64) as usize;
    let left_s = if share > 0.0 { elapsed.as_secs_f64() * (1.0 - share) / share } else { 0.0 };
    format!(
        "reading [{}{}] {:>3.0} % of {:.1} GB, {left_s:.0} s left",
        "#".repeat(full),
        "-".repeat(BAR_COLUMNS - full),
        share * 100.0,
        total as f64 / 1e9
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_tells_how_far_it_has_come_and_what_is_left() {
        let line = |read| bar_line(read, 4_000_000_000, Duration::from_secs(10));
        assert_eq!(
            line(1_000_000_000),
            "reading [#######-----------------------]  25 % of 4.0 GB, 30 s left"
        );
        assert!(line(0).contains("  0 % of"));
        assert!(
            line(5_000_000_000).contains("[##############################] 100 % of"),
            "{}",
            line(5_000_000_000)
        );
    }
}
