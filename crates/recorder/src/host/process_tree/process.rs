//! One process as `/proc` shows it.

use std::fs;
use std::path::PathBuf;

use nix::time::ClockId;
use nix::unistd::Pid;

use super::TreeMemory;

/// A process as `/proc/PID/stat` shows it, see `proc_pid_stat(5)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host) struct Process {
    pub(super) pid: u32,
    pub(super) parent: u32,
    /// When it started, in ticks since the machine did. A later process of the same id has another.
    pub(super) started_ticks: u64,
    /// CPU time of the process's own threads, including ended ones.
    pub(in crate::host) own: CpuTicks,
    /// CPU time of the ended children that it has waited for, and of the children that these had waited for.
    pub(super) waited: CpuTicks,
    pub(super) threads: u64,
    pub(super) resident_pages: u64,
}

/// CPU time in ticks, usually of 10 ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::host) struct CpuTicks {
    pub(in crate::host) user: u64,
    pub(in crate::host) system: u64,
}

/// The scheduler's counts of a thread, from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThreadCounts {
    pub(super) tid: u32,
    /// How long it waited for a core; `None` if the kernel hides it.
    pub(super) delay_ns: Option<u64>,
    pub(super) switches: u64,
}

impl Process {
    /// Reads it; `None` if it has ended.
    pub(super) fn read(pid: u32) -> Option<Self> {
        Self::parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    pub(in crate::host) fn parse(pid: u32, stat: &str) -> Option<Self> {
        // The name in brackets may hold anything, brackets and blanks included.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let number = |field: usize| fields.get(field - 3)?.parse::<i64>().ok()?.try_into().ok();
        Some(Self {
            pid,
            parent: u32::try_from(number(4)?).ok()?,
            started_ticks: number(22)?,
            own: CpuTicks { user: number(14)?, system: number(15)? },
            waited: CpuTicks { user: number(16)?, system: number(17)? },
            threads: number(20)?,
            resident_pages: number(24)?,
        })
    }

    /// The CPU time of the process's own threads in nanoseconds, by its CPU-time clock, which includes ended threads.
    pub(super) fn own_cpu_ns(&self) -> u64 {
        clock_ns(self.pid).unwrap_or_else(|| self.own.ns())
    }

    /// The open descriptors; 0 if the kernel hides them.
    pub(super) fn descriptors(&self) -> u64 {
        let folder = self.path("fd");
        // Since Linux 6.2 the length of the folder is their number.
        match fs::metadata(&folder).map_or(0, |folder| folder.len()) {
            0 => fs::read_dir(folder).map_or(0, |entries| entries.count() as u64),
            count => count,
        }
    }

    /// Resident memory and proportional set size. The kernel walks all pages for these. If it hides them, resident
    /// memory comes from `stat`.
    pub(super) fn memory(&self) -> TreeMemory {
        let rollup = fs::read_to_string(self.path("smaps_rollup")).unwrap_or_default();
        let bytes = |name| {
            let kib = rollup.lines().find_map(|line| line.strip_prefix(name)?.strip_suffix("kB"))?;
            Some(kib.trim().parse::<u64>().ok()? * 1024)
        };
        TreeMemory {
            resident_bytes: bytes("Rss:").unwrap_or_else(|| self.resident_bytes()),
            pss_bytes: bytes("Pss:").unwrap_or(0),
        }
    }

    /// Resident memory by `stat`, which since Linux 6.2 is off by up to some hundred kB.
    pub(super) fn resident_bytes(&self) -> u64 {
        self.resident_pages.saturating_mul(rustix::param::page_size() as u64)
    }

    /// The scheduler's counts of its living threads.
    pub(super) fn thread_counts(&self) -> Vec<ThreadCounts> {
        let Ok(tasks) = fs::read_dir(self.path("task")) else { return Vec::new() };
        let counts = |task: std::io::Result<fs::DirEntry>| {
            let task = task.ok()?;
            let tid = task.file_name().to_str()?.parse().ok()?;
            let status = fs::read_to_string(task.path().join("status")).ok()?;
            // The time on a core, the time spent waiting for one, and how often it ran: see `proc_pid_schedstat(5)`.
            let schedstat = fs::read_to_string(task.path().join("schedstat")).ok();
            let delay_ns = schedstat.and_then(|text| text.split(' ').nth(1)?.parse().ok());
            let of =
                |name| status.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
            let switches = of("voluntary_ctxt_switches:")? + of("nonvoluntary_ctxt_switches:")?;
            Some(ThreadCounts { tid, delay_ns, switches })
        };
        tasks.filter_map(counts).collect()
    }

    fn path(&self, file: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/{file}", self.pid))
    }
}

impl CpuTicks {
    pub(super) fn ns(self) -> u64 {
        let ticks = self.user.saturating_add(self.system);
        ticks.saturating_mul(1_000_000_000) / rustix::param::clock_ticks_per_second()
    }
}

/// The CPU-time clock of a process; `None` if it has ended.
fn clock_ns(pid: u32) -> Option<u64> {
    let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(i32::try_from(pid).ok()?)).ok()?;
    let time = clock.now().ok()?;
    Some(u64::try_from(time.tv_sec()).ok()? * 1_000_000_000 + u64::try_from(time.tv_nsec()).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let stat = "7 (a) b (c) S 3 7 7 0 -1 4 1 2 3 4 10 20 30 40 20 0 5 0 99 1000 25 1";
        let expected = Process {
            pid: 7,
            parent: 3,
            started_ticks: 99,
            own: CpuTicks { user: 10, system: 20 },
            waited: CpuTicks { user: 30, system: 40 },
            threads: 5,
            resident_pages: 25,
        };
        assert_eq!(Process::parse(7, stat), Some(expected));
        assert_eq!(Process::parse(7, "7 (a) S 3"), None);
    }

    #[test]
    fn this_process_has_all_figures() {
        let process = Process::read(std::process::id()).unwrap();
        assert!(process.own_cpu_ns() > 0, "{process:?}");
        assert!(process.descriptors() >= 3 && process.threads >= 1);
        let memory = process.memory();
        assert!(memory.pss_bytes > 100_000 && memory.pss_bytes <= memory.resident_bytes, "{memory:?}");
        let counts = process.thread_counts();
        assert!(!counts.is_empty() && counts.iter().any(|thread| thread.switches > 0), "{counts:?}");
    }

    #[test]
    fn a_process_that_has_ended_keeps_the_time_of_its_ticks() {
        let ended = Process { pid: u32::MAX - 1, ..Process::read(std::process::id()).unwrap() };
        assert_eq!(ended.own_cpu_ns(), ended.own.ns());
        assert_eq!((ended.descriptors(), ended.memory().pss_bytes), (0, 0));
        assert_eq!(
            (ended.memory().resident_bytes, ended.thread_counts()),
            (ended.resident_bytes(), Vec::new())
        );
    }
}
