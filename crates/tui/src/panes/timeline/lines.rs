//! Maximum, p99 and p50 over time as lines on a common logarithmic scale, and p99 before a mark.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::levels;
use super::model::TimelineColumn;
use super::raster::Raster;
use super::view::{LABEL_CELLS, TimeAxis, cursor};
use crate::format;
use crate::state::State;
use crate::theme::{Glyphs, Theme};

/// The least factor between the top and the bottom of the scale: below it, changes are noise.
const FACTOR_MIN: f64 = 5.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimelineLine {
    Max,
    P99,
    P50,
    /// p99 of the window that `vs mark` compares with.
    Before,
}

impl TimelineLine {
    /// The lines drawn through the columns, from top to bottom.
    const DRAWN: [Self; 3] = [Self::Max, Self::P99, Self::P50];

    fn name(self) -> &'static str {
        match self {
            Self::Max => "max",
            Self::P99 => "p99",
            Self::P50 => "p50",
            Self::Before => "p99 before",
        }
    }

    /// Returns the value in a column, in nanoseconds.
    fn ns(self, column: &TimelineColumn) -> Option<u64> {
        match self {
            Self::Max => (column.n > 0).then_some(column.max_ns),
            Self::P99 => column.quantiles[2],
            Self::P50 => column.quantiles[0],
            Self::Before => None,
        }
    }

    pub(crate) fn style(self, theme: Theme) -> Style {
        match self {
            Self::Max | Self::Before => theme.quiet(),
            Self::P99 => theme.figure(),
            Self::P50 => theme.graph(),
        }
    }

    /// Returns the character of the line in ASCII.
    pub(crate) fn sign(self) -> char {
        match self {
            Self::Max => '^',
            Self::P99 => '*',
            Self::P50 => '.',
            Self::Before => '-',
        }
    }

    fn key(self, glyphs: Glyphs) -> char {
        match (glyphs, self) {
            (Glyphs::Unicode, Self::Before) => '┄',
            (Glyphs::Unicode, _) => '─',
            (Glyphs::Ascii, _) => self.sign(),
        }
    }
}

struct LogScale {
    /// Natural logarithms of nanoseconds.
    bottom: f64,
    top: f64,
}

impl LogScale {
    /// Covers every value that is drawn; `None` without samples.
    fn of(state: &State) -> Option<Self> {
        let columns = || state.timeline.columns().iter();
        let lowest =
            columns().filter_map(|column| TimelineLine::P50.ns(column)).chain(before(state)).min()?;
        let highest =
            columns().filter_map(|column| TimelineLine::Max.ns(column)).chain(before(state)).max()?;
        let (bottom, top) = ((lowest.max(1) as f64).ln(), (highest.max(1) as f64).ln());
        let missing = (FACTOR_MIN.ln() - (top - bottom)).max(0.0);
        Some(Self { bottom: bottom - missing / 2.0, top: top + missing / 2.0 })
    }

    /// Returns the height from 0 to 1.
    fn height(&self, ns: f64) -> f64 {
        (ns.max(1.0).ln() - self.bottom) / (self.top - self.bottom)
    }

    /// Returns the round values on the scale, in milliseconds with their heights: powers of ten first.
    fn steps(&self) -> impl Iterator<Item = (f64, f64)> {
        let place = |level: usize| {
            let ms = levels::beginning_ms(level);
            (ms, self.height(ms * 1e6))
        };
        let of_rank = move |rank: usize| (0..levels::LEVELS).filter(move |level| level % 3 == rank);
        [0, 2, 1].into_iter().flat_map(of_rank).map(place).filter(|(_, height)| (0.0..=1.0).contains(height))
    }
}

/// Returns p99 of the window that the class is compared with, in nanoseconds.
fn before(state: &State) -> Option<u64> {
    let class = state.timeline.class()?;
    let row = state.figures()?.latencies.iter().find(|row| row.class == class)?;
    row.change.map(|change| change.before_ns)
}

pub(crate) fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let axis = TimeAxis::of(state, area);
    let Some(scale) = LogScale::of(state).filter(|_| !area.is_empty() && axis.shown > 0) else { return };
    let theme = state.theme;
    let mut labelled = vec![false; usize::from(area.height)];
    for (ms, height) in scale.steps() {
        let row = ((1.0 - height) * f64::from(area.height)).min(f64::from(area.height) - 1.0) as u16;
        if !std::mem::replace(&mut labelled[usize::from(row)], true) {
            let label = format!("{:>1$} ", format::plain(ms), usize::from(LABEL_CELLS) - 1);
            frame.buffer_mut().set_string(area.x, area.y + row, label, theme.quiet());
        }
    }
    let plot = Rect { x: axis.x, width: axis.cells as u16, ..area };
    let mut raster = Raster::new(plot, theme.glyphs);
    if let Some(ns) = before(state) {
        raster.dotted(TimelineLine::Before, scale.height(ns as f64));
    }
    let columns = || state.timeline.columns().iter().skip(axis.hidden);
    // p99 matters most, and is drawn over the others.
    for series in [TimelineLine::Max, TimelineLine::P50, TimelineLine::P99] {
        let height = |column| series.ns(column).map(|ns| scale.height(ns as f64));
        raster.line(series, &columns().map(height).collect::<Vec<_>>());
    }
    raster.draw(theme, frame);
}

/// Returns each line's name and its value at the cursor, or in the newest column with samples; on request also that
/// before a mark.
pub(crate) fn legend(state: &State, with_mark: bool) -> Line<'static> {
    let theme = state.theme;
    let columns = state.timeline.columns();
    let at = cursor(state);
    let column = match at {
        Some(place) => columns.get(place),
        None => columns.iter().rev().find(|column| column.n > 0),
    };
    let drawn = TimelineLine::DRAWN.map(|series| (series, column.and_then(|column| series.ns(column))));
    let marked = before(state).filter(|_| with_mark).map(|ns| (TimelineLine::Before, Some(ns)));
    let mut spans = Vec::new();
    if let Some((us, _)) = state.earlier().filter(|_| at.is_some()) {
        let elapsed = records::text::quantity::elapsed_text(state.elapsed_us(us) / 1_000_000);
        spans.push(Span::styled(format!("at +{elapsed}"), theme.label()));
    }
    for (series, ns) in drawn.into_iter().chain(marked) {
        let gap = if spans.is_empty() { "" } else { "  " };
        let value = ns.map_or_else(|| theme.glyphs.none().to_string(), format::millis);
        let name = format!("{gap}{}{} ", series.key(theme.glyphs), series.name());
        spans.push(Span::styled(name, series.style(theme)));
        spans.push(Span::styled(value, theme.figure()));
    }
    Line::from(spans)
}
