//! Which of several runs is shown: those of many hosts, or one after the other.

use telemetry::RunId;
use telemetry::model::{Level, Run};

use super::{State, shown_run};
use crate::clock::Now;

impl State {
    /// All runs that have been read, by host, and of each host in the order in which they began.
    fn runs(&self) -> Vec<&Run> {
        let mut runs: Vec<&Run> = self.model.runs().iter().collect();
        runs.sort_by_key(|run| (run.hostname(), run.began_realtime_us()));
        runs
    }

    /// Host and id of every run, for who looks for one; none where only one may be shown.
    pub(super) fn runs_to_choose(&self) -> Vec<(RunId, String)> {
        if !self.options.read_only {
            return Vec::new();
        }
        self.runs().iter().map(|run| (run.id(), format!("{} {}", run.hostname(), run.id().short()))).collect()
    }

    /// Which run of how many is shown, and its host; `None` where there is only one.
    pub(crate) fn run_place(&self) -> Option<(usize, usize, &str)> {
        let shown = shown_run(&self.model, &self.options)?;
        let runs = self.runs();
        let at = runs.iter().position(|run| run.id() == shown.id())?;
        (self.options.read_only && runs.len() > 1).then(|| (at + 1, runs.len(), shown.hostname()))
    }

    /// Shows the next run of those that have been read.
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
        self.frozen = None;
        self.clients.selected = None;
        self.stale = true;
    }
}
