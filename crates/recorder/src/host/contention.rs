//! Contention: connections that found a backlog full, and CPU time that the cgroup or the hypervisor withheld.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::listen_drops::ListenDrops;
use super::slow_reading::SlowReading;
use records::kinds::HostRecord;
use records::metrics::{Counters, HostCounter};

/// How often the files are read: the kernel adds up figures of all CPUs for each.
const READ_EVERY: Duration = Duration::from_secs(2);

/// Reads the resources withheld since the first reading. Figures that the machine lacks are 0.
#[derive(Debug, Default)]
pub(crate) struct ContentionSampler {
    cpu_stat: Option<PathBuf>,
    first: Option<Counters<HostCounter>>,
    last: SlowReading<HostContention>,
    own: ListenDrops,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct HostContention {
    /// Since the machine or the cgroup began.
    withheld: Counters<HostCounter>,
    /// CPUs over which stolen time is counted.
    cpus: u64,
}

impl ContentionSampler {
    pub(super) fn listen_at(&mut self, addrs: &[SocketAddr]) {
        self.own = ListenDrops::at(addrs.to_vec());
    }

    /// Writes the withheld resources into a record.
    pub(crate) fn sample(&mut self, host: &mut HostRecord) {
        let now = self.read();
        host.withheld = now.withheld.since(self.first.get_or_insert(now.withheld));
        host.machine_cpus = now.cpus;
    }

    fn read(&mut self) -> HostContention {
        let text = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        let cpu_stat = self.cpu_stat.get_or_insert_with(cpu_stat_path);
        self.last.get(READ_EVERY, || {
            let mut read = HostContention::parse(
                &text(Path::new("/proc/net/netstat")),
                &text(cpu_stat),
                &text(Path::new("/proc/stat")),
            );
            read.withheld[HostCounter::OwnListenDrops] = self.own.read();
            read
        })
    }
}

impl HostContention {
    /// From `/proc/net/netstat`, a cgroup's `cpu.stat` and `/proc/stat`.
    fn parse(netstat: &str, cpu_stat: &str, stat: &str) -> Self {
        let throttled = cpu_stat.lines().find_map(|line| line.strip_prefix("throttled_usec "));
        // user nice system idle iowait irq softirq steal
        let cpu = stat.lines().next().unwrap_or_default().split_whitespace().nth(8);
        let is_one = |line: &&str| line.starts_with("cpu") && !line.starts_with("cpu ");
        let ticks = cpu.and_then(|steal| steal.parse::<u64>().ok()).unwrap_or(0);
        let mut withheld = Counters::default();
        withheld[HostCounter::ListenOverflows] = tcp_counter(netstat, "ListenOverflows");
        withheld[HostCounter::ListenDrops] = tcp_counter(netstat, "ListenDrops");
        withheld[HostCounter::CpuThrottled] = throttled.and_then(|us| us.trim().parse().ok()).unwrap_or(0);
        withheld[HostCounter::CpuStolen] = ticks * 1_000_000 / rustix::param::clock_ticks_per_second();
        Self { withheld, cpus: stat.lines().filter(is_one).count() as u64 }
    }
}

/// A counter of the `TcpExt` lines: the first line has the names, the second the counts.
fn tcp_counter(netstat: &str, name: &str) -> u64 {
    let mut lines = netstat.lines().filter(|line| line.starts_with("TcpExt:"));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return 0 };
    let pairs = names.split_whitespace().zip(values.split_whitespace());
    pairs.skip(1).find(|(known, _)| *known == name).and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
}

/// `cpu.stat` of this process's cgroup (version 2); the path of no file without one.
fn cpu_stat_path() -> PathBuf {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    Path::new("/sys/fs/cgroup").join(group).join("cpu.stat")
}

#[cfg(test)]
mod tests {
    use super::*;

    const NETSTAT: &str = "TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPHPHits\n\
                           TcpExt: 1 316 318 9\n\
                           IpExt: InNoRoutes\nIpExt: 7\n";

    #[test]
    fn contention_is_read_from_the_kernels_tables() {
        let stat =
            "cpu  3806404 2984463 1236598 1744353 72564 0 73335 17804 0 0\ncpu0 1 2\ncpu1 1 2\nintr 1\n";
        let read =
            HostContention::parse(NETSTAT, "usage_usec 81\nnr_throttled 2\nthrottled_usec 1250\n", stat);
        let stolen_us = 17_804 * 1_000_000 / rustix::param::clock_ticks_per_second();
        let withheld: Vec<u64> = read.withheld.iter().map(|(_, total)| total).collect();
        assert_eq!((withheld, read.cpus), (vec![316, 318, 0, 1_250, stolen_us], 2));
    }

    #[test]
    fn missing_kernel_figures_are_zero() {
        for text in ["", "TcpExt: ListenDrops\n", "TcpExt:\nTcpExt:\n", "cpu  1 2", "throttled_usec x"] {
            assert_eq!(HostContention::parse(text, text, text), HostContention::default(), "{text:?}");
        }
    }

    #[test]
    fn counts_start_with_the_first_reading() {
        let withheld = |drops, throttled_us| {
            let mut withheld = Counters::default();
            withheld[HostCounter::ListenDrops] = drops;
            withheld[HostCounter::CpuThrottled] = throttled_us;
            withheld
        };
        let mut sampler = ContentionSampler { first: Some(withheld(10, 0)), ..ContentionSampler::default() };
        sampler.last.get(READ_EVERY, || HostContention { withheld: withheld(17, 5), cpus: 1 });
        let mut host = HostRecord::default();
        sampler.sample(&mut host);
        assert_eq!(host.withheld, withheld(7, 5));
        let mut host = HostRecord::default();
        ContentionSampler::default().sample(&mut host);
        assert!(host.machine_cpus > 0, "this one is known");
        assert_eq!(host, HostRecord { machine_cpus: host.machine_cpus, ..HostRecord::default() });
    }
}
