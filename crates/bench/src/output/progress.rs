//! The progress of a comparison in one line.

use std::time::Duration;

use records::text::table::{cut, length};

use super::wording::minutes;

/// The space between the parts of the line.
const GAP: &str = "  ";

/// How far a comparison has got.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ComparisonProgress<'a> {
    /// The round, from 1.
    pub round: u32,
    /// The rounds that are planned.
    pub rounds: u32,
    pub target: &'a str,
    pub case: &'a str,
    /// The figures of the last finished cell, such as `1,203/s  p99 4.2 ms`; omitted first if there is too little room.
    pub figures: &'a str,
    /// The planned time of all cells.
    pub planned: Duration,
    /// The planned time of the finished cells.
    pub done: Duration,
    /// How long these took.
    pub took: Duration,
    /// How long the current cell runs.
    pub current: Duration,
}

impl ComparisonProgress<'_> {
    /// The remaining time, if the remaining cells take as much longer than planned as the finished ones did.
    pub fn left(&self) -> Duration {
        let pace = if self.done.is_zero() { 1.0 } else { self.took.as_secs_f64() / self.done.as_secs_f64() };
        self.planned.saturating_sub(self.done).mul_f64(pace).saturating_sub(self.current)
    }

    /// One line of at most `width` characters.
    pub fn line(&self, width: usize) -> String {
        let Self { round, rounds, target, case, figures, .. } = self;
        let left = format!("{} left", minutes(self.left()));
        let mut line = String::new();
        for part in [&format!("round {round}/{rounds}"), *target, case, &left, figures] {
            let gap = if line.is_empty() { "" } else { GAP };
            if length(&line) + gap.len() + length(part) <= width {
                line = line + gap + part;
            }
        }
        cut(line.trim_end(), width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: ComparisonProgress<'_> = ComparisonProgress {
        round: 2,
        rounds: 6,
        target: "nginx-stream",
        case: "full-handshake",
        figures: "1,203/s  p99 4.2 ms",
        planned: Duration::from_secs(300),
        done: Duration::from_secs(100),
        took: Duration::from_secs(120),
        current: Duration::from_secs(15),
    };

    #[test]
    fn cells_that_took_longer_than_planned_make_the_rest_longer() {
        // 200 s of the plan remain, at 1.2 times the plan 240 s, of which 15 s have passed.
        assert_eq!(HALF.left(), Duration::from_secs(225));
        let first = ComparisonProgress { done: Duration::ZERO, took: Duration::ZERO, ..HALF };
        assert_eq!(first.left(), Duration::from_secs(285));
        assert_eq!(ComparisonProgress { done: HALF.planned, ..HALF }.left(), Duration::ZERO);
    }

    #[test]
    fn the_line_fits_and_leaves_out_what_does_not() {
        let line = HALF.line(80);
        assert_eq!(line, "round 2/6  nginx-stream  full-handshake  3 min 45 s left  1,203/s  p99 4.2 ms");
        assert_eq!(HALF.line(60), "round 2/6  nginx-stream  full-handshake  3 min 45 s left");
        for width in 0..100 {
            assert!(HALF.line(width).chars().count() <= width, "{width}");
        }
    }
}
