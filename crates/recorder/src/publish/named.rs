//! The publisher's table of named parts, such as routes: totals, their recorded parts, and the due records.

use records::delta::NamedDelta;
use records::histogram::SparseHistogram;
use records::kinds::NamedRecord;
use records::metrics::Metric as _;
use records::text::clean;
use records::values::Latencies;

/// Most records of one table in an interval: beyond it names take turns, since each record carries histograms. Fifty
/// busy routes then get one every five intervals.
const EACH_INTERVAL: usize = 10;

/// The named parts of one kind, by index.
#[derive(Debug)]
pub(super) struct PublishedTable<R: NamedRecord> {
    names: Vec<String>,
    rows: Vec<PublishedRow<R>>,
}

#[derive(Debug)]
struct PublishedRow<R: NamedRecord> {
    /// Totals of the run, and the histograms that no record has carried yet.
    unsent: R,
    /// The histograms that records have carried.
    sent: Latencies<R::Latency>,
    /// Beginning of the first interval with changes that no record has carried yet.
    unsent_since_us: Option<u64>,
    /// Whether anything has ever changed.
    is_known: bool,
}

impl<R: NamedRecord> PublishedTable<R> {
    pub(super) fn new(names: &[String]) -> Self {
        let mut table = Self { names: Vec::new(), rows: Vec::new() };
        table.set_names(names);
        table
    }

    /// Takes over that there are more parts.
    pub(super) fn set_names(&mut self, names: &[String]) {
        self.names = names.iter().map(|name| clean::text(name)).collect();
    }

    pub(super) fn name(&self, index: usize) -> String {
        self.names.get(index).cloned().unwrap_or_else(|| format!("number {index}"))
    }

    /// Adds the counts of the interval that began at `start_us`.
    pub(super) fn add<D: NamedDelta<Record = R>>(&mut self, deltas: &[D], start_us: u64) {
        for index in self.rows.len()..deltas.len() {
            self.rows.push(PublishedRow {
                unsent: R::named(self.name(index)),
                sent: Latencies::default(),
                unsent_since_us: None,
                is_known: false,
            });
        }
        for (row, delta) in self.rows.iter_mut().zip(deltas) {
            if !delta.add_to(&mut row.unsent) {
                continue;
            }
            row.is_known = true;
            row.unsent_since_us.get_or_insert(start_us);
            let timed = R::Latency::ALL.iter().map(|&class| (class, delta.latency(class)));
            for (class, interval) in timed.filter(|(_, interval)| !interval.is_empty()) {
                let latency = &mut row.unsent.latencies_mut()[class];
                latency.samples_total += interval.count();
                latency.interval = SparseHistogram::merged([&latency.interval, &interval]);
            }
        }
    }

    /// The parts whose record is due, at most `budget` of them: those that have waited longest first, then the
    /// busiest.
    pub(super) fn due(&self, budget: usize) -> Vec<usize> {
        let changed = self.rows.iter().enumerate();
        let mut due: Vec<(u64, u64, usize)> = changed
            .filter_map(|(index, row)| Some((row.unsent_since_us?, u64::MAX - row.samples(), index)))
            .collect();
        due.sort_unstable();
        due.truncate(budget.min(EACH_INTERVAL));
        due.into_iter().map(|(.., index)| index).collect()
    }

    /// Parts with changes that no record has carried yet.
    pub(super) fn changed(&self) -> Vec<usize> {
        (0..self.rows.len()).filter(|&index| self.rows[index].unsent_since_us.is_some()).collect()
    }

    /// Parts with something counted in the run.
    pub(super) fn known(&self) -> Vec<usize> {
        (0..self.rows.len()).filter(|&index| self.rows[index].is_known).collect()
    }

    /// The record of a part, and the beginning of the time that it covers; `None` if there is nothing new.
    pub(super) fn record(&self, index: usize) -> Option<(R, u64)> {
        let row = self.rows.get(index)?;
        Some((row.unsent.clone(), row.unsent_since_us?))
    }

    /// The last record of a part, with the latencies of the whole run.
    pub(super) fn final_record(&self, index: usize) -> Option<R> {
        let row = self.rows.get(index)?;
        let mut record = row.unsent.clone();
        record.set_last(true);
        for &class in R::Latency::ALL {
            let interval = &mut record.latencies_mut()[class].interval;
            *interval = SparseHistogram::merged([&row.sent[class].interval, &*interval]);
        }
        Some(record)
    }

    /// Notes that a record of this part has been written.
    pub(super) fn sent(&mut self, index: usize) {
        if let Some(row) = self.rows.get_mut(index) {
            row.unsent_since_us = None;
            for &class in R::Latency::ALL {
                let interval = std::mem::take(&mut row.unsent.latencies_mut()[class].interval);
                let sent = &mut row.sent[class].interval;
                *sent = SparseHistogram::merged([&*sent, &interval]);
            }
        }
    }
}

impl<R: NamedRecord> PublishedRow<R> {
    /// Samples that no record has carried yet, of the class with the most.
    fn samples(&self) -> u64 {
        self.unsent.latencies().iter().map(|(_, latency)| latency.interval.count()).max().unwrap_or(0)
    }
}
