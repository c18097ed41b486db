//! What limits the trust in a run's figures.

use crate::report::Report;

/// Plots that begin later than this get a note, in seconds.
const KEPT_FROM_S_MIN: f64 = 60.0;

impl Report<'_> {
    /// What limits the trust in the figures, a sentence each.
    pub(crate) fn quality(&self) -> Vec<String> {
        let mut all = Vec::new();
        if !self.summary.ended {
            all.push("The run's last record was not read: it still ran, or was killed. Totals are those of the last records read.".to_owned());
        }
        if let Some(journal) = &self.summary.journal {
            all.push(format!(
                "{} of {} records were read, {} lost.",
                journal.read, journal.made, journal.lost
            ));
            for (count, what) in [
                (journal.before, "records were made before the first one read"),
                (journal.gaps, "gaps, in which records were lost or the process did not run"),
                (
                    journal.merged,
                    "intervals went with a later record, since the journal took theirs too late",
                ),
                (journal.dropped, "records were given up by the writer"),
                (journal.suppressed, "messages were suppressed by journald's rate limit"),
                (journal.foreign, "records under this run's id were another process's and do not count"),
                (journal.malformed, "entries of the journal claim to be records and are none"),
                (journal.skipped_bytes, "bytes of the journal could not be read"),
            ] {
                if count > 0 {
                    all.push(format!("{count} {what}."));
                }
            }
        }
        if !self.parts.is_empty() {
            all.push(format!(
                "{} runs are taken together, placed in time by the wall clock of each host. How far these clocks are apart is not known, since no record of one host tells the time of another; as far apart may what is drawn at the same time be. Totals and percentiles do not depend on it.",
                self.parts.len()
            ));
            all.extend(self.parts.iter().map(|part| format!("{part}.")));
        }
        let kept_from = [
            self.run.proxy().and_then(|track| track.timeline().next()).map(|interval| interval.start_us),
            self.run.load().and_then(|track| track.timeline().next()).map(|interval| interval.start_us),
        ];
        let kept_from_s = kept_from.into_iter().flatten().max().map_or(0.0, |us| self.seconds_at(us));
        if kept_from_s > KEPT_FROM_S_MIN {
            all.push(format!(
                "Plots and intervals begin {kept_from_s:.0} s after the run did: earlier ones were not kept. Totals are of the whole run."
            ));
        }
        let step_us = self.run.health().clock_step_us;
        if step_us != 0 {
            all.push(format!(
                "The wall clock was set by {:.3} s during the run; rates use another clock.",
                step_us as f64 / 1e6
            ));
        }
        if let Some(load) = &self.summary.load {
            all.extend(load.notes.iter().map(|note| format!("Load: {note}.")));
        }
        all
    }
}
