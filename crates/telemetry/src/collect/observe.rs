//! What another process and all its descendants use, read from `/proc`.

use std::collections::HashMap;
use std::fs;
use std::io;

use crate::record::HostRecord;

/// Most processes of a tree; more are not counted.
const PROCESSES_MAX: usize = 10_000;

/// Observes a process tree: its root, and whatever descends from it at each reading.
#[derive(Debug)]
pub struct ProcessTree {
    root: u32,
    /// CPU time at the first reading, in microseconds.
    before_us: u64,
    used_us: u64,
    threads_max: u64,
    memory_max_bytes: u64,
}

/// One process as `/proc/PID/stat` tells it, see `proc_pid_stat(5)`.
#[derive(Clone, Copy, Debug)]
struct Process {
    parent: u32,
    /// User and system time of its own and of the children that it has waited for.
    cpu_ticks: u64,
    threads: u64,
    resident_pages: u64,
}

impl ProcessTree {
    /// Begins to observe.
    ///
    /// # Errors
    /// If there is no such process, or `/proc` does not tell of it.
    pub fn new(root: u32) -> io::Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{root}/stat"))?;
        parse(&stat)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "its stat is not understood"))?;
        let mut tree = Self { root, before_us: 0, used_us: 0, threads_max: 0, memory_max_bytes: 0 };
        tree.before_us = cpu_us(&tree.members());
        Ok(tree)
    }

    /// Takes a reading into a record. What has ended keeps the figures of its last reading.
    pub fn sample(&mut self, into: &mut HostRecord) {
        let members = self.members();
        // A child that nobody has waited for yet takes its time with it; it must not run backwards.
        self.used_us = self.used_us.max(cpu_us(&members).saturating_sub(self.before_us));
        let threads = members.iter().map(|process| process.threads).fold(0, u64::saturating_add);
        let pages = members.iter().map(|process| process.resident_pages).fold(0, u64::saturating_add);
        let memory_bytes = pages.saturating_mul(rustix::param::page_size() as u64);
        self.threads_max = self.threads_max.max(threads);
        self.memory_max_bytes = self.memory_max_bytes.max(memory_bytes);
        into.observed_pid = self.root.into();
        into.observed_cpu_us = self.used_us;
        into.observed_threads = threads;
        into.observed_threads_max = self.threads_max;
        into.observed_memory_bytes = memory_bytes;
        into.observed_memory_max_bytes = self.memory_max_bytes;
    }

    /// The root and its descendants, as far as they live.
    fn members(&self) -> Vec<Process> {
        let all = processes();
        let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
        for (pid, process) in &all {
            children.entry(process.parent).or_default().push(*pid);
        }
        let mut pids = vec![self.root];
        let mut at = 0;
        while at < pids.len() && pids.len() < PROCESSES_MAX {
            pids.extend(children.remove(&pids[at]).unwrap_or_default());
            at += 1;
        }
        pids.iter().filter_map(|pid| all.get(pid)).copied().collect()
    }
}

fn cpu_us(members: &[Process]) -> u64 {
    let ticks = members.iter().map(|process| process.cpu_ticks).fold(0, u64::saturating_add);
    ticks.saturating_mul(1_000_000) / rustix::param::clock_ticks_per_second()
}

fn processes() -> HashMap<u32, Process> {
    let Ok(entries) = fs::read_dir("/proc") else { return HashMap::new() };
    let process = |entry: io::Result<fs::DirEntry>| {
        let entry = entry.ok()?;
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        Some((pid, parse(&fs::read_to_string(entry.path().join("stat")).ok()?)?))
    };
    entries.filter_map(process).collect()
}

fn parse(stat: &str) -> Option<Process> {
    // The name in brackets may hold anything, brackets and blanks included.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<i64>().ok()?.try_into().ok();
    let ticks = (14..=17).map(number).sum::<Option<u64>>()?;
    Some(Process {
        parent: u32::try_from(number(4)?).ok()?,
        cpu_ticks: ticks,
        threads: number(20)?,
        resident_pages: number(24)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    #[test]
    fn a_tree_counts_its_descendants_also_after_they_ended() {
        let busy = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done";
        let script = format!("sh -c '{busy}'; echo done; read _");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = shell.spawn().unwrap();
        let mut tree = ProcessTree::new(child.id()).unwrap();
        let mut record = HostRecord::default();
        let deadline = Instant::now() + Duration::from_secs(20);
        while record.observed_cpu_us < 50_000 {
            assert!(Instant::now() < deadline, "{record:?}");
            tree.sample(&mut record);
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(record.observed_memory_max_bytes > 100_000, "{record:?}");
        assert!(record.observed_threads_max >= 1);
        drop(child.stdin.take());
        child.wait().unwrap();
        let used_us = record.observed_cpu_us;
        tree.sample(&mut record);
        assert!(record.observed_cpu_us >= used_us, "it never runs backwards");
        assert_eq!((record.observed_threads, record.observed_memory_bytes), (0, 0));
    }

    #[test]
    fn what_is_not_there_is_refused() {
        assert!(ProcessTree::new(u32::MAX - 1).is_err());
    }

    #[test]
    fn a_name_may_hold_anything() {
        let stat = "7 (a) b (c) S 3 7 7 0 -1 4 1 2 3 4 10 20 30 40 20 0 5 0 99 1000 25 1";
        let process = parse(stat).unwrap();
        assert_eq!(
            (process.parent, process.cpu_ticks, process.threads, process.resident_pages),
            (3, 100, 5, 25)
        );
    }
}
