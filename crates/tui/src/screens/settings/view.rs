//! The settings of proxy and load, docked beside the panes: values, staged values, and the selected setting in words.
//!
//! ```text
//! ─ settings 1-20/43, 2 staged ────────────────────────────────────
//!  proxy.workers                2 > 4                           now
//! ▶proxy.handshake-timeout     *5s                              now
//!  load.rate                    5000/s > 5500/s, asked          now
//!  proxy.listen                 [::]:8443                   restart
//! Deadline of a handshake
//! a time from 1ms to 24h, such as 10s; default: 10s; applies: now
//! ─ changes ─────────────── u: proxy.handshake-timeout to 10s
//! 12:04:10Z proxy.handshake-timeout 10s > 5s                   here
//! ```
//!
//! `*`: the value is not the default, or not that of the start where there is no default.

use model::alerts::UndersampledAlert;
use model::insight::expiry_of;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use records::setting::{Applies, Setting};

use crate::input::intent::{Intent, SettingEdit};
use crate::state::State;
use crate::theme::Theme;
use crate::theme::format;
use crate::widgets::parts::{certificate_words, heading, put, selected};

/// The cells of the longest name with the pointer; less where the values would get less than half.
const NAME_CELLS: usize = 32;
/// The rows that describe the selected setting, in a low and in a high dock.
const ABOUT_ROWS: (usize, usize) = (3, 6);
/// The rows of a high dock.
const HIGH: usize = 14;
/// The rows of the history of changes, and the minimum rows of a dock with it.
const CHANGES_ROWS: usize = 5;
const WITH_CHANGES: usize = 22;

/// The least cells for the uid and pid of who made a change.
const WITH_PROCESS_CELLS: usize = 64;

/// Draws the list around the selected line, and the selected setting below it.
pub(crate) fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    if area.is_empty() {
        return;
    }
    let settings = state.settings();
    let (cells, rows) = (usize::from(area.width), usize::from(area.height));
    let about = about(state, cells);
    // What is wrong with a value is shown whole; other texts may be cut where there is little room.
    let about_rows = match (rows < HIGH, problem(state)) {
        (true, Some(_)) => about.len().clamp(ABOUT_ROWS.0, rows.saturating_sub(2).max(ABOUT_ROWS.0)),
        (true, None) => ABOUT_ROWS.0,
        (false, _) => ABOUT_ROWS.1,
    };
    let changes_rows = if rows < WITH_CHANGES { 0 } else { CHANGES_ROWS };
    let listed = rows.saturating_sub(1 + about_rows + changes_rows).max(1);
    let first = (state.tuning.selected + 1).saturating_sub(listed).min(settings.len().saturating_sub(listed));
    let mut lines = vec![title(state, (first, listed), area.width)];
    let shown = settings.iter().enumerate().skip(first).take(listed);
    lines.extend(shown.map(|(at, setting)| line(state, setting, at, cells)));
    if settings.is_empty() {
        lines.push(Line::styled("no settings have been read", state.theme.quiet()));
    }
    put(frame, area, &lines);
    let used = (1 + listed.min(settings.len().max(1))).min(rows) as u16;
    let below = Rect { y: area.y + used, height: area.height - used, ..area };
    let mut lines = about;
    if changes_rows > 0 {
        lines.resize(about_rows.max(lines.len()), Line::default());
        lines.extend(changes(state, below));
    }
    put(frame, below, &lines);
}

fn title(state: &State, (first, listed): (usize, usize), width: u16) -> Line<'static> {
    let all = state.settings().len();
    let part = if listed < all { format!(" {}-{}/{all}", first + 1, first + listed) } else { String::new() };
    let staged = match state.tuning.count() {
        0 => String::new(),
        n => format!(", {n} staged"),
    };
    heading(state.theme, &[&format!("settings{part}{staged}"), "settings"], "", width)
}

fn line(state: &State, setting: &Setting, at: usize, cells: usize) -> Line<'static> {
    let theme = state.theme;
    let is_selected = at == state.tuning.selected;
    let is_locked = state.is_compared(&setting.name);
    let is_fixed = setting.applies == Applies::Restart || is_locked;
    let pointer = if is_selected { theme.glyphs.pointer() } else { ' ' };
    let name_cells = NAME_CELLS.min(cells / 2);
    let name = format::cut(&setting.name, name_cells.saturating_sub(3), theme.glyphs);
    let changed = if state.usual(setting) == setting.value.to_string() { ' ' } else { '*' };
    let name = format!("{pointer}{name:<0$}{changed}", name_cells.saturating_sub(2));
    let name_style = if is_fixed { theme.quiet() } else { theme.label() };
    // An alert that cannot fire says so, whatever room its condition would take.
    let remedy =
        shortage(state, setting).map_or_else(String::new, |shortage| format!("  {}", shortage.remedy()));
    let mut room = cells.saturating_sub(name_cells + format::width(&remedy));
    let mut spans = vec![Span::styled(name, name_style)];
    for (text, style) in values(state, setting) {
        let text = format::cut(&text, room, theme.glyphs);
        room = room.saturating_sub(format::width(&text));
        spans.push(Span::styled(text, style));
    }
    // The column is left out of a row whose values need its room.
    let applies = if is_locked { "in A/B" } else { applies(setting) };
    let applies =
        Some(applies).filter(|text| text.len() + 2 <= room && remedy.is_empty()).unwrap_or_default();
    spans.push(Span::styled(format!("{applies:>room$}"), theme.quiet()));
    spans.push(Span::styled(remedy, theme.warning()));
    let line = Line::from(spans);
    if is_selected { selected(theme, line) } else { line }
}

/// Returns the value, the staged one, and what became of the last change.
fn values(state: &State, setting: &Setting) -> Vec<(String, Style)> {
    let theme = state.theme;
    let is_none = setting.shown(&setting.value).is_empty();
    let mut values = vec![(
        setting.in_words(&setting.value, state.info(&setting.name)),
        if is_none { theme.quiet() } else { theme.figure() },
    )];
    if let Some(staged) = state.tuning.staged(&setting.name) {
        values.push((format!(" > {}", setting.shown(staged)), theme.notice()));
    }
    if let Some(asked) = state.control.asked(&setting.name) {
        values.push((format!(" > {}, asked", setting.shown(asked)), theme.notice()));
    } else if state.control.refusal(&setting.name).is_some() {
        values.push(("  refused".to_owned(), theme.warning()));
    }
    values
}

/// Returns why the alert of a setting is not evaluated.
fn shortage<'s>(state: &'s State, setting: &Setting) -> Option<&'s UndersampledAlert> {
    state.figures()?.shortages.iter().find(|shortage| shortage.setting == setting.name)
}

/// Says when a change of a setting has its effect.
fn applies(setting: &Setting) -> &'static str {
    match setting.applies {
        Applies::Live => "now",
        Applies::NewConnections => "new connections",
        Applies::Restart => "restart",
    }
}

/// Describes the selected setting: why its value was refused, the value if the list cuts it, what the setting does, its
/// range and default, and when a change applies.
fn about(state: &State, cells: usize) -> Vec<Line<'static>> {
    let theme = state.theme;
    let Some(setting) = state.settings().get(state.tuning.selected) else { return Vec::new() };
    let info = state.info(&setting.name);
    let problem = problem(state).unwrap_or_default();
    let value = setting.shown(&setting.value);
    let is_cut = format::width(&value) > cells - NAME_CELLS.min(cells / 2);
    let default = info.and_then(|info| info.absent.map(str::to_owned));
    let usual = state.usual(setting);
    let default = default.or_else(|| info?.default.as_ref().map(|default| setting.shown(default)));
    let default = match default {
        Some(default) => format!("default: {default}; "),
        None if usual != setting.value.to_string() => format!("at the start: {usual}; "),
        None => String::new(),
    };
    let allowed = if setting.applies == Applies::Restart { None } else { setting.allowed(info) };
    let allowed = allowed.map_or_else(String::new, |text| format!("{text}; "));
    let allowed = format!("{allowed}{default}applies: {}", applies(setting));
    let about = info.map_or("", |info| &info.about);
    let found = crate::panes::findings::view::about(state, &setting.name);
    let expiry = state.run().and_then(|run| expiry_of(setting, run));
    let (days, days_style) = expiry.map_or_else(Default::default, |expiry| certificate_words(theme, expiry));
    [
        (&*problem, theme.warning()),
        (&days, days_style),
        (if is_cut { &value } else { "" }, theme.figure()),
        (about, theme.label()),
        (&found, theme.notice()),
        (&allowed, theme.quiet()),
    ]
    .into_iter()
    .flat_map(|(text, style)| paragraph(theme, text, style, cells))
    .collect()
}

/// Returns why the last value was refused, or the alert of the selected setting cannot fire.
fn problem(state: &State) -> Option<String> {
    let setting = state.settings().get(state.tuning.selected)?;
    let refusal = || state.control.refusal(&setting.name).map(str::to_owned);
    let shortage = || shortage(state, setting).map(UndersampledAlert::to_string);
    state.tuning.complaint.clone().or_else(refusal).or_else(shortage)
}

fn paragraph(theme: Theme, text: &str, style: Style, cells: usize) -> Vec<Line<'static>> {
    let lines = format::wrapped(text, cells).into_iter();
    lines.map(|line| Line::styled(format::cut(&line, cells, theme.glyphs), style)).collect()
}

/// The latest changes of settings, and what undo would do.
fn changes(state: &State, area: Rect) -> Vec<Line<'static>> {
    let theme = state.theme;
    let changes = state.setting_changes();
    if changes.is_empty() {
        return Vec::new();
    }
    let cells = usize::from(area.width);
    let undo = state.control.next_undo().map_or_else(String::new, |(name, value)| {
        let key = state.options.keymap.names(Intent::Setting(SettingEdit::Undo));
        let value = state.settings().iter().find(|setting| setting.name == *name).map(|s| s.shown(value));
        format!("{}: {name} to {}", key.join(" "), value.unwrap_or_default())
    });
    let mut lines = vec![heading(theme, &["changes"], &undo, area.width)];
    lines.extend(changes.iter().map(|change| {
        let time = state.time_of_day(change.realtime_us);
        let by = change.by.to_string();
        let by = if cells < WITH_PROCESS_CELLS { by.split(" (").next().unwrap_or_default() } else { &by };
        let by = format::cut(by, cells / 2, theme.glyphs);
        let room = cells.saturating_sub(time.len() + format::width(&by) + 3);
        let text = format!("{} {} > {}", change.name, change.before, change.after);
        let text = format::cut(&text, room, theme.glyphs);
        Line::from(vec![
            Span::styled(format!("{time} "), theme.quiet()),
            Span::styled(format!("{text:<room$}  "), theme.label()),
            Span::styled(by, theme.quiet()),
        ])
    }));
    lines
}
