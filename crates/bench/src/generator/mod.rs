//! Load generators as processes: ours and others, what they did, and the CPU time and memory that they took for it.

pub mod nginx;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::Result;

/// How often the memory of a generator is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// A command that runs a program on one core, which is still to be named.
fn on_core(core: usize) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", &core.to_string()]);
    command
}

/// What a run of a generator came to.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Requests that succeeded, or handshakes.
    pub done: u64,
    /// CPU time of its process, in seconds.
    pub cpu_s: f64,
    /// The most memory that it had, in KiB.
    pub peak_kib: u64,
}

impl Outcome {
    /// Work per CPU-second.
    pub fn per_cpu_second(&self) -> f64 {
        self.done as f64 / self.cpu_s
    }
}

/// Where a generator's count of what it did stands in what it prints.
#[derive(Clone, Copy, Debug)]
pub enum Count {
    /// The number right before these words.
    Before(&'static str),
    /// The number right after these words.
    After(&'static str),
    /// The value of this column of CSV, rounded.
    Column(&'static str),
}

impl Count {
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
/// When it cannot be started, fails, or does not say what it did.
pub fn run(program: &Path, arguments: &[String], core: usize, count: Count) -> Result<Outcome> {
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
            None => std::thread::sleep(LOOK),
        }
    };
    let cpu_s = children_cpu_s()? - before_s;
    let printed = reader.join().map_err(|_| "nobody read what it printed")??;
    if !status.success() {
        return Err(format!("{} failed: {status}", what()).into());
    }
    let done =
        count.find(&printed).ok_or_else(|| format!("{} does not say what it did: {printed}", what()))?;
    Ok(Outcome { done, cpu_s, peak_kib })
}

/// CPU time of all child processes that have ended, in seconds (proc(5), `cutime` and `cstime`, in hundredths).
fn children_cpu_s() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The name of the process, in brackets, may hold anything.
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
    fn counts_are_found_in_what_generators_print() {
        assert_eq!(Count::Before(" requests in").find("\n  158000 requests in 1.00s"), Some(158_000));
        assert_eq!(Count::After("done,").find("5 started, 5 done, 4 succeeded"), Some(4));
        assert_eq!(Count::Column("b").find("a,b\n1,1.7\n"), Some(2));
        assert_eq!(Count::Column("c").find("a,b\n1,2\n"), None);
        assert_eq!(Count::Before("x").find("none x"), None);
    }

    #[test]
    fn the_time_of_a_child_and_its_memory_are_counted() {
        let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo 7 done".to_owned();
        let outcome = run(Path::new("sh"), &["-c".to_owned(), script], 0, Count::Before(" done")).unwrap();
        assert_eq!(outcome.done, 7);
        assert!(outcome.cpu_s > 0.0 && outcome.peak_kib > 0, "{outcome:?}");
    }
}
