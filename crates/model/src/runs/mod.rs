//! Builds the figures of screens and reports from records.
//!
//! The model has no clock, does no I/O and cannot fail: live view, replay and report feed it the same records and get
//! the same figures. Its memory is bounded, however long or hostile the journal is.
//!
//! # Whose records count
//!
//! Anyone may write records with the id of any run, so a run belongs to one [`Origin`](records::codec::Origin): the process
//! that wrote the earliest record read, by the journal's trusted fields. Records of other processes are only counted
//! ([`Reading::foreign`]). The id of a run is random and appears nowhere before its first record, so a forger always
//! comes later, in any order of files. This does not hold if reading begins in the middle of a run, or if the wall
//! clock was set back during it: a forger may come first then. When a run is forgotten (see [`RUNS_KNOWN_MAX`]), so is
//! its owner. The id of a part of a run can be guessed, so a part must be of the whole run's process. A file that
//! journald did not write is trusted as a whole.
//!
//! The reader chooses the accounts whose runs are read at all ([`RunFilter`](crate::history::RunFilter)). A trusted writer may
//! still write endless runs and clients: [`RUNS_BYTES_MAX`] limits the memory of all runs together.

pub(crate) mod findings;
mod merged;
mod run;
mod series;
#[cfg(test)]
mod tests;

use foldhash::{HashMap, HashSet};

use crate::insight::findings::judge;
use records::codec::{SuppressedMessages, Writer};
use records::ids::RunId;
use records::kinds::heap_size::HeapSize as _;
use records::kinds::{Record, Stamp};

pub use merged::RunMember;
pub use records::kinds::Level;
pub use run::events::alerts::AlertEpisode;
pub use run::events::experiment::{ArmStretch, ArmSwitch, ComparedFigure, Experiment, Verdict};
pub use run::events::timeline::{Marker, TimelineEvent};
pub use run::reading::{Arrival, Gap, Reading};
pub use run::traffic::certificates::{Certificates, KnownCertificate};
pub use run::traffic::client::{ClientRate, ClientStats};
pub use run::traffic::clients::Clients;
pub use run::traffic::failures::Failures;
pub use run::traffic::named::{
    NamedPart, NamedSeries, NamedStats, NamedTable, NamedWindow, RouteStats, RouteWindow, UpstreamStats,
    UpstreamWindow,
};
pub use run::traffic::recent::{RECENT_MAX, RecentUse};
pub use run::traffic::requests::{RecordedRequest, Requests};
pub use run::traffic::usage::Usage;
pub use run::{CpuUse, DEFERRED_US_MAX, LogLine, Run, WorkerActivity};
pub use series::window::Window;
pub use series::{HISTORY, Interval, MetricSeries};

/// Runs that a model keeps whole. When another one comes, the run that has been silent longest is abridged to its totals, its
/// certificates and its last ten seconds
/// ([`Run::is_brief`]).
pub const RUNS_MAX: usize = 16;

/// Runs that a model keeps, whole or abridged; beyond it the run that has been silent longest is forgotten.
pub const RUNS_KNOWN_MAX: usize = 1_024;

/// Memory of all runs together, in bytes. Beyond it, the runs that have been silent longest are abridged, then forgotten. The
/// shown run is kept in full, within its own limits.
pub const RUNS_BYTES_MAX: usize = 256 << 20;

/// The same for runs that are to be merged. Beyond it, all are condensed first: their plots are coarser.
pub const RUNS_MERGED_BYTES_MAX: usize = 192 << 20;

/// Lengths of the intervals of condensed runs, in microseconds: from 20 s, doubled until there is room, to more than a day.
const CONDENSED_US_MIN: u64 = 20_000_000;
const CONDENSED_US_MAX: u64 = CONDENSED_US_MIN << 13;

/// Bytes of records that are taken in between two checks of how much is kept.
const UNCHECKED_BYTES_MAX: usize = 4 << 20;

/// Memory of a new run besides its first record: the histograms of a whole run are dense.
const NEW_RUN_BYTES: usize = 1 << 20;

/// All runs that have been read.
#[derive(Debug)]
pub struct Model {
    history: usize,
    /// The intervals of condensed runs, in microseconds; `None` if runs are not to be merged.
    condensed_us: Option<u64>,
    runs: Vec<Run>,
    /// The index of each run.
    places: HashMap<RunId, usize>,
    /// Index of the last record's run: the next record is mostly of the same run.
    latest: usize,
    /// The run that is always kept whole.
    held: Option<RunId>,
    /// [`RUNS_BYTES_MAX`] or [`RUNS_MERGED_BYTES_MAX`], and less in tests.
    bytes_max: usize,
    /// Bytes taken in since the last check of how much is kept.
    unchecked_bytes: usize,
    /// Whether runs that newer ones replace are forgotten before others, and do not count.
    is_of_newest: bool,
    /// Runs that were forgotten.
    forgotten: u64,
    malformed: u64,
    skipped_bytes: u64,
    /// `CLOCK_REALTIME` when the last batch was read live.
    read_realtime_us: u64,
}

/// Records under a run's id that another process wrote; they were not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignRecords {
    pub run: RunId,
    pub records: u64,
    /// When the first of them was written, `CLOCK_REALTIME` in microseconds.
    pub realtime_us: u64,
}

impl Default for Model {
    fn default() -> Self {
        Self::new(HISTORY)
    }
}

impl Model {
    /// A model that keeps the latest `history` intervals of each series; totals and whole-run histograms need none.
    pub fn new(history: usize) -> Self {
        Self {
            history: history.max(1),
            condensed_us: None,
            runs: Vec::new(),
            places: HashMap::default(),
            latest: 0,
            held: None,
            bytes_max: RUNS_BYTES_MAX,
            unchecked_bytes: 0,
            is_of_newest: false,
            forgotten: 0,
            malformed: 0,
            skipped_bytes: 0,
            read_realtime_us: u64::MAX,
        }
    }

    /// A model for listing many runs: it keeps all whole, condensed if they are many.
    pub fn for_listing(history: usize) -> Self {
        Self { condensed_us: Some(CONDENSED_US_MIN), bytes_max: RUNS_MERGED_BYTES_MAX, ..Self::new(history) }
    }

    /// One for merging runs of many hosts: of too many it forgets first those that newer ones replace.
    pub fn for_merging(history: usize) -> Self {
        Self { is_of_newest: true, ..Self::for_listing(history) }
    }

    /// A model of one run for reading it again from a moment on. It holds what later records do not repeat, as it
    /// stood then. Gaps and losses, reasons of failures, experiments, latencies of the whole run and the series count
    /// from there.
    pub fn joining(run: &Run, us: u64) -> Self {
        let mut joining = Self::default();
        joining.add(run.joined_at(us, HISTORY));
        joining
    }

    /// Adds one record of an unknown writer, as [`Self::apply_from`] does.
    pub fn apply(&mut self, record: Record, read_mono_us: Option<u64>) {
        self.apply_from(&Writer::default(), record, read_mono_us);
    }

    /// Adds one record. `read_mono_us` is `CLOCK_MONOTONIC` of this boot when it was read, for live journals:
    /// it only serves to show how far reading lags behind writing.
    pub fn apply_from(&mut self, writer: &Writer, record: Record, read_mono_us: Option<u64>) {
        if let Some(whole) = self.whole_of_another(record.stamp.run, writer) {
            return self.runs[whole].count_foreign(1, record.stamp.realtime_us);
        }
        let at = self.place(record.stamp.run, writer);
        self.latest = at;
        self.unchecked_bytes += size_of_val(&record) + record.heap_bytes();
        let run = &mut self.runs[at];
        if run.accept(writer, &record, read_mono_us) {
            if run.completes_interval(&record.body) {
                judge(run);
            }
            run.apply(record);
        }
        if self.unchecked_bytes > UNCHECKED_BYTES_MAX {
            self.unchecked_bytes = 0;
            self.bound_bytes();
        }
    }

    /// Records when a record was read live, by the clock of the reading host.
    pub(crate) fn record_arrival(&mut self, writer: &Writer, stamp: &Stamp, realtime_us: u64) {
        self.read_realtime_us = realtime_us;
        if let Some(run) = self.run_mut(stamp.run) {
            run.record_arrival(writer, stamp, realtime_us);
        }
    }

    /// Counts records that were not decoded, since another process wrote them under the id of a run.
    pub fn count_foreign(&mut self, foreign: &ForeignRecords) {
        if let Some(run) = self.run_mut(foreign.run) {
            run.count_foreign(foreign.records, foreign.realtime_us);
        }
    }

    /// Counts messages that journald dropped, for the newest run that may have lost records by it.
    pub fn count_suppressed(&mut self, notice: &SuppressedMessages) {
        let concerns = |run: &&mut Run| {
            let Writer { origin, unit, .. } = run.writer();
            run.stopped().is_none() && !run.is_service() && notice.concerns(origin, unit)
        };
        let nearest = |run: &&mut Run| (notice.is_about(&run.writer().origin), run.began_realtime_us());
        if let Some(run) = self.runs.iter_mut().filter(concerns).max_by_key(nearest) {
            run.count_suppressed(notice.dropped);
        }
    }

    /// Counts entries that claim to be ours and cannot be decoded.
    pub fn count_malformed(&mut self, entries: u64) {
        self.malformed = self.malformed.saturating_add(entries);
    }

    /// Counts bytes of a journal that could not be read.
    pub fn count_skipped(&mut self, bytes: u64) {
        self.skipped_bytes = self.skipped_bytes.saturating_add(bytes);
    }

    /// The run that began last: the default of a screen. If a run is held, only runs of its account count. On other
    /// machines, services come before users.
    pub fn current(&self) -> Option<&Run> {
        let held = self.held.and_then(|id| self.run(id));
        let is_its = |run: &&Run| held.is_none_or(|held| run.writer().is_same_account(held.writer()));
        self.runs().filter(is_its).max_by_key(|run| (run.writer().is_preferred(), run.began_realtime_us()))
    }

    pub fn run(&self, id: RunId) -> Option<&Run> {
        self.places.get(&id).map(|at| &self.runs[*at])
    }

    fn run_mut(&mut self, id: RunId) -> Option<&mut Run> {
        self.places.get(&id).map(|at| &mut self.runs[*at])
    }

    /// All runs but the parts of others, in the order in which they appeared.
    pub fn runs(&self) -> impl DoubleEndedIterator<Item = &Run> {
        self.runs.iter().filter(|run| !self.is_part(run))
    }

    /// Whether it is a part of another run: by its first record, or else by its id and its process.
    fn is_part(&self, run: &Run) -> bool {
        let (id, whole) = (run.id(), run.id().whole());
        run.is_service() || (id != whole && self.run(whole).is_some_and(|whole| whole.is_of_process_of(run)))
    }

    /// All runs, and the parts of runs.
    pub fn runs_and_parts(&self) -> &[Run] {
        &self.runs
    }

    /// The parts of the run that this one is, or is a part of: one for each service, by the same process.
    pub fn services(&self, of: RunId) -> impl Iterator<Item = &Run> {
        let whole = self.run(of.whole());
        let is_of_it = move |run: &&Run| {
            run.id().whole() == of.whole()
                && run.is_service()
                && whole.is_none_or(|whole| whole.is_of_process_of(run))
        };
        self.runs.iter().filter(is_of_it)
    }

    /// Runs that were forgotten as there were too many. Of a model for merging they are missing: those that newer ones
    /// replace do not count.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Entries that claimed to be ours and could not be decoded.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Bytes of the journal that could not be read.
    pub fn skipped_bytes(&self) -> u64 {
        self.skipped_bytes
    }

    /// The whole run that this id claims a part of, if another process writes that. The ids of parts are known from it, so
    /// that a forger may come first.
    fn whole_of_another(&self, id: RunId, writer: &Writer) -> Option<usize> {
        let is_part = id != id.whole() && self.runs.get(self.latest).is_none_or(|latest| latest.id() != id);
        let whole = self.places.get(&id.whole()).filter(|_| is_part);
        whole.copied().filter(|at| self.runs[*at].writer().origin != writer.origin)
    }

    fn place(&mut self, id: RunId, writer: &Writer) -> usize {
        if self.runs.get(self.latest).is_some_and(|run| run.id() == id) {
            return self.latest;
        }
        if let Some(at) = self.places.get(&id) {
            return *at;
        }
        if self.is_of_newest && self.runs.len() == RUNS_KNOWN_MAX && self.forgotten == 0 {
            self.forget_replaced();
        }
        self.make_room();
        if self.runs.len() == RUNS_KNOWN_MAX
            && let Some(silent) = self.most_silent(Run::is_brief)
        {
            self.forget(silent);
        }
        self.add(Run::new(id, writer.clone(), self.history));
        self.unchecked_bytes += NEW_RUN_BYTES;
        self.runs.len() - 1
    }

    fn add(&mut self, run: Run) {
        self.places.insert(run.id(), self.runs.len());
        self.runs.push(run);
    }

    fn forget(&mut self, at: usize) -> Run {
        self.forgotten += 1;
        let run = self.runs.remove(at);
        self.find_places();
        run
    }

    fn find_places(&mut self) {
        self.places = self.runs.iter().enumerate().map(|(at, run)| (run.id(), at)).collect();
    }

    /// Forgets the runs of which newer ones are merged, with their parts.
    fn forget_replaced(&mut self) {
        let is_replaced = |run: &&Run| self.runs().any(|other| run.is_replaced_by(other));
        let replaced: HashSet<RunId> = self.runs().filter(is_replaced).map(Run::id).collect();
        let whole = |run: &Run| if self.is_part(run) { run.id().whole() } else { run.id() };
        let is_gone = |run: &&Run| replaced.contains(&whole(run));
        let gone: HashSet<RunId> = self.runs.iter().filter(is_gone).map(Run::id).collect();
        self.runs.retain(|run| !gone.contains(&run.id()));
        self.find_places();
    }

    /// Abridges a run if there is no room for another full run.
    fn make_room(&mut self) {
        let whole = self.runs.iter().filter(|run| !run.is_brief()).count();
        let whole_max = if self.condensed_us.is_some() { RUNS_KNOWN_MAX } else { RUNS_MAX };
        let held = self.held;
        let may_go = |run: &Run| !run.is_brief() && Some(run.id()) != held;
        if whole >= whole_max
            && let Some(silent) = self.most_silent(may_go)
        {
            self.runs[silent].abridge();
        }
    }

    /// Condenses, abridges and forgets runs until all together are within bounds.
    fn bound_bytes(&mut self) {
        let mut bytes: usize = self.runs.iter().map(Run::bytes).sum();
        let shown = self.held.or_else(|| self.current().map(Run::id));
        if bytes > self.bytes_max {
            bytes = self.condense(shown).unwrap_or(bytes);
        }
        while bytes > self.bytes_max {
            let may_go = |run: &Run| Some(run.id()) != shown;
            if let Some(silent) = self.most_silent(|run| !run.is_brief() && may_go(run)) {
                bytes -= self.runs[silent].bytes();
                self.runs[silent].abridge();
                bytes += self.runs[silent].bytes();
            } else if let Some(silent) = self.most_silent(may_go) {
                bytes -= self.forget(silent).bytes();
            } else {
                return;
            }
        }
    }

    /// Condenses the runs of a model for merging but the shown one, until there is room for a while, or it helps no more.
    /// Returns their memory in bytes.
    fn condense(&mut self, shown: Option<RunId>) -> Option<usize> {
        let period_us = self.condensed_us.as_mut()?;
        let mut before = usize::MAX;
        loop {
            let others = self.runs.iter_mut().filter(|run| !run.is_brief() && Some(run.id()) != shown);
            others.for_each(|run| run.condense(*period_us));
            let bytes = self.runs.iter().map(Run::bytes).sum();
            let helps = bytes > self.bytes_max || before.saturating_sub(bytes) > self.bytes_max / 16;
            if bytes <= self.bytes_max / 4 * 3 || !helps || *period_us == CONDENSED_US_MAX {
                return Some(bytes);
            }
            before = bytes;
            *period_us *= 2;
        }
    }

    /// The run that has been silent longest; if several have been silent for the same number of minutes, the one with
    /// the fewest records. Timestamps in the future count as now, otherwise a hostile host could keep its runs in
    /// place of others.
    fn most_silent(&self, may_go: impl Fn(&Run) -> bool) -> Option<usize> {
        let all = self.runs.iter().enumerate().filter(|(_, run)| may_go(run));
        let silence = |run: &Run| {
            let last_us = run.last_realtime_us().min(self.read_realtime_us);
            (last_us / 60_000_000, run.reading().read(), last_us)
        };
        all.min_by_key(|(_, run)| silence(run)).map(|(at, _)| at)
    }

    /// Holds a run: it is always kept whole, and [`Self::current`] stays with its account. `None` holds no run.
    pub fn hold(&mut self, id: Option<RunId>) {
        self.held = id;
    }

    /// Replaces an abridged run by the same run read again.
    ///
    /// # Errors
    /// With the other model, if it lacks known records of the run, or either model lacks the run.
    pub fn restore(&mut self, id: RunId, mut from: Box<Self>) -> Result<(), Box<Self>> {
        let places = self.places.get(&id).zip(from.places.get(&id));
        let Some((&at, &other)) = places else { return Err(from) };
        if from.runs[other].reading().last_seq() < self.runs[at].reading().last_seq() {
            return Err(from);
        }
        self.make_room();
        self.runs[at] = from.runs.swap_remove(other);
        self.bound_bytes();
        Ok(())
    }
}
