//! Selects which of several runs is shown: runs of many hosts, or one after the other.

use model::runs::{Level, Run};
use records::ids::RunId;

use super::model::RunRow;
use crate::clock::ClockReading;
use crate::input::intent::{PaneAction, Preset};
use crate::panes::PaneId;
use crate::state::screen::Screen;
use crate::state::{State, shown_run};

/// Updates the listed runs, and selects the shown one, or else the first, if none is selected.
pub(crate) fn arrange(state: &mut State) {
    if state.screen != Screen::Runs {
        return;
    }
    let listed = state.runs().into_iter().map(RunRow::of).collect();
    let (shown, runs) = (state.shown, &mut state.runs);
    runs.set(listed);
    runs.arrange();
    if runs.table.selected.is_none() {
        runs.preselect(shown);
        runs.preselect(runs.table.page().first().map(|row| row.id));
        runs.arrange();
    }
}

impl State {
    pub(crate) fn is_run_shown(&self, id: RunId) -> bool {
        self.shown == Some(id)
    }

    pub(crate) fn show_selected_run(&mut self, now: ClockReading) {
        match self.runs.table.selected {
            Some(id) if self.is_run_shown(id) => {}
            Some(_) if !self.options.watches => {
                return self.answer(Level::Notice, "only watch shows other runs than its own", now);
            }
            Some(id) => self.show_run(id),
            None => return,
        }
        self.screen = Screen::Dashboard;
    }

    /// Returns all runs that have been read, by host, and by start within a host.
    pub(crate) fn runs(&self) -> Vec<&Run> {
        let mut runs: Vec<&Run> = self.model.runs().collect();
        runs.sort_by_key(|run| (run.hostname(), run.began_realtime_us()));
        runs
    }

    /// Returns host and id of every run for the search; none if only one run may be shown.
    pub(crate) fn runs_to_choose(&self) -> Vec<(RunId, String)> {
        if !self.options.watches {
            return Vec::new();
        }
        let words = |run: &Run| {
            let words = [run.hostname(), &run.writer().account(), &run.id().short()].join(" ");
            words.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        self.runs().into_iter().map(|run| (run.id(), words(run))).collect()
    }

    /// Returns the owner of the shown run if it may be another's; empty if the journal does not say.
    pub(crate) fn account(&self) -> String {
        let watched = self.run().filter(|_| self.options.watches);
        watched.map(|run| run.writer().account()).unwrap_or_default()
    }

    /// Returns the index of the shown run, the number of runs, and its host; `None` for a single run.
    pub(crate) fn run_place(&self) -> Option<(usize, usize, &str)> {
        let shown = shown_run(&self.model, &self.options)?;
        let runs = self.runs();
        let at = runs.iter().position(|run| run.id() == shown.id())?;
        (self.options.watches && runs.len() > 1).then(|| (at + 1, runs.len(), shown.hostname()))
    }

    pub(crate) fn next_run(&mut self, now: ClockReading) {
        let runs = self.runs();
        let at = self.run().and_then(|shown| runs.iter().position(|run| run.id() == shown.id()));
        let next = at.and_then(|at| runs.get((at + 1) % runs.len())).map(|run| run.id());
        match next.filter(|_| self.options.watches && runs.len() > 1) {
            Some(id) => self.show_run(id),
            None => self.answer(Level::Notice, "there is no other run to show", now),
        }
    }

    /// Shows the run of the process that has taken over from that of the shown run, which has just ended.
    pub(crate) fn follow_upgrade(&mut self, now: ClockReading) {
        let stopped = self.run().and_then(Run::stopped);
        let next = stopped.and_then(|stopped| stopped.next_run.parse::<RunId>().ok());
        let Some(next) = next.filter(|_| self.options.watches) else { return };
        if self.model.run(next).is_some() {
            self.show_run(next);
        } else {
            let text = format!(
                "run {} has taken over; this source does not have it: watch the folder of the journal's files",
                next.short()
            );
            self.answer(Level::Notice, text, now);
        }
    }

    /// Shows a run that was opened in a pane, in all panes.
    pub(crate) fn show_run_of(&mut self, pane: PaneId, id: Option<RunId>) {
        let Some(id) = id else { return };
        self.show_run(id);
        if self.panes.maximised == Some(pane) || self.panes.hidden == Preset::Only(pane).hidden() {
            self.arrange_panes(PaneAction::Preset(Preset::Overview));
        }
    }

    /// Shows this run from now on.
    pub(crate) fn show_run(&mut self, id: RunId) {
        self.options.run = Some(id);
        self.shown = Some(id);
        self.model.hold(Some(id));
        self.go_live();
        (self.clients.selected, self.routes.selected) = (None, None);
    }
}
