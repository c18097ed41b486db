//! All keys by group, and the meaning of the figures, over the panes; searched with `/`.
//!
//! ```text
//! +- help 1-20/94, Up and Down, / search ----------------+
//! | everywhere:                                          |
//! | q Ctrl-c    quit                                     |
//! | ? F1        show or leave this help                  |
//! |                                                      |
//! | figures:                                             |
//! | (1.23)      fewer than ten samples lie above it      |
//! +------------------------------------------------------+
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use records::metrics::LatencyClass;

use crate::format;
use crate::input::intent::Intent;
use crate::input::keymap::{BINDINGS, Binding, KeyContext};
use crate::state::State;
use crate::widgets::overlay;

/// The cells of the keys' names, and of the figures' names.
const NAME_CELLS: usize = 25;
/// The cells of the names on a narrow screen.
const NARROW_NAME_CELLS: usize = 10;
const LINE_CELLS: usize = NAME_CELLS + 51;

/// The figures that are not plain from their labels.
const FIGURES: &[(&str, &str)] = &[
    ("(1.23)", "fewer than ten samples lie above this percentile"),
    ("[ALERT], 1.23!", "alerts that fire, and a figure that one is about"),
    ("alert.1", "FIGURE OP VALUE [for TIME] [over WINDOW], or off"),
    ("", "such as response.p99 > 5ms for 30s over 1m"),
    ("p99 95 %", "its confidence interval, for independent samples"),
    ("vs mark 1", "p99 against that window; *: intervals do not overlap; ?: may be chance"),
    ("+01:20", "a moment: 1 min 20 s after the start of the run"),
    ("window", "the latest time, over which rates and latencies are"),
    ("mean of the whole run", "rates and CPU of an ended run, idle time included"),
    ("over time", "fuller: more samples of a column; blank: no records"),
    ("in, out", "plaintext from clients, and to clients; kB = 1000 B"),
    ("failed", "of the proxy: connections that served nothing"),
    ("reasons", "why handshakes failed, of those with a record"),
    ("retransmitted", "handshakes since the start with resent segments"),
    ("why full", "full handshakes of the window by reason, defined in docs/tls.md"),
    ("mostly", "the most frequent of each; its share if not all"),
    ("full, resumed … ms", "where the mean handshake's time goes; n: those timed"),
    ("network, client", "round trips (estimated), and the client beyond them"),
    ("loop delay, compute", "data had come and the worker was busy; inside TLS"),
    ("usage", "handshakes since the start by version, group, name, …"),
    ("share", "of usage: of all handshakes that the table has"),
    ("CPU share", "of usage: of all handshake CPU, not of a core"),
    ("only choice", "handshakes that would fail without this value"),
    ("bytes", "of usage: of connections that are over"),
    ("full", "of a client: share of full handshakes in the window"),
    ("total", "of a client: bytes both ways since it came"),
    ("p99 ms", "of a client: its exchanges, to an eighth"),
    ("RTT ms, resent", "of a client: by the kernel, at its handshakes"),
    ("journal lag", "from making a record to reading it here"),
    ("gaps, lost", "holes in the records read, and records missing"),
    ("docs/figures.md", "defines every figure"),
];

/// The figures of HTTP mode, and what keys act on there.
const HTTP: &[(&str, &str)] = &[
    ("sort, filter, details", "act on the focused list, else on the clients"),
    ("requests, req/s", "requests that were over, answered or given up"),
    ("p99 … ttfb", "header: p99 of the time to the first byte to the client"),
    ("failed", "requests that failed, whatever status was sent; an upstream's own 5xx is none"),
    ("2xx 3xx 4xx 5xx, none", "requests of the window by status; none: no status was sent"),
    ("in flight", "requests that are not over at the last record"),
    ("queued", "of these, those that wait for an upstream connection"),
    ("pool", "upstream connections of all routes, and of these the idle ones"),
    ("retried", "sent once more, as the upstream had closed the kept connection"),
    ("route", "host and path prefix; other: all routes after the 50th"),
    ("p50 ms, p99 ms", "of a route: upstream, head sent to response head received"),
    ("in, out", "of a route: bytes of request and response bodies"),
    ("slowest, failed requests", "of those with a record: failures and 5xx, the slowest, a sample"),
    ("cause", "why a request failed, in the words of its record; status-500: by the upstream"),
];

struct HelpLine {
    name: String,
    meaning: String,
    is_heading: bool,
}

/// Returns how many cells a line has, and how many of them the names have.
fn cells(state: &State) -> (usize, usize) {
    let cells = usize::from(state.size().0.saturating_sub(overlay::SIDES)).min(LINE_CELLS);
    (cells, if cells < LINE_CELLS { NARROW_NAME_CELLS } else { NAME_CELLS })
}

/// Returns how many lines are visible.
pub(crate) fn rows(state: &State) -> usize {
    let (columns, rows) = state.size();
    let placed = overlay::place(Rect::new(0, 0, columns, rows), (LINE_CELLS, texts(state).len()));
    placed.map_or(0, |area| usize::from(area.height) - 2)
}

/// Returns how many lines can be scrolled away.
pub(crate) fn offset_max(state: &State) -> usize {
    texts(state).len().saturating_sub(rows(state))
}

pub(crate) fn render(state: &State, frame: &mut Frame<'_>, offset: usize) {
    let texts = texts(state);
    let Some(area) = overlay::place(frame.area(), (LINE_CELLS, texts.len())) else { return };
    let rows = usize::from(area.height) - 2;
    let offset = offset.min(texts.len().saturating_sub(rows));
    let search = match &*state.help_search {
        "" => ", / searches".to_owned(),
        text => format!(" with {text}"),
    };
    let title = if rows >= texts.len() {
        format!("help{search}")
    } else {
        format!("help {}-{}/{}, Up and Down{search}", offset + 1, offset + rows, texts.len())
    };
    let shown = texts.iter().skip(offset).take(rows);
    let lines: Vec<Line<'_>> = shown.map(|text| line(state, text)).collect();
    overlay::render(state, frame, area, &title, &lines);
}

type HelpGroup = (&'static str, Vec<(String, String)>);

/// Returns headings, names and meanings, line by line. Keys without effect and what a search does not find are left out.
fn texts(state: &State) -> Vec<HelpLine> {
    let search = state.help_search.to_lowercase();
    let mut lines = Vec::new();
    for (heading, mut entries) in groups(state) {
        let is_found =
            |(name, meaning): &(String, String)| format!("{name} {meaning}").to_lowercase().contains(&search);
        entries.retain(|entry| heading.to_lowercase().contains(&search) || is_found(entry));
        if entries.is_empty() {
            continue;
        }
        if !lines.is_empty() {
            lines.push(HelpLine::of("", ""));
        }
        lines.push(HelpLine { is_heading: true, ..HelpLine::of(heading, "") });
        lines.extend(entries.iter().flat_map(|(name, meaning)| wrapped(name, meaning, cells(state))));
    }
    if lines.is_empty() {
        lines.push(HelpLine::of("", "nothing of that name"));
    }
    lines
}

impl HelpLine {
    fn of(name: &str, meaning: &str) -> Self {
        Self { name: name.to_owned(), meaning: meaning.to_owned(), is_heading: false }
    }
}

/// Continues a long meaning below itself, and begins it below a name that is longer than its column.
fn wrapped(name: &str, meaning: &str, (cells, name_cells): (usize, usize)) -> Vec<HelpLine> {
    let parts = format::wrapped(meaning, cells.saturating_sub(name_cells + 1));
    let is_long = name_cells == NARROW_NAME_CELLS && format::width(name) > name_cells;
    let mut lines: Vec<HelpLine> = parts.iter().map(|part| HelpLine::of("", part)).collect();
    match lines.first_mut() {
        Some(first) if !is_long => name.clone_into(&mut first.name),
        _ => lines.insert(0, HelpLine::of(name, "")),
    }
    lines
}

fn groups(state: &State) -> Vec<HelpGroup> {
    let keys = |heading: &'static str, is_in: &dyn Fn(&Binding) -> bool| {
        let here = BINDINGS.iter().filter(|binding| state.can(binding.needs) && is_in(binding));
        let names = |binding: &Binding| state.options.keymap.names(binding.intent).join(" ");
        (heading, here.map(|binding| (names(binding), binding.meaning.to_owned())).collect())
    };
    let of_intent = |group| {
        move |binding: &Binding| {
            matches!(binding.context, KeyContext::Anywhere | KeyContext::Panes)
                && topic(binding.intent) == group
        }
    };
    let owned = |&(name, meaning): &(&str, &str)| (name.to_owned(), meaning.to_owned());
    let has_http = state.has_http();
    let in_context = |context| move |binding: &Binding| binding.context == context;
    vec![
        keys("everywhere:", &of_intent(Topic::Program)),
        keys("what is shown:", &of_intent(Topic::View)),
        keys("time:", &of_intent(Topic::Time)),
        keys("while a run is played:", &in_context(KeyContext::Replay)),
        keys("lists:", &of_intent(Topic::Lists)),
        keys("load and settings:", &of_intent(Topic::Control)),
        keys("on the list of settings:", &in_context(KeyContext::Tuning)),
        keys("on the experiments:", &in_context(KeyContext::Experiments)),
        keys("on the list of runs:", &in_context(KeyContext::Runs)),
        keys("on a list of columns or panes:", &in_context(KeyContext::Choice)),
        (
            "latencies:",
            LatencyClass::all()
                .filter(|class| has_http || !matches!(class, LatencyClass::Http(_)))
                .map(class)
                .collect(),
        ),
        ("HTTP:", HTTP.iter().filter(|_| has_http).map(owned).collect()),
        ("figures:", FIGURES.iter().map(owned).collect()),
    ]
}

/// Defines a class of latencies, from the catalogue of figures.
fn class(class: LatencyClass) -> (String, String) {
    let names = class.names();
    let note = if names.note.is_empty() { String::new() } else { format!(" ({})", names.note) };
    (class.title().to_owned(), format!("{} to {}{note}", names.start, names.end))
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
        | Intent::Calibrate => Topic::Control,
        Intent::NextClass
        | Intent::ToggleTimeline
        | Intent::Window(_)
        | Intent::Pane(_)
        | Intent::Choose(_) => Topic::View,
        _ => Topic::Program,
    }
}

fn line(state: &State, text: &HelpLine) -> Line<'static> {
    let (theme, (cells, name_cells)) = (state.theme, cells(state));
    let HelpLine { name, meaning, is_heading } = text;
    if *is_heading {
        return Line::styled(format::cut(name, cells, theme.glyphs), theme.heading());
    }
    let name = format!("{name:<name_cells$} ");
    let meaning_cells = cells.saturating_sub(name_cells + 1);
    Line::from(vec![
        Span::styled(format::cut(&name, cells, theme.glyphs), theme.figure()),
        Span::styled(format::cut(meaning, meaning_cells, theme.glyphs), theme.label()),
    ])
}
