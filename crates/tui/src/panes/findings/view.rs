//! The findings pane. It has no rows while there are no findings, and no heading if there is little room.
//!
//! ```text
//! - findings 1-2/2 ---------------------------------------------------------------------------
//! critical A certificate expires in 5 days                                      since +03:12
//! warning  12 % of the tickets offered have a key that is not known here        since +05:40
//! ```

use model::insight::{Finding, Severity};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::model::OpenFindings;
use crate::input::intent::Intent;
use crate::input::keymap::hints::FINDING_HINTS;
use crate::panes::{Pane, PaneId, PaneRows};
use crate::state::State;
use crate::state::sight;
use crate::theme::Theme;
use crate::theme::format;
use crate::widgets::parts::{heading, put};

const LINES_WANTED: usize = 6;
const SEVERITY_CELLS: usize = 9;
/// Narrower panes have no time, or no word before it.
const TIME_MIN: u16 = 60;
const SINCE_MIN: u16 = 100;

pub(crate) const PANE: Pane = Pane {
    rows: |state| {
        let open = shown(state).map_or(0, |findings| findings.open.len());
        // The line below the header names the worst; their rows would come and go.
        let is_chosen = state.panes.in_focus() == Some(PaneId::Findings);
        if open == 0 || (state.panes.hidden.is_empty() && !is_chosen) {
            return PaneRows::default();
        }
        let heading = u16::from(sight::has_spare_room(state.size));
        let rows = |lines: usize| open.min(lines) as u16 + heading;
        PaneRows { min: rows(1), enough: rows(2), wanted: rows(LINES_WANTED), grows: false }
    },
    ranks: [6, 7, 9],
    render,
    hints: FINDING_HINTS,
    ..Pane::PLAIN
};

pub(crate) fn shown(state: &State) -> Option<&OpenFindings> {
    state.figures().map(|figures| &figures.findings)
}

/// Draws as many findings as fit, the most severe first.
fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let Some(findings) = shown(state) else { return };
    let has_heading = sight::has_spare_room(state.size) && area.height > 1;
    let room = usize::from(area.height) - usize::from(has_heading);
    let mut lines = Vec::new();
    if has_heading {
        let (listed, all) = (room.min(findings.open.len()), findings.open.len());
        let extent = if listed < all { format!("findings 1-{listed}/{all}") } else { "findings".to_owned() };
        let key = state.options.keymap.names(Intent::Findings).into_iter().next();
        let key = key.map_or_else(String::new, |key| format!("{key}: figures, what to do"));
        lines.push(heading(state.theme, &[&extent, "findings"], &key, area.width));
    }
    let shown = findings.open.iter().take(room);
    lines.extend(shown.map(|finding| line(state, finding, area.width)));
    put(frame, area, &lines);
}

/// A finding in a line: severity, sentence, and since when.
pub(crate) fn line(state: &State, finding: &Finding, width: u16) -> Line<'static> {
    let theme = state.theme;
    let time = match width {
        SINCE_MIN.. => format!("since {}", state.elapsed_words(finding.since_us)),
        TIME_MIN.. => state.elapsed_words(finding.since_us),
        _ => String::new(),
    };
    let room = usize::from(width).saturating_sub(SEVERITY_CELLS + time.len() + 1);
    let text = format::cut(&sentence(finding), room, theme.glyphs);
    Line::from(vec![
        Span::styled(format!("{:<SEVERITY_CELLS$}", finding.severity), style(theme, finding.severity)),
        Span::styled(format!("{text:<room$} "), theme.label()),
        Span::styled(time, theme.quiet()),
    ])
}

fn sentence(finding: &Finding) -> String {
    match &finding.run {
        Some(run) => format!("{run}: {}", finding.text.title),
        None => finding.text.title.clone(),
    }
}

fn style(theme: Theme, severity: Severity) -> Style {
    match severity {
        Severity::Info => theme.notice(),
        Severity::Warning | Severity::Critical => theme.warning(),
    }
}

/// Returns the number of warnings that are open while the pane is not on the screen; empty if there are none.
pub(crate) fn badge(state: &State) -> (String, Style) {
    let is_serious = |finding: &&Finding| finding.severity >= Severity::Warning;
    let n = shown(state).map_or(0, |findings| findings.open.iter().filter(is_serious).count());
    let is_hidden = || !state.sight.panes.iter().any(|(id, _)| *id == PaneId::Findings);
    let text = match n {
        n if n == 0 || !is_hidden() => String::new(),
        1 => "[1 FINDING] ".to_owned(),
        n => format!("[{n} FINDINGS] "),
    };
    (text, state.theme.warning())
}

/// Returns what was found about a setting, and what another value would do; empty if nothing.
pub(crate) fn about(state: &State, setting: &str) -> String {
    let Some(findings) = shown(state) else { return String::new() };
    let found = findings.open.iter().filter(|finding| finding.text.setting == Some(setting));
    let found = found.map(|finding| format!("{}: {}", finding.severity, sentence(finding)));
    let advice = findings.advice.iter().filter(|advice| advice.setting == setting);
    let advice = advice.map(|advice| advice.sentence.clone());
    found.chain(advice).collect::<Vec<_>>().join("; ")
}
