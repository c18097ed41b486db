//! Roll-ups: what the journal has accepted, once more by the minute and by the hour.

use std::collections::VecDeque;

use records::codec::{Resolution, Writer};
use records::downsample::Downsampler;
use records::kinds::Record;

/// Roll-ups that wait for the journal. Beyond that the oldest are given up, which leaves a hole in their numbers.
const WAITING_MAX: usize = 1_024;

/// Merges accepted records, and keeps the results until the journal has taken them.
#[derive(Debug)]
pub(super) struct Rollups {
    minute: Downsampler,
    /// Of the minutes.
    hour: Downsampler,
    waiting: VecDeque<(Resolution, Record)>,
}

impl Rollups {
    pub(super) fn new() -> Self {
        Self {
            minute: Downsampler::rollup(Resolution::Minute.period()),
            hour: Downsampler::rollup(Resolution::Hour.period()),
            waiting: VecDeque::new(),
        }
    }

    /// Adds a record with its final number.
    pub(super) fn take(&mut self, record: &Record) {
        let writer = Writer::default();
        let (mut minutes, mut hours) = (Vec::new(), Vec::new());
        self.minute.take(&writer, record.clone(), &mut minutes);
        for minute in &minutes {
            self.hour.take(&writer, minute.clone(), &mut hours);
        }
        let made = [(Resolution::Minute, minutes), (Resolution::Hour, hours)];
        for (resolution, records) in made {
            self.waiting.extend(records.into_iter().map(|record| (resolution, record)));
        }
        self.waiting.drain(..self.waiting.len().saturating_sub(WAITING_MAX));
    }

    /// Passes the roll-ups that wait to `accept`, until it refuses one.
    pub(super) fn offer(&mut self, mut accept: impl FnMut(&Record, Resolution) -> bool) {
        while let Some((resolution, record)) = self.waiting.front() {
            if !accept(record, *resolution) {
                break;
            }
            self.waiting.pop_front();
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}
