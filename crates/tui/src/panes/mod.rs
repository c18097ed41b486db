//! The panes, which of them are shown, their heights, and the focus. A new pane has a folder, an entry in [`PaneId`] and in
//! `PANES`, the presets that show it, and its place on a wide screen in `layout`.

pub(crate) mod certificates;
pub(crate) mod clients;
pub(crate) mod findings;
pub(crate) mod handshakes;
pub(crate) mod hosts;
pub(crate) mod http;
pub(crate) mod latency;
pub(crate) mod log;
pub(crate) mod routes;
pub(crate) mod services;
pub(crate) mod system;
pub(crate) mod timeline;
pub(crate) mod upstreams;
pub(crate) mod usage;

use ratatui::Frame;
use ratatui::layout::Rect;

use crate::input::click::ClickTarget;
use crate::input::intent::{List, PaneAction, Preset};
use crate::input::keymap::{Hint, KeyRequirement};
use crate::state::State;
use crate::state::screen::Screen;

/// A pane of the dashboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PaneId {
    Latency,
    Timeline,
    Handshakes,
    System,
    Http,
    Routes,
    Clients,
    Usage,
    Hosts,
    Services,
    Upstreams,
    Certificates,
    Findings,
    Log,
}

impl PaneId {
    /// All panes, in the order of the screen.
    pub(crate) const ALL: [Self; 14] = [
        Self::Hosts,
        Self::Services,
        Self::Timeline,
        Self::Latency,
        Self::Http,
        Self::Handshakes,
        Self::System,
        Self::Upstreams,
        Self::Routes,
        Self::Clients,
        Self::Usage,
        Self::Certificates,
        Self::Findings,
        Self::Log,
    ];

    /// What a run must have for it to show something.
    pub(crate) fn needs(self) -> KeyRequirement {
        match self {
            Self::Http | Self::Routes => KeyRequirement::Http,
            Self::Hosts => KeyRequirement::Hosts,
            Self::Services => KeyRequirement::Services,
            Self::Upstreams => KeyRequirement::Upstreams,
            Self::Certificates => KeyRequirement::Certificates,
            Self::Latency
            | Self::Timeline
            | Self::Handshakes
            | Self::System
            | Self::Clients
            | Self::Usage
            | Self::Findings
            | Self::Log => KeyRequirement::Nothing,
        }
    }

    /// Returns whether it shows something in some runs only.
    fn is_occasional(self) -> bool {
        self.needs() != KeyRequirement::Nothing
    }

    /// The name on the screen and in the kept layout.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Latency => "latency",
            Self::Timeline => "over time",
            Self::Handshakes => "handshakes",
            Self::System => "system",
            Self::Http => "http",
            Self::Routes => "routes",
            Self::Clients => "clients",
            Self::Usage => "usage",
            Self::Hosts => "hosts",
            Self::Services => "services",
            Self::Upstreams => "upstreams",
            Self::Certificates => "certificates",
            Self::Findings => "findings",
            Self::Log => "log",
        }
    }

    /// What it shows, for the choice of panes.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Latency => "percentiles of each latency class in the window",
            Self::Timeline => "one latency class over time, with marks and changes",
            Self::Handshakes => "full, resumed and failed handshakes, and what they negotiated",
            Self::System => "load, proxy, journal and CPU in detail",
            Self::Http => "statuses, protocols, requests in flight, upstream connections",
            Self::Routes => "routes of HTTP mode, with rates, statuses and latencies",
            Self::Clients => "source addresses, with rates and totals",
            Self::Usage => "who uses which version, group, cipher, name and so on, since the start",
            Self::Hosts => "hosts that are watched, in a line each, and their sum",
            Self::Services => "servers that packets tell apart, in a line each",
            Self::Upstreams => "upstreams of the proxy: state, connections, failures, latencies",
            Self::Certificates => "certificates that are served, and refusals of clients' certificates",
            Self::Findings => "what is about to break, and what to do about it",
            Self::Log => "warnings, events, and the counts of an earlier moment",
        }
    }
}

impl Preset {
    /// The panes that it shows; `None` for all.
    fn shown(self) -> Option<&'static [PaneId]> {
        Some(match self {
            Self::Overview => return None,
            Self::Clients => &[PaneId::Clients, PaneId::Findings, PaneId::Log],
            Self::Latency | Self::Tuning => {
                &[PaneId::Latency, PaneId::Timeline, PaneId::Findings, PaneId::Log]
            }
            Self::Routes => &[PaneId::Routes, PaneId::Findings, PaneId::Log],
            Self::Usage => &[PaneId::Usage, PaneId::Findings, PaneId::Log],
            Self::Hosts => &[PaneId::Hosts, PaneId::Findings, PaneId::Log],
            Self::Services => &[PaneId::Services, PaneId::Findings, PaneId::Log],
            Self::Upstreams => &[PaneId::Upstreams, PaneId::Findings, PaneId::Log],
            Self::Certificates => &[PaneId::Certificates, PaneId::Findings, PaneId::Log],
        })
    }

    /// What a run must have for it.
    pub(crate) fn needs(self) -> KeyRequirement {
        self.shown().and_then(|shown| shown.first()).map_or(KeyRequirement::Nothing, |first| first.needs())
    }

    pub(crate) fn hidden(self) -> Vec<PaneId> {
        let is_hidden = |id: &PaneId| self.shown().is_some_and(|shown| !shown.contains(id));
        PaneId::ALL.into_iter().filter(is_hidden).collect()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PaneLayout {
    /// The pane that was focused by hand.
    pub(crate) focus: Option<PaneId>,
    pub(crate) maximised: Option<PaneId>,
    pub(crate) hidden: Vec<PaneId>,
    /// The rows that a person gave to panes.
    pub(crate) rows: Vec<(PaneId, u16)>,
}

impl PaneLayout {
    /// Returns whether a pane may be drawn.
    pub(crate) fn shows(&self, id: PaneId) -> bool {
        match self.maximised {
            Some(maximised) => maximised == id,
            None => !self.hidden.contains(&id),
        }
    }

    /// Returns the pane that was maximised or focused by hand, if it may be drawn.
    pub(crate) fn in_focus(&self) -> Option<PaneId> {
        self.maximised.or(self.focus).filter(|id| self.shows(*id))
    }

    /// Returns the rows that a person gave to a pane.
    pub(crate) fn rows_of(&self, id: PaneId) -> Option<u16> {
        self.rows.iter().find(|(pane, _)| *pane == id).map(|(_, rows)| *rows)
    }

    pub(crate) fn resize(&mut self, id: PaneId, rows: u16) {
        self.rows.retain(|(pane, _)| *pane != id);
        self.rows.push((id, rows.max(ROWS_MIN)));
    }

    /// Shown panes that have something to show in every mode.
    fn always_shown(&self) -> usize {
        PaneId::ALL.iter().filter(|id| !id.is_occasional() && !self.hidden.contains(id)).count()
    }

    /// Hides a pane, or shows it again. One pane always stays.
    pub(crate) fn toggle(&mut self, id: PaneId) {
        if self.hidden.contains(&id) {
            self.hidden.retain(|&pane| pane != id);
        } else if id.is_occasional() || self.always_shown() > 1 {
            self.hidden.push(id);
        }
    }
}

/// The fewest rows of a pane that is resized: a heading and a line.
const ROWS_MIN: u16 = 2;

impl State {
    pub(crate) fn arrange_panes(&mut self, action: PaneAction) {
        let panes = self.focusable_panes();
        let main = match self.list() {
            List::Routes => PaneId::Routes,
            List::Usage => PaneId::Usage,
            List::Hosts => PaneId::Hosts,
            List::Services => PaneId::Services,
            List::Upstreams => PaneId::Upstreams,
            List::Certificates => PaneId::Certificates,
            List::Workers => PaneId::System,
            List::Clients | List::Requests | List::Runs => PaneId::Clients,
        };
        let focus = self.panes.focus.unwrap_or(main);
        let at = panes.iter().position(|id| *id == focus);
        let rows = self.sight.panes.iter().find(|(id, _)| *id == focus).map(|(_, rows)| *rows);
        let toggled = |id| if self.panes.maximised == Some(id) { None } else { Some(id) };
        match action {
            PaneAction::FocusNext | PaneAction::FocusPrevious if panes.is_empty() => {}
            PaneAction::FocusNext => {
                let next = at.filter(|_| self.panes.focus.is_some()).map_or(0, |at| (at + 1) % panes.len());
                self.panes.focus = Some(panes[next]);
            }
            PaneAction::FocusPrevious => {
                let before = at.unwrap_or(0).checked_sub(1).unwrap_or(panes.len() - 1);
                self.panes.focus = Some(panes[before]);
            }
            PaneAction::Maximise => self.panes.maximised = toggled(focus),
            PaneAction::MaximiseLog => self.panes.maximised = toggled(PaneId::Log),
            PaneAction::Taller | PaneAction::Shorter => {
                let Some(rows) = rows else { return };
                let is_taller = action == PaneAction::Taller;
                self.panes.resize(focus, if is_taller { rows + 1 } else { rows.saturating_sub(1) });
            }
            PaneAction::Preset(preset) => {
                if preset == Preset::Usage && self.panes.hidden != preset.hidden() {
                    self.usage.before = self.panes.clone();
                }
                let focus = match preset {
                    Preset::Usage => Some(PaneId::Usage),
                    Preset::Hosts => Some(PaneId::Hosts),
                    Preset::Services => Some(PaneId::Services),
                    Preset::Upstreams => Some(PaneId::Upstreams),
                    Preset::Certificates => Some(PaneId::Certificates),
                    _ => None,
                };
                self.panes = PaneLayout { hidden: preset.hidden(), focus, ..PaneLayout::default() };
                self.screen = if preset == Preset::Tuning { Screen::Tuning } else { Screen::Dashboard };
                self.select_changeable_setting();
            }
        }
    }

    /// Returns the panes that are not hidden and have something to show; one without rows gets some with the focus.
    fn focusable_panes(&self) -> Vec<PaneId> {
        let figures = self.figures();
        let has_content = |id: &PaneId| match id {
            PaneId::Findings => figures.is_some_and(|figures| !figures.findings.open.is_empty()),
            PaneId::Clients => figures.is_some_and(|figures| figures.proxy.is_some()),
            PaneId::Usage => self.shown_usage().is_some_and(|usage| !usage.is_empty()),
            _ => figures.is_some(),
        };
        let mut panes = self.choosable_panes();
        panes.retain(|id| self.panes.shows(*id) && has_content(id));
        panes
    }
}

pub(crate) struct Pane {
    pub(crate) id: PaneId,
    /// The rows that it can use.
    pub(crate) rows: fn(&State) -> PaneRows,
    /// When it gets its minimum, enough, and all rows that it wants: panes with lower ranks come first.
    pub(crate) ranks: [u8; 3],
    pub(crate) render: fn(&State, &mut Frame<'_>, Rect),
    /// Returns what is at a cell of its area.
    pub(crate) target: fn(&State, Rect, (u16, u16)) -> Option<ClickTarget>,
    /// Keys that the footer names while it has the focus.
    pub(crate) hints: &'static [Hint],
}

/// The rows that a pane can use, with its heading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PaneRows {
    /// Fewer are of no use; 0 for a pane that has nothing to show.
    pub(crate) min: u16,
    pub(crate) enough: u16,
    pub(crate) wanted: u16,
    /// Whether it can use all rows that are left.
    pub(crate) grows: bool,
}

const PANES: [Pane; 14] = [
    hosts::view::PANE,
    services::view::PANE,
    latency::view::PANE,
    timeline::view::PANE,
    http::view::PANE,
    handshakes::view::PANE,
    system::view::PANE,
    upstreams::view::PANE,
    routes::view::PANE,
    clients::view::PANE,
    usage::view::PANE,
    certificates::view::PANE,
    findings::view::PANE,
    log::view::PANE,
];

pub(crate) fn pane(id: PaneId) -> &'static Pane {
    const { &PANES }.iter().find(|pane| pane.id == id).unwrap_or(&PANES[0])
}

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use super::*;
    use crate::testing::{TestDashboard, options};

    #[test]
    fn the_plot_takes_the_rows_that_no_list_needs() {
        let mut stage = TestDashboard::live(options(), 3);
        stage.press('4');
        stage.screen(160, 48);
        let rows = |id| stage.state.sight.panes.iter().find(|(shown, _)| *shown == id).unwrap().1;
        assert_eq!((rows(PaneId::Timeline), rows(PaneId::Log)), (25, 4));
    }

    #[test]
    fn a_preset_is_left_from_the_settings_and_a_digit_there_begins_a_value() {
        let mut stage = TestDashboard::live(options(), 3);
        stage.press('4');
        assert!(stage.screen(80, 24).contains("Alt-1 all panes"), "{}", stage.screen(80, 24));
        stage.press('1');
        assert!(stage.state.prompt.is_some());
        stage.press('\x1b');
        let event = KeyEvent::new(KeyCode::Char('1'), KeyModifiers::ALT);
        let intent = stage.state.options.keymap.intent(&event, stage.state.context()).unwrap();
        stage.want(intent);
        assert_eq!((stage.state.screen, &stage.state.panes.hidden), (Screen::Dashboard, &vec![]));
        stage.press('a');
        stage.press('2');
        assert_eq!(stage.state.screen, Screen::Dashboard);
    }
}
