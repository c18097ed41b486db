//! The list of runs, to select which is shown.
//!
//! ```text
//! +- runs 1-3/3: figures of the last interval ------------------------------------------+
//! | host     run      user or unit    last record  rate/s  p99 ms  failed    open  targ… |
//! | ▶edge-1  1a2b3c4d tlsdash.service 12:04:26Z     10998   0.31        3      64  :844… |
//! |  edge-2  9f00aa12 tlsdash.service 12:04:26Z      5012  (4.10)       0      12  :844… |
//! |  edge-3  77ab0123 uid 1000        ended             –      –        0       0  :844… |
//! +-------------------------------------------------------------------------------------+
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::state::State;
use crate::widgets::overlay;
use crate::widgets::table::{Columns, complaint, extent};

const LINE_CELLS: usize = 128;

fn place(size: (u16, u16), runs: usize) -> Option<Rect> {
    overlay::place(Rect::new(0, 0, size.0, size.1), (LINE_CELLS, runs.max(1).saturating_add(1)))
}

/// Returns how many of `runs` runs fit on a screen.
pub(crate) fn visible_rows(size: (u16, u16), runs: usize) -> usize {
    place(size, runs).map_or(0, |area| usize::from(area.height).saturating_sub(3))
}

/// Returns the column whose heading is at a cell of the screen.
pub(crate) fn column_at(state: &State, (x, y): (u16, u16)) -> Option<usize> {
    let table = &state.runs.table;
    let area = place(state.size(), table.counts().1).filter(|area| y == area.y + 1)?;
    Columns::of(table, usize::from(area.width - overlay::SIDES)).at(usize::from(x.checked_sub(area.x + 2)?))
}

/// Draws the list around the selected run.
pub(crate) fn render(state: &State, frame: &mut Frame<'_>) {
    let (theme, table) = (state.theme, &state.runs.table);
    let Some(area) = place(state.size(), table.counts().1) else { return };
    let cells = usize::from(area.width - overlay::SIDES);
    let columns = Columns::of(table, cells);
    let key = Columns::heading_of(theme, table, 0);
    let headings = columns.headings(theme, table, "");
    let key_cells = cells.saturating_sub(crate::theme::format::width(&headings) + 1);
    let mut lines = vec![Line::styled(format!(" {key:<key_cells$}{headings}"), theme.label())];
    lines.extend(complaint(state, table, cells));
    lines.extend(table.page().iter().map(|row| {
        let line = columns.line(theme, table, row, |_, _, _| Span::raw(""));
        if state.is_run_shown(row.id) { line.patch_style(theme.figure()) } else { line }
    }));
    if table.counts().1 == 0 {
        lines.push(Line::styled("no run yet", theme.quiet()));
    }
    let title = match table.counts().1 {
        0 => "runs".to_owned(),
        _ => format!("runs {}: figures of the last interval", extent(table, table.page().len())),
    };
    overlay::render(state, frame, area, &title, &lines);
}
