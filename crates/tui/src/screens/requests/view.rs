//! Single requests over the panes: the slowest of the window, or those that failed.
//!
//! ```text
//! +- slowest requests 1-3/34, 10 s, of those with a record -----------------------------------------+
//! | request              status  total ms▼  cause         upstream   ttfb  queue  client      route |
//! | ▶GET /api/slow          200       812                      810    811      –  10.0.0.12   /api  |
//! |  POST /api/orders       502       3.10  connect              –      –      –  10.0.0.31   /api  |
//! | HTTP/2 GET /api/slow: status 200; /api by unix:/tmp/app.sock, kept connection; …                |
//! +-------------------------------------------------------------------------------------------------+
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::input::click::ClickTarget;
use crate::input::intent::List;
use crate::state::State;
use crate::table::Row as _;
use crate::theme::format;
use crate::widgets::overlay;
use crate::widgets::table::{Columns, complaint, extent};

const LINE_CELLS: usize = 150;
/// The rows of the list without heading and note.
const ROWS_MAX: usize = 40;
/// The rows of all that is known of the selected request.
const NOTE_ROWS: usize = 2;

fn place(size: (u16, u16), requests: usize) -> Option<Rect> {
    let rows = requests.clamp(1, ROWS_MAX) + 1 + NOTE_ROWS;
    overlay::place(Rect::new(0, 0, size.0, size.1), (LINE_CELLS, rows))
}

/// Returns how many of `requests` requests are visible.
pub(crate) fn visible_rows(state: &State, requests: usize) -> usize {
    place(state.size(), requests).map_or(0, |area| usize::from(area.height).saturating_sub(3 + NOTE_ROWS))
}

/// Returns the row at a cell of the screen, or the column whose heading is there.
pub(crate) fn target(state: &State, (x, y): (u16, u16)) -> Option<ClickTarget> {
    let table = &state.requests.table;
    let area = place(state.size(), table.counts().1);
    let area = area.filter(|area| y > area.y && area.contains((x, y).into()))?;
    if let Some(row) = usize::from(y - area.y - 1).checked_sub(1) {
        return Some(ClickTarget::Row(List::Requests, row));
    }
    let columns = Columns::of(table, usize::from(area.width - overlay::SIDES));
    let column = columns.at(usize::from(x.checked_sub(area.x + 2)?))?;
    Some(ClickTarget::Heading(List::Requests, column))
}

/// Draws the list around the selected request.
pub(crate) fn render(state: &State, frame: &mut Frame<'_>, failed_only: bool) {
    let (theme, table) = (state.theme, &state.requests.table);
    let Some(area) = place(state.size(), table.counts().1) else { return };
    let cells = usize::from(area.width - overlay::SIDES);
    let columns = Columns::of(table, cells);
    let key = Columns::heading_of(theme, table, 0);
    let headings = columns.headings(theme, table, "");
    let key_cells = cells.saturating_sub(format::width(&headings) + 1);
    let mut lines = vec![Line::styled(format!(" {key:<key_cells$}{headings}"), theme.label())];
    lines.extend(complaint(state, table, cells));
    let sight = visible_rows(state, table.counts().1);
    let rows = sight.saturating_sub(lines.len() - 1);
    let shown = &table.page()[..table.page().len().min(rows)];
    lines.extend(shown.iter().map(|row| columns.line(theme, table, row, |_, _, _| Span::raw(""))));
    if table.counts().1 == 0 {
        lines.push(Line::styled(none(state, failed_only), theme.quiet()));
    }
    lines.resize(sight + 1, Line::default());
    let selected = shown.iter().find(|row| Some(row.id()) == table.selected).or_else(|| shown.first());
    let note = selected.map_or_else(String::new, super::model::RequestRow::sentence);
    let note = format::wrapped(&note, cells).into_iter().take(NOTE_ROWS);
    lines.extend(note.map(|line| Line::styled(format::cut(&line, cells, theme.glyphs), theme.quiet())));
    overlay::render(state, frame, area, &title(state, failed_only, shown.len(), cells), &lines);
}

/// Says why there is none.
fn none(state: &State, failed_only: bool) -> &'static str {
    match state.figures().and_then(|figures| figures.http.as_ref()) {
        Some(http) if http.requests == 0 => " no requests yet",
        Some(http) if failed_only && http.failed.recent == 0 => " no request failed in the window",
        _ => " no request of the window has a record",
    }
}

fn title(state: &State, failed_only: bool, shown: usize, cells: usize) -> String {
    let table = &state.requests.table;
    let what = if failed_only { "failed requests" } else { "slowest requests" };
    let span = state.figures().map(|figures| figures.span.words()).unwrap_or_default();
    let at = state.at_past_moment();
    let extent = if table.counts().1 == 0 { String::new() } else { format!(" {}", extent(table, shown)) };
    let long = format!("{what}{extent}, {span}{at}, of those with a record");
    let short = format!("{what}{extent}, {span}{at}");
    if format::width(&long) <= cells { long } else { format::cut(&short, cells, state.theme.glyphs) }
}
