//! What the screen asks of a pane.

use ratatui::Frame;
use ratatui::layout::Rect;

use crate::input::click::ClickTarget;
use crate::input::keymap::hints::Hint;
use crate::state::State;
use crate::widgets::detail::Details;
use crate::widgets::table;

pub(crate) struct Pane {
    /// The rows that it can use.
    pub(crate) rows: fn(&State) -> PaneRows,
    /// When it gets its minimum, enough, and all rows that it wants: panes with lower ranks come first.
    pub(crate) ranks: [u8; 3],
    pub(crate) render: fn(&State, &mut Frame<'_>, Rect),
    /// Returns what is at a cell of its area.
    pub(crate) target: fn(&State, Rect, (u16, u16)) -> Option<ClickTarget>,
    /// Keys that the footer names while it has the focus.
    pub(crate) hints: &'static [Hint],
    /// Updates its rows in sight.
    pub(crate) arrange: fn(&mut State),
    /// Returns how many of its rows an area has room for.
    pub(crate) sight: fn(&State, Rect) -> usize,
    /// Returns the names of its rows, which a filter can begin with.
    pub(crate) names: fn(&State) -> Vec<String>,
    /// Opens the selected row, or the first in sight.
    pub(crate) open: fn(&mut State),
    /// Returns all about the row whose details are open; `None` if its rows have no details.
    pub(crate) details: fn(&State) -> Option<Details>,
}

impl Pane {
    /// A pane without rows, at which nothing can be pointed.
    pub(crate) const PLAIN: Self = Self {
        rows: |_| PaneRows::default(),
        ranks: [0; 3],
        render: |_, _, _| {},
        target: |_, _, _| None,
        hints: &[],
        arrange: |_| {},
        sight: |_, area| table::rows(area),
        names: |_| Vec::new(),
        open: |_| {},
        details: |_| None,
    };
}

/// The rows that a pane can use, with its heading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PaneRows {
    /// Fewer are of no use; 0 for a pane that has nothing to show.
    pub(crate) min: u16,
    pub(crate) enough: u16,
    pub(crate) wanted: u16,
    /// Whether it can use all rows that are left.
    pub(crate) grows: bool,
}

impl PaneRows {
    /// The rows of a list with its heading, of which there are `min` at least.
    pub(crate) fn listed(rows: usize, min: u16, enough: u16) -> Self {
        let wanted = u16::try_from(rows).unwrap_or(u16::MAX).max(min);
        Self { min, enough: wanted.min(enough), wanted, grows: false }
    }
}
