//! Roll-ups: what the journal has accepted, once more by the minute and by the hour.

use std::collections::VecDeque;

use records::codec::{Coverage, Resolution, RollupBatch, Writer};
use records::downsample::Downsampler;
use records::kinds::Record;

/// Roll-ups that wait for the journal. Beyond that the oldest are given up: readers miss them, and take what
/// they stood for one by one.
const WAITING_MAX: usize = 1_024;

/// Merges accepted records, and keeps the results until the journal has taken them.
#[derive(Debug)]
pub(super) struct Rollups {
    minute: RollupLevel,
    /// Of the minutes.
    hour: RollupLevel,
    waiting: VecDeque<(Coverage, Record)>,
}

#[derive(Debug)]
struct RollupLevel {
    resolution: Resolution,
    downsampler: Downsampler,
    /// The number of the last record that its roll-ups stand for.
    through: u64,
}

impl RollupLevel {
    fn new(resolution: Resolution) -> Self {
        Self { resolution, downsampler: Downsampler::rollup(resolution.period()), through: 0 }
    }

    /// Adds records, and returns the roll-ups that they complete. These stand for everything up to `before`, and for all of
    /// the records too if none of them waits: up to `through`.
    fn take(&mut self, records: &[Record], before: u64, through: u64) -> Vec<(Coverage, Record)> {
        let (writer, mut made) = (Writer::default(), Vec::new());
        for record in records {
            self.downsampler.take(&writer, record.clone(), &mut made);
        }
        let waits = records.last().is_some_and(|record| self.downsampler.waits(&writer, record.stamp.run));
        let (resolution, rollups) = (self.resolution, made.len() as u64);
        let through = if waits { before } else { through };
        let batch = RollupBatch { after: self.through, through, rollups };
        let mut made: Vec<_> =
            made.into_iter().map(|record| (Coverage { resolution, batch: None }, record)).collect();
        if let Some((coverage, _)) = made.last_mut() {
            coverage.batch = Some(batch);
            self.through = through;
        }
        made
    }
}

impl Rollups {
    pub(super) fn new() -> Self {
        let [minute, hour] = [Resolution::Minute, Resolution::Hour].map(RollupLevel::new);
        Self { minute, hour, waiting: VecDeque::new() }
    }

    /// Adds a record with its final number.
    pub(super) fn take(&mut self, record: &Record) {
        let (number, before) = (record.stamp.seq, self.minute.through);
        let minutes = self.minute.take(std::slice::from_ref(record), number - 1, number);
        if minutes.is_empty() {
            return;
        }
        let records: Vec<Record> = minutes.iter().map(|(_, record)| record.clone()).collect();
        let hours = self.hour.take(&records, before, self.minute.through);
        self.waiting.extend(minutes.into_iter().chain(hours));
        self.waiting.drain(..self.waiting.len().saturating_sub(WAITING_MAX));
    }

    /// Passes the roll-ups that wait to `accept`, until it refuses one.
    pub(super) fn offer(&mut self, mut accept: impl FnMut(&Record, Coverage) -> bool) {
        while let Some((coverage, record)) = self.waiting.front() {
            if !accept(record, *coverage) {
                break;
            }
            self.waiting.pop_front();
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}
