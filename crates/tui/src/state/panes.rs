//! Which panes are shown and in focus.

use super::screen::Screen;
use super::{State, shown_run};
use crate::input::intent::{PaneAction, Preset};
use crate::panes::{PaneId, PaneLayout};

impl State {
    pub(crate) fn arrange_panes(&mut self, action: PaneAction) {
        let panes = self.focusable_panes();
        let focus = self.panes.focus.or_else(|| self.list().pane()).unwrap_or(PaneId::Clients);
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
                if preset == Preset::Only(PaneId::Usage) && self.panes.hidden != preset.hidden() {
                    self.usage.before = self.panes.clone();
                }
                self.panes =
                    PaneLayout { hidden: preset.hidden(), focus: preset.focus(), ..PaneLayout::default() };
                self.screen = if preset == Preset::Tuning { Screen::Tuning } else { Screen::Dashboard };
                if let Some(run) = shown_run(&self.model, &self.options) {
                    self.tuning.select_changeable(run.settings());
                }
            }
        }
    }

    /// Gives a pane the focus, and shows it.
    pub(crate) fn focus_pane(&mut self, id: PaneId) {
        self.panes.hidden.retain(|hidden| *hidden != id);
        (self.panes.focus, self.panes.maximised, self.screen) = (Some(id), None, Screen::Dashboard);
    }

    /// Returns the panes that have something to show in this mode.
    pub(crate) fn choosable_panes(&self) -> Vec<PaneId> {
        PaneId::ALL.into_iter().filter(|id| self.can(id.needs())).collect()
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

#[cfg(test)]
mod tests {
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use super::*;
    use crate::app::testing::{TestDashboard, options};

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
