//! The alerts that fire and the findings over the panes, with the figures of the selected one and what to do about it.
//!
//! ```text
//! +- findings 1/2 -----------------------------------------------------------+
//! | ▶critical A certificate expires in 5 days                   since +03:12 |
//! |  warning  12 % of the tickets offered have a key that is n… since +05:40 |
//! |                                                                          |
//! | certificate-expires                                                      |
//! | days left: 5                                                             |
//! | > renew the files of --cert and --key                                    |
//! | - www.example.org until 2026-06-01                                       |
//! +--------------------------------------------------------------------------+
//! ```

use model::insight::Finding;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

use super::alert::as_finding;
use super::model::OpenFindings;
use super::view::{line, shown};
use crate::state::State;
use crate::theme::format;
use crate::widgets::overlay;
use crate::widgets::parts::selected;

const LINE_CELLS: usize = 110;
/// The findings that are listed above the figures.
const LISTED_MAX: usize = 8;

/// The fewest rows of a screen for a blank line.
const BLANK_ROWS_MIN: u16 = 16;

/// Draws the list and what is known of the selected finding.
pub(crate) fn render(state: &State, frame: &mut Frame<'_>, at: usize) {
    let Some(findings) = shown(state) else { return };
    let listed = listed(state);
    let (columns, rows) = state.size();
    let screen = Rect::new(0, 0, columns, rows);
    let cells = usize::from(columns.saturating_sub(overlay::SIDES)).min(LINE_CELLS);
    let at = at.min(listed.len().saturating_sub(1));
    let mut lines = list(state, &listed, at, cells, usize::from(rows));
    match listed.get(at) {
        Some(finding) => lines.extend(figures(state, findings, finding, cells)),
        None => {
            lines.push(Line::styled("nothing is about to break, by what was counted", state.theme.quiet()));
        }
    }
    let Some(area) = overlay::place(screen, (cells, lines.len())) else { return };
    overlay::render(state, frame, area, &title(state, listed.len(), at), &lines);
}

/// Returns the alerts that fire, then the findings.
pub(crate) fn listed(state: &State) -> Vec<Finding> {
    let Some(figures) = state.figures() else { return Vec::new() };
    let alerts = figures.alerts.iter().map(|alert| as_finding(state, figures, alert));
    alerts.chain(figures.findings.open.iter().cloned()).collect()
}

fn title(state: &State, listed: usize, at: usize) -> String {
    let place = match listed {
        0 => String::new(),
        all => format!(" {}/{all}", at + 1),
    };
    format!("findings{place}{}", state.at_past_moment())
}

/// The list around the selected finding; a small screen shows only that finding.
fn list(state: &State, findings: &[Finding], at: usize, cells: usize, rows: usize) -> Vec<Line<'static>> {
    let listed = (rows / 8).clamp(1, LISTED_MAX);
    let first = (at + 1).saturating_sub(listed);
    let shown = findings.iter().enumerate().skip(first).take(listed);
    let width = u16::try_from(cells.saturating_sub(1)).unwrap_or(u16::MAX);
    let mark = |(place, finding): (usize, &Finding)| {
        let is_selected = place == at;
        let pointer = if is_selected { state.theme.glyphs.pointer() } else { ' ' };
        let mut line = line(state, finding, width);
        line.spans.insert(0, pointer.to_string().into());
        if is_selected { selected(state.theme, line) } else { line }
    };
    shown.map(mark).collect()
}

/// What is known of a finding, wrapped.
fn figures(state: &State, findings: &OpenFindings, finding: &Finding, cells: usize) -> Vec<Line<'static>> {
    let theme = state.theme;
    let text = &finding.text;
    let of = match (findings.is_past, finding.closed_us) {
        (false, _) => "",
        (true, None) => ", still open: figures of the latest moment",
        (true, Some(_)) => ", over by now: figures of when it became so severe",
    };
    let since = state.moment_words(finding.since_us);
    let mut texts: Vec<(String, Style)> = vec![(format!("{}, since {since}{of}", finding.id), theme.quiet())];
    if state.size().1 >= BLANK_ROWS_MIN {
        texts.insert(0, (String::new(), theme.label()));
    }
    texts.extend(text.evidence.iter().map(|one| (format!("{}: {}", one.figure, one.value), theme.label())));
    texts.extend(text.advice.iter().map(|advice| (format!("> {advice}"), theme.notice())));
    texts.extend(text.whom.iter().map(|one| (format!("- {one}"), theme.label())));
    if text.whom_more > 0 {
        texts.push((format!("- and {} more", text.whom_more), theme.label()));
    }
    let wrapped = texts.into_iter().flat_map(|(text, style)| {
        let lines = if text.is_empty() { vec![text] } else { format::wrapped(&text, cells) };
        lines.into_iter().map(move |line| (line, style))
    });
    wrapped.map(|(line, style)| Line::styled(format::cut(&line, cells, theme.glyphs), style)).collect()
}
