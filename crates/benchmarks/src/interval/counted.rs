//! Counts the instructions of a simulated interval with callgrind.
//!
//! A benchmark runs itself again under callgrind; its `main` calls [`run_if_asked`] for that.

use std::process::Command;

use super::{IntervalTraffic, Simulation};
use crate::callgrind::{self, Thread};
use crate::{Result, argument};

/// The number of intervals over which the count is averaged.
const INTERVALS: u64 = 10;

/// The instructions of one interval, by step.
#[derive(Clone, Copy, Debug)]
pub struct IntervalCost {
    /// Collecting the worker's counts.
    pub gather: f64,
    /// Making, encoding and writing records.
    pub publish: f64,
    /// Finding and decoding records.
    pub follow: f64,
    /// Folding records into the model.
    pub fold: f64,
    /// The records made.
    pub records: f64,
}

impl IntervalCost {
    /// Counts an interval with this traffic. The records go through a journal file or, without one, straight
    /// to the model.
    ///
    /// # Errors
    /// If valgrind is not installed, or the simulation fails.
    pub fn count(traffic: &IntervalTraffic, with_journal: bool) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let out = folder.path().join("callgrind");
        let mut command = callgrind::command(&out)?;
        command.args(["--zero-before=*warmed_up*".as_ref(), std::env::current_exe()?.as_os_str()]);
        command.args(["--simulate", &traffic.to_argument()]);
        command.args(["--journal", if with_journal { "on" } else { "off" }]);
        let printed = run_for_output(&mut command)?;
        let records: u64 =
            printed.trim().parse().map_err(|_| format!("the simulation printed {printed:?}"))?;
        let threads = Thread::read_all(&out)?;
        let [thread] = threads.as_slice() else { return Err("the simulation has one thread".into()) };
        let step = |name: &str| thread.within(name) as f64 / INTERVALS as f64;
        Ok(Self {
            gather: step("::gather_interval"),
            publish: step("::publish_interval"),
            follow: step("::follow_interval"),
            fold: step("::fold_interval"),
            records: records as f64 / INTERVALS as f64,
        })
    }

    /// Returns the instructions of all steps.
    pub fn total(&self) -> f64 {
        self.gather + self.publish + self.follow + self.fold
    }
}

/// Runs the simulation if this process runs under callgrind. `main` must then print the returned number of
/// records, and nothing else.
///
/// # Errors
/// If the arguments are not those of [`IntervalCost::count`], or a record is not read back.
pub fn run_if_asked() -> Result<Option<u64>> {
    let Some(traffic) = argument("simulate") else { return Ok(None) };
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("simulated.journal");
    let journal = (argument("journal").as_deref() == Some("on")).then_some(path.as_path());
    let mut run = Simulation::start(IntervalTraffic::from_argument(&traffic)?, journal)?;
    run.warm_up()?;
    warmed_up();
    let mut records = 0;
    for _ in 0..INTERVALS {
        records += run.interval()?;
    }
    if run.read() != run.made() {
        return Err(format!("{} of {} records were read", run.read(), run.made()).into());
    }
    Ok(Some(records))
}

/// Callgrind counts from here.
#[inline(never)]
fn warmed_up() {
    std::hint::black_box(());
}

fn run_for_output(command: &mut Command) -> Result<String> {
    let done = command.output()?;
    if !done.status.success() {
        return Err(format!("{command:?} failed: {}", String::from_utf8_lossy(&done.stderr)).into());
    }
    Ok(String::from_utf8(done.stdout)?)
}
