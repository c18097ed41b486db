//! The header of a run: its id, its writer, its first and last records.

use records::codec::Writer;
use records::ids::RunId;
use records::kinds::heap_size::HeapSize as _;
use records::kinds::{Phase, RunRecord, Stamp};
use records::values::AbsentFigures;

/// The id and writer of a run, and from when to when it was read.
#[derive(Debug)]
pub(super) struct RunHeader {
    pub(super) id: RunId,
    pub(super) writer: Writer,
    pub(super) began: Option<(Stamp, Box<RunRecord>)>,
    pub(super) stopped: Option<(Stamp, Box<RunRecord>)>,
    /// The stamp of the first record read.
    pub(super) first: Option<Stamp>,
    /// The stamp of the last record read.
    pub(super) last: Option<Stamp>,
    /// Time during which none of the merged runs was running, in microseconds.
    pub(super) idle_us: u64,
}

impl RunHeader {
    pub(super) fn new(id: RunId, writer: Writer) -> Self {
        Self { id, writer, began: None, stopped: None, first: None, last: None, idle_us: 0 }
    }

    /// Notes the time of a record.
    pub(super) fn note(&mut self, stamp: Stamp) {
        self.first.get_or_insert(stamp);
        self.last = Some(stamp);
    }

    pub(super) fn apply(&mut self, stamp: Stamp, run: Box<RunRecord>) {
        match run.phase {
            Phase::Start => self.began = Some((stamp, run)),
            Phase::Stop => self.stopped = Some((stamp, run)),
        }
    }

    /// Adds figures that turn out to be absent from the log.
    pub(super) fn add_absent(&mut self, figures: &AbsentFigures) {
        self.began.iter_mut().for_each(|(_, began)| began.absent.extend(figures));
    }

    /// The header for reading on from the middle of the run.
    pub(super) fn resumed(&self) -> Self {
        let Self { id, writer, began, stopped: _, first, last: _, idle_us } = self;
        Self {
            id: *id,
            writer: writer.clone(),
            began: began.clone(),
            stopped: None,
            first: *first,
            last: None,
            idle_us: *idle_us,
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let Self { id: _, writer: _, began, stopped, first: _, last: _, idle_us: _ } = self;
        let records = [began, stopped].into_iter().flatten();
        records.map(|(_, run)| size_of::<RunRecord>() + run.heap_bytes()).sum()
    }
}
