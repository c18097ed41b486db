//! The records of one run, as far as they are wanted.

use std::collections::VecDeque;
use std::sync::Arc;

use journal::{Entry, ReadError, Tail};

use crate::codec;
use crate::excerpt::{Excerpt, Stretch};
use crate::field;
use crate::ids::RunId;
use crate::origin::{Origin, Writer};
use crate::record::{Body, Phase, Record};

/// Times that an error is met by trying again: one file that cannot be read must not keep us from the others.
const TRIES: u32 = 3;

/// How far reading has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Everything up to the moment has been handed out.
    Done,
    /// There is more to read; the run's last record was made at this moment of its monotonic clock.
    At(u64),
}

/// A journal of which only one run is read.
pub(super) struct Reel {
    tail: Tail,
    desk: Desk,
}

/// What was read.
struct Desk {
    run: RunId,
    run_text: String,
    /// Whose records count.
    origin: Origin,
    excerpt: Excerpt,
    writer: Arc<Writer>,
    /// Not handed out yet, in order.
    ahead: VecDeque<(Arc<Writer>, Record)>,
    cut: Vec<Record>,
    last_seq: u64,
    last_us: u64,
    has_stopped: bool,
}

impl Reel {
    pub(super) fn new(tail: Tail, (run, origin): (RunId, Origin), stretch: Stretch) -> Self {
        let desk = Desk {
            run,
            run_text: run.to_string(),
            origin,
            excerpt: Excerpt::new(stretch),
            writer: Arc::default(),
            ahead: VecDeque::new(),
            cut: Vec::new(),
            last_seq: 0,
            last_us: 0,
            has_stopped: false,
        };
        Self { tail, desk }
    }

    /// Does a bounded part of reading up to a moment. `last_seq` is the last record that is known to be there: after it
    /// nobody looks on.
    pub(super) fn read(
        &mut self,
        until_us: u64,
        last_seq: u64,
        mut each: impl FnMut(&Arc<Writer>, Record),
    ) -> Result<Progress, ReadError> {
        let is_later = |record: &Record| record.stamp.mono_us > until_us;
        let has_later = self.desk.ahead.back().is_some_and(|(_, record)| is_later(record));
        let mut is_end = self.desk.is_at_end(last_seq);
        if !has_later && !is_end {
            let has_more = self.poll()?;
            is_end = !has_more || self.desk.is_at_end(last_seq);
        }
        while self.desk.ahead.front().is_some_and(|(_, record)| !is_later(record)) {
            let Some((writer, record)) = self.desk.ahead.pop_front() else { break };
            each(&writer, record);
        }
        let is_done = is_end || !self.desk.ahead.is_empty();
        Ok(if is_done { Progress::Done } else { Progress::At(self.desk.last_us) })
    }

    /// Tells whether there is more.
    fn poll(&mut self) -> Result<bool, ReadError> {
        let Self { tail, desk } = self;
        let mut tries = 0;
        loop {
            match tail.poll(|entry| desk.take(entry)) {
                Ok(progress) => return Ok(progress.more),
                Err(_) if tries < TRIES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

impl Desk {
    fn is_at_end(&self, last_seq: u64) -> bool {
        self.has_stopped || (last_seq > 0 && self.last_seq >= last_seq)
    }

    fn take(&mut self, entry: &Entry) {
        if entry.text(&field::RUN.name) != Some(&*self.run_text) {
            return;
        }
        if Origin::of(entry) != self.origin {
            return;
        }
        // What cannot be decoded was counted when it was read first.
        let Ok(Some(record)) = codec::decode(entry) else { return };
        if self.writer.origin != self.origin {
            self.writer = Arc::new(Writer::of(entry));
        }
        self.excerpt.take(&self.writer, record, &mut self.cut);
        for record in self.cut.drain(..).filter(|record| record.stamp.run == self.run) {
            self.last_seq = self.last_seq.max(record.stamp.seq);
            self.last_us = self.last_us.max(record.stamp.mono_us);
            self.has_stopped |= matches!(&record.body, Body::Run(run) if run.phase == Phase::Stop);
            self.ahead.push_back((Arc::clone(&self.writer), record));
        }
    }
}
