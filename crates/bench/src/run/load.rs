//! The generator of a cell: a child `tlsdash load`, and the resources used during the load.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::error::LoadFailure;
use super::recording::LoadRecording;
use super::server_starter::POLL;
use super::setup::BenchSetup;
use super::started::StartedTarget;
use crate::results::{MachineUsage, ResourceUsage};
use crate::scenario::{BenchCase, BenchTarget, core_count};
use crate::target::{MachineMeter, SampleTimes, SupervisedCommand, Supervisor, TimeSpan, UsageMeter};

/// How long a load may take beyond its own length: answers are awaited for some seconds after it.
const OVERTIME: Duration = Duration::from_secs(30);
/// How long a load may take whose length depends on the target.
const LENGTH_MAX: Duration = Duration::from_secs(3_600);
#[derive(Debug)]
pub(super) struct LoadRun {
    pub(super) recording: LoadRecording,
    pub(super) target: Option<ResourceUsage>,
    pub(super) load: ResourceUsage,
    pub(super) upstream: ResourceUsage,
    pub(super) machine: MachineUsage,
    /// Other remarks on it, in words.
    pub(super) remarks: Vec<String>,
    /// The requests that were answered in the target's turns; `None` without turns.
    pub(super) answered_in_turns: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct LoadStart {
    /// At this time of the monotonic clock, in microseconds; `None` at once.
    pub(super) at_us: Option<u64>,
    /// Its position among the loads that run at the same time.
    pub(super) position: usize,
    pub(super) samples: SampleTimes,
    /// The interval of its records.
    pub(super) interval: Duration,
}

impl LoadStart {
    /// At once, alone.
    pub(super) const AT_ONCE: Self = Self {
        at_us: None,
        position: 0,
        samples: SampleTimes::Periodic,
        interval: Duration::from_millis(100),
    };
}

/// A load that runs, and the meters of everything that it uses.
#[derive(Debug)]
pub(super) struct RunningLoad {
    generator: Supervisor,
    journal: PathBuf,
    targets: Vec<UsageMeter>,
    upstream: Option<UsageMeter>,
    load: UsageMeter,
    machine: MachineMeter,
}

/// The programs that a run needs.
pub struct RunPrograms<'a> {
    /// This program: it generates the load, supervises processes, and is the upstream.
    pub tlsdash: PathBuf,
    /// Reads the journal of a load.
    pub read_recording: &'a dyn Fn(&Path) -> Result<LoadRecording, String>,
}

pub(super) struct LoadRunner<'a> {
    pub(super) programs: &'a RunPrograms<'a>,
    pub(super) setup: &'a BenchSetup,
    /// Is called while it runs; true ends it.
    pub(super) is_interrupted: &'a dyn Fn() -> bool,
}

impl LoadRunner<'_> {
    /// The arguments of the generator for a case.
    pub(super) fn arguments(
        target: &BenchTarget,
        started: &StartedTarget,
        case: &BenchCase,
        journal: &Path,
        cores: u32,
    ) -> Vec<String> {
        let mut arguments = vec!["load".to_owned(), format!("{}{}", started.url, case.path)];
        arguments.extend(case.load_flags_for(target));
        arguments.extend(started.flags.iter().cloned());
        if case.flag("threads").is_none() && cores > 1 {
            arguments.push(format!("--threads={cores}"));
        }
        // Any other length of an answer's body is a failure.
        let bytes = case.path.strip_prefix("/bytes/").filter(|bytes| bytes.parse::<u64>().is_ok());
        let expects = ["expect-bytes", "expect-echo", "targets"].iter().any(|flag| case.flag(flag).is_some());
        arguments.extend(bytes.filter(|_| !expects).map(|bytes| format!("--expect-bytes={bytes}")));
        arguments.extend(started.pids.iter().map(|pid| format!("--observe-pid={pid}")));
        arguments.extend(["--headless", "--journal=off", "--format=json"].map(str::to_owned));
        arguments.push(format!("--record={}", journal.display()));
        arguments
    }

    /// Runs a load to its end and reads its record.
    pub(super) fn run(
        &self,
        target: &BenchTarget,
        started: &mut StartedTarget,
        case: &BenchCase,
        journal: &Path,
    ) -> Result<LoadRun, LoadFailure> {
        let load = self.begin(target, started, case, journal, LoadStart::AT_ONCE)?;
        self.finish(load, started, case, None)
    }

    pub(super) fn begin(
        &self,
        target: &BenchTarget,
        started: &StartedTarget,
        case: &BenchCase,
        journal: &Path,
        start: LoadStart,
    ) -> Result<RunningLoad, LoadFailure> {
        let failed =
            |what: &str, error: &dyn std::fmt::Display| LoadFailure::Failed(format!("{what}: {error}"));
        let times = start.samples;
        let meter = |tree| UsageMeter::start(tree, times).map_err(|error| failed("cannot measure", &error));
        let targets = started.trees.iter().map(|tree| meter(tree.clone())).collect::<Result<Vec<_>, _>>()?;
        let upstream = self.setup.upstream.supervisor.as_ref().map(Supervisor::tree).transpose();
        let upstream = upstream.map_err(|error| failed("cannot observe the upstream", &error))?;
        let upstream = upstream.map(meter).transpose()?;
        let machine = MachineMeter::start(times).map_err(|error| failed("cannot measure", &error))?;
        let load_cores = core_count(self.setup.placement.load.as_deref());
        let mut arguments = Self::arguments(target, started, case, journal, load_cores);
        arguments.push(format!("--interval={}ms", start.interval.as_millis()));
        arguments.extend(start.at_us.map(|at_us| format!("--start-at-us={at_us}")));
        let generator = self.start(arguments, start.position)?;
        let load = generator.tree().map_err(|error| failed("cannot observe the generator", &error))?;
        let load = meter(load)?;
        Ok(RunningLoad { generator, journal: journal.to_owned(), targets, upstream, load, machine })
    }

    /// Waits for the end of a load and reads its record. Resources are measured in `turns`, or else in the measured part.
    pub(super) fn finish(
        &self,
        load: RunningLoad,
        started: &mut StartedTarget,
        case: &BenchCase,
        turns: Option<&[TimeSpan]>,
    ) -> Result<LoadRun, LoadFailure> {
        let RunningLoad { mut generator, journal, targets, upstream, load, machine } = load;
        let problem = self.wait(&mut generator, started, case)?;
        let recording = match ((self.programs.read_recording)(&journal), problem) {
            (Ok(recording), None) => recording,
            // A load that had no answer fails too, and has recorded why.
            (Ok(recording), Some(_)) if !recording.failures.is_empty() => recording,
            (_, Some(problem)) | (Err(problem), None) => return Err(LoadFailure::Failed(problem)),
        };
        let whole = [recording.span()];
        let spans = turns.unwrap_or(&whole);
        let used = targets.iter().zip(&started.at_rest).map(|(meter, at_rest)| ResourceUsage {
            // The meter was started later, after checks and tries.
            rss_at_rest: at_rest.resident_bytes,
            pss_at_rest: at_rest.pss_bytes,
            ..meter.usage(spans)
        });
        let used: Vec<ResourceUsage> = used.collect();
        let load = load.usage(spans);
        let upstream = upstream.map_or_else(ResourceUsage::default, |meter| meter.usage(spans));
        let delay = targets.iter().filter_map(|meter| meter.run_queue_delay(spans)).reduce(f64::max);
        let known: Vec<ResourceUsage> = used.iter().copied().chain([load, upstream]).collect();
        let machine = machine.usage(spans, &known, delay);
        let (target, remarks) = (used.into_iter().reduce(sum), Vec::new());
        Ok(LoadRun { recording, target, load, upstream, machine, remarks, answered_in_turns: None })
    }

    fn start(&self, arguments: Vec<String>, position: usize) -> Result<Supervisor, LoadFailure> {
        let tlsdash = &self.setup.tlsdash;
        let argv = std::iter::once(tlsdash.display().to_string()).chain(arguments).collect();
        let file = |kind: &str| self.setup.scratch(&format!("load-{position}.{kind}"));
        let mut command = SupervisedCommand::new(argv, self.setup.scratch("."), file("output"));
        command.cpus.clone_from(&self.setup.placement.load);
        command.stdout = Some(file("summary"));
        Supervisor::start(tlsdash, &command).map_err(|error| LoadFailure::Failed(error.to_string()))
    }

    /// Waits until the generator ends; an interruption, or the end of the target, ends it. Returns why it failed, if it
    /// did.
    fn wait(
        &self,
        generator: &mut Supervisor,
        started: &mut StartedTarget,
        case: &BenchCase,
    ) -> Result<Option<String>, LoadFailure> {
        let length = case.length().unwrap_or(LENGTH_MAX) + OVERTIME;
        let deadline = Instant::now() + length;
        let info = loop {
            if let Some(info) = generator.wait_until(Instant::now() + POLL) {
                break info;
            }
            if (self.is_interrupted)() {
                return Err(LoadFailure::Interrupted);
            }
            if started.has_ended() {
                let reason =
                    ["the target ended under load".to_owned()].into_iter().chain(started.unclean_exit());
                return Err(LoadFailure::Failed(reason.collect::<Vec<_>>().join("; ")));
            }
            if Instant::now() > deadline {
                let reason = format!("the load was not done after {} s", length.as_secs());
                return Err(LoadFailure::Failed(reason));
            }
        };
        if info.exit.is_some_and(crate::target::CommandExit::is_success) {
            return Ok(None);
        }
        let how = info.exit.map_or_else(|| "with its supervisor".to_owned(), |exit| format!("with {exit}"));
        Ok(Some(format!("the load ended {how}: {}", generator.output_tail())))
    }
}

/// The sum of two process trees; the largest sums of memory, as if both had them at once.
fn sum(a: ResourceUsage, b: ResourceUsage) -> ResourceUsage {
    ResourceUsage {
        user_us: a.user_us + b.user_us,
        system_us: a.system_us + b.system_us,
        wall_us: a.wall_us.max(b.wall_us),
        rss_peak: a.rss_peak + b.rss_peak,
        pss_peak: a.pss_peak + b.pss_peak,
        rss_at_rest: a.rss_at_rest + b.rss_at_rest,
        pss_at_rest: a.pss_at_rest + b.pss_at_rest,
        rss_at_end: a.rss_at_end + b.rss_at_end,
        threads_max: a.threads_max + b.threads_max,
        descriptors_max: a.descriptors_max + b.descriptors_max,
        context_switches: a.context_switches + b.context_switches,
    }
}
