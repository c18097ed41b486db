//! The screen: layout and formatting of the state.

mod alerts;
mod choice;
pub(crate) mod client;
mod clients;
mod detail;
mod dock;
mod essentials;
mod experiment;
mod experiment_form;
mod findings;
mod footer;
mod handshakes;
pub(crate) mod help;
mod hosts;
mod http;
mod latency;
mod latency_timeline;
pub(crate) mod layout;
mod log;
mod overlay;
mod palette;
pub(crate) mod pane;
mod parts;
mod past;
mod playback;
mod prompt;
pub(crate) mod requests;
pub(crate) mod route;
mod routes;
pub(crate) mod runs;
mod sparkline;
mod status;
mod system;
mod table;
#[cfg(test)]
mod tests;
mod tuning;
mod usage;
pub(crate) mod usage_detail;
mod usage_grid;

use ratatui::Frame;
use ratatui::layout::{Alignment, Rect};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use crate::format;
use crate::state::{PaneId, PromptPurpose, Screen, State};
use layout::Layout;

pub(crate) fn view(state: &State, frame: &mut Frame<'_>) {
    let area = frame.area();
    match layout::of(area, state) {
        Layout::Nothing => {}
        Layout::Essentials(place) => {
            essentials::render(state, frame, place);
            docked(state, frame, Rect { y: place.bottom(), height: area.height - place.height, ..area });
        }
        Layout::Panes(panes) => {
            status::render(state, frame, panes.status);
            if state.figures().is_none() {
                waiting(state, frame, panes.body);
            }
            for (id, area) in panes.shown {
                (pane::pane(id).render)(state, frame, area);
                highlight_focus(state, frame, id, area);
            }
            playback::render(state, frame, panes.playback);
            docked(state, frame, panes.dock);
            footer::render(state, frame, panes.footer);
        }
    }
    match state.screen {
        Screen::Dashboard | Screen::Tuning | Screen::Experiments => {}
        Screen::Help { offset } => help::render(state, frame, offset),
        Screen::Runs => runs::render(state, frame),
        Screen::Choice(of, selected) => choice::render(state, frame, of, selected),
        Screen::Client(id) => client::render(state, frame, id),
        Screen::Route(id) => route::render(state, frame, id),
        Screen::Findings(selected) => findings::details::render(state, frame, selected),
        Screen::Usage(id) => usage_detail::render(state, frame, id),
        Screen::Requests { failed_only } => requests::render(state, frame, failed_only),
    }
    if let Some(PromptPurpose::Palette { found, selected }) =
        state.prompt.as_ref().map(|prompt| &prompt.purpose)
    {
        palette::render(state, frame, found, *selected);
    }
}

/// Draws settings or experiments beside the panes.
fn docked(state: &State, frame: &mut Frame<'_>, area: Rect) {
    match state.screen {
        Screen::Tuning => tuning::render(state, frame, area),
        Screen::Experiments => experiment::render(state, frame, area),
        _ => {}
    }
}

/// Marks the pane that was focused by hand.
fn highlight_focus(state: &State, frame: &mut Frame<'_>, id: PaneId, area: Rect) {
    if state.panes.focus == Some(id) {
        let style = state.theme.notice();
        frame.buffer_mut()[(area.x, area.y)].set_char(state.theme.glyphs.pointer()).set_style(style);
    }
}

/// Explains why there are no figures yet.
fn waiting(state: &State, frame: &mut Frame<'_>, area: Rect) {
    if area.is_empty() {
        return;
    }
    let what = match state.options.run {
        Some(run) => format!("waiting for the first record of run {}", run.short()),
        None => "waiting for the first record".to_owned(),
    };
    let from = format!("from {}", state.options.source);
    let cells = usize::from(area.width);
    let lines = [what, from].map(|text| Line::raw(format::cut(&text, cells, state.theme.glyphs)));
    let middle = Rect { y: area.y + area.height / 3, height: area.height.min(2), ..area }.intersection(area);
    let text = Paragraph::new(lines.to_vec()).style(state.theme.quiet()).alignment(Alignment::Center);
    frame.render_widget(text, middle);
}
