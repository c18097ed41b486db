//! What the screen had room for when it was laid out last.

use crate::input::intent::List;
use crate::panes::PaneId;

/// The rows and columns in sight. Keys page through lists and go through time by them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Sight {
    /// The panes that have rows, in the order of the screen, with these.
    pub(crate) panes: Vec<(PaneId, u16)>,
    /// The columns of the timeline; of a hidden one, those that it would have, so that keys go through time in steps
    /// as long as if it was shown.
    pub(crate) timeline_columns: usize,
    /// The rows of each list.
    pub(crate) lists: Vec<(List, usize)>,
}

/// The smallest screen with two columns.
pub(crate) const WIDE_MIN: (u16, u16) = (150, 30);
/// The minimum rows of a screen with one column for details.
const DETAILS_ROWS_MIN: u16 = 50;

/// The screen from which on the tiles have boxes, and the smallest screen with tiles.
const BOXED_TILES_MIN: (u16, u16) = (120, 40);
const TILES_MIN: (u16, u16) = (76, 22);
pub(crate) const BOXED_TILE_ROWS: u16 = 5;

/// Returns the rows of the tiles; 0 without room.
pub(crate) fn tile_rows((columns, rows): (u16, u16)) -> u16 {
    let has = |(columns_min, rows_min): (u16, u16)| columns >= columns_min && rows >= rows_min;
    match () {
        () if has(BOXED_TILES_MIN) => BOXED_TILE_ROWS,
        () if has(TILES_MIN) => 3,
        () => 0,
    }
}

/// Returns whether there is room for more than the essential panes.
pub(crate) fn has_spare_room((_, rows): (u16, u16)) -> bool {
    rows >= WIDE_MIN.1
}

pub(crate) fn has_room_for_details((columns, rows): (u16, u16)) -> bool {
    rows >= if columns >= WIDE_MIN.0 { WIDE_MIN.1 } else { DETAILS_ROWS_MIN }
}
