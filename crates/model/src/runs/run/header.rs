//! The header of a run: its id, its writer, its first and last records.

use super::merged::{AlignedRun, covered_us, joined, sum_by_host};
use crate::runs::run::events::settings::RunSettings;
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

    /// The header of several runs as one; `None` without runs.
    pub(super) fn merged(members: &[AlignedRun<'_>], settings: &RunSettings) -> Option<Self> {
        let first = members.iter().filter_map(|member| Some(member.shifted(member.run.header.first?)));
        let first = first.min_by_key(|stamp| stamp.mono_us);
        let last = members.iter().filter_map(|member| Some(member.shifted(member.run.header.last?)));
        let last = last.max_by_key(|stamp| stamp.mono_us);
        // A final record covers all of its run, also where the beginning of that was not read.
        let span_us = match members {
            [] => return None,
            [one] => one.run.duration_us(),
            _ => last.map_or(0, |last| last.mono_us.saturating_sub(first.map_or(0, |first| first.mono_us))),
        };
        let has_begun = members.iter().any(|member| member.run.header.began.is_some());
        let has_stopped = members.iter().all(|member| member.run.header.stopped.is_some());
        let stop = || Box::new(RunRecord { phase: Phase::Stop, ..RunRecord::default() });
        let hostname = joined(members, |run| run.hostname().to_owned());
        Some(Self {
            id: members.iter().fold(RunId::from_bits(0), |id, member| id.with(member.run.id())),
            writer: Writer { hostname, ..Writer::default() },
            began: first
                .filter(|_| has_begun)
                .map(|first| (Stamp { interval_us: 0, ..first }, Box::new(began(members, settings)))),
            stopped: last
                .filter(|_| has_stopped)
                .map(|last| (Stamp { interval_us: span_us, ..last }, stop())),
            first,
            last,
            idle_us: span_us.saturating_sub(covered_us(members.iter().map(AlignedRun::span_us))),
        })
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

/// The first record of merged runs: a text that all share, or the texts of all.
fn began(members: &[AlignedRun<'_>], settings: &RunSettings) -> RunRecord {
    let text = |of: fn(&RunRecord) -> &String| {
        joined(members, |run| run.began().map(of).cloned().unwrap_or_default())
    };
    let by_host = |of: fn(&RunRecord) -> u64| sum_by_host(members, |run| run.began().map_or(0, of));
    let together = members.iter().filter(|member| member.is_together);
    let workers = together.filter_map(|member| member.run.began()).map(|run| run.workers).sum();
    let mut absent = AbsentFigures::default();
    members.iter().filter_map(|member| member.run.counted_log()).for_each(|run| absent.extend(&run.absent));
    RunRecord {
        phase: Phase::Start,
        version: text(|run| &run.version),
        host: text(|run| &run.host),
        listen: text(|run| &run.listen),
        upstream: text(|run| &run.upstream),
        certificate: text(|run| &run.certificate),
        workers,
        kernel: text(|run| &run.kernel),
        cpu_model: text(|run| &run.cpu_model),
        cores: by_host(|run| run.cores),
        governor: text(|run| &run.governor),
        clock_source: text(|run| &run.clock_source),
        host_memory_bytes: by_host(|run| run.host_memory_bytes),
        // Runs taken together cannot be changed.
        control_socket: String::new(),
        settings: settings.all().to_vec(),
        log: text(|run| &run.log),
        // What is taken together is a whole of its own.
        service: String::new(),
        log_resolution_us: members
            .iter()
            .filter_map(|member| member.run.began())
            .map(|run| run.log_resolution_us)
            .max()
            .unwrap_or(0),
        absent,
        runs_on: false,
        next_run: String::new(),
        proxy: None,
        tls: None,
        http: None,
        load: None,
    }
}
