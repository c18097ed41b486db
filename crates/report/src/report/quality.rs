//! Caveats about a run's figures.

use super::events::part_letter;
use crate::numbers::grouped;
use crate::report::Report;
use model::summary::LineCounts;

/// Plots that begin later than this get a note, in seconds.
const KEPT_FROM_S_MIN: f64 = 60.0;

impl Report<'_> {
    /// Caveats about the figures, and other notes on them, a sentence each.
    pub(crate) fn quality(&self) -> Vec<String> {
        let mut all: Vec<String> = self.unfinished().into_iter().collect();
        if let Some(journal) = &self.summary.journal {
            let [read, made, lost] = [journal.read, journal.made, journal.lost].map(grouped);
            all.push(format!("{read} of {made} records were read, {lost} lost."));
        }
        all.extend(self.line_counts().map(|lines| format!("Lines of the log: {lines}.")));
        all.extend(self.warnings());
        if !self.parts.is_empty() {
            all.push(format!(
                "{} runs are merged and placed in time by each host's wall clock. How far these clocks differ is not known; events drawn at the same time may be that far apart. Totals and percentiles do not depend on it.",
                self.parts.len()
            ));
            let parts = (0..).zip(&self.parts);
            all.extend(parts.map(|(at, part)| format!("{}: {part}.", part_letter(at))));
        }
        all
    }

    fn line_counts(&self) -> Option<LineCounts> {
        self.summary.log.as_ref()?.lines
    }

    /// A message if the run has no final record.
    pub(crate) fn unfinished(&self) -> Option<String> {
        let is_unfinished = !self.summary.ended;
        is_unfinished.then(|| {
            "The run's last record was not read: it still ran, or was killed. Totals are those of the last records read.".to_owned()
        })
    }

    /// Caveats about the figures of a run that has ended.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let mut all = self.journal_warnings();
        if let Some(LineCounts { out_of_order, lost, .. }) = self.line_counts() {
            let counts = [
                (lost.unwrap_or(0), "lines of the log were lost: counts are too low by them"),
                (out_of_order, "lines of the log count in a later time than their own"),
            ];
            all.extend(told(counts));
        }
        let kept_from = [
            self.run.proxy().and_then(|series| series.timeline().next()).map(|interval| interval.start_us),
            self.run.load().and_then(|series| series.timeline().next()).map(|interval| interval.start_us),
        ];
        let kept_from_s = kept_from.into_iter().flatten().max().map_or(0.0, |us| self.seconds_at(us));
        if kept_from_s > KEPT_FROM_S_MIN {
            all.push(format!(
                "Plots and intervals begin {kept_from_s:.0} s after the run did: earlier ones were not kept. Totals are of the whole run."
            ));
        }
        let steps = self.run.health().clock_steps();
        all.extend(
            steps.map(|steps| format!("The wall clock was {steps} during the run; rates use another clock.")),
        );
        if let Some(load) = &self.summary.load {
            all.extend(load.notes.iter().map(|note| format!("Load: {note}.")));
        }
        all
    }

    /// What of the records was lost, late or foreign.
    fn journal_warnings(&self) -> Vec<String> {
        let Some(journal) = &self.summary.journal else { return Vec::new() };
        let health = self.run.health();
        let counts = [
            (journal.lost, "records were lost: what happened in their intervals is missing from the plots"),
            (journal.before, "records were made before the first one read"),
            (journal.gaps, "gaps, in which records were lost or the process did not run"),
            (journal.merged, "intervals went with a later record, since the journal took theirs too late"),
            (journal.dropped, "records were given up by the writer"),
            (health.upload_lost_total, "records did not get to the receiver of the upload"),
            (journal.suppressed, "messages were suppressed by journald's rate limit"),
            (journal.foreign, "records under this run's id were another process's and do not count"),
            (journal.malformed, "records in the journal cannot be decoded"),
            (journal.skipped_bytes, "bytes of the journal could not be read"),
        ];
        told(counts).collect()
    }
}

/// A sentence of each count that is not 0.
fn told<const N: usize>(counts: [(u64, &str); N]) -> impl Iterator<Item = String> {
    let found = counts.into_iter().filter(|(count, _)| *count > 0);
    found.map(|(count, what)| format!("{} {what}.", grouped(count)))
}
