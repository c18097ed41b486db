//! Finds rates: the capacity of a target, and a rate that all targets of a case sustain.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use super::search::{BACK_OFF, Highest, SUSTAINED_SHARE, highest, lower_until};
use super::{CellMeasurement, CellRunner};
use crate::run::CommonRate;
use crate::run::error::LoadFailure;
use crate::run::load::LoadRun;
use crate::run::started::StartedTarget;
use crate::scenario::{BenchCase, BenchTarget, LatencyBound};

/// The length of a try of a rate, with its warm-up.
const TRY: Duration = Duration::from_secs(2);
const TRY_WARMUP: Duration = Duration::from_millis(500);
/// The most tries of a search for a capacity.
const TRIES_MAX: u32 = 8;
/// By how much the found rate is lowered if it does not hold for the length of a case, and how often.
const CAPACITY_BACK_OFF: f64 = 0.95;
const CAPACITY_BACK_OFFS: u32 = 3;
/// How often a rate that all should sustain is lowered.
const BACK_OFFS: u32 = 4;

impl CellRunner<'_> {
    /// Finds the most requests per second within the bound, and measures the target there.
    pub(super) fn capacity(
        &mut self,
        target: &BenchTarget,
        started: &mut StartedTarget,
        case: &BenchCase,
        bound: LatencyBound,
        journal: &Path,
    ) -> Result<CellMeasurement, LoadFailure> {
        let key = (target.name.clone(), case.name.clone());
        let start = match self.capacities.get(&key) {
            Some(rate) => *rate,
            None => self.closed_loop_rate(target, started, case)?,
        };
        let found = highest(start, TRIES_MAX, |rate| {
            let run = self.try_out(target, started, &at_rate(case, round_rate(rate)))?;
            Ok::<_, LoadFailure>(holds(&run, bound))
        })?;
        let limit_ms = bound.limit_us as f64 / 1e3;
        let Highest { mut rate, mut is_lower_bound } = found.ok_or_else(|| {
            LoadFailure::Failed(format!(
                "no rate keeps p{} below {limit_ms} ms, not even {start:.0}/s",
                bound.percentile
            ))
        })?;
        rate = round_rate(rate);
        let mut run = self.generator.run(target, started, &at_rate(case, rate), journal)?;
        for _ in 0..CAPACITY_BACK_OFFS {
            if holds(&run, bound) {
                break;
            }
            rate = round_rate(rate * CAPACITY_BACK_OFF);
            is_lower_bound = false;
            remove(journal);
            run = self.generator.run(target, started, &at_rate(case, rate), journal)?;
        }
        self.capacities.insert(key, rate);
        Ok(CellMeasurement { run, rate: Some(rate), is_lower_bound })
    }

    /// Finds a rate for a cost case that all its targets sustain.
    pub(in crate::run) fn common_rate(
        &mut self,
        case: &BenchCase,
        mut note: impl FnMut(&str),
    ) -> Result<CommonRate, LoadFailure> {
        let mut usable: Vec<(f64, &BenchTarget)> = Vec::new();
        let mut failure = "it has no targets".to_owned();
        for target in self.scenario.targets.iter().filter(|target| case.is_for(target)) {
            note(&target.name);
            let found = self
                .with_started(target, case, |runner, started| runner.closed_loop_rate(target, started, case));
            match found {
                Ok(rate) => usable.push((rate, target)),
                Err(LoadFailure::Interrupted) => return Err(LoadFailure::Interrupted),
                Err(LoadFailure::Failed(reason)) => failure = format!("{}: {reason}", target.name),
            }
        }
        let slowest = usable.iter().min_by(|(one, _), (other, _)| one.total_cmp(other));
        let Some(&(capacity, slowest)) = slowest else { return Err(LoadFailure::Failed(failure)) };
        let mut origin = format!(
            "{:.0} % of the {capacity:.0}/s of {}, the slowest in a closed loop",
            SUSTAINED_SHARE * 100.0,
            slowest.name
        );
        let mut rate = round_rate(capacity * SUSTAINED_SHARE);
        for (_, target) in usable {
            note(&target.name);
            let (sustained, is_held) = self.sustained_rate(target, case, rate)?;
            if !is_held || sustained < rate {
                let did = if is_held { "sustained" } else { "did not sustain" };
                let _ = write!(origin, ", lowered to {sustained:.0}/s, which {} {did}", target.name);
            }
            rate = sustained;
        }
        Ok(CommonRate { rate, origin })
    }

    /// Lowers a rate until a target sustains it. The second value is false if it does not sustain the last rate either.
    fn sustained_rate(
        &mut self,
        target: &BenchTarget,
        case: &BenchCase,
        rate: f64,
    ) -> Result<(f64, bool), LoadFailure> {
        let (rate, is_held) = lower_until(rate, BACK_OFF, BACK_OFFS, |rate| {
            let run = self.with_started(target, case, |runner, started| {
                runner.try_out(target, started, &at_rate(case, round_rate(rate)))
            });
            match run {
                Ok(run) => Ok(run.recording.is_rate_achieved),
                // The target's cells will have the reason.
                Err(LoadFailure::Failed(_)) => Ok(true),
                Err(LoadFailure::Interrupted) => Err(LoadFailure::Interrupted),
            }
        })?;
        Ok((round_rate(rate), is_held))
    }

    fn with_started<T>(
        &mut self,
        target: &BenchTarget,
        case: &BenchCase,
        measure: impl FnOnce(&mut Self, &mut StartedTarget) -> Result<T, LoadFailure>,
    ) -> Result<T, LoadFailure> {
        let mut started = self.start(target)?;
        self.check(target, &mut started, case)?;
        measure(self, &mut started)
    }

    /// The requests per second that a target answers in a closed loop.
    fn closed_loop_rate(
        &self,
        target: &BenchTarget,
        started: &mut StartedTarget,
        case: &BenchCase,
    ) -> Result<f64, LoadFailure> {
        let mut closed = case.clone();
        closed.flags.retain(|flag| !flag.starts_with("--rate=") && !flag.starts_with("--arrivals="));
        let run = self.try_out(target, started, &closed)?;
        let rate = run.recording.figure("rate.achieved");
        if rate > 0.0 { Ok(rate) } else { Err(LoadFailure::Failed("no request was answered".to_owned())) }
    }

    /// Runs a case for a short time, without keeping its journal.
    fn try_out(
        &self,
        target: &BenchTarget,
        started: &mut StartedTarget,
        case: &BenchCase,
    ) -> Result<LoadRun, LoadFailure> {
        let journal = self.generator.setup.scratch("try.journal");
        let length = case.duration.map_or(TRY, |duration| duration.min(TRY));
        let short = BenchCase { duration: Some(length), warmup: TRY_WARMUP.min(length / 4), ..case.clone() };
        let run = self.generator.run(target, started, &short, &journal);
        remove(&journal);
        run
    }
}

/// True if a rate was achieved within the bound.
fn holds(run: &LoadRun, bound: LatencyBound) -> bool {
    let recording = &run.recording;
    let is_fast = recording.response_at(bound.percentile).is_some_and(|us| us < bound.limit_us);
    is_fast && recording.is_rate_achieved && recording.figure("requests.failed") == 0.0
}

/// The case as an open loop of this rate.
pub(super) fn at_rate(case: &BenchCase, rate: f64) -> BenchCase {
    let mut case = case.clone();
    case.flags.retain(|flag| !flag.starts_with("--rate="));
    case.flags.push(format!("--rate={rate}"));
    case
}

/// A rate with three significant digits; they are enough, and can be read.
fn round_rate(rate: f64) -> f64 {
    let step = 10_f64.powf((rate.max(1e-3).log10() - 2.0).floor());
    // Steps below 1 are rounded by their inverse, which is a whole number.
    if step >= 1.0 {
        (rate / step).round() * step
    } else {
        (rate * (1.0 / step).round()).round() / (1.0 / step).round()
    }
}

/// Removes a journal that is not kept; the next one would not replace it.
fn remove(journal: &Path) {
    // It may not have been made.
    let _ = std::fs::remove_file(journal);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_digits() {
        for (rate, rounded) in [(1_234.5, 1_230.0), (99_990.0, 100_000.0), (8.7654, 8.77), (0.0123, 0.0123)] {
            assert!((round_rate(rate) - rounded).abs() < 1e-9, "{rate}: {}", round_rate(rate));
        }
    }
}
