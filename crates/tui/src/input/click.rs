//! What the mouse can point at.

use super::intent::{Intent, List};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClickTarget {
    /// The heading of a column of a list.
    Heading(List, usize),
    /// A row of a list, by its place in sight.
    Row(List, usize),
    /// A line of a list of columns or panes.
    Choice(usize),
    /// The name of a key in the last line.
    Key(Intent),
    /// The worst problem, below the title.
    Problem,
    /// The heading of the timeline.
    Timeline,
    /// A column of the timeline, by its index.
    Column(usize),
    /// A position on the playback line, in thousandths of its length.
    Played(u64),
}
