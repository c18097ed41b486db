//! Why handshakes were full in each of two runs.

use records::metrics::FullReason;
use serde::Serialize;

use crate::numbers::{grouped, percent};
use crate::report::Report;
use crate::report::tls::words;
use crate::table::Heading::{Number, Words};
use crate::table::ReportTable;

/// A reason, with its full handshakes in both runs.
#[derive(Debug, Serialize)]
pub(crate) struct ReasonShare {
    reason: String,
    #[serde(skip)]
    words: String,
    a: RunShare,
    b: RunShare,
}

/// Full handshakes of one reason in one run.
#[derive(Clone, Copy, Debug, Serialize)]
struct RunShare {
    full: u64,
    /// The share of all full handshakes of the run; `null` without any.
    percent: Option<f64>,
    #[serde(skip)]
    all: u64,
}

/// The reasons of either run, the most frequent in the first run first.
pub(super) fn reason_shares(reports: [&Report<'_>; 2]) -> Vec<ReasonShare> {
    let both = reports.map(Report::full_reasons);
    let share = |at: usize, wanted: FullReason| {
        let all: u64 = both[at].iter().map(|(_, n)| n).sum();
        let full = both[at].iter().find(|(reason, _)| *reason == wanted).map_or(0, |(_, n)| *n);
        RunShare { full, percent: (all > 0).then(|| full as f64 / all as f64 * 100.0), all }
    };
    let [a, b] = &both;
    let only_b = b.iter().filter(|(reason, _)| a.iter().all(|(known, _)| known != reason));
    let reasons = a.iter().chain(only_b).map(|(reason, _)| ReasonShare {
        reason: reason.to_string(),
        words: words(*reason),
        a: share(0, *reason),
        b: share(1, *reason),
    });
    reasons.collect()
}

impl ReasonShare {
    pub(crate) fn table(all: &[Self]) -> ReportTable {
        let cells = |share: RunShare| [grouped(share.full), percent(share.full as f64, share.all as f64)];
        let row =
            |row: &Self| [vec![row.words.clone()], cells(row.a).to_vec(), cells(row.b).to_vec()].concat();
        let columns = [Words("reason"), Number("A"), Number("A, share"), Number("B"), Number("B, share")];
        ReportTable::new("Why handshakes were full", columns, all.iter().map(row))
    }

    /// The reasons of both in a line each.
    pub(crate) fn lines(all: &[Self]) -> impl Iterator<Item = String> {
        let line = |row: &Self| {
            let [a, b] = [row.a, row.b].map(|share| percent(share.full as f64, share.all as f64));
            format!("full because {}: {} ({a}) and {} ({b})", row.words, row.a.full, row.b.full)
        };
        all.iter().map(line)
    }
}
