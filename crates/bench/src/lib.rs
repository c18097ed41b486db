//! What the benchmarks share.
//!
//! | module | its one job |
//! |---|---|
//! | [`terminator`] | the program under measurement, a process of its own: natively on one core, or under callgrind |
//! | [`load`] | the load and the upstream that it is put under |
//! | [`generator`] | a load generator as a process: ours or another, what it did, at what cost, and a server for them |
//! | [`callgrind`] | instructions by thread, and by function, from what callgrind has written |
//! | [`budget`] | the committed instruction budgets |
//! | [`interval`] | what watching does in an interval, alone and without a clock |
//! | [`peers`] | other terminators beside it, set up alike: what they do in a CPU-second, and in a burst of handshakes |
//! | [`sink`], [`spread`] | a journal file that takes records, and latencies that are made up |
//! | [`statistics`] | the ratio of paired measurements, with its interval |
//!
//! The benchmarks themselves are in `benches/`; `docs/performance.md` has their results.

#![forbid(unsafe_code)]

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

pub mod budget;
pub mod callgrind;
pub mod generator;
pub mod interval;
pub mod load;
pub mod peers;
pub mod sink;
pub mod spread;
pub mod statistics;
pub mod terminator;

/// A benchmark ends with the first thing that goes wrong, and says what it was.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The value behind `--name` among a benchmark's arguments.
pub fn argument(name: &str) -> Option<String> {
    let mut arguments = std::env::args().skip(1);
    arguments.find(|argument| argument.strip_prefix("--") == Some(name))?;
    arguments.next()
}

/// Leaves the first core that this process may use to what is measured, and keeps to the last; tells the first.
///
/// # Errors
/// When there is no core, or the kernel refuses.
pub fn take_the_last_core() -> Result<usize> {
    let mine = sched_getaffinity(None)?;
    let mut cores = (0..CpuSet::MAX_CPU).filter(|&core| mine.is_set(core));
    let first = cores.next().ok_or("there is no core to run on")?;
    let mut last = CpuSet::new();
    last.set(cores.next_back().unwrap_or(first));
    sched_setaffinity(None, &last)?;
    Ok(first)
}
