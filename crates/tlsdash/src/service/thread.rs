//! Threads of the program.

use std::thread::JoinHandle;

use anyhow::Context;

/// Starts a named thread: CPU time is accounted by the beginning of the name.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> anyhow::Result<JoinHandle<T>> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .with_context(|| format!("cannot start the thread {name}"))
}
