//! The experiments of a run: the running one, and its observations of each interval.

use std::time::Duration;

use experiment::{
    ComparableFigure, ExperimentPlan, ExperimentPlanError, ExperimentRun, Observation, SideInterval, Step,
};
use records::delta::{LoadDelta, LoadState, ProxyDelta};
use records::kinds::ExperimentRecord;
use records::metrics::{Counters, CpuGroup};
use records::setting::Setting;

use crate::cli::configuration::setting_infos;

/// An experiment that starts with the run.
#[derive(Debug)]
pub(crate) struct ExperimentRequest {
    pub(crate) plan: ExperimentPlan,
    /// Whether the run ends with it.
    pub(crate) ends_the_run: bool,
}

/// Checks a plan before it begins, and returns in words how long it takes and what it can show.
///
/// # Errors
/// With the accepted form of a plan.
pub(crate) fn check_plan(text: &str, settings: &[Setting], interval: Duration) -> Result<String, String> {
    let plan: ExperimentPlan = text.parse().map_err(|error: ExperimentPlanError| error.to_string())?;
    let change = plan.resolve(settings, setting_infos::all(), interval).map_err(|error| error.to_string())?;
    let has_proxy = settings.iter().any(|setting| setting.name.starts_with("proxy."));
    let metric = handshake_metric(&change.setting).filter(|_| has_proxy && plan.metrics.is_empty());
    let metric = metric.map_or_else(String::new, |metric| format!("; judged by {metric}"));
    Ok(format!("{}{metric}", plan.outlook()))
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ExperimentError {
    /// Another one is running.
    #[error("an experiment is in progress; end it first")]
    UnderWay,
    /// The run cannot make this comparison.
    #[error(transparent)]
    Plan(#[from] ExperimentPlanError),
}

/// An interval that has ended.
#[derive(Debug)]
pub(crate) struct Tick<'a> {
    pub(crate) now_us: u64,
    /// Its nominal length.
    pub(crate) interval: Duration,
    pub(crate) proxy: Option<&'a ProxyDelta>,
    pub(crate) load: Option<(&'a LoadDelta, LoadState)>,
    /// CPU time of the run, in microseconds.
    pub(crate) cpu: Counters<CpuGroup>,
}

/// One experiment at a time.
#[derive(Debug, Default)]
pub(crate) struct ExperimentRunner {
    wanted: Option<ExperimentPlan>,
    running: Option<ExperimentRun>,
    ends_the_run: bool,
    /// Number of experiments started.
    number: u64,
    /// End of the last interval, and the CPU time then.
    last: Option<(u64, Counters<CpuGroup>)>,
}

impl ExperimentRunner {
    pub(crate) fn new(wanted: Option<ExperimentRequest>) -> Self {
        let ends_the_run = wanted.as_ref().is_some_and(|wanted| wanted.ends_the_run);
        Self { wanted: wanted.map(|wanted| wanted.plan), ends_the_run, ..Self::default() }
    }

    /// What the requested experiment can show; `None` if none is requested.
    pub(crate) fn outlook(&self) -> Option<String> {
        self.wanted.as_ref().map(ExperimentPlan::outlook)
    }

    /// Requests an experiment, which starts with the next interval.
    pub(crate) fn want(&mut self, plan: ExperimentPlan) {
        self.wanted = Some(plan);
    }

    /// Adds an interval and returns the steps to carry out.
    ///
    /// # Errors
    /// When the requested experiment is not possible; the request is dropped.
    pub(crate) fn tick(
        &mut self,
        tick: &Tick<'_>,
        settings: &[Setting],
    ) -> Result<Vec<Step>, ExperimentError> {
        let last = self.last.replace((tick.now_us, tick.cpu));
        if let Some(running) = self.under_way() {
            let Some((start_us, cpu)) = last else { return Ok(Vec::new()) };
            let http = tick.proxy.and_then(|delta| delta.http.as_ref());
            let http = http.map(|http| (&http.counters, http.latencies()));
            let mut observation = observation(tick, start_us, &cpu);
            observation.http =
                http.as_ref().map(|(counters, latencies)| SideInterval { counters, latencies });
            running.observe(&observation, load_threads(tick));
            let steps = running.advance(tick.now_us);
            return match self.wanted.take() {
                // The running experiment's steps come first. The request can be repeated.
                Some(_) if steps.is_empty() => Err(ExperimentError::UnderWay),
                Some(_) | None => Ok(steps),
            };
        }
        let Some(plan) = self.wanted.take() else { return Ok(Vec::new()) };
        let mut begun = begin(plan, settings, tick)?;
        let steps = begun.begin(tick.now_us);
        self.running = Some(begun);
        self.number += 1;
        Ok(steps)
    }

    /// Notes a change that disturbs the running experiment.
    pub(crate) fn disturb(&mut self, what: &str) {
        if let Some(running) = self.under_way() {
            running.disturb(what);
        }
    }

    /// Stops the running experiment early, or drops the requested one, and returns the steps to carry out.
    pub(crate) fn stop(&mut self) -> Vec<Step> {
        self.wanted = None;
        self.under_way().map(ExperimentRun::stop).unwrap_or_default()
    }

    /// Whether the run ends now, because its experiment has ended.
    pub(crate) fn ends_the_run(&self) -> bool {
        self.ends_the_run && self.running.as_ref().is_some_and(ExperimentRun::is_over)
    }

    /// The setting under comparison; empty before the first experiment.
    pub(crate) fn setting(&self) -> &str {
        self.running.as_ref().map_or("", |running| &running.change().setting)
    }

    pub(crate) fn records(&self, step: &Step) -> Vec<ExperimentRecord> {
        self.running.as_ref().map(|running| running.records(self.number, step)).unwrap_or_default()
    }

    pub(crate) fn is_under_way(&self) -> bool {
        self.running.as_ref().is_some_and(|running| !running.is_over())
    }

    /// Whether an experiment runs, or starts with the next interval.
    pub(crate) fn is_wanted_or_under_way(&self) -> bool {
        self.wanted.is_some() || self.is_under_way()
    }

    fn under_way(&mut self) -> Option<&mut ExperimentRun> {
        self.running.as_mut().filter(|running| !running.is_over())
    }
}

fn begin(
    mut plan: ExperimentPlan,
    settings: &[Setting],
    tick: &Tick<'_>,
) -> Result<ExperimentRun, ExperimentPlanError> {
    let change = plan.resolve(settings, setting_infos::all(), tick.interval)?;
    if plan.metrics.is_empty() {
        plan.metrics.push(usual_metric(tick, &change.setting)?);
    }
    Ok(ExperimentRun::new(plan, change, fastrand::u64(..)))
}

/// The figure that the setting acts on, else the latency of a client, as far as this run has it.
fn usual_metric(tick: &Tick<'_>, setting: &str) -> Result<ComparableFigure, ExperimentPlanError> {
    if let Some(name) = handshake_metric(setting).filter(|_| tick.proxy.is_some()) {
        return Ok(name.parse()?);
    }
    let name = match &tick.load {
        Some((_, state)) if state.rate > 0.0 => "response.p50",
        Some(_) => "service.p50",
        None if tick.proxy.is_some_and(|delta| delta.http.is_some()) => "http.upstream.p50",
        None => "exchange.p50",
    };
    Ok(name.parse()?)
}

/// The figure that a setting of handshakes acts on; most of a client's latency contains no handshake.
fn handshake_metric(setting: &str) -> Option<&'static str> {
    let concerns = |words: &[&str]| words.iter().any(|word| setting.contains(word));
    if concerns(&["ticket", "session"]) {
        return Some("resumed.ratio");
    }
    concerns(&["resum", "tls-min", "tls-max", "cipher", "group", "certificate", "client-auth"])
        .then_some("cpu.per_handshake")
}

fn load_threads(tick: &Tick<'_>) -> u64 {
    tick.load.as_ref().map_or(0, |(_, state)| state.threads)
}

/// The observation of an interval, without counts of HTTP.
fn observation<'a>(tick: &Tick<'a>, start_us: u64, cpu_before: &Counters<CpuGroup>) -> Observation<'a> {
    let meant_us = tick.interval.as_micros() as u64;
    Observation {
        start_us,
        end_us: tick.now_us,
        // A longer interval measured that the process was stopped or starved.
        is_whole: tick.now_us.saturating_sub(start_us) < meant_us + meant_us / 2,
        proxy: tick
            .proxy
            .map(|delta| SideInterval { counters: &delta.counters, latencies: &delta.latencies }),
        tls: tick
            .proxy
            .map(|delta| SideInterval { counters: &delta.tls.counters, latencies: &delta.tls.latencies }),
        http: None,
        load: tick
            .load
            .as_ref()
            .map(|(delta, _)| SideInterval { counters: &delta.counters, latencies: &delta.latencies }),
        cpu: tick.cpu.since(cpu_before),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_of_handshakes_is_judged_by_what_it_acts_on() {
        for (setting, metric) in [
            ("proxy.tickets", Some("resumed.ratio")),
            ("proxy.ticket-keys", Some("resumed.ratio")),
            ("proxy.resumption", Some("cpu.per_handshake")),
            ("load.resume", Some("cpu.per_handshake")),
            ("proxy.groups", Some("cpu.per_handshake")),
            ("proxy.tls-min", Some("cpu.per_handshake")),
            ("proxy.certificate", Some("cpu.per_handshake")),
            ("proxy.tls-headers", None),
            ("proxy.workers", None),
            ("load.rate", None),
        ] {
            assert_eq!(handshake_metric(setting), metric, "{setting}");
            assert!(metric.is_none_or(|metric| metric.parse::<ComparableFigure>().is_ok()));
        }
    }
}
