//! Resource usage of other processes and their descendants, for the records of a run.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use super::listening::ListenerCounts;
use super::process_tree::{ProcessReading, ProcessTree, TreeReading};
use super::slow_reading::SlowReading;
use records::kinds::HostRecord;
use records::values::{ProcessCpu, ProcessCpuList, keep_busiest};

/// Observes process trees for `--observe-pid`. The figures of several add up.
#[derive(Debug)]
pub struct ProcessObserver {
    tree: ProcessTree,
    /// The first of the processes, which names them in records.
    first: u32,
    /// CPU time at the first reading, in nanoseconds.
    before_ns: u64,
    /// CPU time of each process at its first reading, in nanoseconds, by process id and start time.
    before_each_ns: HashMap<(u32, u64), u64>,
    used_us: u64,
    threads_max: u64,
    memory_max_bytes: u64,
    listeners: SlowReading<ListenerCounts>,
}

/// The time between two looks for listening sockets: the kernel walks its table of all connections for it, which takes
/// milliseconds.
const LISTENERS_EVERY: Duration = Duration::from_secs(10);

impl ProcessObserver {
    /// Begins to observe; `None` if there is nothing to observe.
    ///
    /// # Errors
    /// If one of the processes does not exist, or `/proc` cannot be read.
    pub fn new(pids: &[u32]) -> io::Result<Option<Self>> {
        let Some(&first) = pids.first() else { return Ok(None) };
        let tree = ProcessTree::new(pids)?;
        let before = tree.read();
        let each = before.processes().map(|process| (process.key(), process.cpu_ns));
        Ok(Some(Self {
            tree,
            first,
            before_ns: before.cpu_ns,
            before_each_ns: each.collect(),
            used_us: 0,
            threads_max: 0,
            memory_max_bytes: 0,
            listeners: SlowReading::default(),
        }))
    }

    /// Takes a reading into a record. Ended processes keep the figures of their last reading.
    pub fn sample(&mut self, into: &mut HostRecord) {
        let reading = self.tree.read();
        // A child that is not yet waited for takes its CPU time with it; the total must not decrease.
        self.used_us = self.used_us.max(reading.cpu_ns.saturating_sub(self.before_ns) / 1_000);
        let (threads, memory_bytes) = (reading.threads(), reading.resident_bytes());
        self.threads_max = self.threads_max.max(threads);
        self.memory_max_bytes = self.memory_max_bytes.max(memory_bytes);
        into.observed_pid = self.first.into();
        into.observed_cpu_us = self.used_us;
        into.observed_threads = threads;
        into.observed_threads_max = self.threads_max;
        into.observed_memory_bytes = memory_bytes;
        into.observed_memory_max_bytes = self.memory_max_bytes;
        into.observed_descriptors = reading.descriptors();
        into.observed_processes = self.each(&reading);
        let listeners = self.listeners.get(LISTENERS_EVERY, || ListenerCounts::of(&self.tree.pids()));
        into.observed_listeners = listeners.sockets;
        into.observed_backlog = listeners.waiting;
    }

    /// The CPU time of each process. A process that started later began at zero.
    fn each(&self, reading: &TreeReading) -> ProcessCpuList {
        let mut used: Vec<(ProcessReading, u64)> = reading
            .processes()
            .map(|process| {
                let before_ns = self.before_each_ns.get(&process.key()).copied().unwrap_or(0);
                (process, process.cpu_ns.saturating_sub(before_ns) / 1_000)
            })
            .collect();
        keep_busiest(&mut used, |(_, cpu_us)| *cpu_us);
        let listed =
            used.iter().map(|(process, cpu_us)| ProcessCpu::new(process.pid, &process.name(), *cpu_us));
        ProcessCpuList::new(listed.collect())
    }
}

impl ProcessReading {
    fn key(&self) -> (u32, u64) {
        (self.pid, self.started_ticks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command, Stdio};
    use std::time::Instant;

    /// A shell that is busy for a moment and then waits for its standard input to end.
    fn busy_shell() -> Child {
        let busy = "i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done; read _";
        Command::new("sh").args(["-c", busy]).stdin(Stdio::piped()).spawn().unwrap()
    }

    #[test]
    fn figures_of_several_trees_add_up_and_stay_after_their_end() {
        let mut children = [busy_shell(), busy_shell()];
        let mut observer = ProcessObserver::new(&[children[0].id(), children[1].id()]).unwrap().unwrap();
        let mut record = HostRecord::default();
        let deadline = Instant::now() + Duration::from_secs(20);
        while record.observed_cpu_us < 50_000 {
            assert!(Instant::now() < deadline, "{record:?}");
            observer.sample(&mut record);
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(record.observed_memory_max_bytes > 200_000, "{record:?}");
        assert_eq!((record.observed_threads_max, record.observed_pid), (2, children[0].id().into()));
        for child in &mut children {
            drop(child.stdin.take());
            child.wait().unwrap();
        }
        let pids: Vec<u64> = record.observed_processes.iter().map(|process| process.pid.into()).collect();
        assert_eq!(pids, children.each_ref().map(|child| u64::from(child.id())));
        let of_each: u64 = record.observed_processes.iter().map(|process| process.cpu_us).sum();
        assert!(of_each.abs_diff(record.observed_cpu_us) < 20_000, "each apart makes the sum: {record:?}");
        assert!(record.observed_processes.iter().all(|process| &*process.name == "sh"), "{record:?}");
        let used_us = record.observed_cpu_us;
        observer.sample(&mut record);
        assert!(record.observed_cpu_us >= used_us, "it never runs backwards");
        assert_eq!((record.observed_threads, record.observed_memory_bytes), (0, 0));
        assert!(record.observed_processes.is_empty());
    }

    #[test]
    fn descriptors_and_listening_sockets_are_those_of_the_process() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut record = HostRecord::default();
        let mut observer = ProcessObserver::new(&[std::process::id()]).unwrap().unwrap();
        // Connected, and never accepted.
        let _waiting = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        observer.sample(&mut record);
        assert!(record.observed_descriptors >= 3, "{record:?}");
        assert!(record.observed_listeners >= 1 && record.observed_backlog >= 1, "{record:?}");
    }

    #[test]
    fn nothing_to_observe_is_no_error() {
        assert!(ProcessObserver::new(&[]).unwrap().is_none());
    }
}
