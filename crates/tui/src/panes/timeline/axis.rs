//! The time at the bottom, with marks and changes. It is blank where records are missing.

use model::alerts::Alerts;
use model::runs::{Marker, TimelineEvent};
use ratatui::Frame;
use ratatui::layout::Rect;
use records::kinds::AlertState;

use super::time_axis::{LABEL_CELLS, TimeAxis, cursor};
use crate::state::State;
use crate::theme::format;
use crate::view_model::span::Span;

/// Signs closer than this are collected, since no text fits between them.
const APART_CELLS: u16 = 3;
/// The least cells between labels of the time.
const TICK_CELLS_MIN: u64 = 14;
/// The steps of the time, in seconds.
const STEPS_S: [u64; 17] =
    [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400];

/// Marks and changes with one sign.
struct MarkerGroup<'a> {
    x: u16,
    /// The columns of the first and the last.
    places: (usize, usize),
    markers: Vec<&'a Marker>,
}

pub(crate) fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    if area.is_empty() {
        return;
    }
    let (theme, axis) = (state.theme, TimeAxis::of(state, area));
    let cells_of = |place| axis.cells_of(place);
    let columns = state.timeline.columns().iter().enumerate();
    for x in columns.filter(|(_, column)| column.is_covered).filter_map(|(at, _)| cells_of(at)).flatten() {
        let cell = &mut frame.buffer_mut()[(x, area.y)];
        let style = cell.style().patch(theme.quiet());
        cell.set_char(theme.glyphs.rule()).set_style(style);
    }
    let label = format!("{:>1$} ", "time", usize::from(LABEL_CELLS) - 1);
    frame.buffer_mut().set_string(area.x, area.y, label, theme.quiet());
    let groups = groups(state, axis);
    if let Some(group) = cursor(state).and_then(|at| group_at(&groups, at)) {
        let texts: Vec<String> =
            group.markers.iter().map(|marker| words(marker, theme.glyphs.marker())).collect();
        let text =
            format::cut(&format!(" {} ", texts.join(", ")), usize::from(axis.end() - axis.x), theme.glyphs);
        // Beside the cursor, or as far to the right as it fits.
        let x = (group.x + 1).min(axis.end() - format::width(&text) as u16).max(axis.x);
        frame.buffer_mut().set_string(x, area.y, text, theme.notice());
        return;
    }
    let mut free_from = axis.x;
    let (mut placed_texts, mut taken) = (Vec::new(), Vec::new());
    for (at, group) in groups.iter().enumerate() {
        let end = groups.get(at + 1).map_or_else(|| axis.end(), |next| next.x - 1);
        let (x, text) = placed(group, free_from, end, theme.glyphs.marker());
        let to = x + format::width(&text) as u16;
        placed_texts.push((x, text));
        taken.push((x, to));
        free_from = to + 1;
    }
    let window = window(state, frame, (area.y, axis), &taken);
    taken.extend(window);
    // Marks and changes in the window are drawn over its bracket.
    for (x, text) in placed_texts {
        frame.buffer_mut().set_string(x, area.y, text, theme.notice());
    }
    ticks(state, frame, area, &taken);
}

/// Draws a bracket under the window that the figures are of, at its end; returns its cells. It has no words where these
/// cells are taken.
fn window(
    state: &State,
    frame: &mut Frame<'_>,
    (y, axis): (u16, TimeAxis),
    taken: &[(u16, u16)],
) -> Option<(u16, u16)> {
    let figures = state.figures()?;
    let Span::Last(span_us) = figures.span else { return None };
    let columns = span_us.div_ceil(state.timeline.column_us()).min(axis.shown as u64) as usize;
    let from = axis.cells_of(axis.hidden + axis.shown - columns)?.start;
    let cells = axis.end() - from;
    if cells < 2 || cursor(state).is_some() {
        return None;
    }
    let to = axis.end() - 1;
    let (left, right) = state.theme.glyphs.bracket();
    // The window of a young run is the run.
    let known_us = figures.duration_us / 1_000_000 * 1_000_000;
    let words = format::span(span_us.min(known_us.max(state.timeline.column_us())));
    let at = from + 1 + cells.saturating_sub(2 + format::width(&words) as u16) / 2;
    let end = at + format::width(&words) as u16;
    let is_free = end <= to && taken.iter().all(|&(start, taken_to)| taken_to < at || start > end);
    let words = if is_free { words } else { String::new() };
    let fill = usize::from(cells) - 2 - format::width(&words);
    let rule = |cells| state.theme.glyphs.rule().to_string().repeat(cells);
    let text = format!("{left}{}{words}{}{right}", rule(fill / 2), rule(fill - fill / 2));
    frame.buffer_mut().set_string(from, y, text, state.theme.figure());
    Some((from, to))
}

/// Collects the marks and changes that are too near to each other.
fn groups(state: &State, axis: TimeAxis) -> Vec<MarkerGroup<'_>> {
    let mut groups: Vec<MarkerGroup<'_>> = Vec::new();
    for (place, marker) in &state.markers {
        let Some(cells) = axis.cells_of(*place) else { continue };
        match groups.last_mut().filter(|group| cells.start < group.x + APART_CELLS) {
            Some(group) => {
                group.places.1 = *place;
                group.markers.push(marker);
            }
            None => {
                groups.push(MarkerGroup { x: cells.start, places: (*place, *place), markers: vec![marker] });
            }
        }
    }
    groups
}

fn group_at<'g, 'a>(groups: &'g [MarkerGroup<'a>], place: usize) -> Option<&'g MarkerGroup<'a>> {
    groups.iter().find(|group| (group.places.0..=group.places.1).contains(&place))
}

/// Returns the longest text that fits after its place, or before it; at least a sign always does.
fn placed(group: &MarkerGroup<'_>, free_from: u16, end: u16, sign: char) -> (u16, String) {
    let texts = texts(group, sign);
    let fits = |text: &&String| format::width(text) <= usize::from(end.saturating_sub(group.x));
    let longest = texts.iter().find(fits);
    let after = longest.or_else(|| texts.last()).cloned().unwrap_or_default();
    let before = format!("{} {sign}", texts[0].trim_start_matches(sign).trim_start());
    let start = (group.x + 1).checked_sub(format::width(&before) as u16);
    match start.filter(|start| *start >= free_from && longest != texts.first()) {
        Some(start) => (start, before),
        None => (group.x, after),
    }
}

/// Returns what a group may be called, longest first.
fn texts(group: &MarkerGroup<'_>, sign: char) -> Vec<String> {
    let n = group.markers.len();
    let marks =
        group.markers.iter().filter(|marker| matches!(marker.event, TimelineEvent::Mark { .. })).count();
    let alerts =
        group.markers.iter().filter(|marker| matches!(marker.event, TimelineEvent::Alert { .. })).count();
    match *group.markers {
        [Marker { event: TimelineEvent::Mark { number, .. }, .. }] => {
            vec![words(group.markers[0], sign), number.to_string(), sign.to_string()]
        }
        [Marker { event: TimelineEvent::Change { after, .. }, .. }] => {
            let short = format!("{sign}{}", setting(&after.name));
            vec![words(group.markers[0], sign), short, sign.to_string()]
        }
        [Marker { event: TimelineEvent::Alert { .. }, .. }] => {
            vec![words(group.markers[0], sign), sign_of(group.markers[0], sign).to_string()]
        }
        _ => {
            let what = match (marks, alerts, n - marks - alerts) {
                (0, 0, _) => format!("{n} changes"),
                (_, 0, 0) => format!("{n} marks"),
                (0, _, 0) => format!("{n} alerts"),
                (_, 0, _) => format!("{n} marks and changes"),
                _ => format!("{n} events"),
            };
            vec![format!("{sign} {what}"), format!("{sign}{n}"), sign.to_string()]
        }
    }
}

/// Returns the sign of an alert that fired, or of anything else.
fn sign_of(marker: &Marker, sign: char) -> char {
    match marker.event {
        TimelineEvent::Alert { state: AlertState::Fired, .. } => '!',
        TimelineEvent::Mark { .. } | TimelineEvent::Change { .. } | TimelineEvent::Alert { .. } => sign,
    }
}

/// Returns the number of a mark, or a sign for a change or an alert, and its text.
fn words(marker: &Marker, sign: char) -> String {
    match &marker.event {
        TimelineEvent::Mark { number, text } => format!("{number} {text}").trim_end().to_owned(),
        TimelineEvent::Change { before, after, .. } => {
            format!("{sign}{} {before}>{}", setting(&after.name), after.value)
        }
        TimelineEvent::Alert { state: AlertState::Fired, name, .. } => format!("!{name}"),
        TimelineEvent::Alert { state, name, .. } => format!("{sign}{name} {state}"),
    }
}

/// Returns a setting's name without what it belongs to; a number alone would name no alert.
fn setting(name: &str) -> &str {
    name.split_once('.').filter(|_| !Alerts::is_setting(name)).map_or(name, |(_, name)| name)
}

/// Draws the time since the beginning of the run at round steps, where there is room.
fn ticks(state: &State, frame: &mut Frame<'_>, area: Rect, taken: &[(u16, u16)]) {
    let (theme, axis, timeline) = (state.theme, TimeAxis::of(state, area), &state.timeline);
    if axis.shown == 0 {
        return;
    }
    let shown_us = timeline.column_us().saturating_mul(axis.shown as u64);
    let from_us = state.elapsed_us(timeline.end_us(axis.hidden).saturating_sub(timeline.column_us()));
    let cells = u64::from(axis.width());
    let is_apart = |&step: &u64| step * 1_000_000 * cells / shown_us.max(1) >= TICK_CELLS_MIN;
    let step_us = STEPS_S.into_iter().find(is_apart).unwrap_or(STEPS_S[STEPS_S.len() - 1]) * 1_000_000;
    let first = from_us.div_ceil(step_us);
    for us in (first..).map(|n| n * step_us).take_while(|us| *us < from_us + shown_us) {
        let label = format!(
            "{}{}",
            theme.glyphs.moment_tick(),
            records::text::quantity::elapsed_text(us / 1_000_000)
        );
        let x = axis.start() + ((us - from_us) * cells / shown_us) as u16;
        let to = x + label.chars().count() as u16;
        if to < axis.end() && taken.iter().all(|&(start, end)| to < start || x > end) {
            frame.buffer_mut().set_string(x, area.y, label, theme.quiet());
        }
    }
}
