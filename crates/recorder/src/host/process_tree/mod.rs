//! Resource usage of process trees, from `/proc`. `docs/bench.md` names the file behind each figure.

mod process;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::Path;

pub(super) use self::process::Process;
use super::processes::pids;

/// Most processes of a tree; more are not counted.
const PROCESSES_MAX: usize = 10_000;
/// The words of a process's title that identify it; its command line may follow.
const TITLE_WORDS: usize = 3;
/// How often a tree is listed at most until two listings agree.
const LISTINGS_MAX: usize = 4;

/// Process trees: their roots, and the descendants at each reading.
#[derive(Clone, Debug)]
pub struct ProcessTree {
    roots: Vec<Process>,
    counts_roots: bool,
}

/// Resources of the processes of a tree. An ended process counts with the CPU time that its parent records, if the
/// parent is in the tree and has waited for it.
#[derive(Clone, Debug)]
pub struct TreeReading {
    pub cpu_ns: u64,
    /// CPU time in user mode, in ticks, usually of 10 ms.
    pub user_ticks: u64,
    /// CPU time in the kernel, in ticks.
    pub system_ticks: u64,
    /// The processes whose memory, threads and descriptors count.
    counted: Vec<Process>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProcessReading {
    pub(crate) pid: u32,
    /// When it started. A later process of the same id has another.
    pub(crate) started_ticks: u64,
    /// CPU time of its own threads.
    pub(crate) cpu_ns: u64,
}

/// The memory of the processes of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeMemory {
    /// Resident memory; pages that processes share count for each.
    pub resident_bytes: u64,
    /// The proportional set size; 0 if the kernel hides it.
    pub pss_bytes: u64,
}

/// How long the threads of a tree waited for a core, and how often they were switched. Ended threads count up to their
/// last reading.
#[derive(Clone, Debug, Default)]
pub struct ThreadSchedule {
    /// Delay in nanoseconds and context switches at the last update, by the thread's id.
    living: HashMap<u32, (u64, u64)>,
    ended_delay_ns: u64,
    ended_switches: u64,
    shows_delay: bool,
}

impl ProcessTree {
    /// The trees of these processes. A process that belongs to two of them counts once.
    ///
    /// # Errors
    /// If one of them does not exist, or `/proc` cannot be read.
    pub fn new(roots: &[u32]) -> io::Result<Self> {
        let root = |&pid: &u32| {
            fs::read_to_string(format!("/proc/{pid}/stat")).and_then(|stat| {
                let invalid = || io::Error::new(io::ErrorKind::InvalidData, "its stat is not understood");
                Process::parse(pid, &stat).ok_or_else(invalid)
            })
        };
        Ok(Self { roots: roots.iter().map(root).collect::<Result<_, _>>()?, counts_roots: true })
    }

    /// The descendants of a process without the process itself, such as a supervisor's. Ended descendants count if the
    /// process has waited for them.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn of_descendants(root: u32) -> io::Result<Self> {
        Ok(Self { counts_roots: false, ..Self::new(&[root])? })
    }

    /// The ids of the processes that live, roots first unless they do not count.
    pub fn pids(&self) -> Vec<u32> {
        self.counted(&self.list()).iter().map(|process| process.pid).collect()
    }

    /// Takes a reading. A child that ends meanwhile may be missed or count twice, so the tree is listed until two
    /// listings agree.
    pub fn read(&self) -> TreeReading {
        let mut listed = self.list();
        for _ in 1..LISTINGS_MAX {
            let reading = self.sum(&listed);
            let again = self.list();
            if listed.iter().map(Process::lineage).eq(again.iter().map(Process::lineage)) {
                return reading;
            }
            listed = again;
        }
        self.sum(&listed)
    }

    fn sum(&self, listed: &[Process]) -> TreeReading {
        let counted = self.counted(listed);
        let own = counted.iter().map(|process| (process.own_cpu_ns(), process.own));
        let waited = listed.iter().map(|process| (process.waited.ns(), process.waited));
        let (cpu_ns, user_ticks, system_ticks) =
            own.chain(waited).fold((0, 0, 0), |(cpu_ns, user, system): (u64, u64, u64), (ns, ticks)| {
                let (user, system) = (user.saturating_add(ticks.user), system.saturating_add(ticks.system));
                (cpu_ns.saturating_add(ns), user, system)
            });
        TreeReading { cpu_ns, user_ticks, system_ticks, counted }
    }

    fn counted(&self, listed: &[Process]) -> Vec<Process> {
        let counts = |process: &&Process| self.counts_roots || !self.is_root(process);
        listed.iter().filter(counts).copied().collect()
    }

    fn is_root(&self, process: &Process) -> bool {
        self.roots.iter().any(|root| root.pid == process.pid)
    }

    /// The roots and their descendants, as far as they live.
    fn list(&self) -> Vec<Process> {
        let by_parent = (!Path::new("/proc/thread-self/children").exists()).then(pids_by_parent);
        let living = |root: &&Process| {
            Process::read(root.pid).is_some_and(|now| now.started_ticks == root.started_ticks)
        };
        let mut known = HashSet::new();
        let roots = self.roots.iter().filter(living).map(|root| root.pid);
        let mut pids: Vec<u32> = roots.filter(|pid| known.insert(*pid)).collect();
        let mut at = 0;
        let mut listed = Vec::new();
        while at < pids.len() && pids.len() < PROCESSES_MAX {
            let pid = pids[at];
            at += 1;
            // Before the children: an ended child's CPU time is in the parent's figures.
            listed.extend(Process::read(pid));
            let children = by_parent
                .as_ref()
                .map_or_else(|| children(pid), |by_parent| by_parent.get(&pid).cloned().unwrap_or_default());
            pids.extend(children.into_iter().filter(|child| known.insert(*child)));
        }
        listed
    }
}

impl Process {
    /// Values that change when a process of a tree starts or ends.
    fn lineage(&self) -> (u32, u64, process::CpuTicks) {
        (self.pid, self.started_ticks, self.waited)
    }
}

impl TreeReading {
    /// Each process, parents first.
    pub(crate) fn processes(&self) -> impl Iterator<Item = ProcessReading> {
        self.counted.iter().map(|process| ProcessReading {
            pid: process.pid,
            started_ticks: process.started_ticks,
            cpu_ns: process.own_cpu_ns(),
        })
    }

    pub fn threads(&self) -> u64 {
        self.total(|process| process.threads)
    }

    /// The resident memory, off by up to some hundred kB for each process; pages that processes share count for each.
    pub fn resident_bytes(&self) -> u64 {
        self.total(Process::resident_bytes)
    }

    /// The memory, exact where the kernel shows it. The kernel walks all pages for it.
    pub fn memory(&self) -> TreeMemory {
        let each = self.counted.iter().map(Process::memory);
        each.fold(TreeMemory::default(), |sum, memory| TreeMemory {
            resident_bytes: sum.resident_bytes.saturating_add(memory.resident_bytes),
            pss_bytes: sum.pss_bytes.saturating_add(memory.pss_bytes),
        })
    }

    /// The open descriptors; 0 if the kernel hides them.
    pub fn descriptors(&self) -> u64 {
        self.total(Process::descriptors)
    }

    fn total(&self, of: impl Fn(&Process) -> u64) -> u64 {
        self.counted.iter().map(of).fold(0, u64::saturating_add)
    }
}

impl ThreadSchedule {
    /// Adds the counts of the threads of a reading's processes.
    pub fn update(&mut self, reading: &TreeReading) {
        let counts = reading.counted.iter().flat_map(Process::thread_counts);
        let mut living = HashMap::new();
        for thread in counts {
            self.shows_delay |= thread.delay_ns.is_some();
            living.insert(thread.tid, (thread.delay_ns.unwrap_or(0), thread.switches));
        }
        for (tid, (delay_ns, switches)) in std::mem::take(&mut self.living) {
            // A smaller count belongs to a later thread of the same id.
            if living.get(&tid).is_none_or(|&(_, switches_now)| switches_now < switches) {
                self.ended_delay_ns += delay_ns;
                self.ended_switches += switches;
            }
        }
        self.living = living;
    }

    /// How long they waited for a core, in nanoseconds; `None` if the kernel hides it.
    pub fn delay_ns(&self) -> Option<u64> {
        let living_ns: u64 = self.living.values().map(|(delay_ns, _)| delay_ns).sum();
        self.shows_delay.then_some(self.ended_delay_ns + living_ns)
    }

    /// How often they were switched, voluntarily and not.
    pub fn switches(&self) -> u64 {
        self.ended_switches + self.living.values().map(|(_, switches)| switches).sum::<u64>()
    }
}

impl ProcessReading {
    /// Its own name: a title that it has set, such as `nginx: worker process`, or the name of its program. Empty if it
    /// has ended.
    pub(crate) fn name(&self) -> String {
        let read = |file| fs::read(format!("/proc/{}/{file}", self.pid)).unwrap_or_default();
        let arguments = read("cmdline");
        let title = String::from_utf8_lossy(arguments.split(|byte| *byte == 0).next().unwrap_or_default());
        if title.split_whitespace().next().is_some_and(|word| word.ends_with(':')) {
            return title.split_whitespace().take(TITLE_WORDS).collect::<Vec<_>>().join(" ");
        }
        String::from_utf8_lossy(&read("comm")).trim_end().to_owned()
    }
}

/// The children of a process, as the kernel lists them for each of its threads (`proc_tid_children(5)`).
fn children(pid: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// All processes by their parents, for kernels that do not list children.
fn pids_by_parent() -> HashMap<u32, Vec<u32>> {
    let mut by_parent: HashMap<u32, Vec<u32>> = HashMap::new();
    for process in pids().filter_map(Process::read) {
        by_parent.entry(process.parent).or_default().push(process.pid);
    }
    by_parent
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    /// A shell that runs a script until its standard input ends.
    fn shell(script: &str) -> Child {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap()
    }

    fn until(what: &str, mut holds: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !holds() {
            assert!(Instant::now() < deadline, "not in time: {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_tree_counts_its_descendants_also_after_they_ended() {
        let busy = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done";
        let mut child = shell(&format!("sh -c '{busy}'; read _"));
        let tree = ProcessTree::new(&[child.id()]).unwrap();
        let descendants = ProcessTree::of_descendants(child.id()).unwrap();
        until("the child is busy", || descendants.read().cpu_ns > 20_000_000);
        until("it has ended", || descendants.pids().is_empty());
        let used_ns = tree.read().cpu_ns;
        assert!(used_ns > descendants.read().cpu_ns && descendants.read().cpu_ns > 20_000_000);
        assert!(tree.read().threads() == 1 && descendants.read().threads() == 0);
        drop(child.stdin.take());
        child.wait().unwrap();
        let ended = tree.read();
        assert_eq!((ended.cpu_ns, ended.threads(), ended.resident_bytes()), (0, 0, 0));
    }

    #[test]
    fn the_kernels_lists_of_children_agree_with_all_parents() {
        let mut child = shell("sleep 100 & sh -c 'sleep 100 & read _; kill $!' ; kill $!");
        let tree = ProcessTree::new(&[child.id()]).unwrap();
        until("all have started", || tree.pids().len() == 4);
        let by_parent = pids_by_parent();
        let pids = tree.pids();
        for pid in &pids {
            let mut expected = by_parent.get(pid).cloned().unwrap_or_default();
            let mut listed = children(*pid);
            expected.sort_unstable();
            listed.sort_unstable();
            assert_eq!(listed, expected, "children of {pid} of {pids:?}");
        }
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn a_process_of_two_trees_counts_once() {
        let me = std::process::id();
        let mut child = shell("read _");
        let tree = ProcessTree::new(&[me, child.id(), me]).unwrap();
        let pids = tree.pids();
        assert_eq!(pids.iter().filter(|pid| **pid == child.id()).count(), 1, "{pids:?}");
        assert_eq!(pids.iter().filter(|pid| **pid == me).count(), 1, "{pids:?}");
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn a_missing_process_is_refused() {
        assert!(ProcessTree::new(&[std::process::id(), u32::MAX - 1]).is_err());
    }

    #[test]
    fn switches_of_ended_threads_stay_counted() {
        let mut child = shell("while read _; do sleep 0.01; done");
        let tree = ProcessTree::new(&[child.id()]).unwrap();
        let mut schedule = ThreadSchedule::default();
        until("it has been switched", || {
            schedule.update(&tree.read());
            schedule.switches() > 0
        });
        drop(child.stdin.take());
        child.wait().unwrap();
        let before = schedule.switches();
        schedule.update(&tree.read());
        assert_eq!(schedule.switches(), before);
    }
}
