//! The screen: layout and formatting of the state.

mod details;
pub(crate) mod dock;
pub(crate) mod essentials;
pub(crate) mod footer;
pub(crate) mod layout;
pub(crate) mod playback;
pub(crate) mod problem;
pub(crate) mod status;
#[cfg(test)]
mod tests;
pub(crate) mod tiles;

use ratatui::Frame;
use ratatui::layout::{Alignment, Rect};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use crate::panes::{self, PaneId};
use crate::screens;
use crate::screens::prompt::palette_view;
use crate::screens::prompt::state::PromptPurpose;
use crate::state::State;
use crate::state::screen::Screen;
use crate::theme::format;
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
                (panes::pane(id).render)(state, frame, area);
                highlight_focus(state, frame, id, area);
            }
            playback::render(state, frame, panes.playback);
            docked(state, frame, panes.dock);
            footer::render(state, frame, panes.footer);
        }
    }
    match state.screen {
        Screen::Dashboard | Screen::Tuning | Screen::Experiments => {}
        Screen::Help { offset } => screens::help::view::render(state, frame, offset),
        Screen::Runs => screens::runs::view::render(state, frame),
        Screen::Choice(of, selected) => screens::choice::view::render(state, frame, of, selected),
        Screen::Findings(selected) => panes::findings::details::render(state, frame, selected),
        Screen::Details(list) => {
            if let Some(details) = panes::details(state, list) {
                details.render(state, frame);
            }
        }
        Screen::Requests { failed_only } => screens::requests::view::render(state, frame, failed_only),
    }
    if let Some(PromptPurpose::Palette { found, selected }) =
        state.prompt.as_ref().map(|prompt| &prompt.purpose)
    {
        palette_view::render(state, frame, found, *selected);
    }
}

/// Draws settings or experiments beside the panes.
fn docked(state: &State, frame: &mut Frame<'_>, area: Rect) {
    match state.screen {
        Screen::Tuning => screens::settings::view::render(state, frame, area),
        Screen::Experiments => screens::experiments::view::render(state, frame, area),
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
