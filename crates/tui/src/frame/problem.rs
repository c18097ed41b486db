//! The line below the header: the worst problem in words, with what explains it; without one, how the load and the
//! reading go.
//!
//! ```text
//! ! ALERT exchange.p99 > 50ms: firing for 00:07, now 1,032 ms: connect takes 1,024 ms of it (+2 more)     b why, …
//! ```

use model::insight::{Finding, Severity};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::details;
use crate::input::intent::Intent;
use crate::panes::findings::alert::explained;
use crate::state::State;
use crate::state::status::ViewStatus;
use crate::theme::format;
use crate::view_model::ViewModel;
use crate::widgets::parts::fit;

/// The fewest columns for more than a word about the key.
const WIDE_MIN: u16 = 100;

/// Returns the line: changes that were asked for, the worst problem, or else the details of the header.
pub(crate) fn line(state: &State, width: u16) -> Line<'static> {
    let theme = state.theme;
    let Some(figures) = state.figures() else { return Line::default() };
    let problems = problems(state, figures);
    let Some((texts, style)) = problems.first() else {
        return Line::from(fit(details::details(state, figures), usize::from(width)));
    };
    // A change that was just asked for is what a person looks for.
    let mut right: Vec<Span<'static>> = fit(details::changes(state), usize::from(width) / 2);
    if right.is_empty() && has_details(figures) && width >= details::NARROW_MAX {
        let key = state.options.keymap.names(Intent::Findings).into_iter().next();
        let words = if width < WIDE_MIN { " why" } else { " why, and what to do" };
        let named = key.map(|key| [Span::styled(key, theme.heading()), Span::styled(words, theme.quiet())]);
        right.extend(named.into_iter().flatten());
    }
    let more = if problems.len() > 1 { format!(" (+{} more)", problems.len() - 1) } else { String::new() };
    let cells = |spans: &[Span<'_>]| spans.iter().map(|span| format::width(&span.content)).sum::<usize>();
    let room = usize::from(width).saturating_sub(cells(&right) + format::width(&more) + 4);
    let fits = texts.iter().find(|text| format::width(text) <= room).or_else(|| texts.last());
    let text = format::cut(fits.map_or("", String::as_str), room, theme.glyphs);
    let fill = room - format::width(&text) + 1;
    let mut spans = vec![
        Span::styled(" ! ", theme.badge(*style)),
        Span::styled(text, *style),
        Span::styled(more, theme.quiet()),
        Span::raw(" ".repeat(fill)),
    ];
    spans.extend(right);
    Line::from(spans)
}

/// Returns all problems, the worst first: silence, alerts that fire, critical findings, warnings about what is read, other
/// findings. Each has its texts, the longest first.
fn problems(state: &State, figures: &ViewModel) -> Vec<(Vec<String>, Style)> {
    let theme = state.theme;
    let mut found = Vec::new();
    if let ViewStatus::Silent(seconds) = state.status {
        let time = records::text::quantity::elapsed_text(seconds);
        let text = format!("no record for {time}: the program that writes them hangs or was killed");
        found.push((vec![text], theme.critical()));
    }
    found.extend(figures.alerts.iter().map(|alert| (explained(figures, alert), theme.critical())));
    let warnings = figures.warnings.iter().skip(figures.alerts.len());
    // Lost records are a warning already.
    let is_new = |finding: &&Finding| finding.id != "records-lost" || figures.warnings.is_empty();
    let of_severity = |severity: Severity| {
        let open = figures.findings.open.iter().filter(move |finding| finding.severity == severity);
        open.filter(is_new).map(|finding| {
            let title = finding.text.title.clone();
            let whom = finding.text.whom.first();
            let name = whom.and_then(|whom| whom.split_once(": ")).map(|(name, _)| name);
            let named =
                whom.map(String::as_str).into_iter().chain(name).map(|who| format!("{title} ({who})"));
            named.chain([title.clone()]).collect::<Vec<_>>()
        })
    };
    found.extend(of_severity(Severity::Critical).map(|texts| (texts, theme.critical())));
    found.extend(warnings.map(|warning| (vec![warning.0.clone()], theme.warning())));
    found.extend(of_severity(Severity::Warning).map(|texts| (texts, theme.warning())));
    found
}

/// Returns whether the list of findings has something to say.
fn has_details(figures: &ViewModel) -> bool {
    !figures.findings.open.is_empty() || !figures.alerts.is_empty()
}
