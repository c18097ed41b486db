//! Resource usage of this process, from `/proc/self`.

mod contention;
mod listen_drops;
mod listening;
mod process_observer;
mod process_tree;
mod processes;
mod slow_reading;
mod unit_processes;

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;
use std::time::Duration;

use records::kinds::HostRecord;
use records::metrics::{CPU_GROUPS, Counters, CpuGroup};

use contention::ContentionSampler;
pub use listen_drops::listening_sockets;
pub use listening::{ListeningProcess, ListeningSocket, NamespaceListeners, listening_processes};
pub use process_observer::ProcessObserver;
pub use process_tree::{ProcessTree, ThreadSchedule, TreeMemory, TreeReading};
pub use processes::{NamedProcess, processes};
pub use slow_reading::SlowReading;
pub use unit_processes::unit_processes;

/// How often PSS is read: the kernel walks all pages of the process for it.
const PSS_EVERY: Duration = Duration::from_secs(10);

/// Reads the resources that the process uses. Threads are grouped by the beginning of their names.
///
/// The CPU time of a thread after its last reading is known only for the whole process. It is divided among the
/// groups by their number of ended threads, so take a reading before threads of another group end.
#[derive(Debug, Default)]
pub struct HostSampler {
    /// Group and CPU time in nanoseconds of each thread, by its id.
    threads: HashMap<u32, (CpuGroup, u64)>,
    ended_ns: Counters<CpuGroup>,
    /// The sum of the most that one worker used between two readings.
    peak_worker_ns: u64,
    /// CPU time of threads that ended before the first reading, such as those of an earlier run of this process.
    earlier_ns: Option<u64>,
    /// The last reading, and its time.
    pss: SlowReading<u64>,
    contention: ContentionSampler,
}

impl HostSampler {
    /// Counts connections that the sockets at these addresses drop from now on.
    pub fn listen_at(&mut self, addrs: &[SocketAddr]) {
        self.contention.listen_at(addrs);
    }

    /// Takes a reading; a figure that `/proc` lacks is 0.
    pub fn sample(&mut self) -> HostRecord {
        let living = living_threads();
        let threads = living.len() as u64;
        let living_ns = living.values().map(|&(_, ns)| ns).sum::<u64>();
        self.earlier_ns.get_or_insert_with(|| process_cpu_ns().saturating_sub(living_ns));
        let mut ended = Counters::default();
        for (_, (group, used_ns)) in self.threads.extract_if(|tid, _| !living.contains_key(tid)) {
            self.ended_ns[group] += used_ns;
            ended[group] += 1;
        }
        let used_lately = |(tid, &(group, ns)): (&u32, &(CpuGroup, u64))| {
            let before = self.threads.get(tid).map_or(0, |(_, before_ns)| *before_ns);
            (group == CpuGroup::Proxy).then(|| ns.saturating_sub(before))
        };
        self.peak_worker_ns += living.iter().filter_map(used_lately).max().unwrap_or(0);
        self.threads.extend(living);
        self.share_out(&ended);
        let mut used_ns = self.ended_ns;
        for &(group, ns) in self.threads.values() {
            used_ns[group] += ns;
        }
        let workers_ns =
            self.threads.values().filter(|(group, _)| *group == CpuGroup::Proxy).map(|(_, ns)| *ns);
        let busiest_worker_ns = workers_ns.max().unwrap_or(0);
        let mut cpu = Counters::default();
        for (group, ns) in used_ns.iter() {
            cpu[group] = ns / 1_000;
        }
        let mut host = HostRecord {
            memory_bytes: memory_bytes(),
            memory_pss_bytes: self.pss.get(PSS_EVERY, pss_bytes),
            descriptors: descriptors(),
            descriptors_max: descriptors_max(),
            threads,
            busiest_worker_cpu_us_total: busiest_worker_ns / 1_000,
            peak_worker_cpu_us_total: self.peak_worker_ns / 1_000,
            cpu,
            ..HostRecord::default()
        };
        self.contention.sample(&mut host);
        host
    }
}

impl HostSampler {
    /// Adds CPU time that belongs to no known thread to the groups whose threads have ended.
    fn share_out(&mut self, ended: &Counters<CpuGroup>) {
        let ended_total: u64 = ended.iter().map(|(_, threads)| threads).sum();
        if ended_total == 0 {
            return;
        }
        let living_ns: u64 = self.threads.values().map(|&(_, ns)| ns).sum();
        let known_ns = self.ended_ns.iter().map(|(_, ns)| ns).sum::<u64>() + living_ns;
        let earlier_ns = self.earlier_ns.unwrap_or(0);
        let unknown_ns = process_cpu_ns().saturating_sub(known_ns.saturating_add(earlier_ns));
        for (group, threads) in ended.iter() {
            self.ended_ns[group] += unknown_ns * threads / ended_total;
        }
    }
}

/// CPU time of the process, ended threads included.
fn process_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

fn living_threads() -> HashMap<u32, (CpuGroup, u64)> {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return HashMap::new() };
    let thread = |task: std::io::Result<fs::DirEntry>| {
        let task = task.ok()?;
        let tid = task.file_name().to_str()?.parse().ok()?;
        let name = fs::read_to_string(task.path().join("comm")).ok()?;
        let used_ns = thread_cpu_ns(&task.path())?;
        Some((tid, (group(name.trim_end()), used_ns)))
    };
    tasks.filter_map(thread).collect()
}

/// The first number of `schedstat` is the time spent on the CPU in nanoseconds. Kernels without it have ticks in
/// `stat`.
fn thread_cpu_ns(task: &std::path::Path) -> Option<u64> {
    if let Ok(schedstat) = fs::read_to_string(task.join("schedstat")) {
        return schedstat.split(' ').next()?.parse().ok();
    }
    let stat = fs::read_to_string(task.join("stat")).ok()?;
    let after_name = stat.rsplit_once(')')?.1;
    let mut ticks = after_name.split_whitespace().skip(11).take(2).map(str::parse::<u64>);
    let used = ticks.next()?.ok()? + ticks.next()?.ok()?;
    Some(used * 1_000_000_000 / rustix::param::clock_ticks_per_second())
}

fn group(name: &str) -> CpuGroup {
    CPU_GROUPS
        .iter()
        .find(|(prefix, _)| name.starts_with(prefix))
        .map_or(CpuGroup::Other, |(_, group)| *group)
}

fn memory_bytes() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

fn pss_bytes() -> u64 {
    let rollup = fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let kib = rollup.lines().find_map(|line| line.strip_prefix("Pss:")?.strip_suffix("kB"));
    kib.and_then(|kib| kib.trim().parse::<u64>().ok()).unwrap_or(0) * 1024
}

fn descriptors() -> u64 {
    // One of them is the directory that is being read.
    fs::read_dir("/proc/self/fd").map_or(0, |entries| (entries.count() as u64).saturating_sub(1))
}

/// The bound on open descriptors; 0 without one.
fn descriptors_max() -> u64 {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    use rustix::time::{ClockId, clock_gettime};

    /// Uses this much CPU time, however long a busy machine takes for it.
    fn burn(for_time: Duration) {
        let used = || Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap();
        let end = used() + for_time;
        while used() < end {
            std::hint::black_box(0);
        }
    }

    #[test]
    fn cpu_is_accounted_to_the_group_of_the_thread_also_after_it_ended() {
        let mut sampler = HostSampler::default();
        let before = sampler.sample();
        let (tell, told) = std::sync::mpsc::channel();
        let (done, wait) = std::sync::mpsc::channel::<()>();
        let worker = std::thread::Builder::new()
            .name("proxy-7".into())
            .spawn(move || {
                burn(Duration::from_millis(50));
                tell.send(()).unwrap();
                wait.recv().unwrap();
                burn(Duration::from_millis(50));
            })
            .unwrap();
        told.recv().unwrap();
        let alive = sampler.sample().cpu[CpuGroup::Proxy] - before.cpu[CpuGroup::Proxy];
        assert!(alive > 10_000, "only {alive} us");
        let sample = sampler.sample();
        let (busiest, peak) = (sample.busiest_worker_cpu_us_total, sample.peak_worker_cpu_us_total);
        assert!(busiest >= alive, "{busiest} us of the busiest of the proxy's threads");
        assert!(peak >= alive, "{peak} us of the busiest in each reading");
        done.send(()).unwrap();
        worker.join().unwrap();
        let ended = sampler.sample().cpu[CpuGroup::Proxy] - before.cpu[CpuGroup::Proxy];
        assert!(ended >= alive + 10_000, "what it used last is missing: {alive} and then {ended} us");
    }

    #[test]
    fn a_reading_tells_memory_descriptors_and_threads() {
        let sample = HostSampler::default().sample();
        assert!(sample.memory_bytes > 1_000_000);
        let pss = sample.memory_pss_bytes;
        assert!(pss > 100_000 && pss <= sample.memory_bytes + (1 << 20), "{sample:?}");
        assert!(sample.descriptors >= 3);
        assert!(sample.descriptors_max == 0 || sample.descriptors_max > sample.descriptors);
        assert!(sample.threads >= 1);
    }
}
