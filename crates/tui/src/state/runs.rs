//! Selects which of several runs is shown: runs of many hosts, or one after the other.

use telemetry::RunId;
use telemetry::model::{Level, Run};

use super::client_list::ListMove;
use super::{Screen, State, shown_run};
use crate::clock::Now;
use crate::view_model::RunRow;

/// The list of runs. It selects a run, not a line, so the selection survives new runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunList {
    /// The text that a host name must contain; empty for all.
    pub(crate) filter: String,
    selected: Option<RunId>,
}

impl State {
    /// Returns the listed runs, in the order of [`Self::runs`].
    pub(crate) fn run_rows(&self) -> Vec<RunRow> {
        let runs = self.runs().into_iter().filter(|run| run.hostname().contains(&self.runs.filter));
        runs.map(RunRow::of).collect()
    }

    /// Returns the line of the selected run, else of the shown one, else the first.
    pub(crate) fn selected_run(&self) -> usize {
        let rows = self.run_rows();
        let place = |id: Option<RunId>| rows.iter().position(|row| Some(row.id) == id);
        place(self.runs.selected).or_else(|| place(self.shown)).unwrap_or(0)
    }

    /// Returns whether this run is shown.
    pub(crate) fn is_run_shown(&self, id: RunId) -> bool {
        self.shown == Some(id)
    }

    /// Selects another line.
    pub(super) fn select_run(&mut self, to: ListMove) {
        let rows = self.run_rows();
        let at = to.from(self.selected_run(), rows.len().saturating_sub(1));
        self.runs.selected = rows.get(at).map(|row| row.id);
    }

    /// Shows the selected run.
    pub(super) fn show_selected_run(&mut self, now: Now) {
        let selected = self.run_rows().get(self.selected_run()).map(|row| row.id);
        match selected {
            Some(id) if self.is_run_shown(id) => {}
            Some(_) if !self.options.read_only => {
                return self.notice(Level::Notice, "only watch shows other runs than its own", now);
            }
            Some(id) => self.show_run(id),
            None => return,
        }
        self.screen = Screen::Dashboard;
    }

    /// Returns all runs that have been read, by host, and by start within a host.
    fn runs(&self) -> Vec<&Run> {
        let mut runs: Vec<&Run> = self.model.runs().iter().collect();
        runs.sort_by_key(|run| (run.hostname(), run.began_realtime_us()));
        runs
    }

    /// Returns host and id of every run for the search; none if only one run may be shown.
    pub(super) fn runs_to_choose(&self) -> Vec<(RunId, String)> {
        if !self.options.read_only {
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
        let watched = self.run().filter(|_| self.options.read_only);
        watched.map(|run| run.writer().account()).unwrap_or_default()
    }

    /// Keeps showing runs of the same account, and reports every run of another one once.
    pub(super) fn stay(&mut self, id: RunId, now: Now) {
        if !self.caught_up || self.options.run.is_some() {
            return;
        }
        self.model.hold(Some(id));
        let newest = self.model.runs().iter().max_by_key(|run| run.began_realtime_us());
        let Some(newest) = newest.map(|run| (run.id(), run.writer().account(), run.began_realtime_us()))
        else {
            return;
        };
        let (newest, account, began_us) = newest;
        if self.newest.replace(newest).is_some_and(|known| known != newest) && newest != id {
            let (began, id) = (self.time_of_day(began_us), newest.short());
            let text =
                format!("run {id} of {account} began {began}; it is in the list of runs, and not shown");
            self.notice(Level::Notice, text, now);
        }
    }

    /// Returns the index of the shown run, the number of runs, and its host; `None` for a single run.
    pub(crate) fn run_place(&self) -> Option<(usize, usize, &str)> {
        let shown = shown_run(&self.model, &self.options)?;
        let runs = self.runs();
        let at = runs.iter().position(|run| run.id() == shown.id())?;
        (self.options.read_only && runs.len() > 1).then(|| (at + 1, runs.len(), shown.hostname()))
    }

    /// Shows the next run.
    pub(super) fn next_run(&mut self, now: Now) {
        let runs = self.runs();
        let at = self.run().and_then(|shown| runs.iter().position(|run| run.id() == shown.id()));
        let next = at.and_then(|at| runs.get((at + 1) % runs.len())).map(|run| run.id());
        match next.filter(|_| self.options.read_only && runs.len() > 1) {
            Some(id) => self.show_run(id),
            None => self.notice(Level::Notice, "there is no other run to show", now),
        }
    }

    /// Shows this run from now on.
    pub(super) fn show_run(&mut self, id: RunId) {
        self.options.run = Some(id);
        self.shown = Some(id);
        self.model.hold(Some(id));
        self.go_live();
        self.clients.selected = None;
    }
}
