//! The limit on open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::config::{LoadStartError, system};

/// Descriptors left for the rest of the process.
const SPARE: u64 = 64;
/// Descriptors of a thread besides its connections: poll, waker and timer.
const PER_THREAD: u64 = 3;

/// Raises the soft limit on descriptors if the connections need more.
pub(crate) fn allow(connections: u32, threads: u32) -> Result<(), LoadStartError> {
    let open = std::fs::read_dir("/proc/self/fd").map_or(SPARE, |files| files.count() as u64);
    let needed = u64::from(connections) + u64::from(threads) * PER_THREAD + open + SPARE;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if let Some(limit) = maximum.filter(|maximum| *maximum < needed) {
        return Err(LoadStartError::Descriptors { connections, needed, limit });
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum })
        .map_err(|error| system("raise the limit on file descriptors")(error.into()))
}
