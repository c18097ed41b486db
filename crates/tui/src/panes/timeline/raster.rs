//! A drawing of dots, eight to a cell in Braille; in ASCII, a cell is one dot, and its character names the line.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::model::TimelineColumn;
use crate::theme::{Glyphs, Theme};

/// The Braille pattern without dots.
const BRAILLE: u32 = 0x2800;
/// The bit of each dot of a Braille pattern, by column and by row from the top.
const BITS: [[u8; 4]; 2] = [[0x01, 0x02, 0x04, 0x40], [0x08, 0x10, 0x20, 0x80]];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimelineLine {
    P99,
    P50,
    /// p99 of the window that `vs mark` compares with.
    Before,
}

impl TimelineLine {
    /// Returns the value in a column, in nanoseconds.
    pub(super) fn ns(self, column: &TimelineColumn) -> Option<u64> {
        match self {
            Self::P99 => column.quantiles[2],
            Self::P50 => column.quantiles[0],
            Self::Before => None,
        }
    }

    pub(crate) fn style(self, theme: Theme) -> Style {
        match self {
            Self::P99 => theme.p99(),
            Self::P50 => theme.p50(),
            Self::Before => theme.quiet(),
        }
    }

    /// Returns the character of the line in ASCII.
    pub(crate) fn sign(self) -> char {
        match self {
            Self::P99 => '*',
            Self::P50 => 'o',
            Self::Before => '-',
        }
    }
}

/// Dots of several lines. A cell that lines share has the style of the line drawn last.
pub(crate) struct Raster {
    area: Rect,
    /// Dots in a cell, across and down.
    dots: (usize, usize),
    cells: Vec<(u8, Option<TimelineLine>)>,
}

impl Raster {
    pub(crate) fn new(area: Rect, glyphs: Glyphs) -> Self {
        let dots = if glyphs == Glyphs::Unicode { (2, 4) } else { (1, 1) };
        Self { area, dots, cells: vec![(0, None); usize::from(area.width) * usize::from(area.height)] }
    }

    /// Returns the dots across.
    fn width(&self) -> usize {
        usize::from(self.area.width) * self.dots.0
    }

    /// Returns the highest dot above the bottom.
    fn top(&self) -> usize {
        (usize::from(self.area.height) * self.dots.1).saturating_sub(1)
    }

    /// Draws a line through heights from 0 to 1 that share the width. A missing height interrupts it.
    pub(crate) fn line(&mut self, series: TimelineLine, heights: &[Option<f64>]) {
        let per_dot = heights.len() as f64 / self.width().max(1) as f64;
        let mut before = None;
        for x in 0..self.width() {
            let height = interpolated(heights, (x as f64 + 0.5) * per_dot - 0.5);
            let y = height.map(|height| (height.clamp(0.0, 1.0) * self.top() as f64).round() as usize);
            if let Some(y) = y {
                // Joined to the dot before it.
                let (from, to) = match before {
                    Some(before) if before < y => (before + 1, y),
                    Some(before) if before > y => (y, before - 1),
                    _ => (y, y),
                };
                (from..=to).for_each(|y| self.dot((x, y), series));
            }
            before = y;
        }
    }

    /// Draws a dotted line at a height from 0 to 1.
    pub(crate) fn dotted(&mut self, series: TimelineLine, height: f64) {
        let y = (height.clamp(0.0, 1.0) * self.top() as f64).round() as usize;
        (0..self.width()).step_by(2 * self.dots.0).for_each(|x| self.dot((x, y), series));
    }

    fn dot(&mut self, (x, y): (usize, usize), series: TimelineLine) {
        let down = self.top() - y;
        let at = down / self.dots.1 * usize::from(self.area.width) + x / self.dots.0;
        self.cells[at].0 |= BITS[x % self.dots.0][down % self.dots.1];
        self.cells[at].1 = Some(series);
    }

    pub(crate) fn draw(&self, theme: Theme, frame: &mut Frame<'_>) {
        let width = usize::from(self.area.width).max(1);
        for (at, &(pattern, series)) in self.cells.iter().enumerate() {
            let Some(series) = series else { continue };
            let (x, y) = (self.area.x + (at % width) as u16, self.area.y + (at / width) as u16);
            let braille = char::from_u32(BRAILLE + u32::from(pattern));
            let drawn = braille.filter(|_| theme.glyphs == Glyphs::Unicode).unwrap_or_else(|| series.sign());
            frame.buffer_mut()[(x, y)].set_char(drawn).set_style(series.style(theme));
        }
    }
}

/// Returns the height between the middles of columns; a column beside one without a height keeps its own.
fn interpolated(heights: &[Option<f64>], at: f64) -> Option<f64> {
    let left = at.max(0.0) as usize;
    let share = (at - left as f64).max(0.0);
    let height = |at: usize| heights.get(at).copied().flatten();
    match (height(left), height(left + 1)) {
        (Some(a), Some(b)) => Some(a + (b - a) * share),
        (Some(a), None) => (share < 0.5).then_some(a),
        (None, b) => b.filter(|_| share >= 0.5),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_drawn_through_the_middles_of_columns_and_leaves_gaps() {
        let heights = [Some(0.0), Some(1.0), None, Some(0.5)];
        let at = |at| interpolated(&heights, at);
        assert_eq!([at(-0.4), at(0.0), at(0.5), at(1.0)], [Some(0.0), Some(0.0), Some(0.5), Some(1.0)]);
        assert_eq!(
            [at(1.4), at(1.6), at(2.4), at(2.6), at(3.4)],
            [Some(1.0), None, None, Some(0.5), Some(0.5)]
        );
    }
}
