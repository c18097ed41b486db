//! Fewer records that say the same: intervals put together to longer ones.
//!
//! Totals stay as they are, since every record carries them; latencies are merged bucket by bucket, so that no
//! percentile of a longer stretch changes. Whatever happened once (marks, changes, errors) is kept, and what was lost
//! stays lost: a hole in the sequence is one afterwards too.

#[cfg(test)]
mod tests;

use std::time::Duration;

use foldhash::HashMap;

use crate::record::ids::RunId;
use crate::record::origin::{Origin, Writer};
use crate::record::{Body, ClientRecord, Record, Stamp};

/// Thins the records of runs, as they come.
#[derive(Debug)]
pub struct Downsampler {
    stretch_us: u64,
    runs: HashMap<(Origin, RunId), RunBuffer>,
}

/// One run.
#[derive(Debug, Default)]
struct RunBuffer {
    /// The last number that was read, and the last that was given.
    read_seq: u64,
    given_seq: u64,
    /// Which stretch the records are of that wait.
    stretch: u64,
    waiting: Vec<Record>,
    /// Where each client's record is among them.
    clients: HashMap<(crate::ClientId, u64), usize>,
    proxy: SeriesProgress,
    load: SeriesProgress,
}

/// How far the records of proxy or load have come.
#[derive(Clone, Copy, Debug, Default)]
struct SeriesProgress {
    /// End of the last one, if there is one.
    end_us: Option<u64>,
    /// True if the next one must stand alone, since it follows a gap.
    is_alone: bool,
}

impl Downsampler {
    /// Puts what is in the same stretch of so long together.
    pub fn new(stretch: Duration) -> Self {
        Self { stretch_us: (stretch.as_micros() as u64).max(1), runs: HashMap::default() }
    }

    /// Takes in a record, and adds to `out` what is complete by it.
    pub fn take(&mut self, writer: &Writer, record: Record, out: &mut Vec<Record>) {
        let run = self.runs.entry((writer.origin, record.stamp.run)).or_default();
        run.take(record, self.stretch_us, out);
    }

    /// Adds what still waits of the runs of a writer.
    pub fn finish(&mut self, writer: &Writer, out: &mut Vec<Record>) {
        for ((origin, _), run) in &mut self.runs {
            if *origin == writer.origin {
                run.flush(out);
            }
        }
    }
}

impl RunBuffer {
    fn take(&mut self, record: Record, stretch_us: u64, out: &mut Vec<Record>) {
        let Stamp { seq, mono_us, interval_us, .. } = record.stamp;
        if seq <= self.read_seq {
            // Read again, or out of order: a reader would not count it.
            return;
        }
        let missing = seq - self.read_seq - 1;
        if missing > 0 {
            self.flush(out);
            self.given_seq += missing;
            self.proxy.is_alone = self.read_seq > 0;
            self.load.is_alone = self.read_seq > 0;
        }
        self.read_seq = seq;
        match &record.body {
            Body::Proxy(_) | Body::Load(_) | Body::Host(_) | Body::Client(_) => {
                // Ticks come some milliseconds late, so the middle of an interval says where it belongs.
                let stretch = (mono_us - (interval_us / 2).min(mono_us)) / stretch_us;
                let is_after_gap = self.note_side(&record);
                if is_after_gap || (stretch != self.stretch && is_side(&record.body)) {
                    self.flush(out);
                    self.stretch = stretch;
                }
                self.wait(record);
                if self.is_due() {
                    self.flush(out);
                }
            }
            // What happened in a stretch and says nothing of its borders.
            Body::Connection(_) | Body::Health(_) | Body::Notice(_) => self.give(record, out),
            Body::Run(_) | Body::Setting(_) | Body::Mark(_) | Body::Experiment(_) => {
                self.flush(out);
                self.give(record, out);
            }
        }
    }

    /// True if it is a record of proxy or load that leaves a gap after the one before.
    fn note_side(&mut self, record: &Record) -> bool {
        let side = match &record.body {
            Body::Proxy(_) => &mut self.proxy,
            Body::Load(_) => &mut self.load,
            _ => return false,
        };
        let before_us = side.end_us.replace(record.stamp.mono_us);
        let is_after_gap = before_us.is_some_and(|end_us| record.stamp.is_after_gap(end_us));
        side.is_alone |= is_after_gap;
        is_after_gap
    }

    /// Whether the record that came last must not be put together with later ones.
    fn is_due(&mut self) -> bool {
        match self.waiting.last().map(|record| &record.body) {
            Some(Body::Proxy(_)) => std::mem::take(&mut self.proxy.is_alone),
            Some(Body::Load(_)) => std::mem::take(&mut self.load.is_alone),
            _ => false,
        }
    }

    /// Puts a record together with the one of its kind that waits, if there is one.
    fn wait(&mut self, record: Record) {
        let before = match &record.body {
            Body::Client(client) => self.clients.get(&(client.client, client.epoch)).copied(),
            body => self.waiting.iter().position(|waiting| waiting.body.kind().word == body.kind().word),
        };
        if let Some(at) = before {
            let merged = together(&self.waiting[at], record);
            self.waiting[at] = merged;
            return;
        }
        if let Body::Client(ClientRecord { client, epoch, .. }) = &record.body {
            self.clients.insert((*client, *epoch), self.waiting.len());
        }
        self.waiting.push(record);
    }

    fn flush(&mut self, out: &mut Vec<Record>) {
        let mut waiting = std::mem::take(&mut self.waiting);
        self.clients.clear();
        waiting.sort_by_key(|record| (record.stamp.mono_us, record.stamp.seq));
        for record in waiting {
            self.give(record, out);
        }
    }

    fn give(&mut self, mut record: Record, out: &mut Vec<Record>) {
        self.given_seq += 1;
        record.stamp.seq = self.given_seq;
        out.push(record);
    }
}

fn is_side(body: &Body) -> bool {
    matches!(body, Body::Proxy(_) | Body::Load(_))
}

/// Two records of a kind as one: the later one's totals, over the time of both.
fn together(a: &Record, b: Record) -> Record {
    let began_us = a.stamp.mono_us.saturating_sub(a.stamp.interval_us);
    let covers_time = a.stamp.interval_us > 0 || b.stamp.interval_us > 0;
    let interval_us = if covers_time { b.stamp.mono_us.saturating_sub(began_us) } else { 0 };
    let mut body = b.body;
    match (&a.body, &mut body) {
        (Body::Proxy(a), Body::Proxy(b)) => b.downsample(a),
        (Body::Load(a), Body::Load(b)) => b.downsample(a),
        (Body::Client(a), Body::Client(b)) => b.downsample(a),
        // Others are as the later record says.
        _ => {}
    }
    Record { stamp: Stamp { interval_us, ..b.stamp }, body }
}
