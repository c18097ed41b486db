//! The list of runs, to select the one that is shown.
//!
//! ```text
//! +- runs 1-3/3: figures of the last interval ------------------------------------------+
//! | host     run      user or unit    last record  exch/s  p99 ms    open  failed  targ… |
//! | ▶edge-1  1a2b3c4d tlsdash.service 12:04:26Z     10998   0.31       64       3  :844… |
//! |  edge-2  9f00aa12 tlsdash.service 12:04:26Z      5012  (4.10)      12       0  :844… |
//! |  edge-3  77ab0123 uid 1000        ended             –      –        0       0  :844… |
//! +-------------------------------------------------------------------------------------+
//! ```

use std::fmt::Write as _;

use ratatui::Frame;
use ratatui::text::{Line, Span};

use super::overlay;
use super::parts::quantile;
use crate::format;
use crate::state::State;
use crate::theme::Theme;
use crate::view_model::RunRow;

/// The cells of a line.
const LINE_CELLS: usize = 120;
/// The minimum and maximum cells of a host name.
const HOST_CELLS: (usize, usize) = (8, 28);
const RUN_CELLS: usize = 9;
/// The minimum and maximum cells of a user or unit.
const ACCOUNT_CELLS: (usize, usize) = (12, 22);
const LAST_CELLS: usize = 12;
const FIGURE_CELLS: usize = 8;
/// The minimum cells of a target.
const TARGET_CELLS_MIN: usize = 10;

/// Draws the list around the selected run.
pub(super) fn render(state: &State, frame: &mut Frame<'_>) {
    let theme = state.theme;
    let (rows, selected) = (state.run_rows(), state.selected_run());
    let Some(area) = overlay::place(frame.area(), (LINE_CELLS, rows.len().max(1) + 1)) else { return };
    let (cells, lines) = (usize::from(area.width - overlay::SIDES), usize::from(area.height - 2));
    let room = lines.saturating_sub(1);
    let first = (selected + 1).saturating_sub(room.max(1));
    let longest = rows.iter().map(|row| format::width(&row.host)).max().unwrap_or(0);
    let account = rows.iter().map(|row| format::width(&row.account)).max().unwrap_or(0);
    let columns = Columns::of(cells, longest, account);
    let mut drawn = vec![columns.heading(theme)];
    let shown = rows.iter().enumerate().skip(first).take(room);
    drawn.extend(shown.map(|(at, row)| columns.line(state, row, at == selected)));
    if rows.is_empty() {
        let why = if state.runs.filter.is_empty() { "no run yet" } else { "no host of that name" };
        drawn.push(Line::styled(why, theme.quiet()));
    }
    overlay::render(state, frame, area, &title(state, first, drawn.len() - 1, rows.len()), &drawn);
}

fn title(state: &State, first: usize, shown: usize, of: usize) -> String {
    let filter = &state.runs.filter;
    let of_hosts = if filter.is_empty() { String::new() } else { format!(" of hosts with {filter}") };
    match of {
        0 => format!("runs{of_hosts}"),
        _ => format!("runs{of_hosts} {}-{}/{of}: figures of the last interval", first + 1, first + shown),
    }
}

/// Returns the time of its last record, unless it has ended.
fn last(row: &RunRow) -> String {
    if row.ended { "ended".to_owned() } else { format::time_of_day(row.last_realtime_us) }
}

/// The columns that fit into a line.
struct Columns {
    host: usize,
    /// 0 without room, like the others.
    run: usize,
    account: usize,
    last: usize,
    figures: usize,
    target: usize,
}

impl Columns {
    fn of(cells: usize, longest_host: usize, longest_account: usize) -> Self {
        let cells = cells.saturating_sub(2);
        let host = longest_host.clamp(HOST_CELLS.0, HOST_CELLS.1).min(cells);
        let mut left = cells - host;
        let account = match longest_account {
            0 => 0,
            longest => longest.clamp(ACCOUNT_CELLS.0, ACCOUNT_CELLS.1) + 1,
        };
        let [run, account, last] = [RUN_CELLS, account, LAST_CELLS].map(|wanted| {
            let given = if wanted <= left { wanted } else { 0 };
            left -= given;
            given
        });
        let figures = (left / FIGURE_CELLS).min(4);
        let target = left.saturating_sub(figures * FIGURE_CELLS + 2);
        Self { host, run, account, last, figures, target: if target < TARGET_CELLS_MIN { 0 } else { target } }
    }

    fn heading(&self, theme: Theme) -> Line<'static> {
        let mut text = format!(" {:<1$} ", "host", self.host);
        let columns = [("run", self.run), ("user or unit", self.account), ("last record", self.last)];
        for (name, cells) in columns.into_iter().filter(|&(_, cells)| cells > 0) {
            let _ = write!(text, "{name:<cells$}");
        }
        for name in ["exch/s", "p99 ms", "open", "failed"].iter().take(self.figures) {
            let _ = write!(text, "{name:>FIGURE_CELLS$}");
        }
        if self.target > 0 {
            text.push_str("  target");
        }
        Line::styled(text, theme.label())
    }

    fn line(&self, state: &State, row: &RunRow, is_selected: bool) -> Line<'static> {
        let theme = state.theme;
        let pointer = if is_selected { theme.glyphs.pointer() } else { ' ' };
        let host = format::cut_middle(&row.host, self.host, theme.glyphs);
        let is_shown = state.is_run_shown(row.id);
        let id = if self.run > 0 { row.id.short() } else { String::new() };
        let account = format::cut(&row.account, self.account.saturating_sub(1), theme.glyphs);
        let name = format!("{pointer}{host:<0$} {id:<1$}{account:<2$}", self.host, self.run, self.account);
        let last = if self.last > 0 { last(row) } else { String::new() };
        let none = || theme.glyphs.none().to_string();
        let text = |text: String| Span::styled(format!("{text:>FIGURE_CELLS$}"), theme.label());
        let connections =
            |of: fn((u64, u64)) -> u64| row.connections.map_or_else(none, |it| format::count(of(it)));
        let figures = [
            text(row.per_second.map_or_else(none, format::per_second)),
            row.p99.map_or_else(|| text(format!("{} ", none())), |p99| quantile(theme, p99, FIGURE_CELLS)),
            text(connections(|(open, _)| open)),
            text(connections(|(_, failed)| failed)),
        ];
        let mut spans = vec![
            Span::styled(name, if is_shown { theme.figure() } else { theme.label() }),
            Span::styled(format!("{last:<0$}", self.last), theme.quiet()),
        ];
        spans.extend(figures.into_iter().take(self.figures));
        if self.target > 0 {
            let target = format::cut(&row.target, self.target, theme.glyphs);
            spans.push(Span::styled(format!("  {target}"), theme.quiet()));
        }
        let line = Line::from(spans);
        if is_selected { line.style(theme.selected()) } else { line }
    }
}
