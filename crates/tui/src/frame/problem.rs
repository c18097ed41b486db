//! The line below the header: the worst problem in words, with what explains it; without one, how the load and the
//! reading go.
//!
//! ```text
//! ! ALERT exchange.p99 > 50ms: firing for 00:07, now 1,032 ms: connect takes 1,024 ms of it (+2 more)     b why, …
//! ```

use model::insight::{Finding, Severity};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use records::metrics::{HttpLatency, LatencyClass, LoadLatency, ProxyLatency};

use super::details;
use crate::format;
use crate::input::intent::Intent;
use crate::state::State;
use crate::state::status::ViewStatus;
use crate::view_model::ViewModel;
use crate::view_model::alerts::FiringAlert;
use crate::view_model::classes::LatencyRow;
use crate::widgets::parts::fit;

/// The fewest columns for more than a word about the key.
const WIDE_MIN: u16 = 100;
/// A part explains a percentile of the whole if it is at least this share of it.
const EXPLAINS_MIN: f64 = 0.5;

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
    if right.is_empty() && !figures.findings.open.is_empty() && width >= details::NARROW_MAX {
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
        open.filter(is_new).map(|finding| finding.text.title.clone())
    };
    found.extend(of_severity(Severity::Critical).map(|text| (vec![text], theme.critical())));
    found.extend(warnings.map(|warning| (vec![warning.0.clone()], theme.warning())));
    found.extend(of_severity(Severity::Warning).map(|text| (vec![text], theme.warning())));
    found
}

/// Returns an alert with the value at the moment, and the part of the time that explains it. Where there is no room for
/// all of it, the limit is left to the plot.
fn explained(figures: &ViewModel, alert: &FiringAlert) -> Vec<String> {
    let p99 = |row: &&LatencyRow| alert.is_about_p99(row.class);
    let Some(row) = figures.latencies.iter().find(p99) else { return vec![alert.text.clone()] };
    let now = row.quantiles[2].map_or_else(String::new, |p99| format!(", now {} ms", format::millis(p99.ns)));
    let because = because(figures, row).map_or_else(String::new, |because| format!(": {because}"));
    let name = alert.condition.split(' ').next().unwrap_or_default();
    vec![
        format!("ALERT {}: firing for {}{now}{because}", alert.condition, alert.since),
        format!("ALERT {}{now}{because}", alert.condition),
        format!("ALERT {name}{now}{because}"),
        format!("{name}{now}{because}"),
    ]
}

/// Returns which part of a latency takes most of its p99.
fn because(figures: &ViewModel, row: &LatencyRow) -> Option<String> {
    let whole = row.quantiles[2]?.ns;
    let parts: &[LatencyClass] = match row.class {
        LatencyClass::Proxy(ProxyLatency::Exchange) => &[LatencyClass::Proxy(ProxyLatency::Connect)],
        LatencyClass::Http(HttpLatency::FirstByte | HttpLatency::Request) => {
            &[LatencyClass::Http(HttpLatency::Upstream), LatencyClass::Http(HttpLatency::Queue)]
        }
        LatencyClass::Load(LoadLatency::Response | LoadLatency::Service) => &[
            LatencyClass::Load(LoadLatency::Lag),
            LatencyClass::Proxy(ProxyLatency::Connect),
            LatencyClass::Proxy(ProxyLatency::Exchange),
        ],
        LatencyClass::Proxy(ProxyLatency::HandshakeFull) => {
            let wall = figures.handshakes.walls[0].as_ref()?;
            let (name, ns) = wall.parts.iter().max_by_key(|(_, ns)| *ns)?;
            return Some(format!(
                "{name} takes {} of it",
                format::percent(*ns as f64 / wall.sum_ns().max(1) as f64)
            ));
        }
        _ => &[],
    };
    let known = parts.iter().filter_map(|class| figures.latencies.iter().find(|row| row.class == *class));
    let explains = |part: &&LatencyRow| {
        part.quantiles[2]
            .is_some_and(|part| part.ns as f64 >= whole as f64 * EXPLAINS_MIN && part.ns <= whole)
    };
    let part = known.filter(explains).max_by_key(|part| part.quantiles[2].map(|part| part.ns))?;
    Some(format!("{} takes {} ms of it", part.class.title(), format::millis(part.quantiles[2]?.ns)))
}
