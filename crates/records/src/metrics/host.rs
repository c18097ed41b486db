//! Counters of the process's CPU time, and of the host.

use super::counters::metrics;

metrics! {
    /// Whose threads used how much CPU.
    CpuGroup {
        Proxy = "CPU_PROXY_US_TOTAL", Micros, "812033", "CPU time of the proxy's workers."
            => figure: "cpu.proxy", metric: "cpu_seconds", label: "proxy";
        Load = "CPU_LOAD_US_TOTAL", Micros, "1203311", "CPU time of the load generator's threads."
            => figure: "cpu.load", metric: "cpu_seconds", label: "load";
        Upstream = "CPU_UPSTREAM_US_TOTAL", Micros, "402113", "CPU time of the demo upstream."
            => figure: "cpu.upstream", metric: "cpu_seconds", label: "upstream";
        Dashboard = "CPU_DASHBOARD_US_TOTAL", Micros, "20131", "CPU time of the dashboard and of following the journal."
            => figure: "cpu.dashboard", metric: "cpu_seconds", label: "dashboard";
        Journal = "CPU_JOURNAL_US_TOTAL", Micros, "10022", "CPU time of gathering, encoding and writing records."
            => figure: "cpu.journal", metric: "cpu_seconds", label: "journal";
        Observer = "CPU_OBSERVER_US_TOTAL", Micros, "3022", "CPU time of reading the packets, or the log, of another terminator."
            => figure: "cpu.observer", metric: "cpu_seconds", label: "observer";
        Other = "CPU_OTHER_US_TOTAL", Micros, "802", "CPU time of all other threads of the process."
            => metric: "cpu_seconds", label: "other";
    }
}

metrics! {
    /// What the kernel or the hypervisor withheld since the run began, read every 2 s.
    HostCounter {
        ListenOverflows = "LISTEN_OVERFLOWS_TOTAL", Count, "0", "Connections that found the backlog of a listening socket full, of all sockets in the network namespace."
            => metric: "listen_overflows";
        ListenDrops = "LISTEN_DROPS_TOTAL", Count, "0", "Connections that a listening socket dropped for this or another cause, of all sockets in the network namespace."
            => metric: "listen_drops";
        OwnListenDrops = "OWN_LISTEN_DROPS_TOTAL", Count, "0", "Of these, connections that the proxy's own listening sockets dropped; 0 if the kernel does not tell."
            => metric: "own_listen_drops";
        CpuThrottled = "CPU_THROTTLED_US_TOTAL", Micros, "0", "Time that the threads of the process's cgroup were throttled by its CPU quota; 0 without cgroup v2."
            => metric: "cpu_throttled_seconds";
        CpuStolen = "CPU_STOLEN_US_TOTAL", Micros, "0", "CPU time that the hypervisor gave to others, over all CPUs of the machine."
            => metric: "cpu_stolen_seconds";
    }
}

/// The groups of threads of the program, by the beginning of their names.
pub const CPU_GROUPS: [(&str, CpuGroup); 6] = [
    ("proxy", CpuGroup::Proxy),
    ("load", CpuGroup::Load),
    ("upstream", CpuGroup::Upstream),
    ("dashboard", CpuGroup::Dashboard),
    ("journal", CpuGroup::Journal),
    ("observe", CpuGroup::Observer),
];
