//! Shared parts of the benchmarks.
//!
//! | module | purpose |
//! |---|---|
//! | [`terminator`] | the program under measurement as a process: on one core, or under callgrind |
//! | [`load`] | the load and the upstream for it |
//! | [`generator`] | load generators as processes, ours and others: work and cost; a server for them |
//! | [`callgrind`] | instruction counts by thread and by function, from callgrind's output |
//! | [`budget`] | the committed instruction budgets |
//! | [`interval`] | the work of watching in one interval, without a clock |
//! | [`test_bed`] | a terminator of the templates of `tlsdash bench`, with an upstream |
//! | [`burst`] | established connections of a terminator in a burst of handshakes |
//! | [`frame`] | a dashboard with ten thousand clients, and what it needs for a frame |
//! | [`log_lines`] | lines of other terminators' logs, and what `observe` needs for each |
//! | [`packets`] | captured connections, and what `wire` needs for each |
//! | [`spread`] | made-up latencies |
//!
//! The benchmarks themselves are in `benches/`; `docs/measurements.md` has their results.

#![forbid(unsafe_code)]

use std::path::Path;

use journal::{FileOptions, FileWriter};
use recorder::publish::RecordWriter;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

pub mod budget;
pub mod burst;
pub mod callgrind;
pub mod frame;
pub mod generator;
pub mod interval;
pub mod load;
pub mod log_lines;
pub mod packets;
pub mod spread;
pub mod terminator;
pub mod test_bed;
pub mod traffic;

/// A benchmark ends with its first error, and prints it.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The size above which the program rotates its journal files.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Creates a journal file of records with the options of the program.
///
/// # Errors
/// If the file cannot be created.
pub fn create_records(path: &Path) -> Result<RecordWriter> {
    let options = FileOptions { size_max: FILE_BYTES_MAX, ..FileOptions::default() };
    Ok(RecordWriter::new(FileWriter::create(path, options)?))
}

/// Returns the value after `--name` among a benchmark's arguments.
pub fn argument(name: &str) -> Option<String> {
    let mut arguments = std::env::args().skip(1);
    arguments.find(|argument| argument.strip_prefix("--") == Some(name))?;
    arguments.next()
}

/// Keeps this process, and what it starts, on the first core that it may use. Load, program and upstream then
/// take turns in one order, so that a count hardly depends on what else the machine does.
///
/// # Errors
/// If there is no core, or the kernel refuses.
pub fn stay_on_one_core() -> Result<()> {
    let mine = sched_getaffinity(None)?;
    let mut first = CpuSet::new();
    first.set((0..CpuSet::MAX_CPU).find(|&core| mine.is_set(core)).ok_or("there is no core to run on")?);
    Ok(sched_setaffinity(None, &first)?)
}

/// Moves this process to the last core that it may use, and returns the first one for the measured program.
///
/// # Errors
/// If there is no core, or the kernel refuses.
pub fn move_to_last_core() -> Result<usize> {
    let mine = sched_getaffinity(None)?;
    let mut cores = (0..CpuSet::MAX_CPU).filter(|&core| mine.is_set(core));
    let first = cores.next().ok_or("there is no core to run on")?;
    let mut last = CpuSet::new();
    last.set(cores.next_back().unwrap_or(first));
    sched_setaffinity(None, &last)?;
    Ok(first)
}
