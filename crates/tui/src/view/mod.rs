//! The screen: layout and formatting of the state.

mod alerts;
pub(crate) mod client;
mod clients;
mod dock;
mod experiment;
mod footer;
mod handshakes;
pub(crate) mod help;
mod latency;
mod latency_timeline;
pub(crate) mod layout;
mod log;
mod one_line;
mod overlay;
mod palette;
mod parts;
mod past;
mod playback;
mod prompt;
mod runs;
mod sparkline;
mod status;
#[cfg(test)]
mod tests;
mod tuning;

use ratatui::Frame;
use ratatui::layout::{Alignment, Rect};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use crate::format;
use crate::state::{Purpose, Screen, State};
use layout::Layout;

/// Draws the whole screen.
pub(crate) fn view(state: &State, frame: &mut Frame<'_>) {
    let area = frame.area();
    match layout::of(area, state) {
        Layout::Nothing => {}
        Layout::OneLine(line) => {
            one_line::render(state, frame, line);
            docked(state, frame, Rect { y: line.bottom(), height: area.height - line.height, ..area });
        }
        Layout::Panes(panes) => {
            status::render(state, frame, panes.status);
            match state.figures() {
                None => waiting(state, frame, panes.body()),
                Some(figures) => {
                    latency::render(state, figures, frame, panes.latency);
                    latency_timeline::render(state, frame, panes.timeline);
                    handshakes::render(state, figures, frame, panes.handshakes);
                    clients::render(state, figures, frame, panes.clients);
                }
            }
            playback::render(state, frame, panes.playback);
            log::render(state, frame, panes.log);
            docked(state, frame, panes.dock);
            footer::render(state, frame, panes.footer);
        }
    }
    match state.screen {
        Screen::Dashboard | Screen::Log | Screen::Tuning | Screen::Experiments => {}
        Screen::Help { offset } => help::render(state, frame, offset),
        Screen::Runs => runs::render(state, frame),
        Screen::Client(id) => client::render(state, frame, id),
    }
    if let Some(Purpose::Palette { found, selected }) = state.prompt.as_ref().map(|prompt| &prompt.purpose) {
        palette::render(state, frame, found, *selected);
    }
}

/// Draws what stands beside the panes.
fn docked(state: &State, frame: &mut Frame<'_>, area: Rect) {
    match state.screen {
        Screen::Tuning => tuning::render(state, frame, area),
        Screen::Experiments => experiment::render(state, frame, area),
        _ => {}
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
