//! The experiments of a run: which is under way, and what it sees of each interval.

use std::time::Duration;

use experiment::{ComparableFigure, Experiment, Observation, Plan, PlanError, SideInterval, Step};
use telemetry::{Counters, CpuGroup, ExperimentRecord, LoadDelta, LoadState, ProxyDelta, Setting};

/// An experiment that a run begins with.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) plan: Plan,
    /// Whether the run has nothing more to do after it.
    pub(crate) ends_the_run: bool,
}

/// An interval that has ended.
#[derive(Debug)]
pub(crate) struct Tick<'a> {
    pub(crate) now_us: u64,
    /// How long it was meant to be.
    pub(crate) interval: Duration,
    pub(crate) proxy: Option<&'a ProxyDelta>,
    pub(crate) load: Option<(&'a LoadDelta, LoadState)>,
    /// CPU time of the run so far, in microseconds.
    pub(crate) cpu: Counters<CpuGroup>,
}

/// One experiment at a time.
#[derive(Debug, Default)]
pub(crate) struct Experiments {
    wanted: Option<Plan>,
    running: Option<Experiment>,
    ends_the_run: bool,
    /// Experiments that have begun.
    number: u64,
    /// End of the last interval, and the CPU time then.
    last: Option<(u64, Counters<CpuGroup>)>,
}

impl Experiments {
    pub(crate) fn new(wanted: Option<Wanted>) -> Self {
        let ends_the_run = wanted.as_ref().is_some_and(|wanted| wanted.ends_the_run);
        Self { wanted: wanted.map(|wanted| wanted.plan), ends_the_run, ..Self::default() }
    }

    /// Finds out whether the experiment that is wanted can be.
    ///
    /// # Errors
    /// If not.
    pub(crate) fn check(&self, settings: &[Setting], interval: Duration) -> Result<(), PlanError> {
        self.wanted.as_ref().map_or(Ok(()), |plan| plan.resolve(settings, interval).map(|_| ()))
    }

    /// Begins this one with the next interval.
    pub(crate) fn want(&mut self, plan: Plan) {
        self.wanted = Some(plan);
    }

    /// Takes in an interval; gives what is to be done now.
    ///
    /// # Errors
    /// In words, if an experiment that was wanted cannot be; it is given up.
    pub(crate) fn tick(&mut self, tick: &Tick<'_>, settings: &[Setting]) -> Result<Vec<Step>, String> {
        let last = self.last.replace((tick.now_us, tick.cpu));
        if let Some(running) = self.under_way() {
            let Some((start_us, cpu)) = last else { return Ok(Vec::new()) };
            running.observe(&observation(tick, start_us, &cpu), load_threads(tick));
            let steps = running.advance(tick.now_us);
            return match self.wanted.take() {
                // Its steps come first; who asked can ask again.
                Some(_) if steps.is_empty() => Err("one is under way; end it first".to_owned()),
                _ => Ok(steps),
            };
        }
        let Some(plan) = self.wanted.take() else { return Ok(Vec::new()) };
        let mut begun = begin(plan, settings, tick).map_err(|error| error.to_string())?;
        let steps = begun.begin(tick.now_us);
        self.running = Some(begun);
        self.number += 1;
        Ok(steps)
    }

    /// Tells the experiment that is under way that something else changed.
    pub(crate) fn disturb(&mut self, what: &str) {
        if let Some(running) = self.under_way() {
            running.disturb(what);
        }
    }

    /// Ends the experiment that is under way before its time; gives what is to be done then.
    pub(crate) fn stop(&mut self) -> Vec<Step> {
        self.under_way().map(Experiment::stop).unwrap_or_default()
    }

    /// True if the run was for an experiment that is over.
    pub(crate) fn ends_the_run(&self) -> bool {
        self.ends_the_run && self.running.as_ref().is_some_and(Experiment::is_over)
    }

    /// The setting that is compared; empty before any is.
    pub(crate) fn setting(&self) -> &str {
        self.running.as_ref().map_or("", |running| &running.change().setting)
    }

    /// The records that tell a step.
    pub(crate) fn records(&self, step: &Step) -> Vec<ExperimentRecord> {
        self.running.as_ref().map(|running| running.records(self.number, step)).unwrap_or_default()
    }

    fn under_way(&mut self) -> Option<&mut Experiment> {
        self.running.as_mut().filter(|running| !running.is_over())
    }
}

fn begin(mut plan: Plan, settings: &[Setting], tick: &Tick<'_>) -> Result<Experiment, PlanError> {
    let change = plan.resolve(settings, tick.interval)?;
    if plan.metrics.is_empty() {
        plan.metrics.push(usual_metric(tick)?);
    }
    Ok(Experiment::new(plan, change, fastrand::u64(..)))
}

/// What a client waits for, as far as this run can tell.
fn usual_metric(tick: &Tick<'_>) -> Result<ComparableFigure, PlanError> {
    let name = match &tick.load {
        Some((_, state)) if state.rate > 0.0 => "response.p50",
        Some(_) => "service.p50",
        None => "exchange.p50",
    };
    Ok(name.parse()?)
}

fn load_threads(tick: &Tick<'_>) -> u64 {
    tick.load.as_ref().map_or(0, |(_, state)| state.threads)
}

fn observation<'a>(tick: &Tick<'a>, start_us: u64, cpu_before: &Counters<CpuGroup>) -> Observation<'a> {
    let meant_us = tick.interval.as_micros() as u64;
    Observation {
        start_us,
        end_us: tick.now_us,
        // A process that was stopped meanwhile, or starved, measured that.
        is_whole: tick.now_us.saturating_sub(start_us) < meant_us + meant_us / 2,
        proxy: tick
            .proxy
            .map(|delta| SideInterval { counters: &delta.counters, latencies: &delta.latencies }),
        load: tick
            .load
            .as_ref()
            .map(|(delta, _)| SideInterval { counters: &delta.counters, latencies: &delta.latencies }),
        cpu: tick.cpu.since(cpu_before),
    }
}
