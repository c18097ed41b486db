//! Findings and advice at a moment.

use model::insight::{self, Advice, Finding};
use model::runs::{Model, Run};

/// The findings that are open at a moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenFindings {
    /// By their rank.
    pub(crate) open: Vec<Finding>,
    /// What would resume more, by all that has been read of the run; empty at an earlier moment.
    pub(crate) advice: Vec<Advice>,
    /// True if the moment is not the latest: the figures of a finding are of when it opened, or of now if it is still open.
    pub(crate) is_past: bool,
}

impl OpenFindings {
    /// Those of a run, and about all hosts of its model together.
    pub(crate) fn at(model: &Model, run: &Run, us: u64) -> Self {
        let is_earlier = us < run.last_us();
        let is_past = is_earlier || run.is_joined();
        let mut open = insight::findings_among_hosts(model, run);
        open.retain(|finding| finding.is_open_at(us));
        // The figures in a title are not those of the moment.
        for finding in open.iter_mut().filter(|_| is_earlier) {
            let of = if finding.closed_us.is_none() { "by now" } else { "at its worst" };
            finding.text.title = format!("{of}: {}", finding.text.title);
        }
        open.sort_by_key(|finding| (finding.rank(), finding.since_us));
        let advice = if is_past { Vec::new() } else { insight::advice(run) };
        Self { open, advice, is_past }
    }
}
