//! Reads a journal again, on a thread of its own: how a run stood at a moment, and what came after it.
//!
//! A [`Model`] keeps some hours of a run, and of its clients less. What it has let go is still in the journal: asked for a
//! moment, a [`Recaller`] reads the run up to it into a model of its own, hands that over, and then gives out records as far
//! as it is asked to, so that they can be played. It holds one model while it reads and two polls of records besides.

mod reel;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use journal::{ReadError, Start, Tail};

use crate::excerpt::Stretch;
use crate::ids::RunId;
use crate::model::Model;
use crate::origin::{Origin, Writer};
use crate::record::Record;
use reel::{Progress, Reel};

/// Records that are handed over together at the most.
const RECORDS_MAX: usize = 256;

/// What is to be read. Of what waits only the latest counts.
#[derive(Debug)]
pub enum Ask {
    /// How a run stood at a moment.
    Seek(Box<Seek>),
    /// What follows, up to a moment.
    On {
        /// That of the [`Seek`].
        ticket: u64,
        /// Up to this moment of the run's monotonic clock, in microseconds.
        until_us: u64,
        /// The number of the last record that is known of the run.
        last_seq: u64,
    },
}

/// A moment of a run.
#[derive(Debug)]
pub struct Seek {
    /// What the answers are known by.
    pub ticket: u64,
    /// The run.
    pub run: RunId,
    /// The process whose records count.
    pub origin: Origin,
    /// What is known of it already ([`Model::joining`]), or an empty model.
    pub model: Model,
    /// Records before this moment of `CLOCK_REALTIME`, in microseconds, are not needed.
    pub since_us: u64,
    /// The moment, of the run's monotonic clock in microseconds.
    pub until_us: u64,
    /// The number of the last record that is known of the run, so that nobody looks further.
    pub last_seq: u64,
}

/// What was read.
#[derive(Debug)]
pub enum Recalled {
    /// So far reading has come.
    Progress {
        /// Of what was asked.
        ticket: u64,
        /// The moment of the run's monotonic clock, in microseconds.
        mono_us: u64,
    },
    /// How the run stood.
    Stood {
        /// Of what was asked.
        ticket: u64,
        /// Nothing but the run, and nothing later than the moment.
        model: Box<Model>,
        /// The moment.
        until_us: u64,
    },
    /// What followed.
    Followed {
        /// Of what was asked.
        ticket: u64,
        /// In the order of the journal, with who wrote them.
        records: Vec<(Arc<Writer>, Record)>,
        /// No record up to this moment is missing any more; `None` while there are more to come.
        until_us: Option<u64>,
    },
    /// It cannot be read.
    Failed {
        /// Of what was asked.
        ticket: u64,
        /// Why.
        why: String,
    },
}

/// Asks for what is to be read again. The thread ends with the last of them.
#[derive(Clone, Debug)]
pub struct Recaller {
    line: Arc<Line>,
}

/// Tells the thread when the last of those who ask is gone.
#[derive(Debug)]
struct Line(Arc<Desk>);

impl Drop for Line {
    fn drop(&mut self) {
        self.0.put(Waiting::Nobody);
    }
}

/// What waits to be read. One writes and one takes, for a moment each, so neither keeps the other waiting.
#[derive(Debug, Default)]
struct Desk {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
enum Waiting {
    #[default]
    Nothing,
    Asked(Ask),
    /// Nobody asks any more.
    Nobody,
}

impl Desk {
    fn put(&self, waiting: Waiting) {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = waiting;
        self.changed.notify_one();
    }

    /// Waits for what is to be read; `None` once nobody asks any more.
    fn take(&self) -> Option<Ask> {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let is_empty = |waiting: &mut Waiting| matches!(waiting, Waiting::Nothing);
        let mut waiting = self.changed.wait_while(waiting, is_empty).unwrap_or_else(PoisonError::into_inner);
        match std::mem::take(&mut *waiting) {
            Waiting::Asked(ask) => Some(ask),
            Waiting::Nothing | Waiting::Nobody => None,
        }
    }

    /// True if what is being read is not wanted any more.
    fn is_overtaken(&self) -> bool {
        !matches!(*self.waiting.lock().unwrap_or_else(PoisonError::into_inner), Waiting::Nothing)
    }
}

impl Recaller {
    /// Starts the thread. `open` opens the journal, `stretch` says which part of it counts; `deliver` may block, and returns
    /// false to end the thread.
    ///
    /// # Errors
    /// When there can be no thread.
    pub fn start(
        open: impl Fn(Start) -> Result<Tail, ReadError> + Send + 'static,
        stretch: Stretch,
        deliver: impl FnMut(Recalled) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let desk = Arc::new(Desk::default());
        let theirs = Arc::clone(&desk);
        std::thread::Builder::new().name("dashboard-recall".into()).spawn(move || {
            Clerk { desk: &theirs, open, stretch, deliver }.work();
        })?;
        Ok(Self { line: Arc::new(Line(desk)) })
    }

    /// Asks for something, in the place of what was asked before and has not been read yet. Never waits.
    pub fn ask(&self, ask: Ask) {
        self.line.0.put(Waiting::Asked(ask));
    }
}

/// Who reads.
struct Clerk<'d, O, D> {
    desk: &'d Desk,
    open: O,
    stretch: Stretch,
    deliver: D,
}

impl<O, D> Clerk<'_, O, D>
where
    O: Fn(Start) -> Result<Tail, ReadError>,
    D: FnMut(Recalled) -> bool,
{
    fn work(mut self) {
        let mut reel: Option<(u64, Reel)> = None;
        while let Some(ask) = self.desk.take() {
            let (ticket, done) = match ask {
                Ask::Seek(seek) => {
                    // The one before goes first: only one is held at a time.
                    reel = None;
                    let ticket = seek.ticket;
                    (ticket, self.seek(*seek).map(|found| reel = found.map(|reel| (ticket, reel))))
                }
                Ask::On { ticket, until_us, last_seq } => match &mut reel {
                    Some((of, reel)) if *of == ticket => {
                        (ticket, self.go_on(ticket, reel, until_us, last_seq))
                    }
                    _ => continue,
                },
            };
            if let Err(error) = done {
                let is_heard = (self.deliver)(Recalled::Failed { ticket, why: error.to_string() });
                if !is_heard {
                    return;
                }
            }
        }
    }

    /// Reads up to a moment; nothing if something else is wanted meanwhile.
    fn seek(&mut self, seek: Seek) -> Result<Option<Reel>, ReadError> {
        let Seek { ticket, run, origin, mut model, since_us, until_us, last_seq } = seek;
        // A stretch is counted from its beginning, and needs what was before it.
        let is_whole = self.stretch == Stretch::ALL;
        let start = if is_whole && since_us > 0 { Start::Since(since_us) } else { Start::Oldest };
        let mut reel = Reel::new((self.open)(start)?, (run, origin), self.stretch);
        loop {
            let progress = reel.read(until_us, last_seq, |writer, record| {
                model.apply_from(writer, record, None);
            })?;
            let news = match progress {
                Progress::Done => break,
                Progress::At(mono_us) => Recalled::Progress { ticket, mono_us },
            };
            if self.desk.is_overtaken() || !(self.deliver)(news) {
                return Ok(None);
            }
        }
        let is_heard = (self.deliver)(Recalled::Stood { ticket, model: Box::new(model), until_us });
        Ok(is_heard.then_some(reel))
    }

    fn go_on(&mut self, ticket: u64, reel: &mut Reel, until_us: u64, last_seq: u64) -> Result<(), ReadError> {
        let mut records = Vec::new();
        loop {
            let progress = reel.read(until_us, last_seq, |writer, record| {
                records.push((Arc::clone(writer), record));
            })?;
            while records.len() > RECORDS_MAX {
                let rest = records.split_off(RECORDS_MAX);
                let full = std::mem::replace(&mut records, rest);
                if !(self.deliver)(Recalled::Followed { ticket, records: full, until_us: None }) {
                    return Ok(());
                }
            }
            if progress == Progress::Done {
                (self.deliver)(Recalled::Followed { ticket, records, until_us: Some(until_us) });
                return Ok(());
            }
        }
    }
}
