//! Runs load generators, ours and others, as processes, and measures their work, CPU time and memory.

pub mod nginx;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::Result;

/// The interval between samples of a generator's memory.
const MEMORY_POLL: Duration = Duration::from_millis(20);

/// Returns a command that runs a program, still to be named, on one core.
fn on_core(core: usize) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", &core.to_string()]);
    command
}

/// The result of a generator's run.
#[derive(Clone, Copy, Debug)]
pub struct GeneratorRun {
    /// The successful requests, or handshakes.
    pub done: u64,
    /// The CPU time of its process, in seconds.
    pub cpu_s: f64,
    /// Its peak memory, in KiB.
    pub peak_kib: u64,
}

impl GeneratorRun {
    /// Returns the work per CPU-second.
    pub fn per_cpu_second(&self) -> f64 {
        self.done as f64 / self.cpu_s
    }
}

/// The position of the count in a generator's output.
#[derive(Clone, Copy, Debug)]
pub enum CountPattern {
    /// The number before these words.
    Before(&'static str),
    /// The number after these words.
    After(&'static str),
    /// The value of this CSV column, rounded.
    Column(&'static str),
}

impl CountPattern {
    fn find(self, printed: &str) -> Option<u64> {
        match self {
            Self::Before(words) => {
                let (before, _) = printed.split_once(words)?;
                before.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
            }
            Self::After(words) => {
                let (_, after) = printed.split_once(words)?;
                after.trim_start().split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
            }
            Self::Column(name) => {
                let mut lines = printed.lines().map(|line| line.split(','));
                let at = lines.next()?.position(|column| column == name)?;
                lines.next()?.nth(at)?.parse().ok().map(|value: f64| value.round() as u64)
            }
        }
    }
}

/// Runs a generator to its end on the core `core`.
///
/// # Errors
/// If it cannot be started, fails, or prints no count.
pub fn run(program: &Path, arguments: &[String], core: usize, count: CountPattern) -> Result<GeneratorRun> {
    let what = || format!("{} {}", program.display(), arguments.join(" "));
    let mut command = on_core(core);
    command.arg(program).args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let before_s = children_cpu_s()?;
    let mut child = command.spawn().map_err(|error| format!("cannot start {}: {error}", what()))?;
    let stdout = child.stdout.take().ok_or("its stdout is not piped")?;
    let reader = std::thread::spawn(move || std::io::read_to_string(stdout));
    let mut peak_kib = 0;
    let status = loop {
        peak_kib = peak_memory_kib(child.id()).unwrap_or(0).max(peak_kib);
        match child.try_wait()? {
            Some(status) => break status,
            None => std::thread::sleep(MEMORY_POLL),
        }
    };
    let cpu_s = children_cpu_s()? - before_s;
    let printed = reader.join().map_err(|_| "nobody read what it printed")??;
    if !status.success() {
        return Err(format!("{} failed: {status}", what()).into());
    }
    let done =
        count.find(&printed).ok_or_else(|| format!("{} does not say what it did: {printed}", what()))?;
    Ok(GeneratorRun { done, cpu_s, peak_kib })
}

/// Returns the CPU time of all ended child processes, in seconds (proc(5), `cutime` and `cstime`, in
/// hundredths).
fn children_cpu_s() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The process name, in brackets, may contain any character.
    let (_, fields) = stat.rsplit_once(") ").ok_or("/proc/self/stat has no name")?;
    let ticks: u64 =
        fields.split(' ').skip(13).take(2).map(str::parse::<u64>).sum::<std::result::Result<u64, _>>()?;
    Ok(ticks as f64 / 100.0)
}

fn peak_memory_kib(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_found_in_the_output_of_generators() {
        assert_eq!(CountPattern::Before(" requests in").find("\n  158000 requests in 1.00s"), Some(158_000));
        assert_eq!(CountPattern::After("done,").find("5 started, 5 done, 4 succeeded"), Some(4));
        assert_eq!(CountPattern::Column("b").find("a,b\n1,1.7\n"), Some(2));
        assert_eq!(CountPattern::Column("c").find("a,b\n1,2\n"), None);
        assert_eq!(CountPattern::Before("x").find("none x"), None);
    }

    #[test]
    fn cpu_time_and_memory_of_a_child_are_measured() {
        let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo 7 done".to_owned();
        let outcome =
            run(Path::new("sh"), &["-c".to_owned(), script], 0, CountPattern::Before(" done")).unwrap();
        assert_eq!(outcome.done, 7);
        assert!(outcome.cpu_s > 0.0 && outcome.peak_kib > 0, "{outcome:?}");
    }
}
