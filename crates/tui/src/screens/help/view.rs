//! All keys by group, and the meaning of the figures, over the panes; searched with `/`. Those of the pane with the focus,
//! or of the screen below, come first.
//!
//! ```text
//! +- help 1-88/142, / searches -----------------------------------------------------------------------+
//! | clients: source addresses, with rates and totals      time:                                       |
//! | s           sort the clients by the next column       Space       freeze the view, or return to   |
//! | /           show only clients that match              Left        back in time by a column        |
//! |                                                       Right       forward in time by a column     |
//! | clients:                                              ...                                         |
//! | why         why its latest failed connection failed                                               |
//! +---------------------------------------------------------------------------------------------------+
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use records::metrics::{LatencyClass, Metric as _, TlsCounter};

use super::figures::{FIGURES, FigureGroup};
use crate::input::context::KeyContext;
use crate::input::intent::Intent;
use crate::input::keymap::{BINDINGS, Binding};
use crate::panes::PaneId;
use crate::screens::own_hints;
use crate::state::State;
use crate::state::screen::Screen;
use crate::theme::format;
use crate::widgets::overlay;

/// The cells of the keys' names, and of the figures' names.
const NAME_CELLS: usize = 25;
/// The cells of the names on a narrow screen.
const NARROW_NAME_CELLS: usize = 10;
const LINE_CELLS: usize = NAME_CELLS + 51;
/// The cells between two columns.
const GAP: usize = 4;

struct HelpLine {
    name: String,
    meaning: String,
    is_heading: bool,
}

/// How the lines are placed: one below the other, on a wide screen in two columns.
struct HelpLayout {
    columns: usize,
    /// The cells of a line, and how many of them the names have.
    cells: usize,
    name_cells: usize,
}

impl HelpLayout {
    fn of(state: &State) -> Self {
        let room = usize::from(state.size().0.saturating_sub(overlay::SIDES));
        let columns = if room < 2 * LINE_CELLS + GAP { 1 } else { 2 };
        let name_cells = if room < LINE_CELLS { NARROW_NAME_CELLS } else { NAME_CELLS };
        Self { columns, cells: room.min(LINE_CELLS), name_cells }
    }

    /// Returns the place of so many lines; `None` without room.
    fn place(&self, state: &State, lines: usize) -> Option<Rect> {
        let (width, height) = state.size();
        let cells = self.columns * self.cells + (self.columns - 1) * GAP;
        overlay::place(Rect::new(0, 0, width, height), (cells, lines.div_ceil(self.columns)))
    }
}

/// Returns how many lines are visible.
pub(crate) fn page(state: &State) -> usize {
    let layout = HelpLayout::of(state);
    let area = layout.place(state, lines(state, &layout).len());
    area.map_or(0, |area| (usize::from(area.height) - 2) * layout.columns)
}

/// Returns how many lines can be scrolled away.
pub(crate) fn offset_max(state: &State) -> usize {
    lines(state, &HelpLayout::of(state)).len().saturating_sub(page(state))
}

pub(crate) fn render(state: &State, frame: &mut Frame<'_>, offset: usize) {
    let layout = HelpLayout::of(state);
    let lines = lines(state, &layout);
    let Some(area) = layout.place(state, lines.len()) else { return };
    let rows = usize::from(area.height) - 2;
    let page = rows * layout.columns;
    let offset = offset.min(lines.len().saturating_sub(page));
    let search = match &*state.help.search {
        "" => ", / searches".to_owned(),
        text => format!(" with {text}"),
    };
    let title = if page >= lines.len() {
        format!("help{search}")
    } else {
        format!("help {}-{}/{}, Up and Down{search}", offset + 1, offset + page, lines.len())
    };
    let row = |at: usize| {
        let columns = (0..layout.columns).filter_map(|column| lines.get(offset + column * rows + at));
        let mut spans = Vec::new();
        for text in columns {
            let gap = if spans.is_empty() { 0 } else { GAP };
            spans.push(Span::raw(" ".repeat(gap)));
            spans.extend(text.spans(state, &layout));
        }
        Line::from(spans)
    };
    overlay::render(state, frame, area, &title, &(0..rows).map(row).collect::<Vec<_>>());
}

/// Something with its meaning, in a group of the help.
struct HelpEntry {
    name: String,
    meaning: String,
    /// The text in which a search looks.
    searched: String,
}

struct HelpGroup {
    heading: String,
    entries: Vec<HelpEntry>,
}

impl HelpGroup {
    fn figures<'a>(heading: &str, figures: impl IntoIterator<Item = &'a (&'a str, &'a str)>) -> Self {
        let entry = |&(name, meaning): &(&str, &str)| HelpEntry {
            name: name.to_owned(),
            meaning: meaning.to_owned(),
            searched: format!("{name} {meaning}"),
        };
        Self { heading: heading.to_owned(), entries: figures.into_iter().map(entry).collect() }
    }

    fn keys<'a>(state: &State, heading: &str, bindings: impl IntoIterator<Item = &'a Binding>) -> Self {
        let entry = |binding: &Binding| {
            let name = state.options.keymap.names(binding.intent).join(" ");
            let searched = format!("{name} {}", binding.searched());
            HelpEntry { name, meaning: binding.meaning.to_owned(), searched }
        };
        let usable = bindings.into_iter().filter(|binding| state.can(binding.needs));
        Self { heading: heading.to_owned(), entries: usable.map(entry).collect() }
    }
}

/// Returns headings, names and meanings, line by line. Keys without effect and what a search does not find are left out.
fn lines(state: &State, layout: &HelpLayout) -> Vec<HelpLine> {
    let search = state.help.search.to_lowercase();
    let mut lines = Vec::new();
    for HelpGroup { heading, mut entries } in groups(state) {
        let is_whole = heading.to_lowercase().contains(&search);
        entries.retain(|entry| is_whole || entry.searched.to_lowercase().contains(&search));
        if entries.is_empty() {
            continue;
        }
        if !lines.is_empty() {
            lines.push(HelpLine::of("", ""));
        }
        lines.push(HelpLine { is_heading: true, ..HelpLine::of(&heading, "") });
        lines.extend(entries.iter().flat_map(|entry| wrapped(&entry.name, &entry.meaning, layout)));
    }
    if lines.is_empty() {
        lines.push(HelpLine::of("", "nothing of that name"));
    }
    lines
}

/// Continues a long meaning below itself, and begins it below a name that is longer than its column.
fn wrapped(name: &str, meaning: &str, layout: &HelpLayout) -> Vec<HelpLine> {
    let parts = format::wrapped(meaning, layout.cells.saturating_sub(layout.name_cells + 1));
    let is_long = layout.name_cells == NARROW_NAME_CELLS && format::width(name) > layout.name_cells;
    let mut lines: Vec<HelpLine> = parts.iter().map(|part| HelpLine::of("", part)).collect();
    match lines.first_mut() {
        Some(first) if !is_long => name.clone_into(&mut first.name),
        _ => lines.insert(0, HelpLine::of(name, "")),
    }
    lines
}

impl HelpLine {
    fn of(name: &str, meaning: &str) -> Self {
        Self { name: name.to_owned(), meaning: meaning.to_owned(), is_heading: false }
    }

    fn spans(&self, state: &State, layout: &HelpLayout) -> Vec<Span<'static>> {
        let (theme, &HelpLayout { cells, name_cells, .. }) = (state.theme, layout);
        let padded = |text: &str, cells: usize| {
            let text = format::cut(text, cells, theme.glyphs);
            let fill = cells - format::width(&text);
            text + &" ".repeat(fill)
        };
        if self.is_heading {
            return vec![Span::styled(padded(&self.name, cells), theme.heading())];
        }
        if self.meaning.is_empty() {
            return vec![Span::styled(padded(&self.name, cells), theme.figure())];
        }
        let meaning_cells = cells.saturating_sub(name_cells + 1);
        vec![
            Span::styled(padded(&self.name, cells - meaning_cells), theme.figure()),
            Span::styled(padded(&self.meaning, meaning_cells), theme.label()),
        ]
    }
}

/// Returns all groups, those of the place where the help was opened first.
fn groups(state: &State) -> Vec<HelpGroup> {
    let focus = state.panes.in_focus().filter(|_| state.help.over == Screen::Dashboard);
    let is_of_focus = |group: &&FigureGroup| focus.is_some_and(|focus| group.panes.contains(&focus));
    let hints = own_hints(state, state.help.over);
    let own_intents = || hints.iter().flat_map(|hint| hint.intents);
    let is_own = |binding: &Binding| own_intents().any(|intent| *intent == binding.intent);
    let keys = |heading: &str, is_in: &dyn Fn(&Binding) -> bool| {
        HelpGroup::keys(state, heading, BINDINGS.iter().filter(|binding| !is_own(binding) && is_in(binding)))
    };
    let of_topic = |group| {
        move |binding: &Binding| {
            matches!(binding.context, KeyContext::Anywhere | KeyContext::Panes)
                && topic(binding.intent) == group
        }
    };
    let in_context = |context| move |binding: &Binding| binding.context == context;
    let figures = || FIGURES.iter().filter(|group| !group.is_of_http || state.has_http());
    let figure_group = |group: &FigureGroup| HelpGroup::figures(group.heading, group.figures);
    let own = own_intents().filter_map(|intent| BINDINGS.iter().find(|binding| binding.intent == *intent));
    let own = HelpGroup::keys(state, &own_heading(state.help.over, focus), own);
    let mut groups = vec![own];
    let is_of_latency = matches!(focus, Some(PaneId::Latency | PaneId::Timeline));
    groups.extend(figures().filter(is_of_focus).map(figure_group));
    groups.extend(is_of_latency.then(|| classes(state)));
    groups.extend([
        keys("everywhere:", &of_topic(Topic::Program)),
        keys("what is shown:", &of_topic(Topic::View)),
        keys("time:", &of_topic(Topic::Time)),
        keys("while a run is played:", &in_context(KeyContext::Replay)),
        keys("lists:", &of_topic(Topic::Lists)),
        keys("load and settings:", &of_topic(Topic::Control)),
        keys("on the list of settings:", &in_context(KeyContext::Tuning)),
        keys("on the experiments:", &in_context(KeyContext::Experiments)),
        keys("on the list of runs:", &in_context(KeyContext::Runs)),
        keys("on a list of columns or panes:", &in_context(KeyContext::Choice)),
    ]);
    groups.extend((!is_of_latency).then(|| classes(state)));
    groups.extend(figures().filter(|group| !is_of_focus(group)).map(figure_group));
    groups.push(full_reasons());
    groups
}

/// Names the place where the help was opened.
fn own_heading(over: Screen, focus: Option<PaneId>) -> String {
    match over {
        Screen::Dashboard => {
            return focus.map_or_else(String::new, |pane| format!("{}: {}", pane.name(), pane.meaning()));
        }
        Screen::Help { .. } => "help:",
        Screen::Tuning => "settings:",
        Screen::Experiments => "experiments:",
        Screen::Runs => "runs and hosts:",
        Screen::Choice(..) => "columns and panes:",
        Screen::Details(_) => "details:",
        Screen::Findings(_) => "findings:",
        Screen::Requests { .. } => "single requests:",
    }
    .to_owned()
}

/// Says why handshakes are full, by the meanings of their counters.
fn full_reasons() -> HelpGroup {
    let meaning = |counter: TlsCounter| {
        let meaning = &*counter.field().meaning;
        meaning.trim_start_matches("Full handshakes ").trim_end_matches('.')
    };
    let reasons: Vec<_> =
        TlsCounter::labelled("handshakes_full").map(|(label, counter)| (label, meaning(counter))).collect();
    HelpGroup::figures("why a handshake was full:", &reasons)
}

/// Defines the classes of latencies, from the catalogue of figures.
fn classes(state: &State) -> HelpGroup {
    let shown =
        LatencyClass::all().filter(|class| state.has_http() || !matches!(class, LatencyClass::Http(_)));
    let define = |class: LatencyClass| {
        let names = class.names();
        let note = if names.note.is_empty() { String::new() } else { format!(" ({})", names.note) };
        (class.title(), format!("{} to {}{note}", names.start, names.end))
    };
    let defined: Vec<_> = shown.map(define).collect();
    let figures: Vec<(&str, &str)> = defined.iter().map(|(title, meaning)| (*title, &**meaning)).collect();
    HelpGroup::figures("latency classes:", &figures)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Topic {
    Program,
    View,
    Time,
    Lists,
    Control,
}

fn topic(intent: Intent) -> Topic {
    match intent {
        Intent::Freeze
        | Intent::Seek(_)
        | Intent::GoTo
        | Intent::Play(_)
        | Intent::ZoomOut
        | Intent::ZoomIn
        | Intent::ZoomToFit => Topic::Time,
        Intent::SortNext
        | Intent::SortReverse
        | Intent::Filter
        | Intent::Open
        | Intent::Requests
        | Intent::NextDimension
        | Intent::Scroll(_)
        | Intent::NextRun
        | Intent::Runs => Topic::Lists,
        Intent::Tune
        | Intent::Experiments
        | Intent::Compare
        | Intent::EndExperiment
        | Intent::Setting(_)
        | Intent::Adjust(..)
        | Intent::Mark
        | Intent::Record
        | Intent::WriteConfiguration
        | Intent::Calibrate
        | Intent::DrainUpstream => Topic::Control,
        Intent::NextClass
        | Intent::ToggleTimeline
        | Intent::Window(_)
        | Intent::Pane(_)
        | Intent::Choose(_) => Topic::View,
        _ => Topic::Program,
    }
}
